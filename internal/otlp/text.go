package otlp

import (
	"strings"
	"unicode/utf8"
)

// cut is the text, or as much of its beginning as fits into so many bytes with
// an ellipsis behind it. Nothing is cut within a character.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.TrimRight(text[:end], " ") + ellipsis
}

// clean makes foreign text fit into a message of protobuf: one string that is
// not valid UTF-8 would fail the whole export.
func clean(text string, limit int) string {
	return cut(strings.ToValidUTF8(text, "\uFFFD"), limit)
}
