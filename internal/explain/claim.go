package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// claimOf tells of a claim that exists.
func (a account) claimOf(life *dra.ClaimLife, users []*dra.PodLife) Claim {
	told := Claim{
		Name: life.Ref.Name, UID: life.UID, State: a.claimState(life, users), DeviceClass: life.Class(),
		ExtendedResource: life.ExtendedResource, Created: life.Created.UTC(),
		AllocatedAt: moment(life.AllocatedAt), Node: life.Node,
		Asked: a.spec(life.Ref.Name, ""), DeletedSince: moment(life.Deleted),
	}
	if life.MadeFor.Name != "" {
		told.MadeFor = consumerText(life.MadeFor)
	}
	for _, result := range life.Results {
		told.Devices = append(told.Devices, Device{
			Request: result.Request, DeviceClass: result.Class, AdminAccess: result.AdminAccess,
			Driver: result.Device.Driver, Pool: result.Device.Pool, Name: result.Device.Name,
		})
	}
	for _, consumer := range life.ReservedFor {
		told.ReservedFor = append(told.ReservedFor, consumerText(consumer))
	}
	if !life.Deleted.IsZero() {
		told.Finalizers = life.Finalizers
	}
	a.remark(&told, life, users)
	return told
}

// claimState is that of the metric dra_claims.
func (a account) claimState(life *dra.ClaimLife, users []*dra.PodLife) string {
	switch {
	case !life.Deleted.IsZero():
		return StateTerminating
	case len(life.ReservedFor) > 0:
		return StateReserved
	case life.Allocated:
		return StateAllocated
	case slices.ContainsFunc(users, stays) || !a.seesUsers(life):
		return StatePending
	default:
		return StateUnused
	}
}

// stays reports whether a pod that has not ended is not being deleted either.
func stays(pod *dra.PodLife) bool { return pod.Deleted.IsZero() }

// remark says what is odd about a claim, and what to do about it.
func (a account) remark(told *Claim, life *dra.ClaimLife, users []*dra.PodLife) {
	switch {
	case told.State == StateTerminating:
		a.remarkTerminating(told, life, users)
	case told.State == StateUnused:
		a.remarkUnused(told, life, users)
	case told.State == StateAllocated:
		a.remarkUnreserved(told, life)
	case a.orphaned(life):
		told.Remarks = append(told.Remarks, "none of the pods that it is reserved for exists")
		told.Help = append(told.Help, orphanHelp)
	}
	if life.Binding == dra.BindingFailed {
		told.Remarks = append(told.Remarks, "a binding failure condition is set on one of its devices: the scheduler will allocate anew")
		told.Help = append(told.Help, "`kubectl get resourceclaim -n "+life.Ref.Namespace+" "+life.Ref.Name+" -o yaml` shows the condition in status.devices")
	}
}

// orphanHelp is what to do about reservations for pods that are gone.
const orphanHelp = "the controller manager's resourceclaim controller takes such reservations back: see whether it runs, and its log"

func (a account) remarkUnused(told *Claim, life *dra.ClaimLife, users []*dra.PodLife) {
	who := "no pod refers to it"
	if len(users) > 0 {
		who = "only what is being deleted refers to it, " + pods(podNames(users))
	}
	told.Remarks = append(told.Remarks, who+", so nothing allocates it: it does not wait")
	if life.MadeFor.Name != "" {
		return // it comes and goes with what it was made for
	}
	help := fmt.Sprintf("name it in spec.resourceClaims of a pod in namespace %s (resourceClaimName: %s)", life.Ref.Namespace, life.Ref.Name)
	if a.usage(life).idle() {
		help += ", or delete it"
	}
	told.Help = append(told.Help, help)
}

// remarkUnreserved tells of devices that are kept for nobody, or for those for
// whom they are not reserved yet.
func (a account) remarkUnreserved(told *Claim, life *dra.ClaimLife) {
	used := a.usage(life)
	switch {
	case used.idle():
		told.Remarks = append(told.Remarks, "it keeps its devices though it is reserved for nobody: no other claim can have them")
		told.Help = append(told.Help, fmt.Sprintf("if no pod is to use it soon: `kubectl delete resourceclaim -n %s %s`", life.Ref.Namespace, life.Ref.Name))
	case !used.nobody():
		told.Remarks = append(told.Remarks, "it is allocated, and not reserved yet for whom it is to serve: "+used.text())
	default:
		told.Remarks = append(told.Remarks, "it is reserved for nobody; whether a pod is to use it is not known")
	}
}

func (a account) remarkTerminating(told *Claim, life *dra.ClaimLife, users []*dra.PodLife) {
	foreign := slices.DeleteFunc(slices.Clone(life.Finalizers), func(name string) bool { return name == resourcev1.Finalizer })
	switch {
	case len(users) > 0:
		told.Remarks = append(told.Remarks, fmt.Sprintf("it is being deleted and goes once it is used no more: %s still %s it", pods(podNames(users)), verb(len(users), "uses", "use")))
		told.Help = append(told.Help, "end or delete "+pods(podNames(users)))
	case len(foreign) < len(life.Finalizers) && len(life.ReservedFor) > 0:
		told.Remarks = append(told.Remarks, "it is being deleted and still reserved for "+some(told.ReservedFor, 4))
		told.Help = append(told.Help, "the controller manager's resourceclaim controller takes the reservation back once the pods are gone: see whether it runs, and its log")
	}
	if len(foreign) > 0 {
		told.Remarks = append(told.Remarks, verb(len(foreign), "finalizer ", "finalizers ")+strings.Join(foreign, ", ")+verb(len(foreign), " keeps it", " keep it"))
		told.Help = append(told.Help, "find out why the owner of "+strings.Join(foreign, ", ")+" does not finish; removing a finalizer by hand skips its clean-up")
	}
}

// consumerText names a consumer as kubectl does: "pod train-0".
func consumerText(consumer dra.Consumer) string {
	switch consumer.Resource {
	case "pods":
		return "pod " + consumer.Name
	case "podgroups":
		return "PodGroup " + consumer.Name
	default:
		return strings.TrimSpace(consumer.Resource + " " + consumer.Name)
	}
}

func podNames(pods []*dra.PodLife) []string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Ref.Name)
	}
	return names
}

// moment is nil for a time that is not known.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
