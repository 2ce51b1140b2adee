package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/logging"
)

// hosts decides by which names pages may be requested. A page of another site
// can point its own name at our address (DNS rebinding), and a browser then
// lets it read our answers; the name in the request gives it away.
type hosts struct {
	allowed   []string // lower case; "*.example.com" is every name below, "*" is every name
	always    bool     // also for connections that are not over the loopback interface
	ownName   string
	refusals  func(host string)
	allowsAll bool
}

func newHosts(config Config) *hosts {
	own, err := os.Hostname()
	if err != nil {
		own = "" // it is then not among the names
	}
	log := logging.Limit(config.Log, logging.Hosts)
	h := &hosts{
		always: config.CheckHosts || len(config.AllowedHosts) > 0, ownName: strings.ToLower(own),
		refusals: func(host string) {
			log.Warn("a page was requested by a host name that is not allowed", "host", host, "flag", allowedHostsFlag)
		},
	}
	for _, name := range config.AllowedHosts {
		h.allowed = append(h.allowed, strings.ToLower(strings.TrimSuffix(name, ".")))
	}
	h.allowsAll = slices.Contains(h.allowed, "*")
	return h
}

const allowedHostsFlag = "--web.allowed-hosts"

// CheckAllowedHosts refuses what is no name of a host. The message names the
// flag.
func CheckAllowedHosts(names []string) error {
	for _, name := range names {
		rest := strings.TrimPrefix(name, "*.")
		if name != "*" && (rest == "" || strings.ContainsAny(rest, "*:/ \t[]@")) {
			return fmt.Errorf("%s=%s is no host name: give one such as dra.example.com or *.example.com, without scheme and port, or * for all", allowedHostsFlag, name)
		}
	}
	return nil
}

// checked answers 421 to requests by other names.
func (h *hosts) checked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.applies(r) && !h.allows(r.Host) {
			h.refusals(r.Host)
			w.Header().Set("Cache-Control", "no-store")
			http.Error(w, "this page may not be requested by this host name: allow it by "+allowedHostsFlag+", or use an IP address or localhost", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// applies reports whether the name matters: unless names were given, only where
// the connection is over the loopback interface, as those of a browser on this
// machine and of kubectl port-forward are. Through the API server's proxy and
// through an ingress requests have names that only users know.
func (h *hosts) applies(r *http.Request) bool {
	if h.allowsAll {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	tcp, is := local.(*net.TCPAddr)
	return h.always || is && tcp.IP.IsLoopback()
}

// allows reports whether a page of another site cannot have this name.
func (h *hosts) allows(host string) bool {
	name, err := hostName(host)
	if err != nil {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	switch {
	case !strings.Contains(name, "."): // localhost, a Service of the same namespace, a machine of the same network
		return name != ""
	case name == h.ownName:
		return true
	case strings.HasSuffix(name, ".localhost"), strings.HasSuffix(name, ".svc"), strings.HasSuffix(name, ".cluster.local"):
		return true
	}
	return slices.ContainsFunc(h.allowed, func(allowed string) bool {
		below, wildcard := strings.CutPrefix(allowed, "*")
		return name == allowed || wildcard && strings.HasSuffix(name, below) && len(name) > len(below)
	})
}

// hostName is a Host header without its port.
func hostName(host string) (string, error) {
	if host == "" {
		return "", errors.New("no host")
	}
	if strings.HasPrefix(host, "[") || strings.Count(host, ":") == 1 {
		name, _, err := net.SplitHostPort(host)
		if err != nil && strings.HasSuffix(host, "]") {
			return host[1 : len(host)-1], nil
		}
		return name, err
	}
	return host, nil
}

// sameSite refuses what a browser says that a page of another site requests,
// but for following a link. Browsers tell only by https and on localhost.
func sameSite(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		site, mode := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode")
		if (site == "cross-site" || site == "same-site") && mode != "navigate" {
			http.Error(w, "pages of other sites may link to this page, but not read it", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
