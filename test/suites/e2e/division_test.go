package e2e

import (
	"errors"
	"fmt"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// usage is a holder's part of a GPU.
type usage struct{ utilization, memory float64 }

// division is how a page must divide a GPU.
type division struct {
	gpu          int
	claims, pods map[string]usage
	unattributed usage
}

// check returns an error unless the claims have these values by process
// attribution only, exactly these pods have values of their own, and this
// value is unattributed.
func (d division) check(p *scrape.Page) error {
	gpu := scrape.Labels{"uuid": sharingUUID(d.gpu)}
	errs := []error{
		checkAttributed(p, "ok"),
		claimHas(p, "dra_device_unattributed_utilization_ratio", gpu, d.unattributed.utilization),
		claimHas(p, "dra_device_unattributed_memory_bytes", gpu, d.unattributed.memory),
	}
	for claim, has := range d.claims {
		labels := with(gpu, "namespace", "sharing", "resourceclaim", claim)
		errs = append(errs,
			heldBy(p, "dra_claim_utilization_ratio", labels, "process", has.utilization),
			heldBy(p, "dra_claim_memory_used_bytes", labels, "process", has.memory))
	}
	for pod, has := range d.pods {
		labels := with(gpu, "namespace", "sharing", "pod", pod)
		errs = append(errs,
			claimHas(p, "dra_pod_utilization_ratio", labels, has.utilization),
			claimHas(p, "dra_pod_memory_used_bytes", labels, has.memory))
	}
	for _, name := range []string{"dra_pod_utilization_ratio", "dra_pod_memory_used_bytes"} {
		if rows := p.Rows(name, gpu); len(rows) != len(d.pods) {
			errs = append(errs, fmt.Errorf("%s is there of %d pods: %v", name, len(rows), rows))
		}
	}
	return errors.Join(errs...)
}

// heldBy returns an error unless a claim has one such row, of this attribution
// and value.
func heldBy(p *scrape.Page, name string, claim scrape.Labels, attribution string, want float64) error {
	row, err := p.One(name, claim)
	if err != nil {
		return err
	}
	if row.Labels["attribution"] != attribution {
		return fmt.Errorf("%s%s is not %s", name, row.Labels, attribution)
	}
	return claimHas(p, name, claim, want)
}

// checkAttributed returns an error unless processes are attributed, or not,
// for exactly this reason.
func checkAttributed(p *scrape.Page, reason string) error {
	var now []string
	for _, row := range p.Rows("dra_exporter_process_attribution", nil) {
		if row.Value == 1 {
			now = append(now, row.Labels["reason"])
		}
	}
	if len(now) != 1 || now[0] != reason {
		return fmt.Errorf("the reason is %q, not %s", now, reason)
	}
	return nil
}

// sharedWhole returns an error unless a claim's row has the GPU's own value,
// and is marked as shared.
func sharedWhole(p *scrape.Page, name string, gpu int, claim string, want float64) error {
	return heldBy(p, name, scrape.Labels{"uuid": sharingUUID(gpu), "namespace": "sharing", "resourceclaim": claim}, "shared", want)
}

// wantOneClaim: the claim team holds its GPU alone and has this value, which
// its pods divide.
func wantOneClaim(utilization, memory float64, divided division) func(*scrape.Page) error {
	claim := scrape.Labels{"uuid": sharingUUID(2), "namespace": "sharing", "resourceclaim": "team"}
	return func(p *scrape.Page) error {
		return errors.Join(divided.check(p),
			heldBy(p, "dra_claim_utilization_ratio", claim, "exclusive", utilization),
			heldBy(p, "dra_claim_memory_used_bytes", claim, "exclusive", memory))
	}
}

// wantTwoClaims: the values of the claims right and left are distinguished. A
// container with both claims counts for its pod and for neither claim.
func wantTwoClaims(right usage) func(*scrape.Page) error {
	left := usage{0.25, 5 * gibibyte}
	divided := division{
		gpu:    1,
		claims: map[string]usage{"left": left, "right": right},
		pods:   map[string]usage{"pair": {left.utilization + right.utilization, left.memory + right.memory}, "both": {0.15, gibibyte}},
	}
	return func(p *scrape.Page) error {
		return errors.Join(divided.check(p),
			sharedWhole(p, "dra_claim_utilization_ratio", 1, "both-a", 0.95),
			sharedWhole(p, "dra_claim_memory_used_bytes", 1, "both-b", 40*gibibyte))
	}
}

// checkUndivided returns an error unless no device is divided, because the
// host's processes cannot be read.
func checkUndivided(p *scrape.Page) error {
	errs := []error{checkAttributed(p, "pid_namespace")}
	for _, claim := range []string{"slice-a", "slice-b"} {
		errs = append(errs,
			sharedWhole(p, "dra_claim_utilization_ratio", 0, claim, 0.95),
			sharedWhole(p, "dra_claim_memory_used_bytes", 0, claim, 40*gibibyte))
	}
	for _, name := range []string{
		"dra_device_unattributed_utilization_ratio", "dra_device_unattributed_memory_bytes",
		"dra_pod_utilization_ratio", "dra_pod_memory_used_bytes",
	} {
		if n := p.Count(name, nil); n > 0 {
			errs = append(errs, fmt.Errorf("%s has %d rows", name, n))
		}
	}
	return errors.Join(errs...)
}
