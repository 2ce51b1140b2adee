package node

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// TestXIDClasses raises each code of the table, and holds what comes of it
// against lists that are written down here once more.
func TestXIDClasses(t *testing.T) {
	critical := []int{46, 48, 54, 62, 64, 74, 79, 95, 109, 110, 119, 120, 136, 140, 143, 149, 150, 151, 155, 156, 158, 171, 172}
	warning := []int{63, 92, 94, 121, 144, 145, 146, 147, 148, 157, 167, 169}
	byConstraint := map[string][]int{
		"power":        {54},
		"memory_error": {48, 63, 64, 92, 94, 95, 140, 171, 172},
		"link":         {74, 121, 136, 144, 145, 146, 147, 148, 149, 150, 155},
		"recovery":     {46, 62, 79, 109, 110, 119, 120, 143, 151, 156, 157, 158, 167, 169},
	}
	table := xidTable()
	if !slices.IsSortedFunc(table, func(a, b xidCode) int { return a.code - b.code }) {
		t.Fatal("the table is not sorted")
	}
	for _, row := range table {
		t.Run(fmt.Sprint(row.code), func(t *testing.T) {
			s := healthyGPU(t)
			s.setXIDs("GPU-0", row.code, 1)
			s.run(1)
			signal := fmt.Sprint("xid_", row.code)
			switch {
			case slices.Contains(critical, row.code):
				s.expect("critical", "0", signal, "critical")
			case slices.Contains(warning, row.code):
				s.expect("warning", "1", signal, "warning")
			default:
				s.expect("the application's", "1", "", "")
			}
			if got, _ := s.value("dra_device_xid_errors_total", "xid", fmt.Sprint(row.code)); got != 1 {
				t.Errorf("counted %v times", got)
			}
			for c := range constraints {
				want := slices.Contains(byConstraint[c.String()], row.code)
				if got, _ := s.value("dra_constraint_violations_total", "constraint", c.String()); got == 1 != want {
					t.Errorf("%v violations of %s", got, c)
				}
			}
		})
	}
	for _, code := range slices.Concat(critical, warning) {
		if findXID(table, code) == len(table) {
			t.Errorf("the table lacks %d", code)
		}
	}
}

// The closed label set is there as soon as the Xids are watched.
func TestXIDsFromZero(t *testing.T) {
	s := partitionedGPU(t)
	for i := range s.facts.Samples {
		s.facts.Samples[i].XIDs = nil
	}
	s.state = NewState(s.state.config)
	s.run(1)
	if page := s.page("dra_device_xid"); page != "" {
		t.Errorf("not watched:\n%s", page)
	}
	pages := s.script("dra_device_xid")
	s.setXIDs("GPU-0")
	s.setXIDs("MIG-a")
	s.run(1)
	pages.show("the Xids of the GPU and of one of its partitions are watched")
	metrictest.CompareGolden(t, "testdata/xids_from_zero.txt", pages.String())
	for _, row := range s.last.Rows() {
		if row.Family.Name == "dra_device_xid_errors_total" && !row.Start.Equal(s.now.Wall) {
			t.Fatalf("%s began at %v", row.Labels.Get("xid"), row.Start)
		}
	}
}

// xidSample is what a source reports at one step.
type xidSample struct {
	source    string // empty: as before
	by        string // who watches the Xids; empty: the source
	unwatched bool
	counts    []int  // codes and counts in turns
	ages      []int  // how many seconds ago each was last reported; 0 if left out
	want      string // codes and totals of the rows, but zeros
}

// TestXIDCounts follows the exporter's own count through whatever sources do.
func TestXIDCounts(t *testing.T) {
	for name, samples := range map[string][]xidSample{
		"growing": {
			{want: ""}, {counts: []int{79, 1}, want: "79:1"}, {counts: []int{79, 1}, want: "79:1"}, {counts: []int{13, 2, 79, 4}, want: "13:2 79:4"},
		},
		"several others": {
			{counts: []int{1000, 2, 1001, 3}, want: "other:5"}, {counts: []int{1000, 3, 1001, 3}, want: "other:6"}, {counts: []int{999, 1, 1000, 3, 1001, 4}, want: "other:8"},
		},
		"reported before the first step": {{counts: []int{48, 3}, ages: []int{900}, want: "48:3"}, {counts: []int{48, 4}, want: "48:4"}},
		"the source begins again": {
			{counts: []int{48, 5}, want: "48:5"}, {want: "48:5"}, {counts: []int{48, 1}, want: "48:6"},
		},
		"the source begins again and reports at once": {
			{counts: []int{48, 5}, want: "48:5"}, {counts: []int{48, 2}, want: "48:7"},
		},
		"another counts the same errors": {
			{counts: []int{48, 5}, want: "48:5"}, {counts: []int{48, 2}, ages: []int{30}, want: "48:5"}, {counts: []int{48, 3}, want: "48:6"},
		},
		"another takes over and reports what is known": {
			{counts: []int{48, 5}, want: "48:5"}, {source: "dcgm", counts: []int{48, 7}, ages: []int{5}, want: "48:5"}, {counts: []int{48, 8}, want: "48:6"},
		},
		"another takes over and reports something new": {
			{counts: []int{48, 5}, want: "48:5"}, {source: "dcgm", counts: []int{48, 7}, want: "48:6"}, {counts: []int{48, 8}, want: "48:7"},
		},
		"back and forth": {
			{counts: []int{48, 5}, want: "48:5"}, {source: "dcgm", counts: []int{48, 1}, ages: []int{5}, want: "48:5"},
			{source: "simulated", counts: []int{48, 6}, want: "48:6"}, {counts: []int{48, 7}, want: "48:7"},
		},
		"another watches than samples the device": {
			{by: "dcgm", counts: []int{48, 5}, want: "48:5"}, {by: "dcgm", counts: []int{48, 7}, want: "48:7"}, {source: "dcgm", counts: []int{48, 8}, want: "48:8"},
		},
		"another watches instead of the one that samples the device": {
			{want: ""}, {by: "dcgm", counts: []int{79, 5}, ages: []int{3600}, want: ""}, {by: "dcgm", counts: []int{79, 6}, want: "79:1"},
		},
		"unwatched for a while": {
			{counts: []int{48, 5}, want: "48:5"}, {unwatched: true, want: ""}, {unwatched: true, want: ""}, {counts: []int{48, 6}, want: "48:6"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, gpu(0))
			for i, reported := range samples {
				s.setXIDSample(reported)
				s.step(time.Second)
				if got := s.xidCounts(); got != reported.want {
					t.Errorf("step %d: counted %q, want %q", i+1, got, reported.want)
				}
				if _, there := s.value("dra_device_xid_errors_total", "xid", "79"); there == reported.unwatched {
					t.Errorf("step %d: counters are there: %t", i+1, there)
				}
			}
		})
	}
}

func (s *scene) setXIDSample(reported xidSample) {
	sample := &s.facts.Samples[0]
	if reported.source != "" {
		sample.Source = reported.source
	}
	s.setXIDs("GPU-0", reported.counts...)
	sample.XIDSource = cmp.Or(reported.by, sample.Source)
	for i, age := range reported.ages {
		sample.XIDs[i].Last = s.now.Wall.Add(time.Second - time.Duration(age)*time.Second)
	}
	if reported.unwatched {
		sample.XIDs = nil
	}
}

func (s *scene) xidCounts() string {
	var counts []string
	for _, row := range s.last.Rows() {
		if row.Family.Name == "dra_device_xid_errors_total" && row.Value != 0 {
			counts = append(counts, fmt.Sprintf("%s:%v", row.Labels.Get("xid"), row.Value))
		}
	}
	return strings.Join(counts, " ")
}

// The time of the last error is the error's own, and never goes back.
func TestXIDLastTime(t *testing.T) {
	s := newScene(t, gpu(0))
	s.setXIDSample(xidSample{counts: []int{48, 1}, ages: []int{20}})
	s.step(time.Second)
	first := s.now.Wall.Add(-20 * time.Second)
	if got, _ := s.value("dra_device_xid_last_timestamp_seconds", "xid", "48"); got != float64(first.Unix()) {
		t.Errorf("last reported at %v, want %v", got, first.Unix())
	}
	s.setXIDSample(xidSample{source: "dcgm", counts: []int{48, 1}, ages: []int{40}})
	s.step(time.Second)
	if got, _ := s.value("dra_device_xid_last_timestamp_seconds", "xid", "48"); got != float64(first.Unix()) {
		t.Errorf("after another's report: last reported at %v, want %v", got, first.Unix())
	}
}

// Old errors that a source reports at its start are counted, and no signal.
func TestOldXID(t *testing.T) {
	s := newScene(t, gpu(0))
	s.setXIDSample(xidSample{counts: []int{79, 1}, ages: []int{11}})
	s.step(time.Second)
	s.expect("eleven seconds later", "1", "", "")
	if got := s.xidCounts(); got != "79:1" {
		t.Errorf("counted %q", got)
	}
	s = newScene(t, gpu(0))
	s.setXIDSample(xidSample{counts: []int{79, 1}, ages: []int{9}})
	s.step(time.Second)
	s.expect("nine seconds later", "0", "xid_79", "critical")
}

// A partition's codes beyond those of channels are there once they are reported.
func TestXIDOfAPartitionBeyondItsSet(t *testing.T) {
	s := partitionedGPU(t)
	if _, there := s.value("dra_device_xid_errors_total", "uuid", "MIG-a", "xid", "119"); there {
		t.Error("119 is there before it is reported")
	}
	s.setXIDs("MIG-a", 119, 2)
	s.run(1)
	if got, _ := s.value("dra_device_xid_errors_total", "uuid", "MIG-a", "xid", "119"); got != 2 {
		t.Errorf("counted %v times, want 2", got)
	}
	if _, there := s.value("dra_device_xid_last_timestamp_seconds", "uuid", "MIG-a", "xid", "119"); !there {
		t.Error("its time is not known")
	}
}

// A device that names another parent from now on keeps no label of the old.
func TestLabelsOfHealthFollowTheParent(t *testing.T) {
	s := partitionedGPU(t)
	s.setXIDs("MIG-a", 95, 1)
	s.run(1)
	s.facts.Samples[1].Device.ParentUUID = "GPU-9"
	s.run(1)
	for _, row := range s.last.Rows() {
		if strings.HasPrefix(row.Family.Name, "dra_device_") && row.Labels.Get("uuid") == "MIG-a" && row.Labels.Get("parent_uuid") != "GPU-9" {
			t.Errorf("a row of %s names the parent %s", row.Family.Name, row.Labels.Get("parent_uuid"))
		}
	}
	if s.page("dra_device_health_signal") == "" {
		t.Error("the signal is gone")
	}
}

// xidsIn are Xids for tests that make up whole lives.
func xidsIn(counts map[int]uint64, last time.Time) []device.XID {
	xids := []device.XID{}
	for code, count := range counts {
		xids = append(xids, device.XID{Code: code, Count: count, Last: last})
	}
	slices.SortFunc(xids, func(a, b device.XID) int { return a.Code - b.Code })
	return xids
}
