package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/hostport"
)

// clusterSuffixes are suffixes of names that only a cluster's or a local resolver can
// resolve. No site on the internet can have such a name.
var clusterSuffixes = []string{".svc", ".cluster.local", ".local", ".internal", ".localhost"} //nolint:gochecknoglobals // a table

// checkHost prevents DNS rebinding: a site on the internet whose name resolves to
// 127.0.0.1 could read, in a user's browser, the pages of a port-forward or the demo.
// The Host header of a request over the loopback interface must be an address, a name
// without dots, a name of a cluster, or one of the allowed names. Requests over other
// interfaces are not checked, because clients that can reach them need no browser.
// Requests whose Origin is another site are refused on all interfaces.
func checkHost(allowed []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := parseHost(r.Host)
		switch {
		case isLoopback(peerAddress(r.RemoteAddr)) && !isLocalName(host) && !slices.Contains(allowed, host) && !slices.Contains(allowed, "*"):
			http.Error(w, "the name in the Host header is not allowed: set --web.allowed-host if it is correct", http.StatusMisdirectedRequest)
		case !sameOrigin(r.Header.Get("Origin"), r.Host):
			http.Error(w, "requests from pages of other sites are not allowed", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// checkHosts refuses names that cannot match, such as one with a port or a scheme, so
// that they are not ignored silently.
func checkHosts(allowed []string) error {
	for _, name := range allowed {
		if name != "*" && (name == "" || parseHost(name) != name || strings.Contains(name, "*")) {
			return fmt.Errorf("--web.allowed-host=%s is not a host name: write it in lower case, such as dra.example.com, without scheme, port and pattern, or * for any", hostport.Redacted(name))
		}
	}
	return nil
}

// parseHost returns the host of a Host header, without port, in lower case.
func parseHost(header string) string {
	parsed, err := url.Parse("//" + header)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(parsed.Hostname()), ".")
}

// isLocalName reports whether the name is an address, or a name that a resolver of the
// internet cannot resolve.
func isLocalName(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil || !strings.Contains(host, ".") {
		return true
	}
	return slices.ContainsFunc(clusterSuffixes, func(suffix string) bool { return strings.HasSuffix(host, suffix) })
}

func sameOrigin(origin, host string) bool {
	if origin == "" {
		return true
	}
	parsed, err := url.Parse(origin)
	return err == nil && strings.EqualFold(parsed.Host, host)
}
