package rdma

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

// The functions of the fixture, in the order of their addresses.
const (
	infiniband = "bus/pci/devices/0000:81:00.0/"
	roce       = "bus/pci/devices/0000:a1:00.0/"
	virtual    = "bus/pci/devices/0000:a1:00.2/"
)

// adapters looks for functions, which must succeed.
func adapters(t testing.TB, s *Source) []device.Reader {
	t.Helper()
	found, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func keys(readers []device.Reader) string {
	var all []string
	for _, r := range readers {
		all = append(all, strings.TrimPrefix(r.Key(), "0000:"))
	}
	return strings.Join(all, " ")
}

// value returns the reading of a quantity and its first detail; -1: there is
// none.
func value(observations []device.Observation, quantity device.Quantity, detail string) float64 {
	for _, o := range observations {
		for _, r := range append(o.Readings, o.Slow...) {
			if r.Quantity == quantity && (r.Details[0] == detail || quantity == device.NetworkLinks && r.Details[1] == detail) {
				return r.Value
			}
		}
	}
	return -1
}

// Software and scalable functions are left out: the fixture has one of each.
func TestReadsEveryFunction(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	var text strings.Builder
	for _, r := range adapters(t, New(tree.Root)) {
		observations, err := r.Read(t.Context(), device.Slow)
		text.WriteString(sysfstest.Text(tree.Root, observations, err))
	}
	metrictest.CompareGolden(t, "testdata/functions.txt", text.String())
}

// A fast read leaves out the errors, and keeps the identity.
func TestTiers(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	r := adapters(t, New(tree.Root))[0]
	read := func(tier device.Tier) (device.Observation, float64) {
		o, err := r.Read(t.Context(), tier)
		if err != nil {
			t.Fatal(err)
		}
		return o[0], value(o, device.NetworkErrors, "vl15_dropped")
	}
	first, dropped := read(device.Fast) // the first read always identifies the function
	if first.Device.Model != "MT4129" || dropped != -1 {
		t.Errorf("a first fast read gives %+v and %v", first.Device, dropped)
	}
	tree.Set(infiniband+"infiniband/mlx5_0/hca_type", "MT4131\n")
	if o, _ := read(device.Fast); o.Device.Model != "MT4129" {
		t.Errorf("a fast read identifies the function: %+v", o.Device)
	}
	if o, dropped := read(device.Slow); o.Device.Model != "MT4131" || dropped != 4 {
		t.Errorf("a slow read gives %+v and %v", o.Device, dropped)
	}
}

func TestFunctionsComeAndGo(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	s := New(tree.Root)
	before := adapters(t, s)
	if got := keys(before); got != "81:00.0 a1:00.0 a1:00.2 b1:00.0" {
		t.Fatalf("the functions are %s", got)
	}
	if again := adapters(t, s); again[1] != before[1] {
		t.Error("the reader of a function that stays is another one")
	}
	tree.Remove("class/infiniband/mlx5_2")
	tree.Remove(virtual + "infiniband")
	if o, err := before[2].Read(t.Context(), device.Fast); err == nil || len(o) != 0 {
		t.Errorf("a function whose RDMA device is gone gives %v (%v)", o, err)
	}
	if got := keys(adapters(t, s)); got != "81:00.0 a1:00.0 b1:00.0" {
		t.Errorf("the functions are %s", got)
	}

	// A function that cannot be identified affects no other one.
	tree.Set("class/infiniband/mlx5_0/device", "no link")
	readers, err := s.Readers(t.Context())
	if err == nil || keys(readers) != "a1:00.0 b1:00.0" {
		t.Errorf("beside one that cannot be identified: %s (%v)", keys(readers), err)
	}
	tree.Link("class/infiniband/mlx5_0/device", "../../../0000:81:00.0")
	if again := adapters(t, s); keys(again[:1]) != "81:00.0" || again[0] != before[0] {
		t.Error("the reader of a function that could temporarily not be identified is another one")
	}
}

func TestWithoutRDMA(t *testing.T) {
	_, err := New(sysfstest.Plant(t, "amdgpu").Root).Readers(t.Context())
	if source.ReasonOf(err) != source.ReasonLibraryMissing {
		t.Errorf("without the class: %v", err)
	}
	tree := sysfstest.Plant(t)
	tree.Set("class/infiniband", "no folder")
	if _, err := New(tree.Root).Readers(t.Context()); err == nil || source.ReasonOf(err) == source.ReasonLibraryMissing {
		t.Errorf("a class that cannot be listed: %v", err)
	}
	if s := New(tree.Root); s.Name() != "rdma" || s.Close() != nil {
		t.Error("it has another name, or cannot be closed")
	}
}

func TestVendors(t *testing.T) {
	for number, want := range map[string]string{
		"15b3": "mellanox", "14e4": "broadcom", "1d0f": "amazon", "1ae0": "google-network", "8086": "intel-network",
		"1dd8": "pensando", "1077": "qlogic", "1425": "chelsio", "1414": "microsoft", "19e5": "huawei", "1ded": "alibaba",
		"434e": "cornelis", "beef": "beef", "": "",
	} {
		if got := functionVendor(sysfs.Function{Vendor: number}); got != want {
			t.Errorf("%s is %q, want %q", number, got, want)
		}
	}
}
