package node

import (
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// adapter is a scene of a network device that is not held, with one port
// that is active.
func adapter(t testing.TB) *scene {
	s := newScene(t, gpu(0))
	s.port("active")
	s.run(10)
	return s
}

func (s *scene) port(state string) {
	s.setState("GPU-0", device.NetworkLinks, state, portStates(), "mlx5_0/1")
}

// The driver of a RoCE device takes its interface down when it prepares a
// claim, moves it into the pod and takes it up there, and likewise back.
func TestPortsOfPods(t *testing.T) {
	s := adapter(t)
	s.state.health.hold = 5 * time.Minute
	for range 3 {
		s.allocate("ml/train", "gpu-0")
		s.run(1)
		s.port("down")
		s.run(45)
		s.expect("the pod starts", "1", "", "")
		s.port("active")
		s.run(60)
		s.port("down")
		s.run(45) // while the pod ends
		s.release("ml/train")
		s.run(45)
		s.expect("the interface is moved back", "1", "", "")
		s.port("active")
		s.run(10)
	}
	if got, there := s.value("dra_constraint_violations_total", "constraint", "link"); got != 0 || !there {
		t.Errorf("%v violations of link by 3 pods that only came and went", got)
	}
}

// A port that stays down is missed a minute after its holders changed last;
// who holds it decides how much that weighs.
func TestPortThatStaysDown(t *testing.T) {
	s := adapter(t)
	s.port("down")
	s.run(60)
	s.expect("a second too early", "1", "", "")
	s.run(1)
	s.expect("it is not held", "1", "network_link_down", "warning")
	s.allocate("ml/train", "gpu-0")
	s.run(1)
	s.expect("a claim takes it", "1", "network_link_down", "warning")
	s.run(59)
	s.expect("not yet missed under the claim: nothing is", "1", "", "")
	s.run(1)
	s.expect("the claim misses it", "0", "network_link_down", "critical")
	if got, _ := s.value("dra_constraint_violations_total", "constraint", "link"); got != 1 {
		t.Errorf("%v violations, want 1", got)
	}
	s.facts.Listing = dra.PodResources{
		Pods:    []dra.PodRef{{Namespace: "legacy", Name: "notebook"}},
		Plugins: []dra.PluginAssignment{{Pod: dra.PodRef{Namespace: "legacy", Name: "notebook"}, Container: "main", Resource: "rdma/hca", DeviceIDs: []string{"GPU-0"}}},
	}
	s.facts.ListedAt = s.now
	s.run(60)
	s.expect("a pod with a device plugin joins", "1", "", "")
	s.run(1)
	s.expect("both miss it", "0", "network_link_down", "critical")
	s.port("active")
	s.run(6)
	s.expect("it is back", "1", "", "")
}

// What is down briefly, or of which it is not known whether it was down all
// the time, is not missed.
func TestLinksThatComeBack(t *testing.T) {
	links := func(active float64) func(*scene) {
		return func(s *scene) { s.setDetail("GPU-0", device.NVLinks, active, "active") }
	}
	port := func(state string) func(*scene) {
		return func(s *scene) { s.setState("GPU-0", device.NetworkLinks, state, portStates(), "1") }
	}
	quiet := func(is bool) func(*scene) { return func(s *scene) { s.unreadable["GPU-0"] = is } }
	type act struct {
		do      func(*scene)
		seconds int
	}
	for name, story := range map[string][]act{
		"one answer of DCGM, repeated for 5 s, and the next": {{links(15), 6}, {links(16), 1}},
		"links in training, again and again":                 {{links(15), 7}, {links(16), 1}, {links(14), 7}, {links(16), 1}},
		"down before and after a gap":                        {{links(15), 3}, {quiet(true), 30}, {quiet(false), 7}, {links(16), 1}},
		"a port that flaps":                                  {{port("down"), 60}, {port("active"), 1}, {port("down"), 60}, {port("active"), 1}},
		"a port before and after a gap":                      {{port("down"), 50}, {quiet(true), 30}, {quiet(false), 60}, {port("active"), 1}},
		"a port that never was active": {{func(s *scene) {
			s.setState("GPU-0", device.NetworkLinks, "init", []string{"init", "down"}, "2")
		}, 90}},
		"a port that is not reported any more": {{port("down"), 30}, {func(s *scene) {
			s.unset("GPU-0", device.NetworkLinks)
			s.setState("GPU-0", device.NetworkLinks, "active", portStates(), "renamed")
		}, 90}},
		"a source that counts otherwise": {{func(s *scene) {
			s.facts.Samples[0].Source = "dcgm"
			s.setDetail("GPU-0", device.NVLinks, 12, "active")
		}, 30}},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthyGPU(t)
			for _, a := range story {
				a.do(s)
				for range a.seconds {
					s.run(1)
					if slices.ContainsFunc(s.last.Rows(), func(r metric.Row) bool { return r.Family.Name == "dra_device_health_signal_info" }) {
						t.Fatalf("at %s:\n%s", s.now.Wall.Format(time.TimeOnly), s.page("dra_device_health_signal"))
					}
				}
			}
		})
	}
}

// More links than there are, in one sample, do not make the others missing.
func TestLinksOfOneWrongSample(t *testing.T) {
	s := healthyGPU(t)
	s.setDetail("GPU-0", device.NVLinks, 500, "active")
	s.run(1)
	s.setDetail("GPU-0", device.NVLinks, 16, "active")
	s.run(20)
	s.expect("after a wrong sample", "1", "", "")
}
