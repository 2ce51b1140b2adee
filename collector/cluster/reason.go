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
	verdict   *dra.Verdict // nil: nobody has judged yet, or nobody can
	said      statement    // by the scheduler, of the pod
	message   string       // its words
	trouble   string       // the controller manager's words on why it could not make the claim; empty: it has none
}

// reasonOf says why a reference waits: the first that applies in the order of
// dra.PendingReasons, and one sentence with what it is told from. It depends
// on the evidence alone, so a reason changes only when the evidence does.
func reasonOf(e evidence) (dra.PendingReason, string) {
	r := &e.reference
	switch {
	case e.pod.life.Gated:
		return dra.ReasonGated, "the pod has scheduling gates"
	case r.extended == 0 && (r.claim == nil || r.claim.life == nil):
		return e.absentClaim()
	case r.vanishing():
		return r.absent(), fmt.Sprintf("resourceclaim %s is being deleted", r.claim.ref.Name)
	case r.extended == 0 && !r.claim.madeFor(e.pod):
		return r.absent(), fmt.Sprintf("resourceclaim %s was made for another pod", r.claim.ref.Name)
	case r.claim != nil && r.claim.life != nil && r.claim.life.Allocated:
		return e.allocated()
	case e.verdict != nil && e.verdict.Reason != dra.ReasonNone && e.verdict.Reason != dra.ReasonUnknown:
		return e.verdict.Reason, e.verdict.Message
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
	default:
		return dra.ReasonClaimNotCreated, fmt.Sprintf("no resourceclaim has been made from template %s yet", r.template)
	}
}

// quotaWords are in what the API server answers to who would exceed a
// ResourceQuota (k8s.io/apiserver, pkg/admission/plugin/resourcequota).
const quotaWords = "exceeded quota"

// madeFor reports whether the pod may use the claim: one that was made for a
// pod is that pod's alone, though another may have taken its name.
func (c *claimEntry) madeFor(p *podEntry) bool {
	owner := &c.life.MadeFor
	return owner.Resource != "pods" || owner.UID == p.life.UID
}

// allocated is why a reference waits whose claim has its devices.
func (e *evidence) allocated() (dra.PendingReason, string) {
	life := e.reference.claim.life
	switch {
	case life.Binding == dra.BindingWaiting:
		return dra.ReasonBinding, "allocated; the binding conditions of its devices are not all true yet"
	case life.Binding == dra.BindingFailed:
		return dra.ReasonBinding, "allocated; a binding condition of a device has failed, and the scheduler will try again"
	case e.said.speaks():
		return dra.ReasonOther, "allocated, but not for this pod yet: " + e.message
	default:
		return dra.ReasonUnknown, "allocated, but not for this pod yet"
	}
}

// unjudged goes by the scheduler's word alone. Which of a pod's claims cannot
// be allocated, and why, it does not say.
func (e *evidence) unjudged() (dra.PendingReason, string) {
	switch {
	case e.said.about(aboutClass):
		return dra.ReasonNoDeviceClass, e.said.words[aboutClass]
	case e.said.about(aboutOthers) && !e.said.aboutDRA():
		return dra.ReasonOther, e.said.words[aboutOthers]
	case e.said.speaks():
		return dra.ReasonUnknown, "the scheduler says: " + e.message
	default:
		return dra.ReasonUnknown, "the scheduler has not said anything yet"
	}
}

// unopposed is for devices that suffice, as far as they go. Where the
// scheduler says of all nodes that they do not, one of the two has yet to see
// what the other has: that is no reason but a contradiction.
func (e *evidence) unopposed() (dra.PendingReason, string) {
	switch {
	case e.said.about(aboutOthers):
		return dra.ReasonOther, e.said.words[aboutOthers]
	case e.said.speaks():
		return dra.ReasonUnknown, "devices would suffice now, but the scheduler said: " + e.message
	default:
		return dra.ReasonUnknown, "devices would suffice; the scheduler has not said anything yet"
	}
}

// isFailure reports whether the onset of a reason is counted: of all but a
// gate and binding conditions that have yet to become true, which are the
// course of things (conditions that fail are counted as such), and of what is
// not known.
func isFailure(reason dra.PendingReason) bool {
	switch reason {
	case dra.ReasonNone, dra.ReasonUnknown, dra.ReasonGated, dra.ReasonBinding:
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
