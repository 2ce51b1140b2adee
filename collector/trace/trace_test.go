package trace_test

import (
	"encoding/hex"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/trace"
)

const (
	claimUID = "275ecb36-5aa8-4c2a-9c47-d8bb681b9aff"
	podUID   = "0d8b1c5e-1d1c-4b5e-8a5e-6f6f1f0e9a77"
)

// Backends keep traces by these ids, and people compute them by hand: printf
// '%s' trace<claim UID><pod UID> | sha256sum.
func TestIDs(t *testing.T) {
	id := trace.NewID(claimUID, podUID)
	span := trace.NewSpanID(claimUID, podUID, "binding#2")
	if got, want := hex.EncodeToString(id[:]), "0c43218bee3c28d8af3ab9d3b298ef78"; got != want {
		t.Errorf("trace id %s, want %s", got, want)
	}
	if got, want := hex.EncodeToString(span[:]), "bc13e80501bb3e65"; got != want {
		t.Errorf("span id %s, want %s", got, want)
	}
}

func TestSpanNames(t *testing.T) {
	for want, span := range map[string]trace.Span{
		"allocation":    {Phase: "allocation"},
		"binding":       {Phase: "binding", Attempt: 1},
		"binding#2":     {Phase: "binding", Attempt: 2},
		"allocation#12": {Phase: "allocation", Attempt: 12},
	} {
		if got := span.Name(); got != want {
			t.Errorf("%+v is called %s, want %s", span, got, want)
		}
	}
}
