package terminal

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// invisible returns characters that are not visible.
const invisible = "\u009b31m\u007f\u202egpj.exe\u202c\u2066a\u2069\u200f\u061c\u200b\ufeff\u2028\u2029\u0085\u00ad\U000e0041"

func TestEscapeJSON(t *testing.T) {
	type document struct{ Name, Plain string }
	given := document{"a" + invisible + "z", "größer 计算 😀 \\u202e"}
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	escaped := EscapeJSON(text)
	if at := bytes.IndexFunc(escaped, func(r rune) bool { return !unicode.IsPrint(r) }); at >= 0 {
		t.Errorf("%q is left in %s", escaped[at:at+4], escaped)
	}
	var got document
	if err := json.Unmarshal(escaped, &got); err != nil || got != given {
		t.Errorf("%+q became %+q (%v)", given, got, err)
	}
	if plain := []byte(`{"a":"größer 计算 😀"}` + "\n"); &EscapeJSON(plain)[0] != &plain[0] {
		t.Error("text without characters to escape is copied")
	}
	var out strings.Builder
	if n, err := JSONWriter(&out).Write(text); n != len(text) || err != nil || out.String() != string(escaped) {
		t.Errorf("the writer wrote %d of %d bytes (%v): %q", n, len(text), err, out.String())
	}
}

func TestMarkup(t *testing.T) {
	for given, want := range map[string]string{
		"<p title=\"a\">80\u202f% – größer\n\t计算\u00a0😀</p>": "<p title=\"a\">80\u202f% – größer\n\t计算\u00a0😀</p>",
		"<b>\u202egpj.exe</b>":      "<b>\ufffdgpj.exe</b>",
		"\u2066a\u2069\u200f\u200b": "\ufffda\ufffd\ufffd\ufffd",
		"\x1b[2J\u009b\x00\x7f\xff": "\ufffd[2J\ufffd\ufffd\ufffd\ufffd",
		"":                          "",
	} {
		if got := string(Markup([]byte(given))); got != want {
			t.Errorf("%+q became %+q, not %+q", given, got, want)
		}
	}
}

// FuzzEncoded checks that no control characters are left of any bytes, and that a second
// call changes nothing.
func FuzzEncoded(f *testing.F) {
	f.Add([]byte(`{"a":"` + invisible + `"}`))
	f.Add([]byte("\xff\xe2\x80"))
	f.Fuzz(func(t *testing.T, text []byte) {
		given := bytes.Clone(text)
		for _, change := range []func([]byte) []byte{EscapeJSON, Markup} {
			changed := change(text)
			if bytes.ContainsFunc(changed, func(r rune) bool { return r >= 0x7f && !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) }) {
				t.Errorf("%+q became %+q", text, changed)
			}
			if !bytes.Equal(change(bytes.Clone(changed)), changed) {
				t.Errorf("%+q is not stable", changed)
			}
			if !bytes.Equal(text, given) {
				t.Errorf("%+q was changed in place", given)
			}
		}
		if json.Valid(text) {
			var before, after any
			if json.Unmarshal(text, &before) != nil || json.Unmarshal(EscapeJSON(text), &after) != nil {
				t.Fatalf("%+q is not valid JSON any more", text)
			}
			one, _ := json.Marshal(before)
			other, _ := json.Marshal(after)
			if !bytes.Equal(one, other) {
				t.Errorf("%+q means something else", text)
			}
		}
	})
}

func TestPrintable(t *testing.T) {
	for given, want := range map[string]string{
		"":                            "",
		"pod gpu-0, 80 % — größer 计算": "pod gpu-0, 80 % — größer 计算",
		"two\r\nlines\tand\u00a0more": "two  lines and more",
		"\x1b[31mred\x1b[0m":          "\ufffd[31mred\ufffd[0m",
		"\x9b2J\x07\x7f":              "\ufffd2J\ufffd\ufffd",
		"\u202egpj.exe\u200b":         "\ufffdgpj.exe\ufffd",
		"not \xff UTF-8":              "not \ufffd UTF-8",
	} {
		if got := Printable(given); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b]0;title\x07")
	f.Fuzz(func(t *testing.T, text string) {
		printable := Printable(text)
		for _, r := range printable {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q has %U", printable, r)
			}
		}
		if Printable(printable) != printable {
			t.Fatalf("%q is not stable", printable)
		}
	})
}
