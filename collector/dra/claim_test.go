package dra_test

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestReservedPodsHoldClaim(t *testing.T) {
	for name, c := range map[string]struct {
		consumers []dra.Consumer
		want      bool
	}{
		"none":            {nil, false},
		"the pod":         {[]dra.Consumer{{Resource: "pods", UID: "other"}, {Resource: "pods", UID: "pod-1"}}, true},
		"another pod":     {[]dra.Consumer{{Resource: "pods", UID: "other"}}, false},
		"a group of pods": {[]dra.Consumer{{Resource: "podgroups", UID: "group"}}, true},
		"something else":  {[]dra.Consumer{{Resource: "jobs", UID: "pod-1"}}, false},
	} {
		if got := (dra.Claim{ReservedFor: c.consumers}).HeldBy("pod-1"); got != c.want {
			t.Errorf("reserved for %s: held by the pod: %v, want %v", name, got, c.want)
		}
	}
}
