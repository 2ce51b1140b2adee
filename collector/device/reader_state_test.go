package device

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestNormalize(t *testing.T) {
	sensor := func(name string, v float64) Reading {
		return Reading{Quantity: Temperature, Details: [2]string{name}, Value: v}
	}
	got := normalize([]Reading{
		sensor("memory", 70), power(math.NaN()), sensor("gpu", 60), utilization(1),
		sensor("memory", 99),
	})
	want := []Reading{utilization(1), sensor("gpu", 60), sensor("memory", 70)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("normalize gave %v, want %v", got, want)
	}
}

func TestBoth(t *testing.T) {
	for name, test := range map[string]struct{ fast, slow, want []Reading }{
		"nothing":           {nil, nil, []Reading{}},
		"fast alone":        {[]Reading{power(1)}, nil, []Reading{power(1)}},
		"slow alone":        {nil, []Reading{power(1)}, []Reading{power(1)}},
		"interleaved":       {[]Reading{utilization(1), energy(3)}, []Reading{power(2)}, []Reading{utilization(1), power(2), energy(3)}},
		"the fast is newer": {[]Reading{power(1)}, []Reading{power(2), energy(3)}, []Reading{power(1), energy(3)}},
	} {
		if got := both(test.fast, test.slow); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// A reader that fails keeps its devices, unless others need their memory.
func TestRefusedReader(t *testing.T) {
	s := &readerState{}
	at := clock.Instant{Elapsed: time.Second}
	s.apply(readResult{at: at, observations: []Observation{{Readings: []Reading{power(1)}}}})
	s.apply(readResult{at: at, err: errors.New("no answer")})
	if len(s.devices) != 1 {
		t.Errorf("%d devices after a failure", len(s.devices))
	}
	s.apply(readResult{at: at, err: fmt.Errorf("read: %w", source.ErrRefused)})
	if len(s.devices) != 0 {
		t.Errorf("%d devices are kept", len(s.devices))
	}
}

func TestBackoff(t *testing.T) {
	b := backoff{first: time.Second, most: 5 * time.Second}
	var got []time.Duration
	for range 4 {
		got = append(got, b.grow())
	}
	b.reset()
	got = append(got, b.grow())
	want := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 5 * time.Second, time.Second}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("waits %v, want %v", got, want)
	}
}
