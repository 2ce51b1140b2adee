package check

import (
	"strings"
	"testing"
)

// FuzzDecodeStart decodes any stat of a process. A start time that is not known is 0.
func FuzzDecodeStart(f *testing.F) {
	f.Add([]byte("1 (a) b) S" + strings.Repeat(" 0", 18) + " 7 0"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if start, ok := decodeStart(stat); !ok && start != 0 {
			t.Errorf("%q started at %d, which is not known", stat, start)
		}
	})
}
