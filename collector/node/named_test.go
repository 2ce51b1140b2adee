package node

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// publishedAs is a device of which a source knows nothing but the published name.
func publishedAs(driver, pool, name string) device.Device {
	d := unidentified()
	d.Vendor, d.Model, d.Published = "example", "Accelerator", device.PublishedName{Driver: driver, Pool: pool, Device: name}
	return d
}

// addNamed publishes a device and lets a source read it by its published name.
func (s *scene) addNamed(driver, pool string) dra.DeviceID {
	id := dra.DeviceID{Driver: driver, Pool: sceneNode, Name: "accel-0"}
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{ID: id, Node: sceneNode, Placement: dra.PlacementUnknown})
	s.addDevice(publishedAs(driver, pool, id.Name))
	return id
}

// A device that a source identifies by its published name alone is the device of
// the claim, before and after the source has described it.
func TestDevicesIdentifiedByPublishedNames(t *testing.T) {
	for name, pool := range map[string]string{"with the pool": sceneNode, "without the pool": ""} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, gpu(0))
			id := s.addNamed("accel.example.com", pool)
			s.set("", device.Energy, 5)
			s.set("", device.Power, 70)
			claim := s.allocate("team/job", "gpu-0")
			claim.Results[0].Device = id
			named := s.facts.Samples[1]
			s.facts.Samples = s.facts.Samples[:1]
			s.run(2)
			if rows := s.page(`dra_exporter_unmatched_devices{driver="accel.`); rows != "" {
				t.Errorf("before a source reads devices of the driver:\n%s", rows)
			}
			s.facts.Samples = append(s.facts.Samples, named)
			s.run(3)
			uuid := sceneNode + "/accel.example.com/" + sceneNode + "/accel-0"
			for _, want := range []struct {
				family string
				labels []string
				value  float64
			}{
				{"dra_exporter_unmatched_devices", []string{"driver", "accel.example.com", "side", "hardware"}, 0},
				{"dra_device_power_watts", []string{"uuid", uuid}, 70},
				{"dra_device_info", []string{"uuid", uuid, "vendor", "example", "source", "simulated"}, 1},
				{"dra_device_published_info", []string{"uuid", uuid, "driver", "accel.example.com", "pool", sceneNode, "device", "accel-0"}, 1},
				{"dra_claim_held", []string{"uuid", uuid, "resourceclaim", "job"}, 1},
				{"dra_claim_energy_joules_total", []string{"uuid", uuid, "resourceclaim", "job"}, 200},
			} {
				if got, found := s.value(want.family, want.labels...); !found || got != want.value {
					t.Errorf("%s%v is %v (%v), want %v", want.family, want.labels, got, found, want.value)
				}
			}
			matches := Matches(s.facts)
			if last := matches[len(matches)-1]; last.Device != id || last.Rule != "published name" {
				t.Errorf("the last match is %+v", last)
			}
			// It is not published any more.
			s.facts.Cluster.Published = s.facts.Cluster.Published[:1]
			s.release("team/job")
			s.run(1)
			if _, published := s.value("dra_device_published_info", "driver", "accel.example.com"); published {
				t.Error("it is still published")
			}
		})
	}
}

// Several pools have a device of the same name: a name without the pool is of none
// of them.
func TestPublishedNameOfSeveralPools(t *testing.T) {
	s := newScene(t)
	first := s.addNamed("accel.example.com", "")
	second := first
	second.Pool = "other"
	s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{ID: second, Node: sceneNode, Placement: dra.PlacementUnknown})
	s.set("", device.Power, 70)
	s.run(2)
	if got := s.page("dra_device_published_info", "dra_exporter_unmatched_devices"); got != `dra_exporter_unmatched_devices{driver="accel.example.com",side="hardware"} 1
` {
		t.Error(got)
	}
}

// Where a library has the same device, it gives the readings, and the source that
// knows the published name adds what the library does not read: only for the
// driver of the device's vendor.
func TestPublishedNamesOfOtherHardware(t *testing.T) {
	for _, test := range []struct {
		driver string
		uuid   string // that the driver publishes
		adds   bool
	}{
		{"gpu.nvidia.com", "GPU-0", true},
		{"other.example.com", "GPU-0", false},
	} {
		t.Run(test.driver, func(t *testing.T) {
			s := newScene(t, gpu(0))
			s.facts.Cluster.Published = nil
			id := s.addNamed(test.driver, sceneNode)
			s.facts.Cluster.Published[0].UUID = test.uuid
			s.set("GPU-0", device.Power, 300)
			s.set("", device.Power, 70)
			s.set("", device.Temperature, 40)
			claim := s.allocate("team/job", "gpu-0")
			claim.Results[0].Device = id
			s.run(3)
			if power, _ := s.value("dra_device_power_watts"); power != 300 {
				t.Errorf("the power is %v, want that of the library", power)
			}
			if temperature, added := s.value("dra_device_temperature_celsius", "uuid", "GPU-0"); added != test.adds {
				t.Errorf("the temperature is %v, added: %v", temperature, added)
			}
			if _, held := s.value("dra_claim_held", "uuid", "GPU-0", "resourceclaim", "job"); !held {
				t.Error("the claim does not hold the library's device")
			}
			if rows := s.page("dra_device_info"); strings.Count(rows, "\n") != 1 {
				t.Errorf("there is another device:\n%s", rows)
			}
		})
	}
}

// A partition that a source identifies by its published name has the whole device as
// parent, whether or not the source or the driver has that one.
func TestParentsOfPublishedNames(t *testing.T) {
	s := newScene(t, gpu(0))
	id := s.addNamed("accel.example.com", sceneNode)
	s.facts.Samples[1].Device.PublishedParent = "accel-whole"
	s.set("", device.Power, 70)
	s.run(2)
	uuid, parent := unknownUUID(sceneNode, id), unknownUUID(sceneNode, dra.DeviceID{Driver: id.Driver, Pool: sceneNode, Name: "accel-whole"})
	if got, found := s.value("dra_device_power_watts", "uuid", uuid, "parent_uuid", parent); !found || got != 70 {
		t.Errorf("the power of the partition is %v (%v)", got, found)
	}
	// The whole device is the first GPU: its hardware is known.
	s.facts.Samples[1].Device.Published.Driver, s.facts.Samples[1].Device.PublishedParent = "gpu.nvidia.com", "gpu-0"
	s.run(2)
	uuid = unknownUUID(sceneNode, dra.DeviceID{Driver: "gpu.nvidia.com", Pool: sceneNode, Name: id.Name})
	if _, found := s.value("dra_device_power_watts", "uuid", uuid, "parent_uuid", gpu(0).UUID); !found {
		t.Error("the parent is not the GPU that is published so")
	}
}
