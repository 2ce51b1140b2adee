package terminal

import "testing"

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
		washed := Printable(text)
		for _, r := range washed {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("%q has %U", washed, r)
			}
		}
		if Printable(washed) != washed {
			t.Fatalf("%q is not stable", washed)
		}
	})
}
