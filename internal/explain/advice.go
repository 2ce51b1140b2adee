package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// adviser returns what would help a pending reference.
type adviser struct{ facts *clusterread.Facts }

// advise returns what would help against the reason, most useful first. It depends
// on what was counted; where that is unknown, it says where to look.
func (a adviser) advise(w cluster.PendingRef, ref *PendingRef) []string {
	devices := deviceAdvice{a.facts, ref}
	describe := fmt.Sprintf("`kubectl describe pod -n %s %s`", w.Pod.Namespace, w.Pod.Name)
	texts := func(all ...string) func() []string { return func() []string { return all } }
	advice, ok := map[dra.PendingReason]func() []string{
		dra.ReasonQueueQuota:       func() []string { return a.queue(w) },
		dra.ReasonComputeDomain:    func() []string { return a.domain(w, ref) },
		dra.ReasonGated:            texts(fmt.Sprintf("the owner of the gates removes them: `kubectl get pod -n %s %s -o jsonpath='{.spec.schedulingGates}'`", w.Pod.Namespace, w.Pod.Name)),
		dra.ReasonClaimMissing:     func() []string { return a.claimMissing(w) },
		dra.ReasonClaimNotCreated:  func() []string { return a.claimNotCreated(w, ref) },
		dra.ReasonClaimUnusable:    func() []string { return a.claimUnusable(w, ref) },
		dra.ReasonQuota:            func() []string { return a.quota(w) },
		dra.ReasonNoDeviceClass:    devices.noClass,
		dra.ReasonNoMatchingDevice: devices.noMatch,
		dra.ReasonTainted:          devices.tainted,
		dra.ReasonInsufficient:     devices.tooFew,
		dra.ReasonPoolIncomplete:   devices.incomplete,
		dra.ReasonFragmented:       devices.fragmented,
		dra.ReasonConstraints:      devices.constraints,
		dra.ReasonBinding:          func() []string { return a.binding(w) },
		dra.ReasonGangQuorum:       func() []string { return a.gang(w) },
		dra.ReasonOther:            func() []string { return a.other(w, ref) },
		dra.ReasonUndetermined: texts("simplify the selectors of the claim: without all(), exists() or map() over lists",
			"request fewer devices in one claim, or use fewer constraints: the scheduler searches as long", describe),
		dra.ReasonPendingDiagnosis: texts("look again in a few seconds; if that does not help, raise --timeout of the command"),
	}[w.Reason]
	if !ok {
		return a.unknown(w)
	}
	return advice()
}

// queue names the objects of Kueue that decide.
func (a adviser) queue(w cluster.PendingRef) []string {
	held := kueueWorkload(a.facts.Objects, w.Pod)
	if held == nil {
		return []string{"`kubectl get workloads.kueue.x-k8s.io -n " + w.Pod.Namespace + "` shows what waits in its queues"}
	}
	queued := Queued{Workload: held.Ref.Name, Queue: held.Workload.Queue}
	return queued.help(held.Ref.Namespace)
}

// domain looks for what stops the controller of a ComputeDomain.
func (a adviser) domain(w cluster.PendingRef, ref *PendingRef) []string {
	help := []string{"check that the controller of NVIDIA's DRA driver for ComputeDomains runs, which makes the template within a second, and its log"}
	if domain := computeDomain(a.facts.Objects, w.Pod.Namespace, ref.Template); domain != nil {
		help = append(help, fmt.Sprintf("`kubectl describe computedomain -n %s %s`", domain.Ref.Namespace, domain.Ref.Name))
	}
	return help
}

func (a adviser) claimMissing(w cluster.PendingRef) []string {
	name := w.Claim
	if name == "" {
		name = a.facts.Objects.PodClaim(w.Pod, w.PodClaim).Claim
	}
	if name == "" {
		return []string{"create the ResourceClaim that the pod names"}
	}
	help := []string{fmt.Sprintf("create ResourceClaim %s in namespace %s", name, w.Pod.Namespace)}
	var known []string
	for ref := range a.facts.Objects.Claims {
		known = append(known, ref.String())
	}
	if close := near(w.Pod.Namespace+"/"+name, known); len(close) > 0 {
		help = append(help, "or recreate the pod with another name; similar names: "+words.Join(close, "and"))
	}
	return help
}

// claimNotCreated looks for what stops the controller manager.
func (a adviser) claimNotCreated(w cluster.PendingRef, ref *PendingRef) []string {
	if a.creationFailed(w.Message) {
		return []string{"correct what the controller manager reports; it tries again by itself"}
	}
	_, ok := a.facts.Templates[clusterread.Template{Namespace: w.Pod.Namespace, Name: ref.Template}]
	if ref.Template != "" && !ok && !a.facts.Gaps.Lack(clusterread.SourceTemplates) {
		help := []string{fmt.Sprintf("create ResourceClaimTemplate %s in namespace %s", ref.Template, w.Pod.Namespace)}
		var names []string
		for template := range a.facts.Templates {
			names = append(names, template.Namespace+"/"+template.Name)
		}
		if close := near(w.Pod.Namespace+"/"+ref.Template, names); len(close) > 0 {
			help = append(help, "similar names: "+words.Join(close, "and"))
		}
		return help
	}
	return []string{"check that kube-controller-manager runs, which creates the claim within a second, and its log"}
}

// claimUnusable looks for what keeps the claim, which must be gone before another
// one can take its place.
func (a adviser) claimUnusable(w cluster.PendingRef, ref *PendingRef) []string {
	next := "create it again"
	if ref.Template != "" {
		next = "the controller manager creates another one from the template"
	}
	claim, ok := a.facts.Objects.Claims[dra.ClaimRef{Namespace: w.Pod.Namespace, Name: w.Claim}]
	if ok && claim.Deleted.IsZero() {
		return []string{fmt.Sprintf("delete the pod, or ResourceClaim %s if no pod uses it; then %s", w.Claim, next)}
	}
	return []string{
		fmt.Sprintf("wait until ResourceClaim %s is deleted; then %s", w.Claim, next),
		fmt.Sprintf("`dra-exporter explain claim %s/%s` shows what prevents the deletion", w.Pod.Namespace, w.Claim),
	}
}

func (a adviser) quota(w cluster.PendingRef) []string {
	help := []string{fmt.Sprintf("raise the quota, or free some of it: `kubectl describe resourcequota -n %s`", w.Pod.Namespace)}
	var unused []string
	for ref, claim := range a.facts.Objects.Claims {
		if ref.Namespace == w.Pod.Namespace && claim.Deleted.IsZero() && usages(a).of(claim).idle() {
			unused = append(unused, ref.Name)
		}
	}
	slices.Sort(unused)
	if len(unused) > 0 {
		help = append(help, "no pod uses "+words.Plural(len(unused), "claim ", "claims ")+words.List(unused, 5)+": deleting "+words.Plural(len(unused), "it", "them")+" may be enough")
	}
	return help
}

func (a adviser) binding(w cluster.PendingRef) []string {
	claim, ok := a.facts.Objects.Claims[dra.ClaimRef{Namespace: w.Pod.Namespace, Name: w.Claim}]
	if !ok {
		return []string{"check the controller of the devices' driver, which sets the conditions"}
	}
	var drivers []string
	for _, result := range claim.Results {
		if !slices.Contains(drivers, result.Device.Driver) {
			drivers = append(drivers, result.Device.Driver)
		}
	}
	return []string{
		fmt.Sprintf("check the controller of %s, which sets the conditions, and its log", strings.Join(drivers, ", ")),
		fmt.Sprintf("`kubectl get resourceclaim -n %s %s -o yaml` has the conditions in status", w.Pod.Namespace, w.Claim),
		"after its binding timeout, ten minutes by default, the scheduler allocates again",
	}
}

// gang names the pods of the gang that wait for another reason: they decide.
func (a adviser) gang(w cluster.PendingRef) []string {
	pod, ok := a.facts.Objects.Pods[w.Pod]
	if !ok {
		return a.unknown(w)
	}
	var help []string
	for _, ref := range a.facts.Pending {
		member, ok := a.facts.Objects.Pods[ref.Pod]
		if ok && member.Ref.Namespace == pod.Ref.Namespace && member.Group == pod.Group && ref.Reason != dra.ReasonGangQuorum && len(help) < maxGangAdvice {
			help = append(help, fmt.Sprintf("`dra-exporter explain pod %s`: it is pending because of %s", ref.Pod, ref.Reason))
		}
	}
	if len(help) > 0 {
		return help
	}
	group, minimum := "podgroup -n "+pod.Ref.Namespace+" "+pod.Group, "minCount"
	if strings.Contains(pod.Group, "/") { // of Volcano or KAI
		group, minimum = "-n "+pod.Ref.Namespace+" "+pod.Group, "minMember"
	}
	return []string{
		"free devices for all pods of the gang at once, or lower its " + minimum,
		fmt.Sprintf("`kubectl get %s -o yaml`: the scheduler's message is in its conditions", group),
	}
}

// maxGangAdvice bounds the pods of a gang that are named.
const maxGangAdvice = 3

func (a adviser) other(w cluster.PendingRef, ref *PendingRef) []string {
	help := []string{fmt.Sprintf("`kubectl describe pod -n %s %s`: the scheduler's message is not about devices", w.Pod.Namespace, w.Pod.Name)}
	if ref.Fits != "" {
		help = append(help, fmt.Sprintf("node %s has free matching devices: find what else prevents scheduling there", ref.Fits))
	}
	return help
}

func (a adviser) unknown(w cluster.PendingRef) []string {
	var help []string
	if denied := a.facts.Gaps.Denied(); denied != "" {
		help = append(help, "run explain with permission to list "+denied)
	}
	if pod, ok := a.facts.Objects.Pods[w.Pod]; ok && pod.Unschedulable == "" {
		help = append(help, "the scheduler has not reported on the pod: if that lasts, check that the scheduler runs")
	}
	return append(help, fmt.Sprintf("`kubectl describe pod -n %s %s`", w.Pod.Namespace, w.Pod.Name))
}

// creationFailed reports whether an event has the message about a claim that cannot
// be created.
func (a adviser) creationFailed(message string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(a.facts.Objects.Warnings)), func(warning *dra.Warning) bool {
		return warning.Kind == dra.WarningCreation && warning.Message == message
	})
}
