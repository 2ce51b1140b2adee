package node

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// rebuild makes the next step of the state join everything again, and make all of
// its rows instead of sharing them with the snapshot before.
func (s *State) rebuild() {
	s.join.valid = false
	s.matcher.pairs = nil
	s.plugins.causes = pluginCauses{}
	s.splits.causes = userCauses{}
	s.records.shown = nil
	for _, r := range s.records.byClaim {
		r.model = nil
	}
	s.families, s.labelled = define(s.config), newLabelled()
	s.builder = metric.NewBuilder(s.config.MaxSeries, s.self.Dropped)
}

// TestSnapshotsEqualRebuiltOnes compares the snapshots of random histories, with
// restarts, to those of a state that rebuilds everything in each step. Their rows and
// models are read after the last step, so that a step that changes an earlier snapshot
// is found, too.
func TestSnapshotsEqualRebuiltOnes(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			h := newHistory(t, seed)
			config := h.state.config
			kept, rebuilt := h.state, NewState(config)
			var got, want []Snapshot
			h.reducer = func(facts Facts, now clock.Instant) {
				if h.random.IntN(100) == 0 {
					kept, rebuilt = NewState(config), NewState(config)
				}
				rebuilt.rebuild()
				var snapshot Snapshot
				kept, snapshot, _ = Step(kept, facts, now)
				got = append(got, snapshot)
				rebuilt, snapshot, _ = Step(rebuilt, facts, now)
				want = append(want, snapshot)
			}
			for range 200 {
				h.advance()
			}
			for i := range got {
				if !reflect.DeepEqual(got[i].Model, want[i].Model) {
					t.Fatalf("snapshot %d has the model\n%+v\nrebuilt\n%+v", i, got[i].Model, want[i].Model)
				}
				got, want := rowTexts(got[i].Series), rowTexts(want[i].Series)
				if !slices.Equal(got, want) {
					at := 0
					for at < min(len(got), len(want)) && got[at] == want[at] {
						at++
					}
					t.Fatalf("snapshot %d has %d rows, rebuilt %d; from the first that differs:\n%q\n%q", i, len(got), len(want), got[at:min(at+3, len(got))], want[at:min(at+3, len(want))])
				}
			}
		})
	}
}

// rowTexts returns everything that the rows have.
func rowTexts(snapshot *metric.Snapshot) []string {
	var texts []string
	for _, row := range snapshot.Rows() {
		texts = append(texts, fmt.Sprint(seriesName(row), " ", math.Float64bits(row.Value), " ", row.Value, " ", row.Start, " ", row.Past))
	}
	return texts
}
