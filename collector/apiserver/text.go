package apiserver

import "strings"

// clean makes text valid UTF-8: protobuf bodies are not checked for it, and
// label values must be. The copy-free case is the usual one.
func clean(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// cleanOr is the text behind a pointer, empty for none.
func cleanOr(text *string) string {
	if text == nil {
		return ""
	}
	return clean(*text)
}
