package otlp

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
)

// pair is one key=value of a list.
type pair struct {
	key, value string
	place      int // in the list, from 1
}

// pairs reads a list as W3C's baggage writes it, key=value,key=value, with the
// values percent-encoded. It says nothing of what is in the list: entries are
// named by their place.
func (r *reader) pairs(g given) []pair {
	if !g.is() {
		return nil
	}
	var list []pair
	for at, entry := range strings.Split(g.value, ",") {
		key, encoded, found := strings.Cut(entry, "=")
		key = strings.TrimSpace(key)
		if !found || key == "" {
			r.refuseSecret(g, "entry %d is not key=value (a comma within a value is written %%2C)", at+1)
			return nil
		}
		value, err := url.PathUnescape(strings.TrimSpace(encoded))
		if err != nil {
			r.refuseSecret(g, "the value of entry %d is not percent-encoded (a percent sign is written %%25)", at+1)
			return nil
		}
		list = append(list, pair{key: key, value: strings.TrimSpace(value), place: at + 1})
	}
	return list
}

// headers reads what is sent with each export, with keys in lower case; of
// equal keys the last counts. Values are secrets, and so may be what stands in
// a key's place by mistake.
func (r *reader) headers(g given, protocol string) map[string]string {
	list := r.pairs(g)
	if len(list) == 0 {
		return nil
	}
	headers := make(map[string]string, len(list))
	for _, header := range list {
		key := strings.ToLower(header.key)
		switch {
		case strings.ContainsFunc(key, notToken), protocol == protocolGRPC && strings.ContainsFunc(key, notMetadata):
			r.refuseSecret(g, "the key of entry %d has characters that a header cannot have", header.place)
		case strings.ContainsFunc(header.value, notPrintable):
			r.refuseSecret(g, "the value of entry %d has characters that a header cannot have", header.place)
		case reserved(key):
			r.refuseSecret(g, "%s (entry %d) is set by the protocol: remove it", key, header.place)
		}
		headers[key] = header.value
	}
	return headers
}

// notToken are the characters that no header's key has (RFC 9110, token).
func notToken(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

// notMetadata are those that gRPC's metadata does not have besides.
func notMetadata(r rune) bool { return strings.ContainsRune("!#$%&'*+^`|~", r) }

func notPrintable(r rune) bool { return r < ' ' || r >= 0x7f }

// reserved are headers that say how the request is encoded or routed; set by
// hand they would break it.
func reserved(key string) bool {
	switch key {
	case "host", "connection", "te", "trailer", "transfer-encoding", "upgrade", "expect", "user-agent", "accept-encoding":
		return true
	}
	return strings.HasPrefix(key, "content-") || strings.HasPrefix(key, "grpc-")
}

// attributes are those of the resource by OTEL_RESOURCE_ATTRIBUTES, before
// which OTEL_SERVICE_NAME and the flag go.
func (r *reader) attributes(flags Flags) []attribute.KeyValue {
	values := make(map[string]string)
	g := r.variable("OTEL_RESOURCE_ATTRIBUTES")
	for _, named := range r.pairs(g) {
		values[named.key] = r.text(given{g.name, named.value})
	}
	if name := r.variable("OTEL_SERVICE_NAME"); name.is() {
		values["service.name"] = r.text(name)
	}
	if cluster := (given{"--otlp.cluster-name", strings.TrimSpace(flags.ClusterName)}); cluster.is() {
		values["k8s.cluster.name"] = r.text(cluster)
	}
	list := make([]attribute.KeyValue, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		list = append(list, attribute.String(r.text(given{g.name, key}), values[key]))
	}
	return list
}

// text refuses what protobuf would not encode: one such attribute would fail
// every export.
func (r *reader) text(g given) string {
	if !utf8.ValidString(g.value) {
		r.refuse(g, "not UTF-8")
	}
	return g.value
}
