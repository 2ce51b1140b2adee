package explain

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"
)

// A gated reference is not pending: it is the answer only if there is no other.
func TestGatedIsNotPending(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	gated := PendingRef{Reason: "scheduling_gated", Meaning: "gates", Since: now.Add(-2 * time.Hour)}
	young := PendingRef{Reason: "quota", Meaning: "quota", Since: now.Add(-time.Minute)}
	old := PendingRef{Reason: "tainted", Meaning: "taint", Since: now.Add(-time.Hour)}
	for name, test := range map[string]struct {
		waiting []PendingRef
		kind    clusterread.Kind
		want    string
	}{
		"gated alone":            {[]PendingRef{gated}, clusterread.KindClaim, "is gated since 2026-11-20 08:00:00 UTC (2 h 0 min): gates"},
		"gated before, pending":  {[]PendingRef{gated, young}, clusterread.KindClaim, "is pending since 2026-11-20 09:59:00 UTC (60 s): quota"},
		"pending, gated after":   {[]PendingRef{young, gated}, clusterread.KindClaim, "is pending since 2026-11-20 09:59:00 UTC (60 s): quota"},
		"the oldest pending":     {[]PendingRef{young, gated, old}, clusterread.KindClaim, "is pending since 2026-11-20 09:00:00 UTC (1 h 0 min): taint"},
		"several claims of pods": {[]PendingRef{young, old, young}, clusterread.KindPod, "is pending since 2026-11-20 09:00:00 UTC (1 h 0 min): taint; 2 more pending claims"},
	} {
		got := pendingSummary(&Report{Kind: test.kind, At: now, Pending: test.waiting})
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
