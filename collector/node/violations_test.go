package node

import (
	"fmt"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
)

// A class counts an onset once, however many of its claims hold the device,
// and a device that nobody holds concerns no class.
func TestViolationsByClass(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1))
	s.hear("GPU-0")
	s.hear("GPU-1")
	for i, class := range []string{"gold", "gold", "silver"} {
		s.allocate(fmt.Sprintf("ml/claim-%d", i), "gpu-0").Requests[0].DeviceClass = class
	}
	admin := s.allocate("ml/monitor", "gpu-0")
	admin.Requests[0].DeviceClass, admin.Results[0].AdminAccess = "monitoring", true
	s.run(2)
	s.hear("GPU-0", 48, 1, 95, 1)
	s.hear("GPU-1", 79, 1)
	s.run(1)
	metrictest.CompareGolden(t, "testdata/health_violations.txt", s.page("dra_constraint"))
	s.allocate("ml/late", "gpu-1").Requests[0].DeviceClass = "late"
	s.run(2)
	if got, there := s.value("dra_constraint_violations_total", "deviceclass", "late", "constraint", "recovery"); got != 0 || !there {
		t.Errorf("%v violations of a claim that took a sick device", got)
	}
}
