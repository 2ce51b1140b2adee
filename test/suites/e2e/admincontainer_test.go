package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestAdminContainerBesideSharing: a pod monitors GPUs by admin access in one
// container and works on them in another. What the monitoring container uses
// is unattributed. On the GPU that two claims share it belongs to neither
// claim. On the GPU that one claim holds alone, the claim has the whole value,
// and the unattributed part of it is known.
func TestAdminContainerBesideSharing(t *testing.T) {
	covers(t)
	n := startSharingHost(t)
	deploy(t, "beside-admin")
	pid := func(pod, container string) int {
		return containerPID(t, running(t, "beside-admin", pod), container)
	}
	says := func(what string, check func(*scrape.Page) error) {
		t.Helper()
		pageWithin(t, n.watched[0], 30*time.Second, what, check)
	}
	share := func(main int) {
		n.SetProcesses(0,
			stubs.Process{PID: pid("duo", "main"), Memory: 4 * gibibyte, Utilization: main},
			stubs.Process{PID: pid("duo", "mon"), Memory: 2 * gibibyte, Utilization: 20},
			stubs.Process{PID: pid("other", "main"), Memory: 8 * gibibyte, Utilization: 40},
		)
	}
	share(30)
	n.SetProcesses(2,
		stubs.Process{PID: pid("solo", "main"), Memory: 16 * gibibyte, Utilization: 60},
		stubs.Process{PID: pid("solo", "mon"), Memory: gibibyte, Utilization: 15},
	)
	says("the work of the monitoring containers to be unattributed", func(p *scrape.Page) error {
		return errors.Join(
			checkBesideAdmin(p, 0, usage{0.2, 2 * gibibyte}, "process", map[string]usage{"duo": {0.3, 4 * gibibyte}, "other": {0.4, 8 * gibibyte}}),
			checkBesideAdmin(p, 2, usage{0.15, gibibyte}, "exclusive", map[string]usage{"solo": {0.95, 40 * gibibyte}}))
	})
	share(0)
	says("the claim to be idle while its pod monitors", func(p *scrape.Page) error {
		idle := scrape.Labels{"namespace": "beside-admin", "resourceclaim": "duo", "attribution": "process"}
		_, err := p.One("dra_claim_idle_since_timestamp_seconds", idle)
		return errors.Join(err,
			checkBesideAdmin(p, 0, usage{0.2, 2 * gibibyte}, "process", map[string]usage{"duo": {0, 4 * gibibyte}, "other": {0.4, 8 * gibibyte}}))
	})
}

// checkBesideAdmin returns an error unless the claims have these values of a
// GPU, no other claims have any, and this value is unattributed.
func checkBesideAdmin(p *scrape.Page, gpu int, unattributed usage, attribution string, claims map[string]usage) error {
	of := scrape.Labels{"uuid": sharingUUID(gpu)}
	errs := []error{
		checkAttributed(p, "ok"),
		claimHas(p, "dra_device_unattributed_utilization_ratio", of, unattributed.utilization),
		claimHas(p, "dra_device_unattributed_memory_bytes", of, unattributed.memory),
		claimHas(p, "dra_device_holders", with(of, "kind", "claim"), float64(len(claims))),
	}
	for claim, has := range claims {
		labels := with(of, "namespace", "beside-admin", "resourceclaim", claim)
		errs = append(errs,
			heldBy(p, "dra_claim_utilization_ratio", labels, attribution, has.utilization),
			heldBy(p, "dra_claim_memory_used_bytes", labels, attribution, has.memory))
	}
	return errors.Join(errs...)
}
