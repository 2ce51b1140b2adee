package cluster

import (
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// evidence is all that tells why one reference waits.
type evidence struct {
	reference reference
	pod       *podEntry
	verdict   *dra.Verdict // nil: there is none yet, or there will be none
	queued    bool         // there will be a verdict
	said      statement    // by the scheduler, of the pod
	message   string       // its words
	trouble   string       // the controller manager's words on why it could not make the claim; empty: it has none
	nodeless  bool         // no node can be read
}

// reasonOf says why a reference waits: the first that applies in the order of
// dra.PendingReasons, and one sentence with what it is told from. It depends
// on the evidence alone, so a reason changes only when the evidence does.
func reasonOf(e evidence) (dra.PendingReason, string) {
	r := &e.reference
	switch {
	case e.pod.life.Gated:
		return dra.ReasonGated, "the pod has scheduling gates"
	case r.extended == 0 && !r.present():
		return e.absentClaim()
	case r.vanishing():
		return r.absent(), fmt.Sprintf("resourceclaim %s is being deleted", r.claim.ref.Name)
	case r.template != "" && r.foreign(e.pod):
		return r.absent(), fmt.Sprintf("resourceclaim %s was made for another pod", r.claim.ref.Name)
	case r.present() && !r.foreign(e.pod) && r.claim.life.Allocated:
		return e.allocated()
	case e.nodeless && takesNodes(e.verdict):
		return e.onNoNode()
	case e.verdict != nil && e.verdict.Reason == dra.ReasonUndetermined:
		return e.verdict.Reason, e.withScheduler(e.verdict.Message)
	case e.verdict != nil && e.verdict.Reason != dra.ReasonNone && e.verdict.Reason != dra.ReasonUnknown:
		return e.verdict.Reason, e.verdict.Message
	case e.verdict == nil && e.queued:
		return dra.ReasonPendingDiagnosis, e.withScheduler("not diagnosed yet")
	case e.verdict == nil:
		return e.unjudged()
	default:
		return e.unopposed()
	}
}

// absent is the reason of a reference whose claim is not there: one that is
// made from a template will be made again.
func (r *reference) absent() dra.PendingReason {
	if r.template == "" {
		return dra.ReasonClaimMissing
	}
	return dra.ReasonClaimNotCreated
}

func (e *evidence) absentClaim() (dra.PendingReason, string) {
	r := &e.reference
	switch {
	case r.template == "" && r.claim == nil:
		return dra.ReasonClaimMissing, "the pod does not say which resourceclaim"
	case r.template == "":
		return dra.ReasonClaimMissing, fmt.Sprintf("resourceclaim %s does not exist", r.claim.ref.Name)
	case strings.Contains(e.trouble, quotaWords):
		return dra.ReasonQuota, e.trouble
	case e.trouble != "":
		return dra.ReasonClaimNotCreated, e.trouble
	case r.claim != nil:
		return dra.ReasonClaimNotCreated, fmt.Sprintf("resourceclaim %s, which the pod's status names, is not there", r.claim.ref.Name)
	default:
		return dra.ReasonClaimNotCreated, fmt.Sprintf("no resourceclaim has been made from template %s yet", r.template)
	}
}

// quotaWords are in what the API server answers to who would exceed a
// ResourceQuota (k8s.io/apiserver, pkg/admission/plugin/resourcequota).
const quotaWords = "exceeded quota"

// present reports whether the claim that the reference stands for is there.
func (r *reference) present() bool { return r.claim != nil && r.claim.life != nil }

// foreign reports whether the claim under the reference's name was made for
// another pod, and so is not the one that the reference stands for. A pod that
// names a claim itself may name that of another, as the scheduler has it: it
// asks for the owner only where the claim is made for the pod.
func (r *reference) foreign(p *podEntry) bool {
	if !r.present() || r.template == "" && r.extended == 0 {
		return false
	}
	owner := &r.claim.life.MadeFor
	return owner.Resource == "pods" && owner.UID != p.life.UID
}

// allocated is why a reference waits whose claim has its devices.
func (e *evidence) allocated() (dra.PendingReason, string) {
	life := e.reference.claim.life
	switch {
	case life.Binding == dra.BindingWaiting:
		return dra.ReasonBinding, "allocated; the binding conditions of its devices are not all true yet"
	case life.Binding == dra.BindingFailed:
		return dra.ReasonBinding, "allocated; a binding condition of a device has failed, and the scheduler will try again"
	case e.said.ofOthersAlone():
		return dra.ReasonOther, "allocated, but not for this pod yet: " + e.message
	case e.said.speaks():
		return dra.ReasonUnknown, "allocated, but not for this pod yet: " + e.message
	default:
		return dra.ReasonUnknown, "allocated, but not for this pod yet"
	}
}

// withScheduler adds what the scheduler says of the pod, which is no diagnosis
// but may help.
func (e *evidence) withScheduler(message string) string {
	if !e.said.speaks() {
		return message
	}
	_, said := e.unjudged()
	return message + "; " + said
}

// unjudged is for what cannot be diagnosed. It goes by the scheduler's word alone. Which of a pod's claims cannot
// be allocated, and why, it does not say.
func (e *evidence) unjudged() (dra.PendingReason, string) {
	switch {
	case e.said.about(aboutClass):
		return dra.ReasonNoDeviceClass, e.said.words[aboutClass]
	case e.said.ofOthersAlone():
		return dra.ReasonOther, e.said.words[aboutOthers]
	case e.said.speaks():
		return dra.ReasonUnknown, "the scheduler says: " + e.message
	default:
		return dra.ReasonUnknown, "the scheduler has not said anything yet"
	}
}

// takesNodes reports whether a verdict could only be made by what one node can
// reach. Without the nodes none reaches anything.
func takesNodes(v *dra.Verdict) bool {
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

// onNoNode is for devices that suffice as far as they can be counted without
// the nodes.
func (e *evidence) onNoNode() (dra.PendingReason, string) {
	message := "the nodes cannot be read, so that nobody can judge which devices one of them reaches"
	if e.said.speaks() {
		message += "; the scheduler says: " + e.message
	}
	return dra.ReasonUnknown, message
}

// unopposed is for devices that suffice, as far as they go. A verdict that has a
// message nevertheless says that they do not for another claim of the pod, with
// which the reason stands, or that it cannot be told. Where the scheduler says
// of all nodes that they do not, one of the two has yet to see what the other
// has: that is no reason but a contradiction.
func (e *evidence) unopposed() (dra.PendingReason, string) {
	switch {
	case e.verdict.Message != "":
		return dra.ReasonUnknown, e.verdict.Message
	case e.said.about(aboutOthers):
		return dra.ReasonOther, e.said.words[aboutOthers]
	case e.said.speaks():
		return dra.ReasonUnknown, "devices would suffice now, but the scheduler said: " + e.message
	default:
		return dra.ReasonUnknown, "devices would suffice; the scheduler has not said anything yet"
	}
}

// isFailure reports whether the onset of a reason is counted: of all but a
// gate and binding conditions that have yet to become true, which are normal
// (conditions that fail are counted as such), and of what is not known or not
// diagnosed.
func isFailure(reason dra.PendingReason) bool {
	switch reason {
	case dra.ReasonNone, dra.ReasonUnknown, dra.ReasonGated, dra.ReasonBinding, dra.ReasonPendingDiagnosis, dra.ReasonUndetermined:
		return false
	default:
		return true
	}
}

// creationOf is what the newest event says of why the claim for one of the
// pod's references cannot be made; empty if there is none. The message begins
// with the reference's name (k8s.io/kubernetes v1.34.4 to v1.37.1,
// pkg/controller/resourceclaim); one that does not is of any of them.
func (t *troubles) creationOf(podUID, podClaim string) string {
	var last dra.Trouble
	for _, trouble := range t.creation[podUID] {
		if name, named := namedIn(trouble.Message); named && name != podClaim {
			continue
		}
		if last.Name == "" || trouble.Last.After(last.Last) || trouble.Last.Equal(last.Last) && trouble.Name > last.Name {
			last = trouble
		}
	}
	return last.Message
}

func namedIn(message string) (podClaim string, named bool) {
	for _, prefix := range []string{"PodResourceClaim ", "PodGroupResourceClaim "} {
		if rest, found := strings.CutPrefix(message, prefix); found {
			name, _, found := strings.Cut(rest, ": ")
			return name, found
		}
	}
	return "", false
}
