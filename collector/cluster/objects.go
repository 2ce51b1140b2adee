package cluster

import "github.com/dra-exporter/dra-exporter/collector/dra"

// objects lists what is known of a namespace, and further claims with the pods that use
// them, those that they are reserved for and those that they were generated for. The
// order is not defined; an object may be listed twice.
func (x *index) objects(namespace string, claims []dra.ClaimRef) []Change {
	var all []Change
	for ref, p := range x.pods {
		if ref.Namespace == namespace {
			all = append(all, Change{Pod: p.object})
		}
	}
	for ref, c := range x.claims {
		if ref.Namespace == namespace && c.object != nil {
			all = append(all, Change{Claim: c.object})
		}
	}
	for ref, group := range x.groups {
		if ref.Namespace == namespace {
			all = append(all, Change{Group: group})
		}
	}
	for ref, workload := range x.queues.objects {
		if ref.Namespace == namespace {
			all = append(all, Change{KueueWorkload: workload})
		}
	}
	for ref, domain := range x.domains {
		if ref.Namespace == namespace {
			all = append(all, Change{ComputeDomain: domain})
		}
	}
	for _, event := range x.scaling.byPod {
		if event.Pod.Namespace == namespace {
			all = append(all, Change{Autoscaling: event})
		}
	}
	for _, warnings := range x.warnings.creation {
		for _, warning := range warnings {
			if warning.Pod.Namespace == namespace {
				all = append(all, Change{Warning: &warning})
			}
		}
	}
	for _, warning := range x.warnings.preparation {
		if warning.Pod.Namespace == namespace {
			all = append(all, Change{Warning: warning})
		}
	}
	for _, ref := range claims {
		if c := x.claims[ref]; c != nil && c.object != nil && ref.Namespace != namespace {
			all = x.withUsers(append(all, Change{Claim: c.object}), c)
		}
	}
	return all
}

// withUsers adds what may use a claim.
func (x *index) withUsers(all []Change, c *claimEntry) []Change {
	add := func(consumer dra.Consumer) {
		ref := dra.PodRef{Namespace: c.ref.Namespace, Name: consumer.Name}
		switch consumer.Resource {
		case "pods":
			if p := x.pods[ref]; p != nil {
				all = append(all, Change{Pod: p.object})
			}
		case "podgroups":
			if group := x.groups[ref]; group != nil {
				all = append(all, Change{Group: group})
			}
		}
	}
	for _, p := range c.users {
		all = append(all, Change{Pod: p.object})
	}
	for _, consumer := range c.object.ReservedFor {
		add(consumer)
	}
	add(c.object.MadeFor)
	return all
}
