package node

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// The extensions that are named have families of their own. Their gauges end when
// they are stale, their counters stay.
func TestExtensions(t *testing.T) {
	s := newScene(t, gpu(0))
	s.configure(func(c *Config) { c.Extensions = []string{"fan_speed_rpm", "frames_total", "resets"} })
	id := s.addNamed("accel.example.com", "")
	s.setDetail("", device.Extension, 1200, "fan_speed_rpm", device.ExtensionGauge)
	s.setDetail("", device.Extension, 7, "frames", device.ExtensionCounter)
	s.setDetail("", device.Extension, 3, "resets", device.ExtensionCounter) // the name is that of a gauge
	s.setDetail("", device.Extension, 5, "more", device.ExtensionGauge)
	s.run(2)
	uuid := sceneNode + "/accel.example.com/" + sceneNode + "/" + id.Name
	check := func(family string, want float64, there bool) {
		t.Helper()
		if got, found := s.value(family, "uuid", uuid, "parent_uuid", ""); found != there || got != want {
			t.Errorf("%s is %v (%v), want %v (%v)", family, got, found, want, there)
		}
	}
	check("dra_device_ext_fan_speed_rpm", 1200, true)
	check("dra_device_ext_frames_total", 7, true)
	check("dra_device_ext_resets", 0, false)
	check("dra_device_ext_more", 0, false)
	named := &s.facts.Samples[1]
	s.unreadable[named.Device.UUID] = true
	s.run(30)
	check("dra_device_ext_fan_speed_rpm", 0, false)
	check("dra_device_ext_frames_total", 7, true)
	if got := extensionFamilies([]string{"frames_total"})[0].Family; got.Type != metric.Counter || got.Name != "dra_device_ext_frames_total" {
		t.Errorf("got %+v", got)
	}
}
