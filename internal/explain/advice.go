package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// adviser returns what would help a pending reference.
type adviser struct {
	facts  *Facts
	usages usages
}

// advise returns what would help against the reason, most useful first. It depends
// on what was counted; where that is unknown, it says where to look.
func (a adviser) advise(w cluster.PendingRef, ref *PendingRef) []string {
	devices := deviceAdvice{a.facts, ref}
	switch w.Reason {
	case dra.ReasonGated:
		return []string{fmt.Sprintf("nothing is wrong so far: whoever set the gates removes them (`kubectl get pod -n %s %s -o jsonpath='{.spec.schedulingGates}'`)", w.Pod.Namespace, w.Pod.Name)}
	case dra.ReasonClaimMissing:
		return a.claimMissing(w)
	case dra.ReasonClaimNotCreated:
		return a.claimNotCreated(w, ref)
	case dra.ReasonQuota:
		return a.quota(w)
	case dra.ReasonNoDeviceClass:
		return devices.noClass()
	case dra.ReasonNoMatchingDevice:
		return devices.noMatch()
	case dra.ReasonTainted:
		return devices.tainted()
	case dra.ReasonInsufficient:
		return devices.tooFew()
	case dra.ReasonPoolIncomplete:
		return devices.incomplete()
	case dra.ReasonFragmented:
		return devices.fragmented()
	case dra.ReasonConstraints:
		return devices.constraints()
	case dra.ReasonBinding:
		return a.binding(w)
	case dra.ReasonOther:
		return a.other(w, ref)
	case dra.ReasonUndetermined:
		return []string{
			"make the selectors of the claim cheaper: compare attributes with values, without all(), exists() or map() over lists",
			"ask for fewer devices in one claim, or give it fewer constraints: the scheduler searches as long",
			fmt.Sprintf("`kubectl describe pod -n %s %s`", w.Pod.Namespace, w.Pod.Name),
		}
	case dra.ReasonPendingDiagnosis:
		return []string{"ask again; if that does not help, with a higher --timeout"}
	default:
		return a.unknown(w)
	}
}

func (a adviser) claimMissing(w cluster.PendingRef) []string {
	name := w.Claim
	if name == "" {
		name = a.facts.Objects.podClaim(w.Pod, w.PodClaim).Claim
	}
	if name == "" {
		return []string{"create the ResourceClaim that the pod names"}
	}
	help := []string{fmt.Sprintf("create ResourceClaim %s in namespace %s", name, w.Pod.Namespace)}
	var known []string
	for ref := range a.facts.Objects.claims {
		known = append(known, ref.String())
	}
	if close := near(w.Pod.Namespace+"/"+name, known); len(close) > 0 {
		help = append(help, "or was another one meant? There is "+join(close, "and")+"; a pod can only use claims of its own namespace, and is made anew to name another one")
	}
	return help
}

// claimNotCreated looks for what stops the controller manager.
func (a adviser) claimNotCreated(w cluster.PendingRef, ref *PendingRef) []string {
	if a.facts.Objects.creationFailed(w.Message) {
		return []string{"mend what the controller manager says: " + w.Message}
	}
	_, known := a.facts.Templates[Template{w.Pod.Namespace, ref.Template}]
	if ref.Template != "" && !known && !a.facts.Gaps.lack(sourceTemplates) {
		help := []string{fmt.Sprintf("create ResourceClaimTemplate %s in namespace %s", ref.Template, w.Pod.Namespace)}
		var names []string
		for template := range a.facts.Templates {
			names = append(names, template.Namespace+"/"+template.Name)
		}
		if close := near(w.Pod.Namespace+"/"+ref.Template, names); len(close) > 0 {
			help = append(help, "or was another one meant? There is "+join(close, "and"))
		}
		return help
	}
	return []string{"the controller manager makes the claim within a second: if it does not, see whether kube-controller-manager runs, and its log"}
}

func (a adviser) quota(w cluster.PendingRef) []string {
	help := []string{fmt.Sprintf("raise the quota, or free some of it: `kubectl describe resourcequota -n %s`", w.Pod.Namespace)}
	var unused []string
	for ref, claim := range a.facts.Objects.claims {
		if ref.Namespace == w.Pod.Namespace && claim.Deleted.IsZero() && a.usages.of(claim).idle() {
			unused = append(unused, ref.Name)
		}
	}
	slices.Sort(unused)
	if len(unused) > 0 {
		help = append(help, "no pod uses "+verb(len(unused), "claim ", "claims ")+some(unused, 5)+": to delete "+verb(len(unused), "it", "them")+" may be enough")
	}
	return help
}

func (a adviser) binding(w cluster.PendingRef) []string {
	claim, known := a.facts.Objects.claims[dra.ClaimRef{Namespace: w.Pod.Namespace, Name: w.Claim}]
	if !known {
		return []string{"look at the controller of the devices' driver, which sets the conditions"}
	}
	var drivers []string
	for _, result := range claim.Results {
		if !slices.Contains(drivers, result.Device.Driver) {
			drivers = append(drivers, result.Device.Driver)
		}
	}
	return []string{
		fmt.Sprintf("a controller of %s sets the conditions: see whether it runs, and its log", strings.Join(drivers, ", ")),
		fmt.Sprintf("`kubectl get resourceclaim -n %s %s -o yaml`: status.allocation names the conditions, status.devices has those that are set", w.Pod.Namespace, w.Claim),
		"the scheduler gives up after its binding timeout, ten minutes by default, and allocates anew",
	}
}

func (a adviser) other(w cluster.PendingRef, ref *PendingRef) []string {
	help := []string{fmt.Sprintf("`kubectl describe pod -n %s %s`: what the scheduler says is about something else than devices", w.Pod.Namespace, w.Pod.Name)}
	if ref.Fits != "" {
		help = append(help, fmt.Sprintf("the devices of node %s would do: see what keeps the pod away from it", ref.Fits))
	}
	return help
}

func (a adviser) unknown(w cluster.PendingRef) []string {
	var help []string
	if denied := a.facts.Gaps.toList(); denied != "" {
		help = append(help, "ask again as somebody who may list "+denied)
	}
	if pod, known := a.facts.Objects.pods[w.Pod]; known && pod.Unschedulable == "" {
		help = append(help, "the scheduler has not said anything of the pod: ask again in a moment; if that lasts, see whether the scheduler runs")
	}
	return append(help, fmt.Sprintf("`kubectl describe pod -n %s %s`", w.Pod.Namespace, w.Pod.Name))
}
