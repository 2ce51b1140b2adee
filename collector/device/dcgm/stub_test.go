//go:build cgo && linux

package dcgm

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// pace is the interval of fast fields in tests.
const pace = 20 * time.Millisecond

// use makes a node's GPUs visible to an embedded engine of this process.
func use(t testing.TB, node *stubs.Node) {
	t.Helper()
	for _, variable := range node.Env() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
}

// startEngine starts a host engine at a unix socket.
func startEngine(t testing.TB, node *stubs.Node) *stubs.HostEngine {
	t.Helper()
	return node.StartHostEngine(t, stubs.Build(t), "unix://"+filepath.Join(t.TempDir(), "dcgm"))
}

// newSource makes a source over the stub library, closed with the test.
func newSource(t testing.TB, o Options) *Source {
	t.Helper()
	if o.Library == "" {
		o.Library = stubs.Build(t).DCGM
	}
	if o.Interval == 0 {
		o.Interval = pace
	}
	s := New(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// connected is the source's reader, which must be there.
func connected(t testing.TB, s *Source) device.Reader {
	t.Helper()
	readers, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(readers) != 1 {
		t.Fatalf("%d readers, want one", len(readers))
	}
	return readers[0]
}

// read reads, which must succeed.
func read(t testing.TB, r device.Reader, tier device.Tier) []device.Observation {
	t.Helper()
	observations, err := r.Read(t.Context(), tier)
	if err != nil {
		t.Fatalf("%v\n%s", err, written(observations, nil))
	}
	return observations
}

// written returns observations as text: the identity, then a line for each
// reading.
func written(observations []device.Observation, err error) string {
	var b strings.Builder
	for _, o := range observations {
		d := o.Device
		fmt.Fprintf(&b, "%s parent=%q vendor=%s model=%q pci=%s minor=%d profile=%q placement=%d gi=%d ci=%d driver=%s nodes=%v\n",
			d.UUID, d.ParentUUID, d.Vendor, d.Model, d.PCIBusID, d.Minor, d.Profile, d.Placement, d.GPUInstance, d.ComputeInstance, d.DriverVersion, d.Nodes)
		writeReadings(&b, "fast", o.Readings)
		writeReadings(&b, "slow", o.Slow)
	}
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
	}
	return b.String()
}

func writeReadings(b *strings.Builder, tier string, readings []device.Reading) {
	specs := device.Specs()
	readings = slices.Clone(readings)
	slices.SortFunc(readings, func(a, b device.Reading) int {
		return cmp.Or(cmp.Compare(a.Quantity, b.Quantity), slices.Compare(a.Details[:], b.Details[:]))
	})
	for _, r := range readings {
		spec := specs[r.Quantity]
		name := spec.Name
		if len(spec.Details) > 0 {
			name += "(" + strings.Join(r.Details[:len(spec.Details)], " ") + ")"
		}
		line := fmt.Sprintf("  %s %s = %v %s", tier, name, r.Value, spec.Unit)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// value is a reading of an observation.
func reading(o device.Observation, q device.Quantity, details ...string) (float64, bool) {
	var want [2]string
	copy(want[:], details)
	for _, r := range append(slices.Clone(o.Readings), o.Slow...) {
		if r.Quantity == q && r.Details == want {
			return r.Value, true
		}
	}
	return 0, false
}

// measured is when a reading of an observation was measured.
func measured(o device.Observation, q device.Quantity, details ...string) (device.Window, bool) {
	var want [2]string
	copy(want[:], details)
	for _, r := range append(slices.Clone(o.Readings), o.Slow...) {
		if r.Quantity == q && r.Details == want {
			return r.Measured, true
		}
	}
	return device.Window{}, false
}

// eventually reads until a condition holds, for at most 30 s.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(pace / 4) {
		if holds() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// logged is a log that tests read.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// lines is how many lines hold a text.
func (l *logged) lines(text string) (n int) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}
