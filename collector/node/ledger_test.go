package node

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

func busyGPU(t testing.TB) *scene {
	s := newScene(t, gpu(0))
	s.set("GPU-0", device.Utilization, 0.5)
	s.set("GPU-0", device.MemoryUsed, 40e9)
	s.set("GPU-0", device.MemorySize, 80e9)
	s.set("GPU-0", device.Energy, 1e6)
	s.set("GPU-0", device.Throttled, 7)
	return s
}

// ledgerFamilies are the families that the ledger's goldens show.
func (s *scene) ledger() *script {
	return s.script("dra_claim_", "dra_namespace_", "dra_device_busy", "dra_device_energy", "dra_device_holders", "dra_exporter_hardware")
}

func TestLedgerOfARecreatedClaim(t *testing.T) {
	s := busyGPU(t)
	pages := s.ledger()
	s.allocate("ml/train", "gpu-0")
	s.run(11)
	pages.show("held for ten seconds")
	s.release("ml/train")
	s.run(1)
	pages.show("released: gauges gone, counters stay")
	s.run(20)
	s.allocate("ml/train", "gpu-0").UID = "another-uid"
	s.run(1)
	pages.show("re-created under its name within the grace: goes on, with the new UID")
	s.run(10)
	pages.show("ten seconds later")
	s.release("ml/train")
	s.run(302)
	pages.show("after the grace: only totals that outlive claims")
	metrictest.CompareGolden(t, "testdata/ledger_recreated.txt", pages.String())
}

func TestLedgerOfChangingAttribution(t *testing.T) {
	s := busyGPU(t)
	pages := s.ledger()
	s.allocate("ml/first", "gpu-0")
	s.run(11)
	pages.show("exclusive for ten seconds")
	s.allocate("ml/second", "gpu-0")
	s.run(11)
	pages.show("shared for ten seconds: the exclusive account is frozen")
	s.release("ml/second")
	s.run(11)
	pages.show("exclusive again: the account goes on, nothing was moved")
	metrictest.CompareGolden(t, "testdata/ledger_attribution.txt", pages.String())
}

func TestLedgerOfAHardwareReset(t *testing.T) {
	s := busyGPU(t)
	pages := s.ledger()
	s.allocate("ml/train", "gpu-0")
	s.run(11)
	pages.show("before the reset")
	s.set("GPU-0", device.Energy, 30)
	s.step(time.Second)
	pages.show("the hardware's counter fell to 30 J: 30 J since")
	s.run(10)
	pages.show("ten seconds later")
	metrictest.CompareGolden(t, "testdata/ledger_reset.txt", pages.String())
}

func TestLedgerOfAGap(t *testing.T) {
	s := busyGPU(t)
	pages := s.ledger()
	s.allocate("ml/stays", "gpu-0")
	s.run(11)
	pages.show("before the gap")
	s.unreadable["GPU-0"] = true
	s.run(60)
	pages.show("after 60 s without a read: gauges gone, busy time stands still, held time goes on")
	s.unreadable["GPU-0"] = false
	s.run(1)
	pages.show("read again: energy of the gap belongs to who held at both ends; busy time is unknown")
	metrictest.CompareGolden(t, "testdata/ledger_gap.txt", pages.String())
}

// What a counter grew by in a gap in which the device changed hands belongs to
// both, as long as each held it; the second between them is unattributed.
func TestLedgerDividesAGap(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/old", "gpu-0")
	s.run(5)
	s.unreadable["GPU-0"] = true
	s.run(30)
	s.release("ml/old")
	s.allocate("ml/new", "gpu-0")
	s.run(30)
	s.unreadable["GPU-0"] = false
	s.run(1)
	for claim, want := range map[string]float64{"old": 400 + 3000, "new": 3000} {
		if got, _ := s.value("dra_claim_energy_joules_total", "resourceclaim", claim); got != want {
			t.Errorf("energy of %s after the gap: %v J, want %v", claim, got, want)
		}
	}
}

func TestLedgerWithoutSlices(t *testing.T) {
	s := busyGPU(t)
	pages := s.ledger()
	s.allocate("ml/train", "gpu-0")
	s.run(6)
	pages.show("with slices")
	slices := s.facts.Cluster.Published
	s.facts.Cluster.Published = nil
	s.run(5)
	pages.show("slices vanished: the driver is down, the claim still holds its device")
	s.facts.Cluster.Published = slices
	s.run(5)
	pages.show("slices are back")
	metrictest.CompareGolden(t, "testdata/ledger_slices.txt", pages.String())
}

// The first traffic on a link that stood still is the holder's.
func TestLedgerOfAConstantCounter(t *testing.T) {
	s := busyGPU(t)
	s.set("GPU-0", device.NVLinkTransmit, 100)
	for range 5 {
		s.step(time.Second)
	}
	s.allocate("ml/train", "gpu-0")
	for range 5 {
		s.step(time.Second)
	}
	s.set("GPU-0", device.NVLinkTransmit, 100+400e9)
	s.step(time.Second)
	if got, _ := s.value("dra_claim_nvlink_transmit_bytes_total"); got != 400e9 {
		t.Errorf("%v bytes of a burst of 400 GB", got)
	}
}

// A device that another source reads from now on has other counters.
func TestLedgerOfADeviceThatChangesItsSource(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/train", "gpu-0")
	s.run(5)
	s.facts.Samples[0].Source = "dcgm"
	s.set("GPU-0", device.Energy, 5)
	s.run(3)
	if got, _ := s.value("dra_claim_energy_joules_total"); got != 600 {
		t.Errorf("%v J, want 400 by the first source and 200 by the second", got)
	}
	if got, _ := s.value("dra_exporter_hardware_resets_total"); got != 0 {
		t.Errorf("%v resets, there was none", got)
	}
}

func TestLedgerIgnoresTheWallClock(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/train", "gpu-0")
	s.run(11)
	s.now.Wall = s.now.Wall.Add(-24 * time.Hour)
	s.run(10)
	s.now.Wall = s.now.Wall.Add(48 * time.Hour)
	s.run(10)
	if got, _ := s.value("dra_claim_held_seconds_total"); got != 30 {
		t.Errorf("held for %v s over two jumps of the wall clock, want 30", got)
	}
	if got, _ := s.value("dra_claim_busy_seconds_total"); got != 15 {
		t.Errorf("busy for %v s over two jumps of the wall clock, want 15", got)
	}
}

func TestIdleSince(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/train", "gpu-0")
	s.run(3)
	if _, idle := s.value("dra_claim_idle_since_timestamp_seconds"); idle {
		t.Error("a busy claim is shown as idle")
	}
	s.set("GPU-0", device.Utilization, 0)
	s.run(1)
	since := float64(s.now.Wall.Unix())
	s.run(10)
	if got, idle := s.value("dra_claim_idle_since_timestamp_seconds"); !idle || got != since {
		t.Errorf("idle since %v (%v), want %v", got, idle, since)
	}
	s.unreadable["GPU-0"] = true
	s.run(20)
	if _, idle := s.value("dra_claim_idle_since_timestamp_seconds"); idle {
		t.Error("a claim whose device cannot be read is shown as idle")
	}
	s.unreadable["GPU-0"] = false
	s.run(2)
	if got, idle := s.value("dra_claim_idle_since_timestamp_seconds"); !idle || got != since {
		t.Errorf("after a gap idle since %v (%v), want %v", got, idle, since)
	}
}

func TestWeightsOfConsumedCapacity(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/quarter", "gpu-0").Results[0].Consumed = map[string]float64{"memory": 20e9}
	s.allocate("ml/eighth", "gpu-0").Results[0].Consumed = map[string]float64{"memory": 10e9}
	s.run(11)
	for claim, want := range map[string]float64{"quarter": 2.5, "eighth": 1.25} {
		if got, _ := s.value("dra_claim_device_seconds_total", "resourceclaim", claim); got != want {
			t.Errorf("%s: %v device-seconds, want %v", claim, got, want)
		}
		if got, _ := s.value("dra_claim_memory_allocated_bytes", "resourceclaim", claim); got != want*8e9 {
			t.Errorf("%s: %v bytes allocated, want %v", claim, got, want*8e9)
		}
		if got, _ := s.value("dra_claim_busy_seconds_total", "resourceclaim", claim, "attribution", "shared"); got != 5 {
			t.Errorf("%s: %v s busy as shared, want the device's 5", claim, got)
		}
	}
}

// One claim that holds a device twice, under two share ids, is one holder.
func TestOneClaimHoldsADeviceTwice(t *testing.T) {
	s := busyGPU(t)
	claim := s.allocate("ml/twice", "gpu-0", "gpu-0")
	for i, id := range []string{"share-1", "share-2"} {
		claim.Results[i].ShareID = id
		claim.Results[i].Consumed = map[string]float64{"memory": 10e9}
	}
	s.run(2)
	pages := s.script("dra_claim_", "dra_device_holders")
	pages.show("one claim, one device, two shares")
	metrictest.CompareGolden(t, "testdata/ledger_twice.txt", pages.String())
}

// The limit drops rows of what has ended before rows of what is held.
func TestSeriesCapKeepsWhatIsHeld(t *testing.T) {
	s := newScene(t, gpu(0))
	s.configure(func(c *Config) { c.MaxSeries = 2 })
	s.allocate("a/old1", "gpu-0")
	s.allocate("a/old2", "gpu-0")
	s.run(2)
	s.release("a/old1")
	s.release("a/old2")
	s.allocate("b/new", "gpu-0")
	s.run(2)
	for _, family := range []string{"dra_claim_held_seconds_total", "dra_claim_info"} {
		if _, shown := s.value(family, "resourceclaim", "new"); !shown {
			t.Errorf("%s of a claim that holds was dropped in favour of claims that are gone", family)
		}
	}
}

func TestSeriesCap(t *testing.T) {
	s := newScene(t, gpu(0), gpu(1), gpu(2))
	s.configure(func(c *Config) { c.MaxSeries = 2 })
	s.run(1)
	if got, _ := s.value("dra_exporter_series_dropped_total", "family", "dra_device_info"); got != 1 {
		t.Errorf("%v rows of dra_device_info dropped, want 1", got)
	}
	count := 0
	for _, row := range s.last.Rows() {
		if row.Family.Name == "dra_device_info" {
			count++
		}
	}
	if count != 2 {
		t.Errorf("%d rows of dra_device_info, want 2", count)
	}
}

// A share that an allocation names twice is consumed once.
func TestShareNamedTwice(t *testing.T) {
	share := dra.Result{Request: "gpu", Device: sceneID("gpu-0"), ShareID: "a", Consumed: map[string]float64{"memory": 20e9}}
	s := newScene(t, gpu(0))
	s.facts.Cluster.Published[0].Capacity = map[string]float64{"memory": 60e9}
	s.allocate("ml/train", "gpu-0").Results = []dra.Result{share, share}
	for range 13 {
		s.listed(1)
	}
	if got, shown := s.value("dra_claim_device_seconds_total", "resourceclaim", "train"); !shown || math.Abs(got-4) > 1e-9 {
		t.Errorf("it has %v device-seconds of 12 (shown: %v), want a third", got, shown)
	}
}

// A share is never charged as the whole device: while no slice has what there is
// of what it consumes, the hardware's own size counts, and where that is not
// known either, nothing is charged.
func TestWeightsWithoutSlices(t *testing.T) {
	third := dra.Result{Request: "gpu", Device: sceneID("gpu-0"), ShareID: "a", Consumed: map[string]float64{"memory": 20e9}}
	cores := dra.Result{Request: "gpu", Device: sceneID("gpu-0"), ShareID: "a", Consumed: map[string]float64{"cores": 20}}
	both := dra.Result{Request: "gpu", Device: sceneID("gpu-0"), ShareID: "b", Consumed: map[string]float64{"memory": 30e9, "cores": 20}}
	whole := dra.Result{Request: "gpu", Device: sceneID("gpu-0"), ShareID: "c"}
	const absent = -1
	for name, test := range map[string]struct {
		size      float64 // of the hardware's memory; 0: not known
		published map[string]float64
		claims    []dra.Result
		kubelet   bool // there is no API server
		want      []float64
		unknown   float64 // devices of an unknown share
	}{
		"size of the hardware":       {60e9, nil, []dra.Result{third}, false, []float64{4}, 0},
		"nothing is known":           {0, nil, []dra.Result{third}, false, []float64{absent}, 1},
		"the slice comes first":      {80e9, map[string]float64{"memory": 60e9}, []dra.Result{third}, false, []float64{4}, 0},
		"two of the hardware":        {60e9, nil, []dra.Result{third, both}, false, []float64{4, 6}, 0},
		"another capacity":           {60e9, nil, []dra.Result{cores}, false, []float64{absent}, 1},
		"one of two is known":        {60e9, nil, []dra.Result{cores, both}, false, []float64{absent, 6}, 1},
		"published without the size": {0, map[string]float64{"cores": 80}, []dra.Result{cores, both}, false, []float64{3, 3}, 0},
		"without capacities":         {60e9, nil, []dra.Result{whole}, false, []float64{12}, 0},
		"a share of the List":        {60e9, nil, []dra.Result{third}, true, []float64{absent}, 1},
		"two shares of the List":     {60e9, nil, []dra.Result{third, whole}, true, []float64{absent, absent}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, gpu(0))
			s.facts.Cluster.Published[0].Capacity = test.published
			if test.published == nil {
				s.facts.Cluster.Published = nil
			}
			if test.size > 0 {
				s.set("GPU-0", device.MemorySize, test.size)
			}
			for i, result := range test.claims {
				claim := fmt.Sprint("claim-", i)
				s.allocate("ml/"+claim, "gpu-0").Results = []dra.Result{result}
				s.list("ml/"+claim, "gpu-0")
				s.facts.Listing.Assignments[i].ShareID = result.ShareID
			}
			if test.kubelet {
				s.facts.Cluster = APIFacts{}
			}
			for range 13 {
				s.listed(1)
			}
			for i, want := range test.want {
				got, shown := s.value("dra_claim_device_seconds_total", "resourceclaim", fmt.Sprint("claim-", i))
				if !shown {
					got = absent
				}
				if math.Abs(got-want) > 1e-9 {
					t.Errorf("claim %d has %v device-seconds, want %v", i, got, want)
				}
				memory, shown := s.value("dra_claim_memory_allocated_bytes", "resourceclaim", fmt.Sprint("claim-", i))
				if own := test.claims[i].Consumed["memory"]; test.kubelet && shown || own > 0 && !test.kubelet && memory != own {
					t.Errorf("claim %d has %v bytes", i, memory)
				}
			}
			if got, _ := s.value("dra_exporter_uncounted_devices", "reason", "unknown_share"); got != test.unknown {
				t.Errorf("%v devices with an unknown share, want %v", got, test.unknown)
			}
		})
	}
}
