// Package hostport writes addresses so that Go's packages net and net/url can parse
// them, and so that they can be shown. Its functions are pure.
package hostport

import (
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Bracketed returns a URL or HOST:PORT with brackets around an IPv6 address. Users
// write http://$(HOST_IP):8080, and Kubernetes replaces the variable by the address
// alone. In an address without brackets, the number after the last colon is the port if
// an address is before it: fd00::1:8080 is the port 8080 of fd00::1. Around an IPv4
// address, brackets are removed. Any other text is returned as it is.
func Bracketed(text string) string {
	scheme, rest := "", text
	if i := strings.Index(text, "://"); i >= 0 {
		scheme, rest = text[:i+3], text[i+3:]
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	user, host := "", authority
	if i := strings.LastIndex(authority, "@"); i >= 0 {
		user, host = authority[:i+1], authority[i+1:]
	}
	return scheme + user + bracketed(host) + path
}

// bracketed is Bracketed for HOST or HOST:PORT.
func bracketed(text string) string {
	if inner, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "]"); ok && text[0] == '[' {
		if address, err := netip.ParseAddr(inner); err == nil && address.Is4() {
			return inner + rest
		}
		return text
	}
	if i := strings.LastIndex(text, ":"); i >= 0 && isIPv6(text[:i]) && isPort(text[i+1:]) {
		return "[" + text[:i] + "]" + text[i:]
	}
	return Host(text)
}

// Host returns an address as the host of a URL: an IPv6 address in brackets, and any
// other text as it is.
func Host(text string) string {
	if isIPv6(text) {
		return "[" + text + "]"
	}
	return text
}

// Redacted returns an address as it can be shown: without user, password, query and
// fragment. The address may be none that can be parsed: a password with a / or a #
// ends at the last @.
func Redacted(text string) string {
	scheme, rest := "", text
	if i := strings.Index(text, "://"); i >= 0 {
		scheme, rest = text[:i+3], text[i+3:]
	}
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		rest = "xxxxx@" + rest[i+1:]
	}
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		rest = rest[:i+1] + "…"
	}
	return scheme + rest
}

// HasUser reports whether an address has a user name, a password, or what may be one.
func HasUser(text string) bool {
	parsed, err := url.Parse(text)
	if err != nil || !strings.Contains(text, "://") {
		return strings.Contains(text, "@")
	}
	return parsed.User != nil
}

// RedactedText replaces users and passwords of the URLs in a text.
func RedactedText(text string) string {
	return regexp.MustCompile(`://[^\s"']*@`).ReplaceAllString(text, "://xxxxx@")
}

func isIPv6(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && address.Is6()
}

// isPort reports whether a text is a port. One with leading zeros is a part of an
// address.
func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && strconv.FormatUint(port, 10) == text
}
