package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// claimBuilder describes claims that exist.
type claimBuilder struct{ facts *clusterread.Facts }

// build describes the claim; users are the pods that refer to it.
func (b claimBuilder) build(lifecycle *dra.ClaimLifecycle, users []*dra.PodLifecycle) Claim {
	claim := Claim{
		Name: lifecycle.Ref.Name, UID: lifecycle.UID, State: b.state(lifecycle, users), DeviceClass: lifecycle.Class(),
		ExtendedResource: lifecycle.ExtendedResource, Created: lifecycle.Created.UTC(),
		AllocatedAt: moment(lifecycle.AllocatedAt), Node: lifecycle.Node,
		Asked: b.facts.Spec(lifecycle.Ref.Namespace, lifecycle.Ref.Name, ""), DeletedSince: moment(lifecycle.Deleted),
		ReservedFor: words.Names(lifecycle.ReservedFor, consumerText),
	}
	if lifecycle.MadeFor.Name != "" {
		claim.MadeFor = consumerText(lifecycle.MadeFor)
	}
	for _, result := range lifecycle.Results {
		claim.Devices = append(claim.Devices, Device{
			Request: result.Request, DeviceClass: result.Class, AdminAccess: result.AdminAccess,
			Driver: result.Device.Driver, Pool: result.Device.Pool, Name: result.Device.Name,
		})
	}
	if !lifecycle.Deleted.IsZero() {
		claim.Finalizers = lifecycle.Finalizers
	}
	b.addRemarks(&claim, lifecycle, users)
	return claim
}

// state returns that of the metric dra_claims.
func (b claimBuilder) state(lifecycle *dra.ClaimLifecycle, users []*dra.PodLifecycle) string {
	switch {
	case !lifecycle.Deleted.IsZero():
		return StateTerminating
	case len(lifecycle.ReservedFor) > 0:
		return StateReserved
	case lifecycle.Allocated:
		return StateAllocated
	case slices.ContainsFunc(users, func(pod *dra.PodLifecycle) bool { return pod.Deleted.IsZero() }) || !usages(b).known(lifecycle):
		return StatePending
	default:
		return StateUnused
	}
}

// addRemarks adds what is unusual about the claim, and what to do about it.
func (b claimBuilder) addRemarks(claim *Claim, lifecycle *dra.ClaimLifecycle, users []*dra.PodLifecycle) {
	switch {
	case claim.State == StateTerminating:
		b.addTerminating(claim, lifecycle, users)
	case claim.State == StateUnused:
		b.addUnused(claim, lifecycle, users)
	case claim.State == StateAllocated:
		b.addUnreserved(claim, lifecycle)
	case usages(b).orphaned(lifecycle):
		claim.remark("no pod that it is reserved for exists", orphanHelp)
	}
	if lifecycle.NoPreparation {
		claim.Remarks = append(claim.Remarks, "its devices need no preparation on the node: their drivers skip NodePrepareResources (skipNodeOperations), so there is no preparation phase")
	}
	if lifecycle.Binding == dra.BindingFailed {
		claim.remark("a binding failure condition is set on one of its devices: the scheduler will allocate it again", "`kubectl get resourceclaim -n "+lifecycle.Ref.Namespace+" "+lifecycle.Ref.Name+" -o yaml` shows the condition in status.devices")
	}
}

func (b claimBuilder) addUnused(claim *Claim, lifecycle *dra.ClaimLifecycle, users []*dra.PodLifecycle) {
	text := "no pod refers to it"
	if len(users) > 0 {
		text = "only pods that are being deleted refer to it, " + pods(podNames(users))
	}
	claim.Remarks = append(claim.Remarks, text+", so nothing allocates it: it is not pending")
	if lifecycle.MadeFor.Name != "" {
		return // its owner deletes it
	}
	help := fmt.Sprintf("name it in spec.resourceClaims of a pod in namespace %s (resourceClaimName: %s)", lifecycle.Ref.Namespace, lifecycle.Ref.Name)
	if usages(b).of(lifecycle).idle() {
		help += ", or delete it"
	}
	claim.Help = append(claim.Help, help)
}

// addUnreserved describes devices that are allocated and not reserved for any
// consumer, or not yet.
func (b claimBuilder) addUnreserved(claim *Claim, lifecycle *dra.ClaimLifecycle) {
	used := usages(b).of(lifecycle)
	switch {
	case used.idle():
		claim.remark("it is not reserved for a pod and still holds its devices: no other claim can get them", fmt.Sprintf("if no pod will use it soon: `kubectl delete resourceclaim -n %s %s`", lifecycle.Ref.Namespace, lifecycle.Ref.Name))
	case !used.empty():
		claim.Remarks = append(claim.Remarks, "it is allocated, and not reserved yet for its users: "+used.text())
	default:
		claim.Remarks = append(claim.Remarks, "it is not reserved; whether a pod will use it is unknown")
	}
}

func (b claimBuilder) addTerminating(claim *Claim, lifecycle *dra.ClaimLifecycle, users []*dra.PodLifecycle) {
	users = slices.DeleteFunc(slices.Clone(users), func(pod *dra.PodLifecycle) bool {
		return !slices.ContainsFunc(lifecycle.ReservedFor, func(c dra.Consumer) bool {
			return c.UID == pod.UID || c.Resource == "podgroups" && c.Name == pod.Group
		})
	})
	foreign := slices.DeleteFunc(slices.Clone(lifecycle.Finalizers), func(name string) bool { return name == resourcev1.Finalizer })
	switch {
	case len(users) > 0:
		claim.remark(fmt.Sprintf("it is being deleted, and remains until it is no longer used: %s still %s it", pods(podNames(users)), words.Plural(len(users), "uses", "use")), "end or delete "+pods(podNames(users)))
	case len(foreign) < len(lifecycle.Finalizers) && len(lifecycle.ReservedFor) > 0:
		claim.remark("it is being deleted and still reserved for "+words.List(claim.ReservedFor, 4), "the controller manager's resourceclaim controller removes the reservation after the pods are deleted: check that it runs, and its log")
	}
	if len(foreign) > 0 {
		claim.remark(words.Plural(len(foreign), "finalizer ", "finalizers ")+strings.Join(foreign, ", ")+words.Plural(len(foreign), " prevents the deletion", " prevent the deletion"), "find out why the controller of "+strings.Join(foreign, ", ")+" does not finish; removing a finalizer manually skips its clean-up")
	}
}

// remark adds what is unusual about the claim, and what to do about it.
func (c *Claim) remark(text, help string) {
	c.Remarks, c.Help = append(c.Remarks, text), append(c.Help, help)
}
