package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// testExemplars: in both formats with exemplars, the histograms' buckets have
// the trace ids of the pods that they count.
func (w *tracing) testExemplars(t *testing.T) {
	for class, pod := range map[string]string{"bind.life": "late", "share.example.com": "prompt", "only.life": "holder"} {
		u := w.users[pod]
		want := map[string]string{fmt.Sprintf(`dra_claim_ready_duration_seconds_bucket{deviceclass=%q`, class): u.spanID("ready")}
		for _, phase := range workingPhases() {
			want[fmt.Sprintf(`dra_allocation_duration_seconds_bucket{deviceclass=%q,phase=%q`, class, phase)] = u.spanID(phase)
		}
		open := string(getFrom(t, w.sender.url+"metrics", "application/openmetrics-text;version=1.0.0"))
		for bucket, spanID := range want {
			if err := pointsTo(open, bucket, u.traceID(), spanID); err != nil {
				t.Error(err)
			}
		}
		w.nativePointsTo(t, class, u)
	}
}

// pointsTo returns an error unless the exemplars of a histogram's buckets
// refer to one span.
func pointsTo(open, bucket, traceID, spanID string) error {
	found := 0
	for line := range strings.Lines(open) {
		series, exemplar, has := strings.Cut(line, " # ")
		if !has || !strings.HasPrefix(series, bucket) {
			continue
		}
		found++
		if !strings.Contains(exemplar, fmt.Sprintf("trace_id=%q", traceID)) || !strings.Contains(exemplar, fmt.Sprintf("span_id=%q", spanID)) {
			return fmt.Errorf("%s points to %s and not to %s of %s", series, exemplar, spanID, traceID)
		}
	}
	if found != 1 {
		return fmt.Errorf("%s…} has %d exemplars", bucket, found)
	}
	return nil
}

// nativePointsTo does the same for native histograms.
func (w *tracing) nativePointsTo(t *testing.T, class string, u user) {
	t.Helper()
	families := protobuf(t, getFrom(t, w.sender.url+"metrics", protobufFormat))
	for _, m := range families["dra_claim_ready_duration_seconds"].GetMetric() {
		if m.GetLabel()[0].GetValue() != class {
			continue
		}
		exemplars := m.GetHistogram().GetExemplars()
		if len(exemplars) != 1 {
			t.Fatalf("%s: there are %d exemplars", class, len(exemplars))
		}
		got := map[string]string{}
		for _, label := range exemplars[0].GetLabel() {
			got[label.GetName()] = label.GetValue()
		}
		if got["trace_id"] != u.traceID() || got["span_id"] != u.spanID("ready") {
			t.Errorf("%s: the native histogram points to %v", class, got)
		}
		return
	}
	t.Errorf("%s has no histogram", class)
}
