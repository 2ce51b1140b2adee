package page

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

func findDevice(t *testing.T, devices []Device, uuid string) Device {
	t.Helper()
	for _, d := range devices {
		if d.UUID == uuid {
			return d
		}
	}
	t.Fatalf("there is no device %s", uuid)
	return Device{}
}

func TestDevices(t *testing.T) {
	view := newView(parseNode(testNodeRows(t)), noon)
	var order []string
	devices := map[string]Device{}
	for _, d := range view.Devices {
		order = append(order, d.Title())
		devices[d.Title()] = d
	}
	// Unhealthy devices first, then those with a warning.
	if want := []string{"gpu-1", "gpu-2", "gpu-5", "gpu-10", "gpu-0", "gpu-3", "gpu-4", "nic-0"}; !slices.Equal(order, want) {
		t.Errorf("devices %v, want %v", order, want)
	}
	parent := devices["gpu-2"]
	if len(parent.Partitions) != 3 || parent.Free() || parent.Utilization != nil {
		t.Errorf("the partitioned GPU is %+v", parent)
	}
	if slice := parent.Partitions[1]; slice.Profile != "1g.10gb" || !slice.Free() || slice.Power != nil {
		t.Errorf("its free partition is %+v", slice)
	}
	if shared := devices["gpu-1"]; len(shared.Holders) != 2 || len(shared.Holders[0].Pods) != 2 ||
		shared.Holders[0].Attribution != "shared" || shared.Holders[0].Class != "shared.gpu.nvidia.com" {
		t.Errorf("the shared GPU is held by %+v", shared.Holders)
	}
	if first := devices["gpu-0"]; len(first.Holders) != 1 || !slices.Equal(first.Holders[0].Pods[0].Containers, []string{"trainer", "warmup"}) {
		t.Errorf("the exclusive GPU, seen by a claim with admin access, is held by %+v", first.Holders)
	}
	if plugin := devices["gpu-3"].Holders; len(plugin) != 1 || plugin[0].Kind != ByDevicePlugin || plugin[0].Resource != "nvidia.com/gpu" {
		t.Errorf("the device plugin's GPU is held by %+v", plugin)
	}
	if free := devices["gpu-4"]; !free.Free() || *free.Utilization != 0 {
		t.Errorf("the free GPU is %+v", free)
	}
	if idle := devices["gpu-5"].Holders[0].IdleSince; noon.Sub(idle) != 83*time.Minute {
		t.Errorf("the idle GPU is idle since %v", idle)
	}
	if nic := devices["nic-0"]; nic.Matched || nic.Utilization != nil || len(nic.Holders) != 1 {
		t.Errorf("the device without hardware is %+v", nic)
	}
}

func TestSources(t *testing.T) {
	for _, source := range newView(parseNode(testNodeRows(t)), noon).Sources {
		switch source.Name {
		case "nvml":
			if !source.Up || source.Reason != "device_timeout" || source.Age != 750*time.Millisecond {
				t.Errorf("nvml is %+v", source)
			}
		case "dcgm":
			if source.Up || !source.LastSuccess.IsZero() {
				t.Errorf("dcgm is %+v", source)
			}
		}
	}
}

func TestSummary(t *testing.T) {
	view := newView(parseNode(testNodeRows(t)), noon)
	s := view.Summary()
	if count := view.Count(); count != (DeviceCount{Devices: 11, Whole: 8, Partitions: 3, Held: 6}) {
		t.Errorf("counted %+v", count)
	}
	if s.Devices != 8 || s.Free != 2 || s.ClaimsHeld != 7 {
		t.Errorf("counted %+v", s)
	}
	if want := (0.97 + 0.42 + 0.63 + 0 + 0 + 0.08) / 6; s.Utilization.Count != 6 || math.Abs(*s.Utilization.Value-want) > 1e-12 {
		t.Errorf("mean utilization %v over %d, want %v over 6", *s.Utilization.Value, s.Utilization.Count, want)
	}
	if s.Memory.Count != 7 || *s.Memory.Whole != 7*80*(1<<30) {
		t.Errorf("memory %v over %d: partitions must not count", *s.Memory.Whole, s.Memory.Count)
	}
}

// row returns a row of a family.
func row(family string, value float64, labels ...string) metric.Row {
	var names, values []string
	for i := 0; i < len(labels); i += 2 {
		names, values = append(names, labels[i]), append(values, labels[i+1])
	}
	return metric.Row{Family: &metric.Family{Name: family}, Labels: metric.NewLabels(names, values...), Value: value}
}

func TestUnknownValues(t *testing.T) {
	view := newView(parseNode(nil), noon)
	if _, known := view.Age(); known || view.Node != "" || len(view.Devices)+len(view.Claims)+len(view.Sources) != 0 {
		t.Errorf("of no rows the view is %+v", view)
	}
	if s := view.Summary(); s.Utilization.Value != nil || s.Memory.Used != nil {
		t.Errorf("of no rows the summary is %+v", s)
	}
}

// A number that is none is as good as absent.
func TestNotANumber(t *testing.T) {
	view := newView(parseNode([]metric.Row{
		row("dra_device_utilization_ratio", math.NaN(), "uuid", "a"),
		row("dra_device_power_watts", math.Inf(1), "uuid", "a"),
		row("dra_exporter_sample_timestamp_seconds", math.NaN()),
	}), noon)
	if d := findDevice(t, view.Devices, "a"); d.Utilization != nil || d.Power != nil || !view.SampledAt.IsZero() {
		t.Errorf("not numbers became %+v at %v", d, view.SampledAt)
	}
}

// All devices are shown, whatever their parents are.
func TestInvalidParents(t *testing.T) {
	view := newView(parseNode(([]metric.Row{
		row("dra_device_info", 1, "uuid", "orphan", "parent_uuid", "unknown"),
		row("dra_device_info", 1, "uuid", "self", "parent_uuid", "self"),
		row("dra_device_info", 1, "uuid", "whole", "parent_uuid", ""),
		row("dra_device_info", 1, "uuid", "part", "parent_uuid", "whole"),
		row("dra_device_info", 1, "uuid", "part-of-part", "parent_uuid", "part"),
	})), noon)
	shown := 0
	for _, d := range view.Devices {
		shown += 1 + len(d.Partitions)
	}
	if shown != 5 || len(findDevice(t, view.Devices, "whole").Partitions) != 1 {
		t.Errorf("of five devices %d are shown: %+v", shown, view.Devices)
	}
}

// Stale readings have no gauges, and so no present attribution.
func TestAttributionWithoutGauges(t *testing.T) {
	claim := []string{"namespace", "n", "resourceclaim", "c", "uuid", "a"}
	of := func(rows ...metric.Row) ClaimDevice {
		rows = append(rows, row("dra_claim_held", 1, claim...))
		return newView(parseNode(rows), noon).Claims[0].Devices[0]
	}
	exclusive := row("dra_claim_busy_seconds_total", 1, append(claim, "attribution", "exclusive")...)
	shared := row("dra_claim_busy_seconds_total", 2, append(claim, "attribution", "shared")...)
	if got := of(exclusive).Attribution; got != "exclusive" {
		t.Errorf("with one account it is %q", got)
	}
	if got := of(exclusive, shared); got.Attribution != "" || len(got.Accounts) != 2 {
		t.Errorf("with two accounts it is guessed: %+v", got)
	}
}

// A bundle has one title in its claim and among the devices.
func TestBundle(t *testing.T) {
	claim := []string{"namespace", "n", "resourceclaim", "c", "uuid", "node-a/dra.cpu/claim:n/c"}
	view := newView(parseNode([]metric.Row{
		row("dra_claim_device_info", 1, append(claim, "driver", "dra.cpu")...),
		row("dra_claim_held", 1, claim...),
		row("dra_claim_bundled_devices", 32, claim...),
	}), noon)
	const title = "32 devices of dra.cpu"
	if got := view.Claims[0].Devices; len(got) != 1 || got[0].Bundled != 32 || got[0].Title() != title {
		t.Errorf("of the claim: %+v", got)
	}
	if got := view.Devices; len(got) != 1 || got[0].Title() != title || len(got[0].Holders) != 1 {
		t.Errorf("among the devices: %+v", got)
	}
}

// A claim may hold a device twice: its quantities are shown once.
func TestDeviceHeldTwice(t *testing.T) {
	claim := []string{"namespace", "n", "resourceclaim", "c", "uuid", "a", "driver", "d", "pool", "p", "device", "x"}
	view := newView(parseNode([]metric.Row{
		row("dra_claim_device_info", 1, append(claim, "request", "one", "share_id", "1")...),
		row("dra_claim_device_info", 1, append(claim, "request", "two", "share_id", "2")...),
		row("dra_claim_held", 1, "namespace", "n", "resourceclaim", "c", "uuid", "a"),
	}), noon)
	if got := view.Claims[0].Devices; len(got) != 1 || len(got[0].Allocations) != 2 {
		t.Errorf("the device held twice is %+v", got)
	}
	if got := view.Devices; len(got) != 1 || len(got[0].Holders) != 1 || got[0].Title() != "x" || got[0].Matched {
		t.Errorf("the device that only the claim knows is %+v", got)
	}
}

func TestNatural(t *testing.T) {
	names := []string{"gpu-10", "gpu-2-mig", "gpu-02", "gpu-2", "", "gpu", "gpu-1", "10", "9", "a", "gpu-2-mig-3", "gpu-18446744073709551616"}
	slices.SortFunc(names, natural)
	want := []string{"", "9", "10", "a", "gpu", "gpu-1", "gpu-2", "gpu-2-mig", "gpu-2-mig-3", "gpu-02", "gpu-10", "gpu-18446744073709551616"}
	if !slices.Equal(names, want) {
		t.Errorf("sorted %q, want %q", names, want)
	}
}

// A device without a known limit counts with what it draws; the share of the
// whole is then unknown.
func TestSumOfDevicesWithoutLimit(t *testing.T) {
	watts, limit := 300.0, 700.0
	var s Sum
	s.add(&watts, &limit)
	if s.Used == nil || *s.Used != 300 || s.Whole == nil || *s.Whole != 700 {
		t.Errorf("one device: %v of %v", s.Used, s.Whole)
	}
	s.add(&watts, nil)
	s.add(nil, &limit)
	if *s.Used != 600 || s.Whole != nil || s.Count != 2 {
		t.Errorf("two devices, one of unknown limit: %v of %v, %d devices", *s.Used, s.Whole, s.Count)
	}
}
