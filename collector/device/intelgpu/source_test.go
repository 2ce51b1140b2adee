package intelgpu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

// The cards of the fixture that are awake.
const (
	ofXe   = "bus/pci/devices/0000:18:00.0/"
	ofI915 = "bus/pci/devices/0000:9a:00.0/"
)

// cards looks for cards, which must succeed.
func cards(t testing.TB, s *Source) []device.Reader {
	t.Helper()
	found, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func keys(t testing.TB, s *Source) string {
	t.Helper()
	var all []string
	for _, r := range cards(t, s) {
		all = append(all, strings.TrimPrefix(r.Key(), "0000:"))
	}
	return strings.Join(all, " ")
}

func TestReadsEveryCard(t *testing.T) {
	tree := sysfstest.Plant(t, "intel")
	var text strings.Builder
	for _, r := range cards(t, New(tree.Root)) {
		observations, err := r.Read(t.Context(), device.Slow)
		text.WriteString(sysfstest.Text(tree.Root, observations, err))
	}
	metrictest.CompareGolden(t, "testdata/cards.txt", text.String())
}

// A fast read leaves out what changes seldom, and keeps the identity.
func TestTiers(t *testing.T) {
	tree := sysfstest.Plant(t, "intel")
	r := cards(t, New(tree.Root))[0]
	slow, err := r.Read(t.Context(), device.Slow)
	if err != nil {
		t.Fatal(err)
	}
	tree.Set(ofXe+"uevent", "PCI_ID=8086:E20B\n")
	fast, err := r.Read(t.Context(), device.Fast)
	if err != nil || len(fast[0].Slow) != 0 || !slices.Equal(fast[0].Readings, slow[0].Readings) || fmt.Sprint(fast[0].Device) != fmt.Sprint(slow[0].Device) {
		t.Errorf("a fast read gives %v (%v)", fast, err)
	}
	if slow, _ = r.Read(t.Context(), device.Slow); slow[0].Device.Model != "8086:e20b" {
		t.Errorf("a slow read does not ask who the card is: %+v", slow[0].Device)
	}
}

// Each fault removes lines, adds others, and causes an error.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		card   int
		break_ func(*sysfstest.Tree)
		gone   []string // beginnings of lines
		there  []string
		err    string // empty: it is no failure
	}{
		{"without the energy of the card, that of the package", 0,
			func(tree *sysfstest.Tree) { tree.Remove(ofXe + "hwmon/hwmon3/energy1_input") }, nil, []string{"energy{} 98765.432"}, ""},
		{"a broken energy of the card is not replaced", 0,
			func(tree *sysfstest.Tree) { tree.Break(ofXe + "hwmon/hwmon3/energy1_input") }, []string{"energy"}, []string{"clock", "temperature"},
			"read energy of 0000:18:00.0: read /bus/pci/devices/0000:18:00.0/hwmon/hwmon3/energy1_input: input/output error"},
		{"a limit of the card", 0,
			func(tree *sysfstest.Tree) { tree.Set(ofXe+"hwmon/hwmon3/power1_max", "180000000\n") }, nil, []string{"power_limit{} (slow) 180"}, ""},
		{"no limit at all", 0,
			func(tree *sysfstest.Tree) { tree.Set(ofXe+"hwmon/hwmon3/power2_max", "0\n") }, []string{"power_limit"}, []string{"energy"}, ""},
		{"a clock of 0 is a value", 0,
			func(tree *sysfstest.Tree) { tree.Set(ofXe+"tile0/gt0/freq0/act_freq", "0\n") }, nil, []string{`clock{clock="sm"} 0`}, ""},
		{"degrees below zero", 0,
			func(tree *sysfstest.Tree) { tree.Set(ofXe+"hwmon/hwmon3/temp2_input", "-5000\n") }, nil, []string{`temperature{sensor="gpu"} -5`}, ""},
		{"less energy than none", 0,
			func(tree *sysfstest.Tree) { tree.Set(ofXe+"hwmon/hwmon3/energy1_input", "-1\n") }, []string{"energy"}, []string{"clock"}, "less than there can be"},
		{"garbage fails its quantity alone", 0,
			func(tree *sysfstest.Tree) { tree.Set(ofXe+"hwmon/hwmon3/temp3_input", "warm\n") }, []string{`temperature{sensor="memory"}`}, []string{`temperature{sensor="gpu"}`}, `no number: "warm"`},
		{"no sensors", 0,
			func(tree *sysfstest.Tree) { tree.Remove(ofXe + "hwmon") }, []string{"energy", "temperature", "power"}, []string{"clock"}, ""},
		{"sensors of another driver", 0,
			func(tree *sysfstest.Tree) { tree.Set(ofXe+"hwmon/hwmon3/name", "nvme\n") }, []string{"energy", "temperature", "power"}, []string{"clock"}, ""},
		{"sensors whose name cannot be read", 0,
			func(tree *sysfstest.Tree) { tree.Break(ofXe + "hwmon/hwmon3/name") }, []string{"energy"}, []string{"clock"}, "find the sensors of 0000:18:00.0"},
		{"sensors that cannot be listed", 0,
			func(tree *sysfstest.Tree) { tree.Set(ofXe+"hwmon", "no folder") }, []string{"energy"}, []string{"clock"}, "find the sensors of 0000:18:00.0"},
		{"sensors with another number", 0,
			func(tree *sysfstest.Tree) { tree.Rename(ofXe+"hwmon/hwmon3", ofXe+"hwmon/hwmon9") }, nil, []string{"energy", "temperature"}, ""},
		{"an older i915", 2,
			func(tree *sysfstest.Tree) { tree.Remove(ofI915 + "drm/card3/gt") }, nil, []string{`clock{clock="sm"} 1900000000`}, ""},
		{"i915 without sensors of the card", 2,
			func(tree *sysfstest.Tree) { tree.Remove(ofI915 + "hwmon/hwmon6") }, []string{"energy", "power_limit"}, []string{"clock"}, ""},
		{"a card without nodes", 2,
			func(tree *sysfstest.Tree) { tree.Remove(ofI915 + "drm") }, []string{"clock"}, []string{"energy", `device uuid="" vendor="intel" model="8086:56c0" pci="0000:9a:00.0" minor=-1 render=-1`}, ""},
		{"nodes that cannot be listed", 2,
			func(tree *sysfstest.Tree) { tree.Set(ofI915+"drm", "no folder") }, []string{"device"}, nil, "list its DRM devices"},
		{"a function that is gone", 0,
			func(tree *sysfstest.Tree) { tree.Remove(ofXe + "uevent") }, []string{"device"}, nil, "identify 0000:18:00.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tree := sysfstest.Plant(t, "intel")
			test.break_(tree)
			observations, err := cards(t, New(tree.Root))[test.card].Read(t.Context(), device.Slow)
			text := sysfstest.Text(tree.Root, observations, err)
			if (err != nil) != (test.err != "") || !strings.Contains(text, test.err) {
				t.Errorf("the error is %v, want %q\n%s", err, test.err, text)
			}
			has := func(beginning string) bool {
				return slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), beginning) })
			}
			for _, gone := range test.gone {
				if has(gone) {
					t.Errorf("there is still %s:\n%s", gone, text)
				}
			}
			for _, there := range test.there {
				if !has(there) {
					t.Errorf("there is no %s:\n%s", there, text)
				}
			}
		})
	}
}

func TestCardsComeAndGo(t *testing.T) {
	tree := sysfstest.Plant(t, "intel")
	s := New(tree.Root)
	before := cards(t, s)
	if got := keys(t, s); got != "18:00.0 29:00.0 9a:00.0" {
		t.Fatalf("the cards are %s", got)
	}
	if again := cards(t, s); again[0] != before[0] {
		t.Error("the reader of a card that stays is another one")
	}
	tree.Remove(ofXe + "driver")
	tree.Remove("bus/pci/drivers/xe/0000:18:00.0")
	if o, err := before[0].Read(t.Context(), device.Fast); err == nil || len(o) != 0 {
		t.Errorf("an unbound card gives %v (%v)", o, err)
	}
	tree.Link(ofXe+"driver", "../../../../bus/pci/drivers/vfio-pci")
	if o, err := before[0].Read(t.Context(), device.Fast); err == nil || len(o) != 0 || !strings.Contains(err.Error(), "vfio-pci") {
		t.Errorf("a card of another driver gives %v (%v)", o, err)
	}
	if got := keys(t, s); got != "29:00.0 9a:00.0" {
		t.Errorf("the cards are %s", got)
	}
	tree.Remove("bus/pci/drivers/xe")
	if got := keys(t, s); got != "9a:00.0" {
		t.Errorf("with i915 alone, the cards are %s", got)
	}
}

func TestWithoutTheDrivers(t *testing.T) {
	for name, root := range map[string]string{"no sysfs": "/nowhere", "no driver": sysfstest.Plant(t, "rdma").Root} {
		if _, err := New(root).Readers(t.Context()); source.ReasonOf(err) != source.ReasonLibraryMissing {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What is there and cannot be listed is not absent.
	tree := sysfstest.Plant(t, "intel")
	tree.Set("bus/pci/drivers/i915", "no folder")
	if _, err := New(tree.Root).Readers(t.Context()); err == nil || source.ReasonOf(err) == source.ReasonLibraryMissing {
		t.Errorf("a driver that cannot be listed: %v", err)
	}
	if s := New(tree.Root); s.Name() != "intel" || s.Close() != nil {
		t.Error("it has another name, or cannot be closed")
	}
}

// A pipe in place of a file does not block the reader.
func TestPipeInPlaceOfFile(t *testing.T) {
	tree := sysfstest.Plant(t, "intel")
	tree.Remove(ofXe + "tile0/gt0/freq0/act_freq")
	if err := syscall.Mkfifo(tree.Root+"/"+ofXe+"tile0/gt0/freq0/act_freq", 0o644); err != nil {
		t.Fatal(err)
	}
	o, err := cards(t, New(tree.Root))[0].Read(t.Context(), device.Slow)
	if source.ReasonOf(err) != source.ReasonInvalid || len(o) != 1 || len(o[0].Readings) == 0 {
		t.Errorf("%v (%v)", o, err)
	}
}

// A card that disappears while it is being sampled takes nothing with it, and one that
// comes back is read again.
func TestSamplesCardsThatComeAndGo(t *testing.T) {
	defer goleak.VerifyNone(t)
	tree := sysfstest.Plant(t, "intel")
	sampler := device.NewSampler(device.Options{
		Sources: []device.Source{New(tree.Root)}, Interval: 20 * time.Millisecond, SlowInterval: 50 * time.Millisecond, Clock: clock.System(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		sampler.Run(ctx)
		close(ended)
	}()
	there := func() (n int) {
		for _, sample := range sampler.Latest() {
			if len(sample.Readings) > 1 {
				n++
			}
		}
		return n
	}
	sysfstest.Eventually(t, "two cards that are awake", func() bool { return there() == 2 })
	tree.Rename("bus/pci/devices/0000:9a:00.0", "away")
	tree.Rename("bus/pci/drivers/i915/0000:9a:00.0", "bound")
	sysfstest.Eventually(t, "one card", func() bool { return there() == 1 && sampler.Statuses()[0].Up })
	tree.Rename("away", "bus/pci/devices/0000:9a:00.0")
	tree.Rename("bound", "bus/pci/drivers/i915/0000:9a:00.0")
	sysfstest.Eventually(t, "both again", func() bool { return there() == 2 })
	cancel()
	<-ended
}

// Ten thousand samples leak neither memory nor files.
func TestNothingIsLeftBehind(t *testing.T) {
	defer goleak.VerifyNone(t)
	s := New(sysfstest.Plant(t, "intel").Root)
	sysfstest.LeavesNothing(t, func() []device.Reader { return cards(t, s) })
}

// BenchmarkRead measures one fast read of one card, files of a disk's cache standing in
// for the kernel's.
func BenchmarkRead(b *testing.B) {
	r := cards(b, New(sysfstest.Plant(b, "intel").Root))[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(b.Context(), device.Fast); err != nil {
			b.Fatal(err)
		}
	}
}

// While the file that has given the energy is missing, another one is not read: it may
// have counted from another time.
func TestFilesAreChosenOnce(t *testing.T) {
	tree := sysfstest.Plant(t, "intel")
	const sensors = ofXe + "hwmon/hwmon3/"
	tree.Set(sensors+"energy1_input", "1000000000\n")
	tree.Set(sensors+"energy2_input", "7000000\n")
	energy := func(r device.Reader) string {
		observations, _ := r.Read(t.Context(), device.Fast)
		for _, reading := range observations[0].Readings {
			if reading.Quantity == device.Energy {
				return fmt.Sprint(reading.Value)
			}
		}
		return "none"
	}
	for _, r := range cards(t, New(tree.Root)) {
		if r.Key() != "0000:18:00.0" {
			continue
		}
		got := []string{energy(r)}
		tree.Rename(sensors+"energy1_input", sensors+"hidden")
		got = append(got, energy(r))
		tree.Rename(sensors+"hidden", sensors+"energy1_input")
		if got = append(got, energy(r)); !slices.Equal(got, []string{"1000", "none", "1000"}) {
			t.Errorf("the energy is %v", got)
		}
		return
	}
	t.Error("the card is not there")
}
