package amdgpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

// The cards of the fixture, in the order of their addresses.
const (
	older       = "bus/pci/devices/0000:03:00.0/"
	whole       = "bus/pci/devices/0000:c1:00.0/"
	partitioned = "bus/pci/devices/0000:e2:00.0/"
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

// keys are the keys of the cards that are found.
func keys(t testing.TB, s *Source) string {
	t.Helper()
	var all []string
	for _, r := range cards(t, s) {
		all = append(all, strings.TrimPrefix(r.Key(), "0000:"))
	}
	return strings.Join(all, " ")
}

func TestReadsEveryCard(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	var text strings.Builder
	for _, r := range cards(t, New(tree.Root)) {
		observations, err := r.Read(t.Context(), device.Slow)
		text.WriteString(sysfstest.Text(tree.Root, observations, err))
	}
	metrictest.CompareGolden(t, "testdata/cards.txt", text.String())
}

// A fast read leaves out what changes seldom, and keeps the identity.
func TestTiers(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	r := cards(t, New(tree.Root))[1]
	slow, err := r.Read(t.Context(), device.Slow)
	if err != nil {
		t.Fatal(err)
	}
	tree.Set(whole+"product_name", "another\n")
	fast, err := r.Read(t.Context(), device.Fast)
	if err != nil || len(fast[0].Slow) != 0 || !slices.Equal(fast[0].Readings, slow[0].Readings) {
		t.Errorf("a fast read gives %v (%v)", fast, err)
	}
	if fmt.Sprint(fast[0].Device) != fmt.Sprint(slow[0].Device) {
		t.Errorf("the card was %+v and is %+v", slow[0].Device, fast[0].Device)
	}
	if slow, _ = r.Read(t.Context(), device.Slow); slow[0].Device.Model != "another" {
		t.Errorf("a slow read does not ask who the card is: %+v", slow[0].Device)
	}
}

// Cards of one hive are connected with each other; a card alone has none, or 0.
func TestHive(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	r := cards(t, New(tree.Root))[1]
	for text, want := range map[string]string{"11250486264529462517\n": "11250486264529462517", "0\n": "", "N/A\n": "", "what\n": ""} {
		tree.Set(whole+"xgmi_hive_info/xgmi_hive_id", text)
		observations, err := r.Read(t.Context(), device.Slow)
		if err != nil || observations[0].Device.LinkDomain != want {
			t.Errorf("%q is the hive %+v (%v), want %q", text, observations[0].Device, err, want)
		}
	}
}

func TestCardsComeAndGo(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	s := New(tree.Root)
	before := cards(t, s)
	if got := keys(t, s); got != "03:00.0 c1:00.0 e2:00.0" {
		t.Fatalf("the cards are %s", got)
	}
	if again := cards(t, s); again[1] != before[1] {
		t.Error("the reader of a card that stays is another one")
	}

	// Unbound, then gone.
	tree.Remove(whole + "driver")
	tree.Remove("bus/pci/drivers/amdgpu/0000:c1:00.0")
	if o, err := before[1].Read(t.Context(), device.Fast); err == nil || len(o) != 0 {
		t.Errorf("an unbound card gives %v (%v)", o, err)
	}
	tree.Link(whole+"driver", "../../../../bus/pci/drivers/vfio-pci")
	if o, err := before[1].Read(t.Context(), device.Fast); err == nil || len(o) != 0 || !strings.Contains(err.Error(), "vfio-pci") {
		t.Errorf("a card of another driver gives %v (%v)", o, err)
	}
	tree.Remove("bus/pci/devices/0000:c1:00.0")
	if got := keys(t, s); got != "03:00.0 e2:00.0" {
		t.Errorf("the cards are %s", got)
	}
}

func TestWithoutTheDriver(t *testing.T) {
	for name, root := range map[string]string{"no sysfs": "/nowhere", "no driver": sysfstest.Plant(t, "rdma").Root} {
		_, err := New(root).Readers(t.Context())
		if source.ReasonOf(err) != source.ReasonLibraryMissing {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What is there and cannot be listed is not absent.
	tree := sysfstest.Plant(t, "amdgpu")
	tree.Set("bus/pci/drivers/amdgpu", "no folder")
	if _, err := New(tree.Root).Readers(t.Context()); err == nil || source.ReasonOf(err) == source.ReasonLibraryMissing {
		t.Errorf("a driver that cannot be listed: %v", err)
	}
	if s := New(tree.Root); s.Name() != "amdgpu" || s.Close() != nil {
		t.Error("it has another name, or cannot be closed")
	}
}

// Only some server cards have a serial number and a part number.
func TestHardware(t *testing.T) {
	tree := sysfstest.Plant(t, "amdgpu")
	tree.Set(whole+"serial_number", "692251001124\n")
	tree.Set(whole+"product_number", "102-G30211-0C\n")
	tree.Set(whole+"vbios_version", "113-M3000100-102\n")
	want := map[string]device.Hardware{"0000:c1:00.0": {Serial: "692251001124", BoardPartNumber: "102-G30211-0C", VBIOS: "113-M3000100-102"}}
	for _, r := range cards(t, New(tree.Root)) {
		observations, _ := r.Read(t.Context(), device.Slow)
		if got := observations[0].Device.Hardware; got != want[r.Key()] {
			t.Errorf("%s has %+v, want %+v", r.Key(), got, want[r.Key()])
		}
	}
}
