package terminal

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Styles are used on terminals only, unless disabled.
func TestStyled(t *testing.T) {
	device, err := os.Open(os.DevNull) // a character device, as a terminal is
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "report"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, test := range []struct {
		noColor, term string
		to            io.Writer
		want          bool
	}{
		{"", "xterm", device, true}, {"1", "xterm", device, false}, {"", "dumb", device, false},
		{"", "xterm", file, false}, {"", "xterm", &bytes.Buffer{}, false},
	} {
		t.Setenv("NO_COLOR", test.noColor)
		t.Setenv("TERM", test.term)
		if got := Styled(test.to); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
