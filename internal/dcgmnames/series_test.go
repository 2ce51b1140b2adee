package dcgmnames

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

func busy(s *testNode, uuid string, utilization float64) {
	s.read(uuid, map[string]float64{"utilization_ratio": utilization})
}

// Containers that use a device, that no longer use it, or never did.
func TestUsers(t *testing.T) {
	for _, test := range []struct {
		name  string
		build func(s *testNode)
		want  []string
	}{
		{"no user", func(*testNode) {}, []string{"50"}},
		{"two containers of a pod", func(s *testNode) {
			s.claim("a", "claim", "GPU-0", "pod/one", "pod/two")
		}, []string{"pod/one 50", "pod/two 50"}},
		{"a container with two claims of the device", func(s *testNode) {
			s.claim("a", "first", "GPU-0", "pod/one")
			s.claim("a", "second", "GPU-0", "pod/one")
		}, []string{"pod/one 50"}},
		{"one claim twice", func(s *testNode) {
			s.claim("a", "claim", "GPU-0", "pod/one")
			s.consumers("a", "claim", "GPU-0", "pod/one")
		}, []string{"pod/one 50"}},
		{"a claim and a device plugin", func(s *testNode) {
			s.claim("a", "claim", "GPU-0", "pod/one")
			s.plugin("a", "GPU-0", "pod", "one")
			s.plugin("a", "GPU-0", "other", "one")
		}, []string{"other/one 50", "pod/one 50"}},
		{"pods of one name in two namespaces", func(s *testNode) {
			s.claim("a", "claim", "GPU-0", "pod/one")
			s.claim("b", "claim", "GPU-0", "pod/one")
		}, []string{"pod/one 50", "pod/one 50"}},
		{"admin access", func(s *testNode) {
			s.consumers("a", "claim", "GPU-0", "pod/one")
		}, []string{"50"}},
		{"admin access beside a holder", func(s *testNode) {
			s.consumers("a", "admin", "GPU-0", "watch/one")
			s.claim("a", "claim", "GPU-0", "pod/one")
		}, []string{"pod/one 50"}},
		{"the claim of another device", func(s *testNode) {
			s.claim("a", "claim", s.gpu(1), "pod/one")
			s.consumers("a", "claim", "GPU-0", "pod/one")
		}, []string{"50"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestNode()
			busy(s, s.gpu(0), 0.5)
			test.build(s)
			wantSeries(t, newTranslator(Copy).Rows(0, s.snapshot()), "DEV_GPU_UTIL", test.want...)
		})
	}
}

// The values of Split for a GPU, by the rows of pods and claims.
func TestSplit(t *testing.T) {
	shared := func(s *testNode) {
		s.claim("a", "left", "GPU-0", "l/c")
		s.claim("a", "right", "GPU-0", "r/c")
	}
	for _, test := range []struct {
		name  string
		build func(s *testNode)
		want  []string
	}{
		{"nothing is known", shared, []string{"l/c 80", "r/c 80"}},
		{"by claims", func(s *testNode) {
			shared(s)
			s.splits("a", "left", "GPU-0", model.Process, 0.5, 0)
			s.splits("a", "right", "GPU-0", model.Process, 0, 0)
		}, []string{"l/c 50", "r/c 0"}},
		{"shared claims are not split", func(s *testNode) {
			shared(s)
			s.splits("a", "left", "GPU-0", model.Shared, 0.7, 0)
			s.splits("a", "right", "GPU-0", model.Shared, 0.7, 0)
		}, []string{"l/c 80", "r/c 80"}},
		{"by pods of one claim", func(s *testNode) {
			s.claim("a", "both", "GPU-0", "l/c", "r/c")
			s.splits("a", "both", "GPU-0", model.Exclusive, 0.8, 0)
			s.podSplits("a", "l", "GPU-0", 0.25, 0)
			s.podSplits("a", "r", "GPU-0", 0.5, 0)
		}, []string{"l/c 25", "r/c 50"}},
		{"pods go before claims", func(s *testNode) {
			s.claim("a", "left", "GPU-0", "l/c", "m/c")
			s.claim("a", "right", "GPU-0", "r/c")
			s.splits("a", "left", "GPU-0", model.Process, 0.5, 0)
			s.splits("a", "right", "GPU-0", model.Process, 0.25, 0)
			s.podSplits("a", "l", "GPU-0", 0.125, 0)
		}, []string{"l/c 12.5", "m/c 50", "r/c 25"}},
		{"a device plugin's pod has no claim", func(s *testNode) {
			s.claim("a", "left", "GPU-0", "l/c")
			s.plugin("a", "GPU-0", "p", "c")
			s.splits("a", "left", "GPU-0", model.Process, 0.5, 0)
			s.podSplits("a", "l", "GPU-0", 0.5, 0)
			s.podSplits("a", "p", "GPU-0", 0.25, 0)
		}, []string{"l/c 50", "p/c 25"}},
		{"the same claim on another device", func(s *testNode) {
			shared(s)
			s.splits("a", "left", "GPU-1", model.Process, 0.5, 0)
			s.podSplits("a", "r", "GPU-1", 0.5, 0)
		}, []string{"l/c 80", "r/c 80"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newTestNode()
			busy(s, s.gpu(0), 0.8)
			test.build(s)
			rows := newTranslator(Split).Rows(0, s.snapshot())
			wantSeries(t, rows, "DEV_GPU_UTIL", test.want...)
			for _, series := range seriesOf(newTranslator(Copy).Rows(0, s.snapshot()), "DEV_GPU_UTIL") {
				if !strings.HasSuffix(series, " 80") {
					t.Errorf("copied series %s", series)
				}
			}
		})
	}
}

// Utilization and memory are split separately, and nothing else is: free memory
// is available to all.
func TestSplitByQuantity(t *testing.T) {
	s := newTestNode()
	s.read(s.gpu(0), map[string]float64{"utilization_ratio": 0.8, "memory_used_bytes": 60 * gibibyte, "memory_size_bytes": 80 * gibibyte, "power_watts": 300})
	s.claim("a", "left", "GPU-0", "l/c")
	s.claim("a", "right", "GPU-0", "r/c")
	s.hold(dra.ClaimRef{Namespace: "a", Name: "left"}, "GPU-0").Memory = model.Use{Value: 20 * gibibyte, Known: true, Attribution: model.Process}
	rows := newTranslator(Split).Rows(0, s.snapshot())
	wantSeries(t, rows, "DEV_GPU_UTIL", "l/c 80", "r/c 80")
	wantSeries(t, rows, "DEV_FB_USED", "l/c 20480", "r/c 61440")
	wantSeries(t, rows, "DEV_FB_FREE", "l/c 20480", "r/c 20480")
	wantSeries(t, rows, "DEV_POWER_USAGE", "l/c 300", "r/c 300")
}

func pairsOf(labels *metric.Labels) map[string]string {
	pairs := map[string]string{}
	for name, value := range labels.Each {
		pairs[name] = value
	}
	return pairs
}
