package dcgmnames

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

func wantDistinct(t *testing.T, rows []metric.Row) {
	t.Helper()
	seen := map[string]bool{}
	var families []string
	for _, row := range rows {
		if len(families) == 0 || families[len(families)-1] != row.Family.Name {
			if slices.Contains(families, row.Family.Name) {
				t.Fatalf("the rows of %s are not adjacent", row.Family.Name)
			}
			families = append(families, row.Family.Name)
		}
		key := fmt.Sprint(row.Family.Name, pairsOf(row.Labels))
		if seen[key] {
			t.Fatalf("%s is a duplicate", key)
		}
		seen[key] = true
		if math.IsNaN(row.Value) || math.IsInf(row.Value, 0) {
			t.Fatalf("%s is %g", key, row.Value)
		}
	}
}

// randomNode returns inconsistent rows: claims that hold devices without rows,
// pods that use everything, partitions without GPUs and GPUs without addresses.
func randomNode(r *rand.Rand) *testNode {
	s := newTestNode()
	names := func(kind string, of int) string { return fmt.Sprint(kind, r.IntN(of)) }
	for range 1 + r.IntN(8) {
		uuid := s.gpu(r.IntN(4))
		if r.IntN(3) == 0 {
			uuid = s.partition(r.IntN(5), r.IntN(2))
		}
		if r.IntN(4) == 0 {
			id := *s.node.Devices[s.find(uuid)].Identity
			id.Vendor, id.PCIBusID = []string{"nvidia", "amd", ""}[r.IntN(3)], ""
			s.add(id)
		}
		if r.IntN(3) == 0 {
			s.withoutInstance(uuid)
		}
		s.read(uuid, map[string]float64{"utilization_ratio": r.Float64(), "memory_used_bytes": r.Float64() * gibibyte, "memory_size_bytes": gibibyte})
		s.traffic(uuid, r.Float64())
		for range r.IntN(6) {
			namespace, claim, pod := names("n", 2), names("c", 3), names("p", 3)+"/"+names("k", 2)
			switch r.IntN(5) {
			case 0:
				s.consumers(namespace, claim, uuid, pod)
			case 1:
				s.plugin(namespace, uuid, names("p", 3), names("k", 2))
			default:
				s.claim(namespace, claim, uuid, pod)
			}
			s.splits(namespace, claim, uuid, []model.Attribution{model.Process, model.Shared}[r.IntN(2)], r.Float64(), r.Float64()*gibibyte)
			s.podSplits(namespace, names("p", 3), uuid, r.Float64(), r.Float64()*gibibyte)
		}
	}
	return s
}

func TestNoLabelSetTwice(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 5))
		translator := newTranslator(Mode(r.IntN(2)))
		for second := range 4 {
			rows := translator.Rows(time.Duration(second)*time.Second, randomNode(r).snapshot())
			wantDistinct(t, rows)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

// The state of a Translator does not affect its output: one with earlier
// snapshots has the same output as a new one.
func TestOutputIsIndependentOfHistory(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 7))
		mode := Mode(r.IntN(2))
		old := newTranslator(mode)
		for range 3 {
			old.Rows(0, randomNode(r).snapshot())
		}
		s := randomNode(r)
		for range 2 {
			got, want := textOf(old.Rows(time.Hour, s.snapshot())), textOf(newTranslator(mode).Rows(time.Hour, s.snapshot()))
			if got != want {
				t.Fatalf("seed %d: after other snapshots\n%s\nwithout them\n%s", seed, got, want)
			}
			for i := range s.node.Devices { // the same readings in another order
				readings := s.node.Devices[i].Readings
				r.Shuffle(len(readings), func(i, j int) { readings[i], readings[j] = readings[j], readings[i] })
			}
		}
	}
}

func textOf(rows []metric.Row) string {
	var lines []string
	for _, row := range rows {
		if !strings.Contains(row.Family.Name, "_BYTES") && !strings.Contains(row.Family.Name, "BANDWIDTH") {
			lines = append(lines, fmt.Sprint(row.Family.Name, pairsOf(row.Labels), row.Value))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestRowsStay checks that returned rows do not change: a page refers to them.
func TestRowsStay(t *testing.T) {
	s, translator := wholeNode(), newTranslator(Split)
	first := translator.Rows(0, s.snapshot())
	before := slices.Clone(first)
	busy(s, "GPU-0", 0.123)
	translator.Rows(time.Second, s.snapshot())
	if !slices.Equal(first, before) {
		t.Error("the rows of the first snapshot have changed")
	}
}

// Labels are reused as long as their object exists: those of a pod are kept
// when others are added or removed.
func TestLabelsStay(t *testing.T) {
	s, translator := wholeNode(), newTranslator(Copy)
	of := func(rows []metric.Row) map[string]*metric.Labels {
		made := map[string]*metric.Labels{}
		for _, row := range rows {
			made[row.Labels.Get("UUID")+row.Labels.Get("pod")+row.Labels.Get("container")+row.Labels.Get("GPU_I_ID")] = row.Labels
		}
		return made
	}
	first := of(translator.Rows(0, s.snapshot()))
	s.claim("late", "claim", "GPU-3", "late-0/main")
	second := of(translator.Rows(0, s.snapshot()))
	delete(first, "GPU-3")
	for of, labels := range first {
		if second[of] != labels {
			t.Errorf("the labels of %s are new", of)
		}
	}
	if second["GPU-3late-0main"] == nil || second["GPU-3"] != nil {
		t.Error("the new pod is not shown alone")
	}
}

// A snapshot with the same labels allocates only its rows.
func TestSteadyAllocations(t *testing.T) {
	s, translator := wholeNode(), newTranslator(Split)
	n := s.snapshot()
	translator.Rows(0, n)
	translator.Rows(0, n)
	if got := testing.AllocsPerRun(20, func() { translator.Rows(0, n) }); got > 1 {
		t.Errorf("%g allocations a snapshot, want 1: the rows", got)
	}
}

// A device that is removed and returns starts with new meters.
func TestRateOfReturningDevice(t *testing.T) {
	s, translator := newTestNode(), newTranslator(Copy)
	busy(s, s.gpu(0), 0.5)
	busy(s, s.gpu(1), 0.5)
	at := func(second int) []metric.Row {
		s.traffic("GPU-0", 100*float64(second))
		return translator.Rows(time.Duration(second)*time.Second, s.snapshot())
	}
	at(0)
	at(1)
	rows := at(2)
	wantSeries(t, rows, "PROF_PCIE_TX_BYTES", "100")
	wantSeries(t, rows, "PROF_PCIE_RX_BYTES", "200")
	wantSeries(t, rows, "DEV_NVLINK_BANDWIDTH_TOTAL", "400")
	devices := s.node.Devices
	s.node.Devices = devices[1:]
	wantSeries(t, translator.Rows(3*time.Second, s.snapshot()), "PROF_PCIE_TX_BYTES")
	s.node.Devices = devices
	wantSeries(t, at(4), "PROF_PCIE_TX_BYTES")
	wantSeries(t, at(5), "PROF_PCIE_TX_BYTES")
	wantSeries(t, at(6), "PROF_PCIE_TX_BYTES", "100")
}

// A device that cannot be read only has counters: those without growth then have no
// rate.
func TestRateOfStaleDevice(t *testing.T) {
	s, translator := newTestNode(), newTranslator(Copy)
	busy(s, s.gpu(0), 0.5)
	for second := range 3 {
		s.traffic("GPU-0", float64(second))
		translator.Rows(time.Duration(second)*time.Second, s.snapshot())
	}
	s.node.Devices[0].Fresh = false
	for second := 3; second < 30; second++ {
		wantSeries(t, translator.Rows(time.Duration(second)*time.Second, s.snapshot()), "PROF_PCIE_TX_BYTES")
	}
}

func TestParseMode(t *testing.T) {
	for _, mode := range []Mode{Copy, Split} {
		if got, err := ParseMode(mode.String()); got != mode || err != nil {
			t.Errorf("%s is read as %v, %v", mode, got, err)
		}
	}
	if _, err := ParseMode("Copy"); err == nil || !strings.Contains(err.Error(), `"Copy"`) {
		t.Errorf("another mode: error %v", err)
	}
}
