package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/tools/invariant"
)

// invariantPage is a snapshot as test/tools/invariant sees it.
func invariantPage(snapshot Snapshot) invariant.Page {
	return invariant.FromRows(snapshot.Rows(), time.Time{}.Add(snapshot.At.Elapsed))
}

// checkInvariants fails the test where the last page contradicts itself or the
// one before that the watch has seen. A new state is another
// process.
func (s *scene) checkInvariants(watch *invariant.Watch) {
	s.t.Helper()
	if s.began {
		*watch = invariant.Watch{}
	}
	for _, v := range watch.Next(invariantPage(s.last)) {
		s.t.Errorf("%s", v)
	}
}

// Rules find the device's own value beside each claim's by their names: every
// family with an attribution has one, but for the one that is a time and those that
// depend on a holder.
func TestCounterparts(t *testing.T) {
	families := map[string]*metric.Family{}
	for _, family := range Families() {
		families[family.Name] = family
	}
	unattributed := 0
	for name, family := range families {
		if !slices.Contains(family.Labels, "attribution") || name == "dra_claim_idle_since_timestamp_seconds" ||
			strings.HasPrefix(name, "dra_claim_execution_idle_") {
			continue
		}
		own, rest := invariant.Counterparts(name)
		if counterpart := families[own]; counterpart == nil || counterpart.Type != family.Type {
			t.Errorf("%s has no counterpart %s", name, own)
		}
		if families[rest] != nil {
			unattributed++
		}
	}
	if unattributed != int(usages) {
		t.Errorf("%d families have an unattributed part, want %d", unattributed, usages)
	}
	for name := range families {
		if strings.HasPrefix(name, "dra_pod_") && !strings.HasSuffix(name, "_info") && families[strings.Replace(name, "dra_pod_", "dra_claim_", 1)] == nil {
			t.Errorf("%s has no counterpart of claims", name)
		}
	}
}

// Rows that count something twice are found on the reducer's own pages.
func TestInvariantsFindBrokenPages(t *testing.T) {
	s := sharedGPU(t)
	s.set("GPU-0", device.Power, 300)
	s.processLists["GPU-0"] = nil
	s.addProcess("GPU-0", 1, ofPod("first"), 0.3, 10)
	s.step(time.Second)
	before := invariantPage(s.last)
	s.step(time.Second)
	after := invariantPage(s.last)
	if found := slices.Concat(invariant.Check(before, after), invariant.Compare(before, after)); len(found) > 0 {
		t.Fatalf("the page as it is: %v", found)
	}
	for rule, change := range map[string]func(*invariant.Series){
		invariant.ClaimsWithinDevice: func(row *invariant.Series) {
			if row.Name == "dra_device_unattributed_memory_bytes" {
				row.Value += 31
			}
		},
		invariant.DeviceValue: func(row *invariant.Series) {
			if row.Name == "dra_claim_power_watts" {
				row.Value++
			}
		},
		invariant.HoldersAgree: func(row *invariant.Series) {
			if row.Name == "dra_device_holders" {
				row.Value++
			}
		},
		invariant.DeviceTime: func(row *invariant.Series) {
			if row.Name == "dra_claim_device_seconds_total" {
				row.Value += 0.6
			}
		},
		invariant.CountersRise: func(row *invariant.Series) {
			if row.Name == "dra_namespace_device_seconds_total" {
				row.Value = -1
			}
		},
	} {
		broken := after
		broken.Series = slices.Clone(after.Series)
		for i := range broken.Series {
			change(&broken.Series[i])
		}
		found := slices.Concat(invariant.Check(broken), invariant.Compare(before, broken))
		if !slices.ContainsFunc(found, func(v invariant.Violation) bool { return v.Rule == rule }) {
			t.Errorf("%s is not found: %v", rule, found)
		}
	}
}
