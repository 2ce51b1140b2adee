package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
)

// one checks that there is one result with a status, and returns it.
func one(t *testing.T, results []Result, status Status) Result {
	t.Helper()
	if len(results) != 1 || results[0].Status != status {
		t.Fatalf("not one result that is %s: %+v", status, results)
	}
	return results[0]
}

// first are the results of GPU 0.
func first(results []Result) []Result {
	return slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return !strings.HasPrefix(r.Device, "GPU-0") })
}

func TestEnergyIntegral(t *testing.T) {
	right := first(EnergyIntegral(scene{}.observe(t), minute()))
	if r := one(t, right, Passed); !strings.HasSuffix(r.Other, " joules") || !strings.Contains(r.Detail, "in 58 s") {
		t.Errorf("%+v", r)
	}
	for name, c := range map[string]struct {
		scene  scene
		status Status
	}{
		"4 % more":      {scene{agent: change(deviceEnergyJoules, scaled(1.04))}, Passed},
		"10 % more":     {scene{agent: change(deviceEnergyJoules, scaled(1.1))}, Failed},
		"10 % less":     {scene{agent: change(deviceEnergyJoules, scaled(0.9))}, Failed},
		"millijoules":   {scene{agent: change(deviceEnergyJoules, scaled(1000))}, Failed},
		"stands still":  {scene{agent: change(deviceEnergyJoules, scaled(0))}, Failed},
		"absent":        {scene{agent: remove(deviceEnergyJoules, 0, 100)}, Failed},
		"power is none": {scene{library: func(_ float64, s *direct.Sample) { s.Devices[0].Power.Usage = nil }}, NotReported},
		"both are none": {scene{agent: remove(deviceEnergyJoules, 0, 100), library: func(_ float64, s *direct.Sample) { s.Devices[0].Energy = nil }}, NotReported},
	} {
		t.Run(name, func(t *testing.T) { one(t, first(EnergyIntegral(c.scene.observe(t), minute())), c.status) })
	}
}

// loadOf is a load of GPU 0 whose totals grow in proportion to time.
func loadOf(kind load.Kind, claim string, pid int, each load.Totals, held uint64) Load {
	l := Load{Namespace: "team", Claim: claim, Device: "GPU-0",
		Ready: load.Ready{Time: at(-3), PID: pid, Kind: kind, HeldBytes: held, SMCount: 132, Capability: "9.0"}}
	for second := -2.0; second <= duration+3; second++ {
		passed := second + 3
		l.Progress = append(l.Progress, load.Progress{Time: at(second), Elapsed: passed, HeldBytes: held, Totals: load.Totals{
			Busy: passed * each.Busy, FLOPs: passed * each.FLOPs, CopiedBytes: uint64(passed * float64(each.CopiedBytes)),
		}})
	}
	return l
}

func TestCopiedBytes(t *testing.T) {
	copying := func(rate float64) Load {
		return loadOf(load.Copy, "a", 1, load.Totals{CopiedBytes: uint64(rate)}, 1<<28)
	}
	r := one(t, CopiedBytes(scene{}.observe(t), minute(), copying(0.95e9)), Passed)
	if r.Against != LoadGenerator || !strings.Contains(r.Detail, "cannot have wrapped more than once") {
		t.Errorf("%+v", r)
	}
	none := func(_ float64, s *direct.Sample) { s.Devices[0].PCIe.ReceiveBytes = nil }
	for name, c := range map[string]struct {
		scene  scene
		copied float64
		status Status
	}{
		"1 % missing":             {scene{}, 1.01e9, Passed},
		"8 % missing":             {scene{}, 1.08e9, Failed},
		"20 % more":               {scene{}, 1e9 / 1.2, Passed},
		"40 % more":               {scene{}, 1e9 / 1.4, Failed},
		"kilobytes":               {scene{agent: change(devicePCIeReceiveBytes, scaled(1e-3))}, 1e9, Failed},
		"a missed wrap":           {scene{agent: change(devicePCIeReceiveBytes, func(s, v float64) float64 { return v - (1<<32)*math.Floor(s/30) })}, 1e9, Failed},
		"fast, and too low":       {scene{rate: 1e9}, 20e9, Passed}, // wraps several times a second
		"fast, and too high":      {scene{rate: 50e9}, 20e9, Failed},
		"absent":                  {scene{agent: remove(devicePCIeReceiveBytes, 0, 100)}, 1e9, Failed},
		"not counted":             {scene{agent: remove(devicePCIeReceiveBytes, 0, 100), library: none}, 1e9, NotReported},
		"at the agent alone":      {scene{library: none}, 1e9, Failed},
		"a pause without samples": {scene{agent: remove(devicePCIeReceiveBytes, 10, 20)}, 1e9, Passed},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t, CopiedBytes(c.scene.observe(t), minute(), copying(c.copied)), c.status)
			if wraps := strings.Contains(r.Detail, "more than once between two reads, so"); wraps != strings.HasPrefix(name, "fast") && wraps != strings.HasPrefix(name, "a pause") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// active adds the activity of engines of GPU 0 to a scene.
func active(agent, gpm map[string]float64) scene {
	return scene{
		agent: func(_ float64, p page) {
			for engine, value := range agent {
				p[series1(deviceEngineActiveRatio, "GPU-0", "engine", engine)] = value
			}
		},
		library: func(_ float64, s *direct.Sample) { s.Devices[0].GPM = gpm },
	}
}

func TestActivity(t *testing.T) {
	const busy = 0.6
	// 132 SMs with 128 lanes at 1.5 GHz make 50.7e12 operations per second.
	const half = 25.344e12
	engines := func(sm, tensor, dram, fp32 float64) map[string]float64 {
		return map[string]float64{"sm": sm, "tensor": tensor, "dram": dram, "fp32": fp32}
	}
	for name, c := range map[string]struct {
		kind       load.Kind
		agent, gpm map[string]float64
		failed     []string
		none       int
	}{
		"compute":               {load.Compute, engines(0.62, 0, 0.01, 0.5), engines(0.6, 0, 0.01, 0.52), nil, 0},
		"compute in percent":    {load.Compute, engines(62, 0, 0.01, 50), engines(0.6, 0, 0.01, 0.5), []string{"activity of SMs", "activity of FP32 pipes"}, 0},
		"engines exchanged":     {load.Compute, engines(0.01, 0.5, 0.62, 0), engines(0.6, 0, 0.01, 0.5), []string{"activity of SMs", "activity of tensor cores", "activity of DRAM", "activity of FP32 pipes"}, 0},
		"tensor":                {load.Tensor, engines(0.6, 0.3, 0.01, 0), engines(0.6, 0.3, 0.01, 0), nil, 0},
		"tensor without tensor": {load.Tensor, engines(0.6, 0, 0.01, 0), engines(0.6, 0, 0.01, 0), []string{"activity of tensor cores"}, 0},
		"memory":                {load.Memory, engines(0.6, 0, 0.5, 0), engines(0.6, 0, 0.5, 0), nil, 0},
		"memory without DRAM":   {load.Memory, engines(0.6, 0, 0.01, 0), engines(0.6, 0, 0.01, 0), []string{"activity of DRAM"}, 0},
		"idle":                  {load.Idle, engines(0.01, 0, 0, 0), engines(0, 0, 0, 0), nil, 0},
		"idle and busy":         {load.Idle, engines(0.6, 0, 0, 0), engines(0.6, 0, 0, 0), []string{"activity of SMs"}, 0},
		"unlike the library":    {load.Memory, engines(0.55, 0, 0.5, 0), engines(0.6, 0, 0.2, 0), []string{"activity of DRAM"}, 0},
		"at the agent alone":    {load.Tensor, engines(0.6, 0.3, 0.01, 0), nil, []string{"activity of SMs", "activity of tensor cores", "activity of DRAM"}, 0},
		"not reported":          {load.Tensor, nil, nil, nil, 3},
		"not profiled":          {load.Tensor, nil, engines(0.6, 0.3, 0.01, 0), nil, 3},
		"a copy":                {load.Copy, nil, nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			o := active(c.agent, c.gpm).observe(t)
			results := Activity(o, minute(), loadOf(c.kind, "a", 1, load.Totals{Busy: busy, FLOPs: half}, 1<<28))
			var failed []string
			none := 0
			for _, r := range results {
				switch r.Status {
				case Failed:
					failed = append(failed, r.Row)
				case NotReported:
					none++
				}
			}
			if !slices.Equal(failed, c.failed) || none != c.none {
				t.Errorf("%+v", results)
			}
		})
	}
	// Events that end before the window are no comparison.
	short := loadOf(load.Idle, "a", 1, load.Totals{}, 1<<28)
	short.Progress = short.Progress[:10]
	for _, r := range Activity(active(engines(0, 0, 0, 0), engines(0, 0, 0, 0)).observe(t), minute(), short) {
		if r.Status != Failed || r.Detail == "" {
			t.Errorf("%+v", r)
		}
	}
}

const contextBytes = 500 * mib

// splitLoads are two claims with 30 and 50 percent, and a process without a claim
// with 10 percent.
func splitLoads() []Load {
	return []Load{
		loadOf(load.Compute, "a", 11, load.Totals{Busy: 0.3}, 1<<30),
		loadOf(load.Compute, "b", 12, load.Totals{Busy: 0.5}, 2<<30),
		loadOf(load.Compute, "", 13, load.Totals{Busy: 0.1}, 1<<28),
	}
}

func claimSeries(family, name, attribution string) string {
	return fmt.Sprintf(`%s{uuid="GPU-0",namespace="team",resourceclaim=%q,attribution=%q}`, family, name, attribution)
}

// split is a scene in which the agent splits GPU 0.
func split(change func(second float64, p page)) scene {
	return scene{
		agent: func(second float64, p page) {
			for name, c := range map[string]struct{ time, held float64 }{"a": {0.3, 1 << 30}, "b": {0.5, 2 << 30}} {
				p[claimSeries(claimUtilizationRatio, name, "process")] = c.time
				p[claimSeries(claimMemoryUsedBytes, name, "process")] = c.held + contextBytes
			}
			p[series1(deviceUnattributedUtilizationRatio, "GPU-0")] = 0.1
			p[series1(deviceUnattributedMemoryBytes, "GPU-0")] = 1<<28 + contextBytes
			p[series1(deviceUtilizationRatio, "GPU-0")] = 0.9
			p[series1(deviceMemoryUsedBytes, "GPU-0")] = 8 << 30
			if change != nil {
				change(second, p)
			}
		},
		library: func(second float64, s *direct.Sample) {
			d := &s.Devices[0]
			for pid, c := range map[int]struct{ time, held float64 }{11: {0.3, 1 << 30}, 12: {0.5, 2 << 30}, 13: {0.1, 1 << 28}} {
				d.Processes = append(d.Processes, direct.Process{PID: pid, Kind: "compute", Memory: of(c.held + contextBytes)})
				d.ProcessSamples = append(d.ProcessSamples, direct.ProcessSample{PID: pid, Timestamp: at(second).UnixMicro(), SM: c.time})
			}
			d.Memory.Used = of(8 << 30)
		},
	}
}

func set(series string, value float64) func(float64, page) {
	return func(_ float64, p page) { p[series] = value }
}

func unset(series ...string) func(float64, page) {
	return func(_ float64, p page) {
		for _, s := range series {
			delete(p, s)
		}
	}
}

func TestSplit(t *testing.T) {
	const (
		a       = "GPU-0 (team/a)"
		b       = "GPU-0 (team/b)"
		timeRow = "utilization of the claim"
		memory  = "memory of the claim"
	)
	timeOf := func(name string) string { return claimSeries(claimUtilizationRatio, name, "process") }
	memoryOf := func(name string) string { return claimSeries(claimMemoryUsedBytes, name, "process") }
	for name, c := range map[string]struct {
		change func(float64, page)
		want   []string
	}{
		"right":           {nil, nil},
		"4 points more":   {set(timeOf("a"), 0.34), nil},
		"6 points more":   {set(timeOf("a"), 0.36), []string{timeRow + ", " + a + ", load", "sum of utilization, GPU-0, library"}},
		"6 points less":   {set(timeOf("a"), 0.24), []string{timeRow + ", " + a + ", load"}},
		"in percent":      {set(timeOf("b"), 50), []string{timeRow + ", " + b + ", load", "sum of utilization, GPU-0, library"}},
		"an absent claim": {unset(timeOf("b")), []string{timeRow + ", " + b + ", load"}},
		"claims exchanged": {func(_ float64, p page) {
			p[timeOf("a")], p[timeOf("b")] = p[timeOf("b")], p[timeOf("a")]
			p[memoryOf("a")], p[memoryOf("b")] = p[memoryOf("b")], p[memoryOf("a")]
		}, []string{timeRow + ", " + a + ", load", timeRow + ", " + b + ", load", memory + ", " + a + ", library", memory + ", " + b + ", library"}},
		"memory without the context":  {set(memoryOf("a"), 1<<30), []string{memory + ", " + a + ", library"}},
		"unattributed time is lost":   {set(series1(deviceUnattributedUtilizationRatio, "GPU-0"), 0), []string{"unattributed utilization, GPU-0, load"}},
		"unattributed memory is lost": {set(series1(deviceUnattributedMemoryBytes, "GPU-0"), 0), []string{"unattributed memory, GPU-0, library"}},
		"more memory than there is":   {set(series1(deviceMemoryUsedBytes, "GPU-0"), 3<<30), []string{"sum of memory, GPU-0, library"}},
		"the device's own for a claim": {func(_ float64, p page) {
			delete(p, memoryOf("a"))
			p[claimSeries(claimMemoryUsedBytes, "a", "exclusive")] = 8 << 30
		}, []string{memory + ", " + a + ", library", "sum of memory, GPU-0, library"}},
		"an attribution that changes": {func(second float64, p page) {
			if second > 30 {
				delete(p, memoryOf("a"))
				p[claimSeries(claimMemoryUsedBytes, "a", "shared")] = 1<<30 + contextBytes
			}
		}, []string{memory + ", " + a + ", library"}},
	} {
		t.Run(name, func(t *testing.T) {
			results := Split(split(c.change).observe(t), minute(), splitLoads())
			equal(t, "failed", outcome(results, Failed), c.want)
			if none := outcome(results, NotReported); len(none) > 0 {
				t.Errorf("not reported: %v", none)
			}
		})
	}
}

// A driver that reports no processes has nothing to split.
func TestSplitNotReported(t *testing.T) {
	s := split(func(_ float64, p page) {
		for series := range p {
			if strings.HasPrefix(series, "dra_claim_") || strings.HasPrefix(series, "dra_device_unattributed") {
				delete(p, series)
			}
		}
	})
	s.library = func(_ float64, s *direct.Sample) { s.Devices[0].Processes = nil }
	results := Split(s.observe(t), minute(), splitLoads())
	if passed, failed := outcome(results, Passed), outcome(results, Failed); len(passed)+len(failed) > 0 || len(results) != 8 {
		t.Errorf("passed %v, failed %v, %d in all", passed, failed, len(results))
	}
}

// A claim that has the device alone has the device's memory.
func TestHeldMemoryOfExclusiveClaim(t *testing.T) {
	loads := []Load{loadOf(load.Idle, "a", 11, load.Totals{}, 7<<30)}
	exclusive := func(used float64) scene {
		s := split(nil)
		s.agent = set(claimSeries(claimMemoryUsedBytes, "a", "exclusive"), used)
		return s
	}
	r := one(t, HeldMemory(exclusive(8<<30).observe(t), minute(), loads), Passed)
	if !strings.Contains(r.Detail, "7516192768 bytes") || !strings.Contains(r.Detail, "1073741824 bytes more") {
		t.Errorf("%+v", r)
	}
	one(t, HeldMemory(exclusive(9<<30).observe(t), minute(), loads), Failed)
	// What the loads hold must be there.
	loads[0].Ready.HeldBytes = 9 << 30
	one(t, HeldMemory(exclusive(8<<30).observe(t), minute(), loads), Failed)
}

func TestSampleInterval(t *testing.T) {
	sampled := func(interval time.Duration, late int) Observations {
		o := scene{}.observe(t)
		stamp, i := at(0), 0
		for n := range o.Library {
			for ; !stamp.After(o.Library[n].Time); i++ {
				d := &o.Library[n].Devices[0]
				for pid := range 2 {
					d.ProcessSamples = append(d.ProcessSamples, direct.ProcessSample{PID: pid + 1, Timestamp: stamp.UnixMicro() + int64(pid), SM: 0.5})
				}
				stamp = stamp.Add(interval)
				if late > 0 && i%late == 0 {
					stamp = stamp.Add(2 * time.Second)
				}
			}
		}
		return o
	}
	r := one(t, first(SampleInterval(sampled(time.Second/6, 0), minute())), Passed)
	if r.Other != "median 0.167, 95th percentile 0.167 seconds" || r.Agent != "assumes 0.9 seconds" {
		t.Errorf("%+v", r)
	}
	one(t, first(SampleInterval(sampled(time.Second, 0), minute())), Passed)
	one(t, first(SampleInterval(sampled(1500*time.Millisecond, 0), minute())), Failed)
	one(t, first(SampleInterval(sampled(500*time.Millisecond, 10), minute())), Failed) // a tenth is late
	one(t, first(SampleInterval(sampled(40*time.Second, 0), minute())), NotReported)
	one(t, first(SampleInterval(scene{}.observe(t), minute())), NotReported)
}

func TestProfilingRows(t *testing.T) {
	engines := map[string]float64{"graphics": 0.5, "sm": 0.4, "tensor": 0.1, "fp64": 0, "fp32": 0.3, "fp16": 0, "dram": 0.2, "sm_occupancy": 0.25}
	s := active(engines, engines)
	agent := s.agent
	s.agent = func(second float64, p page) {
		agent(second, p)
		p[series1(deviceSMOccupancyRatio, "GPU-0")] = 0.9
	}
	results := first(Compare(s.observe(t), minute(), ProfilingRows()))
	if passed := outcome(results, Passed); len(passed) != 7 {
		t.Errorf("passed: %v", passed)
	}
	equal(t, "failed", outcome(results, Failed), []string{"SM occupancy, GPU-0, library"})
	// A MIG device has its utilization by GPM.
	s.library = func(_ float64, sample *direct.Sample) { sample.Devices[3].GPM = map[string]float64{"graphics": 0.25} }
	s.agent = func(_ float64, p page) { p[series1(deviceUtilizationRatio, migUUID)] = 0.25 }
	equal(t, "passed", outcome(Compare(s.observe(t), minute(), ProfilingRows()), Passed), []string{"MIG: utilization, MIG-0, library"})
}
