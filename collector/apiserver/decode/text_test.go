package decode

import (
	"testing"
	"unicode/utf8"
)

func TestShortText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"abcd", "abcd"}, {"abcde", "abcd"}, {"abcé", "abc"}, {"é", "é"}, {"a\xffb", "a\uFFFDb"}, {"abc\xffe", "abc"},
	} {
		if got := shortText(c.text, 4); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%q became %q, want %q", c.text, got, c.want)
		}
	}
}
