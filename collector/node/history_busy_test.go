package node

import (
	"maps"
	"math"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

type useKey struct {
	tenure      holdKey
	attribution string
}

// checkBusy accrues, from what pages say, the busy time of every claim: from a
// read to the next one if they are near enough, as long as the use has gone on
// under the same attribution.
func (w *working) checkBusy(said map[string]map[string]float64) {
	w.t.Helper()
	began := map[useKey]time.Duration{}
	for _, row := range w.last.Rows {
		if row.Family.Name != "dra_claim_utilization_ratio" {
			continue
		}
		key := w.keyOf(row.Labels.Get)
		since, going := w.began[key]
		if !going {
			since = w.now.Elapsed
		}
		began[key] = since
		last := w.read[key.tenure.uuid]
		if over := w.now.Elapsed - max(last, since); !w.quiet[key.tenure.uuid] && w.now.Elapsed-last <= 10*time.Second && over > 0 {
			w.busy[key] += row.Value * over.Seconds()
			if key.attribution != "shared" {
				w.total += row.Value * over.Seconds()
			}
			w.seen["busy as "+key.attribution]++
		}
	}
	w.began = began
	for uuid := range said {
		if !w.quiet[uuid] {
			w.read[uuid] = w.now.Elapsed
		}
	}
	w.compareBusy()
}

func (w *working) keyOf(label func(string) string) useKey {
	ref := dra.ClaimRef{Namespace: label("namespace"), Name: label("resourceclaim")}
	return useKey{holdKey{ref, label("uuid")}, label("attribution")}
}

func (w *working) compareBusy() {
	w.t.Helper()
	total, shown := 0.0, map[useKey]bool{}
	for _, row := range w.last.Rows {
		switch row.Family.Name {
		case "dra_claim_busy_seconds_total":
			key := w.keyOf(row.Labels.Get)
			shown[key] = true
			if math.Abs(row.Value-w.busy[key]) > 1e-6 {
				w.t.Fatalf("%v has been busy for %v s, want %v", key, row.Value, w.busy[key])
			}
		case "dra_namespace_busy_seconds_total":
			total += row.Value
		}
	}
	maps.DeleteFunc(w.busy, func(key useKey, _ float64) bool { return !shown[key] })
	if math.Abs(total-w.total) > 1e-6 {
		w.t.Fatalf("all namespaces together were busy for %v s, want %v", total, w.total)
	}
}
