package web

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// clusterSuffixes are the ends of names that only a cluster's or a local
// resolver resolves. No site on the internet can have such a name.
var clusterSuffixes = []string{".svc", ".cluster.local", ".local", ".internal", ".localhost"} //nolint:gochecknoglobals // a table

// knownHosts keeps sites on the internet from reading the pages through a
// user's browser: a site whose name resolves to 127.0.0.1 reads what a
// port-forward or the demo serves there (DNS rebinding). A request that comes
// by the loopback interface must name an address, a name without dots, a name
// of a cluster, or one of the given names. Other interfaces are not asked:
// whoever can reach them needs no browser. One that names a page of another
// site as its origin is refused everywhere.
func knownHosts(allowed []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		switch {
		case isLoopback(addressOf(r.RemoteAddr)) && !isLocalName(host) && !slices.Contains(allowed, host) && !slices.Contains(allowed, "*"):
			http.Error(w, "this server is not known by the name in the Host header: give it by --web.allowed-host if it is right", http.StatusMisdirectedRequest)
		case !sameOrigin(r.Header.Get("Origin"), r.Host):
			http.Error(w, "pages of other sites may not read this", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// checkHosts refuses what no request is ever compared with, so that a name with a
// port or a scheme is not silently without effect.
func checkHosts(allowed []string) error {
	for _, name := range allowed {
		if name != "*" && (name == "" || hostOf(name) != name || strings.Contains(name, "*")) {
			return fmt.Errorf("--web.allowed-host=%s is no host name: give it in lower case, such as dra.example.com, without scheme, port and pattern, or * for any", name)
		}
	}
	return nil
}

// hostOf is the host in a Host header, without port, in lower case.
func hostOf(header string) string {
	parsed, err := url.Parse("//" + header)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(parsed.Hostname()), ".")
}

// isLocalName reports whether the name is an address, or none that a resolver of
// the internet would know.
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
