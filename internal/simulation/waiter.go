package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/internal/simulation/apiserver"
)

// waiter is a row of the scenario: a workload whose pod waits for its devices
// for good, and has been for a while when the scenario begins.
type waiter struct {
	workload
	age     time.Duration
	says    string // the scheduler, on the pod; empty: it has not come to that
	unmade  bool   // nobody has made the claim that the pod names
	refused string // why the claim controller cannot make the claim of the template
}

// objects are the waiter's, as they have been since its pod was created. All
// names follow from the seed.
func (w waiter) objects(seed uint64, now time.Time) []apiserver.Object {
	created := now.Add(-w.age).Truncate(time.Second)
	i := newInstance(w.workload, 0, seed, created)
	pod := i.pods[0]
	objects := []apiserver.Object{pod}
	if w.claim.template != "" {
		objects = append(objects, newTemplate(w.workload))
	}
	switch {
	case w.refused != "":
		objects = append(objects, newEvent(pod, "FailedResourceClaimCreation", "resource_claim",
			fmt.Sprintf("PodResourceClaim %s: create ResourceClaim : %s %q is forbidden: %s", w.claim.name, claimCollection, i.claim.GenerateName, w.refused), created))
	case !w.unmade && w.claim.extended == "":
		objects = append(objects, i.claim)
		if i.claim.GenerateName != "" {
			nameClaim(pod, w.workload, i.claim.Name)
		}
	}
	if w.says != "" {
		refuse(pod, corev1.PodReasonUnschedulable, w.says, created)
	}
	return objects
}

// claimCollection is what the API server calls ResourceClaims where it refuses
// one.
const claimCollection = "resourceclaims." + resourcev1.GroupName

// exceeded is why a claim is refused under a quota of so many.
func exceeded(quota string, limit int) string {
	const counted = "count/" + claimCollection
	return fmt.Sprintf("exceeded quota: %s, requested: %s=1, used: %s=%d, limited: %s=%d", quota, counted, counted, limit, counted, limit)
}
