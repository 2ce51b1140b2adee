package watch

import (
	"encoding/binary"
	"fmt"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The measured size of events does not depend on how the bytes arrive.
func TestFraming(t *testing.T) {
	text := []byte(`{"a":"}{\"","b":[{}]}` + "\n" + `{"c":{"d":1}}` + "\n")
	var framed []byte
	for _, length := range []int{0, 5, 300} {
		framed = append(binary.BigEndian.AppendUint32(framed, uint32(length)), make([]byte, length)...)
	}
	for step := 1; step <= 40; step++ {
		json, lengths := &jsonFraming{}, &lengthFraming{limit: 1000}
		most := func(f framing, all []byte) (most int64) {
			for i := 0; i < len(all); i += step {
				most = max(most, f.largest(all[i:min(i+step, len(all))]))
			}
			return most
		}
		if got := most(json, text); got != 21 {
			t.Errorf("in steps of %d: the largest JSON event has %d bytes, want 21", step, got)
		}
		if got := most(lengths, framed); got != 300 {
			t.Errorf("in steps of %d: the largest event has %d bytes, want 300", step, got)
		}
		if json, lengths := json.memory(), lengths.memory(); json != 35+4*fieldMemory || lengths != 305 {
			t.Errorf("in steps of %d: the events take %d bytes of memory as JSON, %d with lengths", step, json, lengths)
		}
	}
}

func ExampleLimits() {
	fmt.Println(tooLarge("the answer", 32<<20), "and", tooLarge("the answer", 1000))
	// Output: the answer is larger than the limit of 32 MiB and the answer is larger than the limit of 1000 bytes
}
