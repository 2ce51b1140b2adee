package load

import (
	"regexp"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/cuda"
)

// The constants of the arithmetic are what the kernels' loops do.
func TestKernelsDoWhatIsCounted(t *testing.T) {
	for _, c := range []struct {
		name, ptx, instruction string
		times                  int
	}{
		{"compute", computePTX, `fma\.rn\.f32 +(%a[0-7]), (%a[0-7]), %factor, %addend;`, computeFLOPs / 2},
		{"tensor", tensorPTX, `mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16\.f16\.f32`, tensorFLOPs / (2 * 16 * 8 * 16)},
	} {
		loop := between(t, c.ptx, "LOOP:", "bra      LOOP")
		if found := regexp.MustCompile(c.instruction).FindAllString(loop, -1); len(found) != c.times {
			t.Errorf("%s: %d instructions in an iteration, not %d", c.name, len(found), c.times)
		}
	}
	for label, vectors := range map[string]int{"FOUR": 4, "ONE": 1} {
		loop := between(t, memoryPTX, "\n"+label+":", "bra             "+label)
		for _, instruction := range []string{"ld.global.v4.u32", "st.global.v4.u32"} {
			if found := strings.Count(loop, instruction); found != vectors {
				t.Errorf("%s: %d times %s, not %d", label, found, instruction, vectors)
			}
		}
		for _, pointer := range []string{"%to, %to, %stride", "%from, %from, %stride"} {
			if found := strings.Count(loop, "add.u64         "+pointer); found != vectors {
				t.Errorf("%s: %d times %s, not %d", label, found, pointer, vectors)
			}
		}
	}
}

func between(t *testing.T, text, begin, end string) string {
	t.Helper()
	_, text, found := strings.Cut(text, begin)
	text, _, ends := strings.Cut(text, end)
	if !found || !ends {
		t.Fatalf("there is no loop from %q to %q", begin, end)
	}
	return text
}

// Every kernel is for the oldest device that has its instructions, has the
// parameters that it is launched with, and uses no register that it does not
// declare.
func TestKernelsAreWellFormed(t *testing.T) {
	for _, c := range []struct{ ptx, name, target, parameters string }{
		{computePTX, "gpukit_compute", "sm_50", ".u64 .f32 .f32 .u32"},
		{memoryPTX, "gpukit_memory", "sm_50", ".u64 .u64 .u32"},
		{tensorPTX, "gpukit_tensor", "sm_80", ".u64 .u32"},
		{faultPTX, "gpukit_fault", "sm_50", ".u64"},
	} {
		code := regexp.MustCompile(`//.*`).ReplaceAllString(c.ptx, "")
		signature := between(t, code, ".visible .entry "+c.name+"(", ")")
		var types []string
		for _, match := range regexp.MustCompile(`\.param (\.\w+) p_\w+`).FindAllStringSubmatch(signature, -1) {
			types = append(types, match[1])
		}
		if got := strings.Join(types, " "); got != c.parameters || !strings.Contains(code, ".target "+c.target+"\n") {
			t.Errorf("%s has the parameters %s", c.name, got)
		}
		declared := map[string]int{}
		for _, match := range regexp.MustCompile(`(%\w+)(?:<(\d+)>)?`).FindAllStringSubmatch(strings.Join(regexp.MustCompile(`\.reg.*;`).FindAllString(code, -1), "\n"), -1) {
			count := 0
			for _, digit := range match[2] {
				count = 10*count + int(digit-'0')
			}
			declared[match[1]] = count
		}
		special := map[string]bool{"%ctaid": true, "%ntid": true, "%tid": true, "%nctaid": true}
		body := regexp.MustCompile(`\.reg.*;`).ReplaceAllString(code, "")
		for _, match := range regexp.MustCompile(`(%[a-z]+)(\d*)`).FindAllStringSubmatch(body, -1) {
			number := 0
			for _, digit := range match[2] {
				number = 10*number + int(digit-'0')
			}
			count, found := declared[match[1]]
			if special[match[1]] {
				continue
			}
			if !found || match[2] != "" && number >= count || match[2] == "" && count != 0 {
				t.Errorf("%s uses %s, which it does not declare", c.name, match[0])
			}
		}
		for _, match := range regexp.MustCompile(`bra +(\w+);`).FindAllStringSubmatch(body, -1) {
			if strings.Count(body, "\n"+match[1]+":\n") != 1 {
				t.Errorf("%s branches to %s", c.name, match[1])
			}
		}
	}
}

// The memory kernel is launched for pieces that cover the first half of the
// memory in turn, and never reach beyond the second.
func TestPiecesCoverTheMemory(t *testing.T) {
	const held = 1000<<20 + 12345
	s, err := newStream(nil, 528, memory{address: 0x1000, bytes: held})
	if err != nil {
		t.Fatal(err)
	}
	if end := uint64(s.to-0x1000) + s.rows*s.row; end > held || held-end >= 2*s.row+2 {
		t.Errorf("the halves end at %d of %d bytes", end, uint64(held))
	}
	if s.to != 0x1000+cuda.Address(s.rows*s.row) || s.perPiece*s.row > mostPiece {
		t.Errorf("the pieces are %+v", s)
	}
	if one, err := newStream(nil, 528, memory{bytes: 2 * 528 * 256 * 16}); err != nil || one.rows != 1 {
		t.Errorf("the least memory is %+v (%v)", one, err)
	}
	if _, err := newStream(nil, 528, memory{bytes: 2*528*256*16 - 1}); err == nil {
		t.Error("too little memory is no error")
	}
}
