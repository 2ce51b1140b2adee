package explain

import (
	"testing"
	"time"
)

// A gated reference is not pending: it is the answer only where nothing else is.
func TestGatedIsNotPending(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	gated := Waiting{Reason: "scheduling_gated", Meaning: "gates", Since: now.Add(-2 * time.Hour)}
	young := Waiting{Reason: "quota", Meaning: "quota", Since: now.Add(-time.Minute)}
	old := Waiting{Reason: "tainted", Meaning: "taint", Since: now.Add(-time.Hour)}
	for name, test := range map[string]struct {
		waiting []Waiting
		kind    Kind
		want    string
	}{
		"gated alone":            {[]Waiting{gated}, KindClaim, "is gated since 2026-11-20 08:00:00 UTC (2 h 0 min): gates"},
		"gated before, pending":  {[]Waiting{gated, young}, KindClaim, "is pending since 2026-11-20 09:59:00 UTC (60 s): quota"},
		"pending, gated after":   {[]Waiting{young, gated}, KindClaim, "is pending since 2026-11-20 09:59:00 UTC (60 s): quota"},
		"the oldest pending":     {[]Waiting{young, gated, old}, KindClaim, "is pending since 2026-11-20 09:00:00 UTC (1 h 0 min): taint"},
		"several claims of pods": {[]Waiting{young, old, young}, KindPod, "is pending since 2026-11-20 09:00:00 UTC (1 h 0 min): taint; 2 more pending claims"},
	} {
		got := account{}.waits(&Report{Kind: test.kind, At: now, Waiting: test.waiting})
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
