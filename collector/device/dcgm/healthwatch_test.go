//go:build cgo && linux

package dcgm

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// Incidents of an engine have a system, which may be all systems, and an error.
func TestIncidentsOfAnEngine(t *testing.T) {
	node := stubs.NewNode(t, 2)
	use(t, node)
	r := connected(t, newSource(t, Options{}))
	for _, step := range []struct{ key, value, want string }{
		{"dcgm.health.nvlink", "fail", ""}, // for a link that is down
		{"dcgm.health.nvlink", "fail/71", "nvlink=fail"},
		{"dcgm.health.mem", "warn/101", "nvlink=fail"}, // for an Xid
		{"dcgm.health.mem", "warn/101 GPU 0 had Xid 13.", "nvlink=fail"},
		{"dcgm.health.mem", "warn", "memory=warn nvlink=fail"},
		{"dcgm.health.all", "fail", "all=fail memory=warn nvlink=fail"}, // for an Xid as well
	} {
		node.Set(0, step.key, step.value)
		for i, want := range []string{step.want, ""} {
			var readings []device.Reading
			for _, reading := range read(t, r, device.Slow)[i].Slow {
				if reading.Quantity == device.HealthCheck {
					readings = append(readings, reading)
				}
			}
			if got := amissText(t, readings); got != want {
				t.Errorf("after %s=%s GPU %d has %q, want %q", step.key, step.value, i, got, want)
			}
		}
	}
}
