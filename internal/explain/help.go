package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// help is what would help against the reason, most useful first. What it says
// rests on what was counted; where that is not known it says where to look.
func (a account) help(w Reference, told *Waiting) []string {
	switch w.Reason {
	case dra.ReasonGated:
		return []string{fmt.Sprintf("nothing is wrong so far: whoever set the gates removes them (`kubectl get pod -n %s %s -o jsonpath='{.spec.schedulingGates}'`)", w.Pod.Namespace, w.Pod.Name)}
	case dra.ReasonClaimMissing:
		return a.helpMissing(w)
	case dra.ReasonClaimNotCreated:
		return a.helpNotCreated(w, told)
	case dra.ReasonQuota:
		return a.helpQuota(w)
	case dra.ReasonNoDeviceClass:
		return a.helpNoClass(told)
	case dra.ReasonNoMatchingDevice:
		return a.helpNoMatch(told)
	case dra.ReasonTainted:
		return a.helpTainted(told)
	case dra.ReasonInsufficient:
		return a.helpFew(told)
	case dra.ReasonPoolIncomplete:
		return a.helpIncomplete()
	case dra.ReasonFragmented:
		return a.helpFragmented(told)
	case dra.ReasonConstraints:
		return a.helpConstraints(told)
	case dra.ReasonBinding:
		return a.helpBinding(w)
	case dra.ReasonOther:
		return a.helpOther(w, told)
	case dra.ReasonUndetermined:
		return helpUndetermined(w)
	case dra.ReasonPendingDiagnosis:
		return []string{"ask again; if that does not help, with a higher --timeout"}
	default:
		return a.helpUnknown(w)
	}
}

func helpUndetermined(w Reference) []string {
	return []string{
		"make the selectors of the claim cheaper: compare attributes with values, without all(), exists() or map() over lists",
		"ask for fewer devices in one claim, or give it fewer constraints: the scheduler searches as long",
		fmt.Sprintf("`kubectl describe pod -n %s %s`", w.Pod.Namespace, w.Pod.Name),
	}
}

func (a account) helpMissing(w Reference) []string {
	name := w.Claim
	if name == "" {
		name = a.reference(w).Claim
	}
	if name == "" {
		return []string{"create the ResourceClaim that the pod names"}
	}
	help := []string{fmt.Sprintf("create ResourceClaim %s in namespace %s", name, w.Pod.Namespace)}
	var known []string
	for ref := range a.facts.World.claims {
		known = append(known, ref.String())
	}
	if close := near(w.Pod.Namespace+"/"+name, known); len(close) > 0 {
		help = append(help, "or was another one meant? There is "+join(close, "and")+"; a pod can only use claims of its own namespace, and is made anew to name another one")
	}
	return help
}

// helpNotCreated looks for what keeps the controller manager.
func (a account) helpNotCreated(w Reference, told *Waiting) []string {
	if a.facts.World.tells(w.Message) {
		return []string{"mend what the controller manager says: " + w.Message}
	}
	_, known := a.facts.Templates[Template{a.namespace, told.Template}]
	if told.Template != "" && !known && !a.facts.Gaps.lack(sourceTemplates) {
		help := []string{fmt.Sprintf("create ResourceClaimTemplate %s in namespace %s", told.Template, a.namespace)}
		var names []string
		for template := range a.facts.Templates {
			names = append(names, template.Namespace+"/"+template.Name)
		}
		if close := near(a.namespace+"/"+told.Template, names); len(close) > 0 {
			help = append(help, "or was another one meant? There is "+join(close, "and"))
		}
		return help
	}
	return []string{"the controller manager makes the claim within a second: if it does not, see whether kube-controller-manager runs, and its log"}
}

func (a account) helpQuota(w Reference) []string {
	help := []string{fmt.Sprintf("raise the quota, or free some of it: `kubectl describe resourcequota -n %s`", w.Pod.Namespace)}
	var unused []string
	for ref, claim := range a.facts.World.claims {
		if ref.Namespace == w.Pod.Namespace && claim.Deleted.IsZero() && a.usage(claim).idle() {
			unused = append(unused, ref.Name)
		}
	}
	slices.Sort(unused)
	if len(unused) > 0 {
		help = append(help, "no pod uses "+verb(len(unused), "claim ", "claims ")+some(unused, 5)+": to delete "+verb(len(unused), "it", "them")+" may be enough")
	}
	return help
}

func (a account) helpNoClass(told *Waiting) []string {
	var help []string
	for _, class := range told.classNames() {
		if slices.Contains(a.facts.Classes, class) {
			continue
		}
		help = append(help, fmt.Sprintf("create DeviceClass %s, which the driver's installation usually does, or ask for a class that exists", class))
		if close := near(class, a.facts.Classes); len(close) > 0 {
			help = append(help, fmt.Sprintf("near %s there is %s", class, join(close, "and")))
		}
	}
	if len(help) == 0 {
		help = []string{"create the device class, or ask for one that exists"}
	}
	if len(a.facts.Classes) == 0 {
		help = append(help, "there is no device class at all: is a DRA driver installed?")
	} else {
		help = append(help, "classes that exist: "+some(a.facts.Classes, 8))
	}
	return append(help, told.renew())
}

// classNames are those that are asked for, each once.
func (w *Waiting) classNames() []string {
	var names []string
	add := func(class string) {
		if class != "" && !slices.Contains(names, class) {
			names = append(names, class)
		}
	}
	for _, funnel := range w.Funnel {
		add(funnel.DeviceClass)
	}
	if w.Asked != nil {
		for _, request := range w.Asked.flat() {
			add(request.DeviceClass)
		}
	}
	if w.DeviceClass != dra.DeviceClassMultiple {
		add(w.DeviceClass)
	}
	return names
}

// flat lists requests, and in place of a prioritized list its alternatives.
func (s *Spec) flat() []Request {
	var all []Request
	for _, request := range s.Requests {
		if len(request.FirstAvailable) > 0 {
			all = append(all, request.FirstAvailable...)
			continue
		}
		all = append(all, request)
	}
	return all
}

// chooses reports whether any request is a prioritized list.
func (s *Spec) chooses() bool {
	return s != nil && slices.ContainsFunc(s.Requests, func(request Request) bool { return len(request.FirstAvailable) > 0 })
}

// renew says how what is asked for can be changed: a specification is
// immutable.
func (w *Waiting) renew() string {
	switch {
	case w.ExtendedResource != "":
		return "to ask for something else, make the pod anew"
	case w.Template != "":
		return fmt.Sprintf("to ask for something else, change ResourceClaimTemplate %s and make the pod anew: claims cannot be changed", w.Template)
	default:
		return "to ask for something else, delete the claim and make it anew: claims cannot be changed"
	}
}

func (a account) helpBinding(w Reference) []string {
	claim, known := a.facts.World.claims[dra.ClaimRef{Namespace: w.Pod.Namespace, Name: w.Claim}]
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

func (a account) helpOther(w Reference, told *Waiting) []string {
	help := []string{fmt.Sprintf("`kubectl describe pod -n %s %s`: what the scheduler says is about something else than devices", w.Pod.Namespace, w.Pod.Name)}
	if told.Fits != "" {
		help = append(help, fmt.Sprintf("the devices of node %s would do: see what keeps the pod away from it", told.Fits))
	}
	return help
}

func (a account) helpUnknown(w Reference) []string {
	var help []string
	if denied := a.facts.Gaps.toList(); denied != "" {
		help = append(help, "ask again as somebody who may list "+denied)
	}
	if pod, known := a.facts.World.pods[w.Pod]; known && pod.Unschedulable == "" {
		help = append(help, "the scheduler has not said anything of the pod: ask again in a moment; if that lasts, see whether the scheduler runs")
	}
	return append(help, fmt.Sprintf("`kubectl describe pod -n %s %s`", w.Pod.Namespace, w.Pod.Name))
}
