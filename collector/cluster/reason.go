package cluster

import (
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// evidence is everything from which the reason of a pending reference is
// determined.
type evidence struct {
	reference    reference
	pod          *podEntry
	diagnosis    *dra.Diagnosis // nil: there is none yet, or there will be none
	queued       bool           // there will be a diagnosis
	scheduler    schedulerMessage
	message      string             // the scheduler's
	kueue        *dra.KueueWorkload // that holds the pod; nil: none is known to
	domain       *dra.ComputeDomain // whose controller makes the reference's template; nil: none is known to
	creation     string             // the controller manager's message on why it could not create the claim; empty: none
	nodesUnknown bool               // nodes cannot be read
}

// decideReason determines why a reference is pending: the first reason that applies
// in the order of dra.PendingReasons, and a sentence with its evidence. It
// depends on the evidence alone, so a reason changes only when the evidence
// does.
func decideReason(e evidence) (dra.PendingReason, string) {
	r := &e.reference
	switch {
	case e.pod.object.Gated:
		return e.gated()
	case r.extended == 0 && !r.exists():
		return e.absentClaim()
	case r.deleting():
		return dra.ReasonClaimUnusable, fmt.Sprintf("resourceclaim %s is being deleted", r.claim.ref.Name)
	case r.template != "" && r.isForeign(r.claim.object, e.pod):
		return dra.ReasonClaimUnusable, fmt.Sprintf("resourceclaim %s was created for another pod", r.claim.ref.Name)
	case r.existsFor(e.pod) && r.claim.object.Allocated:
		return e.allocated()
	case e.nodesUnknown && requiresNodes(e.diagnosis):
		return e.withoutNodes()
	case e.diagnosis != nil && e.diagnosis.Reason == dra.ReasonUndetermined:
		return e.diagnosis.Reason, e.withScheduler(e.diagnosis.Message)
	case e.diagnosis != nil && e.diagnosis.Reason != dra.ReasonNone && e.diagnosis.Reason != dra.ReasonUnknown:
		return e.diagnosis.Reason, e.diagnosis.Message
	case e.diagnosis == nil && e.queued:
		return dra.ReasonPendingDiagnosis, e.withScheduler("not diagnosed yet")
	case e.diagnosis == nil:
		return e.undiagnosed()
	default:
		return e.devicesSuffice()
	}
}

// gated is why a pod has scheduling gates, as far as Kueue says.
func (e *evidence) gated() (dra.PendingReason, string) {
	if e.kueue == nil || e.kueue.Waiting == nil {
		return dra.ReasonGated, "the pod has scheduling gates"
	}
	waiting := e.kueue.Waiting
	return dra.ReasonQueueQuota, fmt.Sprintf("workload %s waits in queue %s of Kueue: %s: %s", e.kueue.Ref.Name, e.kueue.Workload.Queue, waiting.Reason, waiting.Message)
}

func (e *evidence) absentClaim() (dra.PendingReason, string) {
	r := &e.reference
	switch {
	case r.template == "" && r.claim == nil:
		return dra.ReasonClaimMissing, "the pod does not name a resourceclaim"
	case r.template == "":
		return dra.ReasonClaimMissing, fmt.Sprintf("resourceclaim %s does not exist", r.claim.ref.Name)
	case strings.Contains(e.creation, quotaText):
		return dra.ReasonQuota, e.creation
	case e.domain != nil && (e.creation == "" || strings.Contains(e.creation, notFoundText)):
		return dra.ReasonComputeDomain, fmt.Sprintf("the controller of ComputeDomain %s has not made template %s yet", e.domain.Ref.Name, r.template)
	case e.creation != "":
		return dra.ReasonClaimNotCreated, e.creation
	case r.claim != nil:
		return dra.ReasonClaimNotCreated, fmt.Sprintf("resourceclaim %s, which the pod's status names, does not exist", r.claim.ref.Name)
	default:
		return dra.ReasonClaimNotCreated, fmt.Sprintf("no resourceclaim has been created from template %s yet", r.template)
	}
}

// quotaText is part of the API server's error when a ResourceQuota would be
// exceeded (k8s.io/apiserver, pkg/admission/plugin/resourcequota).
const quotaText = "exceeded quota"

// notFoundText is part of the controller manager's message when there is no template.
const notFoundText = "not found"

// allocated is why a reference is pending although its claim is allocated.
func (e *evidence) allocated() (dra.PendingReason, string) {
	claim := e.reference.claim.object
	switch {
	case claim.Binding == dra.BindingWaiting:
		return dra.ReasonBinding, "allocated; the binding conditions of its devices are not all true yet"
	case claim.Binding == dra.BindingFailed:
		return dra.ReasonBinding, "allocated; a binding condition of a device has failed, and the scheduler will try again"
	case e.scheduler.onlyGang():
		return dra.ReasonGangQuorum, e.scheduler.text[topicGang]
	case e.scheduler.onlyOther():
		return dra.ReasonOther, "allocated, but not for this pod yet: " + e.message
	case e.scheduler.hasObstacle():
		return dra.ReasonUnknown, "allocated, but not for this pod yet: " + e.message
	default:
		return dra.ReasonUnknown, "allocated, but not for this pod yet"
	}
}

// withScheduler appends the scheduler's message, which is not a diagnosis but
// may help.
func (e *evidence) withScheduler(message string) string {
	if !e.scheduler.hasObstacle() {
		return message
	}
	_, scheduler := e.undiagnosed()
	return message + "; " + scheduler
}

// undiagnosed is for references that cannot be diagnosed: the reason follows
// from the scheduler's message alone, which does not say which of a pod's
// claims cannot be allocated, and why.
func (e *evidence) undiagnosed() (dra.PendingReason, string) {
	switch {
	case e.scheduler.about(topicClass):
		return dra.ReasonNoDeviceClass, e.scheduler.text[topicClass]
	case e.scheduler.onlyGang():
		return dra.ReasonGangQuorum, e.scheduler.text[topicGang]
	case e.scheduler.onlyOther():
		return dra.ReasonOther, e.scheduler.text[topicOther]
	case e.scheduler.hasObstacle():
		return dra.ReasonUnknown, "the scheduler reports: " + e.message
	default:
		return dra.ReasonUnknown, "the scheduler has not reported anything yet"
	}
}

// requiresNodes reports whether a diagnosis depends on the devices that one node
// can reach. Without the nodes, no node reaches any.
func requiresNodes(v *dra.Diagnosis) bool {
	if v == nil {
		return false
	}
	switch v.Reason {
	case dra.ReasonNone, dra.ReasonFragmented, dra.ReasonConstraints:
		return true
	default:
		return false
	}
}

// withoutNodes is for devices that suffice as far as they can be counted
// without the nodes.
func (e *evidence) withoutNodes() (dra.PendingReason, string) {
	message := "the nodes cannot be read, so it is unknown which devices one node can use"
	if e.scheduler.hasObstacle() {
		message += "; the scheduler reports: " + e.message
	}
	return dra.ReasonUnknown, message
}

// devicesSuffice is for diagnoses without a reason: devices suffice for this
// claim. A message nevertheless means that they do not for another claim of the
// pod, whose reason that is, or that the result is not known. Where the
// scheduler reports that devices do not suffice, one of the two has not
// observed yet what the other has: a contradiction, not a reason.
func (e *evidence) devicesSuffice() (dra.PendingReason, string) {
	switch {
	case e.diagnosis.Message != "":
		return dra.ReasonUnknown, e.diagnosis.Message
	case e.scheduler.about(topicOther):
		return dra.ReasonOther, e.scheduler.text[topicOther]
	case e.scheduler.onlyGang():
		return dra.ReasonGangQuorum, e.scheduler.text[topicGang]
	case e.scheduler.hasObstacle():
		return dra.ReasonUnknown, "enough devices are free now, but the scheduler reported: " + e.message
	default:
		return dra.ReasonUnknown, "enough devices are free; the scheduler has not reported anything yet"
	}
}

// suffices reports whether, with this reason of its own, nothing is known to prevent
// the reference from being satisfied: its claim is allocated, or enough devices are
// free for it. Then it may wait for other pods of its gang.
func (e *evidence) suffices(reason dra.PendingReason) bool {
	switch reason {
	case dra.ReasonGangQuorum:
		return true
	case dra.ReasonUnknown:
		if r := &e.reference; r.existsFor(e.pod) && r.claim.object.Allocated {
			return true
		}
		return e.diagnosis != nil && e.diagnosis.Reason == dra.ReasonNone && e.diagnosis.Message == "" && !e.nodesUnknown
	default:
		return false
	}
}

// isFailure reports whether the onset of a reason is counted: of all but
// scheduling gates, queues and binding conditions, which are normal (conditions that
// fail are counted as such), and but what is not known or not diagnosed.
func isFailure(reason dra.PendingReason) bool {
	switch reason {
	case dra.ReasonNone, dra.ReasonUnknown, dra.ReasonQueueQuota, dra.ReasonGated, dra.ReasonBinding, dra.ReasonPendingDiagnosis, dra.ReasonUndetermined:
		return false
	default:
		return true
	}
}
