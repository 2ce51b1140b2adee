package cgroup

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

// fields are those of a stat file from the third on.
const fields = "S 1 7 7 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 %s 0 %s 4096 1 18446744073709551615"

func statFile(command, state, threads, start string) string {
	return "7 (" + command + ") " + state + fmt.Sprintf(fields, threads, start)[1:] + "\n"
}

func TestDecodeStat(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want lifetime
	}{
		"sleeps":               {statFile("python3", "S", "1", "250"), lifetime{start: 2500 * time.Millisecond}},
		"from the start":       {statFile("init", "S", "1", "0"), lifetime{}},
		"spaces":               {statFile("tmux: server", "R", "9", "1"), lifetime{start: tick}},
		"parentheses":          {statFile(") R 1 2 (x", "D", "1", "3"), lifetime{start: 3 * tick}},
		"looks like fields":    {statFile("a) Z 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0", "S", "2", "4"), lifetime{start: 4 * tick}},
		"a newline":            {statFile("a\nb", "S", "2", "5"), lifetime{start: 5 * tick}},
		"no name":              {statFile("", "S", "2", "6"), lifetime{start: 6 * tick}},
		"no UTF-8":             {statFile("\xff\x00", "S", "2", "7"), lifetime{start: 7 * tick}},
		"zombie":               {statFile("x", "Z", "1", "8"), lifetime{start: 8 * tick, ended: true}},
		"dead":                 {statFile("x", "X", "0", "8"), lifetime{start: 8 * tick, ended: true}},
		"first thread ended":   {statFile("x", "Z", "12", "9"), lifetime{start: 9 * tick}},
		"after years":          {statFile("x", "S", "1", "31536000000"), lifetime{start: 87600 * time.Hour}},
		"cut after the start":  {"7 (x) " + fmt.Sprintf("S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %s", "10"), lifetime{start: 10 * tick}},
		"with fields to come":  {strings.TrimSpace(statFile("x", "S", "1", "11")) + strings.Repeat(" 0", 100), lifetime{start: 11 * tick}},
		"not known as a state": {statFile("x", "?", "1", "12"), lifetime{start: 12 * tick}},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := decodeStat([]byte(test.file)); err != nil || got != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestDecodeStatRefuses(t *testing.T) {
	for _, file := range []string{
		"", "7", "7 (x", "7 (x)", "7 (x) ", "7 (x) S 1 7 7 0 -1", statFile("x", "S", "1", "-1"),
		statFile("x", "S", "1", "soon"), statFile("x", "S", "1", "18446744073709551615"), statFile("x", "S", "1", "922337203685477581"),
	} {
		if got, err := decodeStat([]byte(file)); err == nil {
			t.Errorf("%q: got %+v", file, got)
		}
	}
}

// TestAgreesWithProcfs has another library read the same of this process.
func TestAgreesWithProcfs(t *testing.T) {
	self, err := procfs.Self()
	must(t, err)
	theirs, err := self.Stat()
	must(t, err)
	text, err := os.ReadFile("/proc/self/stat")
	must(t, err)
	ours, err := decodeStat(text)
	must(t, err)
	if want := time.Duration(theirs.Starttime) * tick; ours.start != want || ours.ended {
		t.Errorf("got %+v, want a start at %v", ours, want)
	}
}

func FuzzDecodeStat(f *testing.F) {
	f.Add([]byte(statFile("tmux: server", "S", "1", "250")))
	f.Add([]byte(statFile(") Z 1 (", "Z", "1", "0")))
	f.Add([]byte("7 (x)"))
	f.Fuzz(func(t *testing.T, file []byte) {
		l, err := decodeStat(file)
		if l.start < 0 || l.start%tick != 0 || err != nil && l != (lifetime{}) {
			t.Errorf("got %+v, %v", l, err)
		}
		// The name must not affect the result.
		named, err := decodeStat([]byte(statFile(string(file), "S", "3", "77")))
		if err != nil || named != (lifetime{start: 77 * tick}) {
			t.Errorf("called so: got %+v, %v", named, err)
		}
	})
}
