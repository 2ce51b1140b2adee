package phases

import (
	"errors"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/report"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/sample"
)

// The phases that run by default end within eight minutes, with ten seconds for
// the start of each one's loads and of the agent.
func TestTable(t *testing.T) {
	sum := 10 * time.Second
	for _, p := range (Options{Scale: 1}).selected() {
		if p.Optional {
			t.Errorf("%s runs without being asked for", p.Name)
		}
		if p.Trial != nil {
			sum += 5 * time.Second
			continue
		}
		sum += p.Duration + settle + tail + 5*time.Second
		if p.Duration < 30*time.Second {
			t.Errorf("%s takes %s: too few samples", p.Name, p.Duration)
		}
	}
	if sum > 8*time.Minute {
		t.Errorf("all phases take %s", sum)
	}
	for _, p := range (Options{Scale: 0.001}).selected() {
		if p.Trial == nil && p.Duration != shortest {
			t.Errorf("%s takes %s", p.Name, p.Duration)
		}
	}
	names := make(map[string]bool)
	for _, p := range Table() {
		duty := 0
		for _, l := range p.Loads {
			duty += l.Duty
			if l.Claim != "" && !strings.Contains(" "+strings.Join(p.Claims, " ")+" ", " "+l.Claim+" ") {
				t.Errorf("%s has no claim %s", p.Name, l.Claim)
			}
		}
		if duty > 100 || names[p.Name] || p.Title == "" || (len(p.Compare) == 0) == (p.Trial == nil) {
			t.Errorf("%+v", p)
		}
		names[p.Name] = true
	}
}

func TestSelected(t *testing.T) {
	names := func(o Options) string {
		var all []string
		for _, p := range o.selected() {
			all = append(all, p.Name)
		}
		return strings.Join(all, " ")
	}
	for want, o := range map[string]Options{
		"idle compute memory copy copyfast tensor split2 split3 outside sessions":          {},
		"idle compute memory copy copyfast tensor split2 split3 outside xid long sessions": {Xid: true, Long: true},
		"compute split3": {Only: []string{"split3", "compute"}},
		"copy long":      {Only: []string{"copy"}, Long: true},
	} {
		if got := names(o); got != want {
			t.Errorf("%+v runs %q, not %q", o, got, want)
		}
	}
}

func TestLacks(t *testing.T) {
	able := Device{Ready: load.Ready{Capability: "9.0", FreeBytes: 80 << 30}}
	old, full, without := able, able, able
	old.Ready.Capability, full.Ready.FreeBytes, without.CUDA = "7.5", 100<<20, errors.New("no libcuda")
	for _, c := range []struct {
		device Device
		phase  string
		want   string
	}{
		{able, "tensor", ""},
		{old, "tensor", "the device has compute capability 7.5, the load needs 8.0"},
		{old, "compute", ""},
		{full, "compute", "the device has 104857600 bytes of free memory, the loads need 268435456"},
		{full, "idle", ""},
		{without, "copy", "no load can run: no libcuda"},
		{without, "idle", ""},
	} {
		for _, p := range Table() {
			if got := p.lacks(c.device); p.Name == c.phase && got != c.want {
				t.Errorf("%s on %+v: %q", c.phase, c.device, got)
			}
		}
	}
}

func TestHeld(t *testing.T) {
	for _, c := range []struct {
		free  uint64
		loads int
		want  uint64
	}{{80 << 30, 3, 1 << 30}, {2 << 30, 2, 256 << 20}, {1 << 20, 1, leastHeld}} {
		if got := (Device{Ready: load.Ready{FreeBytes: c.free}}).held(c.loads); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// Loads run on the first device that is not divided, or on the one that is named.
func TestChoose(t *testing.T) {
	s := direct.Sample{Devices: []direct.Device{{UUID: "GPU-a"}, {UUID: "MIG-b", ParentUUID: "GPU-a"}, {UUID: "GPU-c"}}}
	for wanted, want := range map[string]string{"": "MIG-b", "gpu-c": "GPU-c", "GPU-a": "GPU-a"} {
		if got, err := choose(s, wanted); err != nil || got.UUID != want {
			t.Errorf("%q: %s, %v", wanted, got.UUID, err)
		}
	}
	if _, err := choose(s, "GPU-d"); err == nil || !strings.HasSuffix(err.Error(), "GPU-a, MIG-b, GPU-c") {
		t.Errorf("the error is %v", err)
	}
}

func TestXid(t *testing.T) {
	at := func(count float64) compare.AgentPage {
		label := func(name, value string) *dto.LabelPair { return &dto.LabelPair{Name: &name, Value: &value} }
		return compare.AgentPage{Families: map[string]*dto.MetricFamily{"dra_device_xid_errors_total": {Metric: []*dto.Metric{
			{Label: []*dto.LabelPair{label("uuid", "GPU-1"), label("xid", "31")}, Counter: &dto.Counter{Value: &count}},
		}}}}
	}
	for _, c := range []struct {
		pages []compare.AgentPage
		want  compare.Status
	}{{nil, compare.Failed}, {[]compare.AgentPage{at(1), at(1)}, compare.Failed}, {[]compare.AgentPage{{}, at(1)}, compare.Passed}, {[]compare.AgentPage{at(1), at(3)}, compare.Passed}} {
		got := xid(compare.Observations{Agent: c.pages}, compare.Window{}, []compare.Load{{Device: "GPU-1"}})
		if len(got) != 1 || got[0].Status != c.want {
			t.Errorf("%d pages: %+v", len(c.pages), got)
		}
	}
}

func TestLeak(t *testing.T) {
	usage := func(from, to float64) []sample.Usage {
		var all []sample.Usage
		for i := range 100 {
			all = append(all, sample.Usage{Resident: from + (to-from)*float64(i)/99})
		}
		return all
	}
	const mebibyte = 1 << 20
	for _, c := range []struct {
		usage []sample.Usage
		want  compare.Status
	}{
		{usage(50*mebibyte, 55*mebibyte), compare.Passed},
		{usage(50*mebibyte, 90*mebibyte), compare.Failed},
		{usage(50*mebibyte, 55*mebibyte)[:10], compare.NotReported},
	} {
		if got := leak(c.usage); got.Status != c.want {
			t.Errorf("%+v", got)
		}
	}
}

func TestCheck(t *testing.T) {
	of := func(all ...compare.Status) report.Report {
		var r report.Report
		for _, status := range all {
			r.Sections = append(r.Sections, report.Section{Title: "T", Results: []compare.Result{{Row: "r", Against: "library", Status: status}}})
		}
		return r
	}
	if err := Check(of(compare.Passed, compare.NotReported)); err != nil {
		t.Error(err)
	}
	var failed *FailedError
	if err := Check(of(compare.Passed, compare.Failed)); !errors.As(err, &failed) || err.Error() != "1 rows have failed: T: r (library)" {
		t.Errorf("the error is %v", err)
	}
	if err := Check(of(compare.NotReported)); err == nil || errors.As(err, &failed) {
		t.Errorf("the error is %v", err)
	}
}
