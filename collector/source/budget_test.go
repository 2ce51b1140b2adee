package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// The largest share is refused, whoever asks, and small ones always fit.
func TestBudget(t *testing.T) {
	b := NewBudget("bytes", 100)
	var refused []string
	shares := make(map[string]*Share)
	for _, name := range []string{"a", "b", "c"} {
		shares[name] = b.Share(func(err error) {
			if !errors.Is(err, ErrRefused) || ReasonOf(err) != ReasonResourceExhausted {
				t.Errorf("%s is refused with %v", name, err)
			}
			refused = append(refused, name)
		})
	}
	for i, step := range []struct {
		share   string
		add     bool
		amount  int
		fails   bool
		refused []string
		total   int
	}{
		{"a", false, 60, false, nil, 60},
		{"b", false, 40, false, nil, 100},
		{"b", true, 20, true, nil, 60}, // as much as a has: the one that asks
		{"b", false, 50, false, []string{"a"}, 50},
		{"a", false, 60, true, nil, 50},
		{"c", false, 1, false, nil, 51},
		{"c", true, 10, false, nil, 61},
		{"a", false, 101, true, nil, 61},
		{"c", false, 50, false, nil, 100},
		{"a", false, 1, false, nil, 51}, // any of the two
	} {
		refused = nil
		err := shares[step.share].change(step.amount, step.add)
		if (err != nil) != step.fails || b.total != step.total || i < 9 && !slices.Equal(refused, step.refused) {
			t.Errorf("step %d: %v, %v are refused, %d in all", i, err, refused, b.total)
		}
	}
	for _, share := range shares {
		share.Leave()
		share.Leave()
		if err := share.Set(1000); err != nil {
			t.Errorf("a share that has left: %v", err)
		}
	}
	if b.total != 0 || len(b.shares) != 0 {
		t.Errorf("%d of %d shares are left", b.total, len(b.shares))
	}
}

// What is refused in a period stays refused until its end, and the others go on.
func TestWork(t *testing.T) {
	elapsed := time.Duration(0)
	b := NewWork("bytes", 100, 10*time.Second, func() clock.Instant { return clock.Instant{Elapsed: elapsed} })
	large, small := b.Share(nil), b.Share(nil)
	if small.Add(10) != nil || large.Add(90) != nil {
		t.Error("what fits is refused")
	}
	if err := large.Add(1); err == nil || !strings.Contains(err.Error(), "more than 100 bytes in 10s") {
		t.Errorf("the largest gets %v", err)
	}
	if small.Add(60) != nil || large.Add(1) == nil {
		t.Error("the largest is not refused, or the small one is")
	}
	elapsed = 10 * time.Second
	if large.Add(50) != nil {
		t.Error("it is refused in the next period")
	}
}

// endlessReader repeats a text.
type endlessReader struct {
	net.Conn
	text   []byte
	at     int
	closed bool
}

func (r *endlessReader) Close() error { r.closed = true; return nil }

func (r *endlessReader) Read(into []byte) (int, error) {
	if r.closed {
		return 0, net.ErrClosed
	}
	n := copy(into, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// Frames are counted however they are cut into reads, and a flood ends the connection.
func TestMeterFrames(t *testing.T) {
	frame := func(length int) []byte {
		return append([]byte{byte(length >> 16), byte(length >> 8), byte(length), 0, 0, 0, 0, 0, 1}, make([]byte, length)...)
	}
	text := slices.Concat(frame(0), frame(8), frame(70_000), frame(0), frame(1))
	for name, cut := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "halves": iotest.HalfReader} {
		cost := 0
		c := MeterFrames(&readConn{Reader: cut(bytes.NewReader(text))}, func(n int) error { cost += n; return nil })
		if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, text) || cost != len(text)+5*frameCost {
			t.Errorf("%s: %d bytes cost %d: %v", name, len(got), cost, err)
		}
	}
	for _, length := range []int{0, 8, 16 << 10} {
		left, flood := 1<<20, &endlessReader{text: frame(length)}
		c := MeterFrames(flood, func(cost int) error {
			if left -= cost; left < 0 {
				return ErrRefused
			}
			return nil
		})
		got, err := io.Copy(io.Discard, c)
		if !errors.Is(err, ErrRefused) || !flood.closed || got > 1<<20 {
			t.Errorf("frames of %d bytes: %d bytes are read, closed is %v: %v", length, got, flood.closed, err)
		}
	}
}

type readConn struct {
	net.Conn
	io.Reader
}

func (c *readConn) Read(into []byte) (int, error) { return c.Reader.Read(into) }
func (c *readConn) Close() error                  { return nil }

// FuzzBudget checks for any sequence of calls that the shares together never have more
// than the budget, and that a share with less than its equal part is never refused.
func FuzzBudget(f *testing.F) {
	f.Add([]byte{0, 60, 1, 60, 2, 3, 3, 3, 0, 255})
	f.Fuzz(func(t *testing.T, steps []byte) {
		const most, count = 400, 4
		b := NewBudget("bytes", most)
		var shares [count]*Share
		for i := range shares {
			shares[i] = b.Share(func(error) {
				if shares[i].amount != 0 {
					t.Error("what is refused is still counted")
				}
			})
		}
		for len(steps) >= 2 {
			share, amount := shares[steps[0]%count], int(steps[1])
			err := share.Set(amount)
			if err != nil && amount <= most/count {
				t.Fatalf("%d of %d are refused for one of %d shares: %v", amount, most, count, err)
			}
			sum := 0
			for _, one := range shares {
				sum += one.amount
			}
			if sum != b.total || sum > most {
				t.Fatal(fmt.Sprint(sum, b.total, most))
			}
			steps = steps[2:]
		}
	})
}
