package device

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// seen makes the sample of a device as a source has it at the given second.
func seen(source string, d Device, second int, readings ...Reading) Sample {
	s := Sample{Device: d, Source: source, Readings: readings}
	if second > 0 {
		s.At = clock.Instant{Elapsed: time.Duration(second) * time.Second}
	}
	return s
}

func power(v float64) Reading       { return Reading{Quantity: Power, Value: v} }
func utilization(v float64) Reading { return Reading{Quantity: Utilization, Value: v} }
func energy(v float64) Reading      { return Reading{Quantity: Energy, Value: v} }

// partition is a part of GPU-1.
func partition(uuid string, gpuInstance, computeInstance int) Device {
	return Device{UUID: uuid, ParentUUID: "GPU-1", GPUInstance: gpuInstance, ComputeInstance: computeInstance}
}

// xid79 is a sample of a device that is watched.
func xid79(s Sample, count uint64) Sample {
	s.XIDs = []XID{}
	if count > 0 {
		s.XIDs = append(s.XIDs, XID{Code: 79, Count: count})
	}
	return s
}

func onlyXIDs(s Sample) Sample {
	s.bare = true
	return s
}

func TestMerge(t *testing.T) {
	const pci = "0000:1a:00.0"
	forgetful := seen("x", Device{UUID: "GPU-1"}, 5, power(100))
	forgetful.answers = forgetful.answers.with([]Reading{power(0), energy(0)})

	elsewhere := partition("MIG-4", 7, 0)
	elsewhere.ParentUUID = "GPU-2"

	for name, test := range map[string]struct {
		bySource   [][]Sample
		want       string
		duplicates string
	}{
		"nothing": {},
		"two devices of one source are sorted": {
			bySource: [][]Sample{{seen("x", Device{UUID: "GPU-2"}, 1), seen("x", Device{UUID: "GPU-1"}, 2)}},
			want: `
				x GPU-1 at 2s:
				x GPU-2 at 1s:
				`,
		},
		"sources stand in the order of precedence": {
			bySource: [][]Sample{{seen("x", Device{UUID: "GPU-2"}, 1)}, nil, {seen("z", Device{UUID: "GPU-1"}, 1)}},
			want: `
				x GPU-2 at 1s:
				z GPU-1 at 1s:
				`,
		},
		"the same UUID is one device": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1", Model: "first"}, 5, power(100))},
				{seen("y", Device{UUID: "GPU-1", Model: "second"}, 4, utilization(0.5), power(200))},
			},
			want: `
				x GPU-1 first at 5s: utilization=0.5 power=100
				`,
		},
		"the same address is one device where one has no UUID": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1", PCIBusID: pci}, 5)},
				{seen("y", Device{PCIBusID: pci}, 5, power(1))},
			},
			want: `
				x GPU-1 at 5s: power=1
				`,
		},
		"the first has no UUID": {
			bySource: [][]Sample{
				{seen("x", Device{PCIBusID: pci}, 5)},
				{seen("y", Device{UUID: "GPU-1", PCIBusID: pci}, 5, power(1))},
			},
			want: `
				x 0000:1a:00.0 at 5s: power=1
				`,
		},
		"two UUIDs at one address are two devices": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1", PCIBusID: pci}, 5)},
				{seen("y", Device{UUID: "GPU-2", PCIBusID: pci}, 5)},
			},
			want: `
				x GPU-1 at 5s:
				y GPU-2 at 5s:
				`,
		},
		"a partition is not the device at its address": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1", PCIBusID: pci}, 5)},
				{seen("y", Device{ParentUUID: "GPU-1", PCIBusID: pci}, 5)},
			},
			want: `
				x GPU-1 at 5s:
				y 0000:1a:00.0 at 5s:
				`,
		},
		"a device is not the partition at its address": {
			bySource: [][]Sample{
				{seen("x", Device{ParentUUID: "GPU-1", PCIBusID: pci}, 5)},
				{seen("y", Device{PCIBusID: pci}, 5)},
			},
			want: `
				x 0000:1a:00.0 at 5s:
				y 0000:1a:00.0 at 5s:
				`,
		},
		"the same UUID twice in one source": {
			bySource: [][]Sample{{
				seen("x", Device{UUID: "GPU-1"}, 5, power(1)),
				seen("x", Device{UUID: "GPU-1"}, 5, power(2), utilization(1)),
			}},
			want: `
				x GPU-1 at 5s: power=1
				`,
			duplicates: "GPU-1",
		},
		"the same UUID twice in the second source": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1"}, 5)},
				{seen("y", Device{UUID: "GPU-1"}, 5, power(1)), seen("y", Device{UUID: "GPU-1"}, 5, utilization(1))},
			},
			want: `
				x GPU-1 at 5s: power=1
				`,
			duplicates: "GPU-1",
		},
		"the same address twice in one source": {
			bySource:   [][]Sample{{seen("x", Device{PCIBusID: pci}, 5), seen("x", Device{PCIBusID: pci}, 5)}},
			want:       "x 0000:1a:00.0 at 5s:\n",
			duplicates: pci,
		},
		"a stale source adds nothing": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1"}, 50, power(100))},
				{seen("y", Device{UUID: "GPU-1"}, 39, utilization(0.5))},
			},
			want: "x GPU-1 at 50s: power=100\n",
		},
		"a source that has never read adds nothing": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1"}, 50, power(100))},
				{seen("y", Device{UUID: "GPU-1"}, 0, utilization(0.5))},
			},
			want: "x GPU-1 at 50s: power=100\n",
		},
		"the first has never read": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1", Model: "first"}, 0)},
				{seen("y", Device{UUID: "GPU-1"}, 7, power(1))},
			},
			want: "x GPU-1 first at 7s: power=1\n",
		},
		"a quantity does not change its source when one read of it fails": {
			bySource: [][]Sample{
				{forgetful},
				{seen("y", Device{UUID: "GPU-1"}, 5, energy(1e6), utilization(0.5))},
			},
			want: "x GPU-1 at 5s: utilization=0.5 power=100\n",
		},
		"equal instances of one device are one partition": {
			bySource: [][]Sample{
				{seen("x", partition("MIG-1", 7, 0), 5, power(1)), seen("x", partition("MIG-2", 8, 0), 5)},
				{seen("y", partition("MIG-GPU-1/7/0", 7, 0), 5, utilization(1))},
				{seen("z", partition("MIG-GPU-1/7/0", 7, 0), 5, energy(1))},
			},
			want: `
				x MIG-1 at 5s: utilization=1 power=1 energy=1
				x MIG-2 at 5s:
				`,
		},
		"two instances are two partitions": {
			bySource: [][]Sample{
				{seen("x", partition("MIG-1", 7, 0), 5)},
				{seen("y", partition("MIG-2", 7, 1), 5), seen("y", partition("MIG-3", 8, 0), 5), seen("y", elsewhere, 5)},
			},
			want: `
				x MIG-1 at 5s:
				y MIG-2 at 5s:
				y MIG-3 at 5s:
				y MIG-4 at 5s:
				`,
		},
		"unknown instances are not equal": {
			bySource: [][]Sample{
				{seen("x", partition("MIG-1", Unknown, Unknown), 5), seen("x", partition("MIG-2", 7, Unknown), 5), seen("x", partition("MIG-3", Unknown, 0), 5)},
				{seen("y", partition("MIG-4", Unknown, Unknown), 5), seen("y", partition("MIG-5", 7, Unknown), 5), seen("y", partition("MIG-6", Unknown, 0), 5)},
			},
			want: `
				x MIG-1 at 5s:
				x MIG-2 at 5s:
				x MIG-3 at 5s:
				y MIG-4 at 5s:
				y MIG-5 at 5s:
				y MIG-6 at 5s:
				`,
		},
		"two UUIDs in one instance are two, from one source": {
			bySource: [][]Sample{{seen("x", partition("MIG-1", 7, 0), 5), seen("x", partition("MIG-2", 7, 0), 5)}},
			want: `
				x MIG-1 at 5s:
				x MIG-2 at 5s:
				`,
		},
		"the same instance twice in the second source": {
			bySource: [][]Sample{
				{seen("x", partition("MIG-1", 7, 0), 5)},
				{seen("y", partition("MIG-GPU-1/7/0", 7, 0), 5), seen("y", partition("MIG-GPU-1/7/0", 7, 0), 5, power(1))},
			},
			want:       "x MIG-1 at 5s:\n",
			duplicates: "MIG-GPU-1/7/0",
		},
		"a partition is not the one that was there before it": {
			bySource: [][]Sample{
				{seen("x", partition("MIG-new", 7, 0), 5)},
				{seen("y", partition("MIG-old", 7, 0), 5, utilization(0.9))},
			},
			want: `
				x MIG-new at 5s:
				y MIG-old at 5s: utilization=0.9
				`,
		},
		"a partition of unknown UUID is the one at its place": {
			bySource: [][]Sample{
				{seen("x", partition("", 7, 0), 5), seen("x", partition("MIG-1", 8, 0), 5)},
				{seen("y", partition("MIG-2", 7, 0), 5, power(2)), seen("y", partition("", 8, 0), 5, power(1))},
			},
			want: `
				x  at 5s: power=2
				x MIG-1 at 5s: power=1
				`,
		},
		"so is one whose UUID says no more than the place": {
			bySource: [][]Sample{
				{seen("x", partition("MIG-GPU-1/7/0", 7, 0), 5)},
				{seen("y", partition("MIG-1", 7, 0), 5, power(1))},
			},
			want: "x MIG-GPU-1/7/0 at 5s: power=1\n",
		},
		"errors are those of the first source that watches the device": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1"}, 5)},
				{xid79(seen("y", Device{UUID: "GPU-1"}, 0), 2)},
				{xid79(seen("z", Device{UUID: "GPU-1"}, 5), 3)},
			},
			want: "x GPU-1 at 5s: xid79=2 by y\n",
		},
		"no XIDs are an answer": {
			bySource: [][]Sample{
				{xid79(seen("x", Device{UUID: "GPU-1"}, 5), 0)},
				{xid79(seen("y", Device{UUID: "GPU-1"}, 5), 3)},
			},
			want: "x GPU-1 at 5s: xids=none\n",
		},
		"the identity is from the source that has read the device, the errors from the first": {
			bySource: [][]Sample{
				{onlyXIDs(xid79(seen("x", unseen("GPU-1"), 0), 1)), onlyXIDs(xid79(seen("x", unseen("GPU-2"), 0), 4))},
				{xid79(seen("y", Device{UUID: "GPU-1", Model: "read"}, 5, power(1)), 7)},
			},
			want: `
				x GPU-2 at 0s: xid79=4
				y GPU-1 read at 5s: power=1 xid79=1 by x
				`,
		},
		"three sources": {
			bySource: [][]Sample{
				{seen("x", Device{UUID: "GPU-1"}, 5, power(1))},
				{seen("y", Device{UUID: "GPU-1"}, 5, utilization(0.1))},
				{seen("z", Device{UUID: "GPU-1"}, 5, utilization(0.2), energy(3))},
			},
			want: "x GPU-1 at 5s: utilization=0.1 power=1 energy=3\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(test.bySource)
			merged, duplicates := Merge(test.bySource, 10*time.Second)
			if got, want := written(merged), unindent(test.want); got != want {
				t.Errorf("merged\n%swant\n%s", got, want)
			}
			if got := strings.Join(duplicates, " "); got != test.duplicates {
				t.Errorf("duplicates %q, want %q", got, test.duplicates)
			}
			if after := fmt.Sprint(test.bySource); after != before {
				t.Errorf("the samples given were changed from\n%s\nto\n%s", before, after)
			}
		})
	}
}

func written(samples []Sample) string {
	var b strings.Builder
	for _, s := range samples {
		b.WriteString(s.Source + " " + identity(s.Device))
		if s.Device.Model != "" {
			b.WriteString(" " + s.Device.Model)
		}
		fmt.Fprintf(&b, " at %gs:", s.At.Elapsed.Seconds())
		for _, r := range s.Readings {
			fmt.Fprintf(&b, " %s=%g", Specs()[r.Quantity].Name, r.Value)
		}
		b.WriteString(xidText(s.XIDs) + xidSource(s) + "\n")
	}
	return b.String()
}

// xidSource names the source of the XIDs where it is not the device's source.
func xidSource(s Sample) string {
	if expected := map[bool]string{true: "", false: s.Source}[s.XIDs == nil]; s.XIDSource == expected {
		return ""
	}
	return " by " + s.XIDSource
}

// xidText writes XIDs with their counts.
func xidText(xids []XID) string {
	if xids != nil && len(xids) == 0 {
		return " xids=none"
	}
	var b strings.Builder
	for _, xid := range xids {
		fmt.Fprintf(&b, " xid%d=%d", xid.Code, xid.Count)
	}
	return b.String()
}

// What the first source does not know of a device is taken from a later one,
// except for the names of a device without a UUID.
func TestMergeFillsInTheIdentity(t *testing.T) {
	full := Device{
		UUID: "MIG-GPU-1/7/0", ParentUUID: "GPU-1", Vendor: "nvidia", Model: "B", PCIBusID: "0000:1b:00.0", Minor: 3, RenderMinor: 131,
		Profile: "1g.10gb", Placement: 4, GPUInstance: 7, ComputeInstance: 0, DriverVersion: "580", Nodes: []string{"/dev/nvidia3"},
	}
	bare := unseen("MIG-1")
	bare.ParentUUID, bare.GPUInstance, bare.ComputeInstance, bare.Model = "GPU-1", 7, 0, "A"
	filled := full
	filled.UUID, filled.Model = "MIG-1", "A"
	nameless := bare
	nameless.UUID = ""
	for name, test := range map[string]struct{ first, second, want Device }{
		"what it lacks":                {bare, full, filled},
		"what it knows":                {full, bare, full},
		"a partition without its UUID": {nameless, full, nameless},
	} {
		merged, _ := Merge([][]Sample{{seen("x", test.first, 1)}, {seen("y", test.second, 1)}}, time.Second)
		if len(merged) != 1 || !reflect.DeepEqual(merged[0].Device, test.want) {
			t.Errorf("%s: merged %+v, want %+v", name, merged, test.want)
		}
	}
}

// Specs and constants must not drift apart.
func TestEveryQuantityHasItsSpec(t *testing.T) {
	names := make(map[string]bool)
	for q, spec := range Specs() {
		if spec.Name == "" || names[spec.Name] || len(spec.Details) > 2 {
			t.Errorf("quantity %d: %+v is not a spec of its own", q, spec)
		}
		names[spec.Name] = true
	}
	if Quantities > 64 {
		t.Errorf("%d quantities do not fit a quantitySet", Quantities)
	}
}
