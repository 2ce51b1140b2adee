package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// The most lines of each part of a brief report.
const (
	mostEvidence = 5
	mostRemedies = 3
	mostEvents   = 2
)

// briefLine is a fact with its label. It is cut after so many lines; 0 is one.
type briefLine struct {
	label, text string
	lines       int
}

// Brief renders the answer for a person: a conclusion of one line, at most five lines
// of evidence, at most three lines of what would help, and the last events if they
// say anything else. Text has the rest.
func (r *Report) Brief(styled bool) string {
	p := &printer{styled: styled}
	p.conclusion(r)
	shown := briefEvidence(p, r.evidence())
	left := p.remedies(r.remedies())
	bugsText(p, r)
	p.events(r, shown)
	if r.main() != nil || left > 0 {
		text := "-v adds the rest of the report"
		if left > 0 {
			text += ", with " + words.Count(left, "more remedy", "more remedies")
		}
		p.text.WriteString("\n" + text + "\n")
	}
	return p.text.String()
}

// conclusion writes the answer in one line, however long names are.
func (p *printer) conclusion(r *Report) {
	style := styleBold
	if len(r.Pending) > 0 {
		style = styleStrong
	}
	p.line(strings.Join(splitWords(terminal.Printable(r.conclusion())), " "), style)
}

// briefEvidence writes as many facts as there is room for. The last one is written
// in any case. It returns what it wrote.
func briefEvidence(p *printer, all []briefLine) (shown string) {
	if len(all) == 0 {
		return ""
	}
	p.text.WriteString("\n")
	width := 0
	for _, fact := range all {
		width = max(width, len(fact.label))
	}
	began, room := p.text.Len(), mostEvidence
	for i, fact := range all {
		last := i == len(all)-1
		most := min(max(fact.lines, 1), room)
		if !last {
			most = min(most, room-1)
		}
		if most <= 0 {
			continue
		}
		first := "  " + fact.label + blanks(width-len(fact.label)) + "  "
		room -= p.cut(first, blanks(len(first)), fact.text, most)
	}
	return p.text.String()[began:]
}

// remedies writes what would help, as far as there is room, and returns how much is
// left out.
func (p *printer) remedies(help []string) (left int) {
	if len(help) == 0 {
		return 0
	}
	p.heading("Remedies:")
	room := mostRemedies
	for i, advice := range help {
		lines := broken("  - ", blanks(4), advice)
		if i > 0 && len(lines) > room {
			left++
			continue
		}
		room -= p.cut("  - ", blanks(4), advice, mostRemedies)
	}
	return left
}

// events writes the newest events that say something else than what is shown.
func (p *printer) events(r *Report, shown string) {
	lines := r.newEvents(shown)
	if len(lines) == 0 {
		return
	}
	p.heading("Events:")
	for _, line := range lines {
		p.cut("  - ", blanks(4), line, 2)
	}
}

// newEvents returns the newest events that say something else than what is shown.
func (r *Report) newEvents(shown string) []string {
	shown = strings.Join(strings.Fields(shown), " ")
	var lines []string
	for _, event := range r.events {
		message := strings.Join(splitWords(terminal.Printable(event.message)), " ")
		if strings.Contains(shown, message) || len(lines) == mostEvents {
			continue
		}
		lines = append(lines, fmt.Sprintf("%s, %s, last %s ago: %s", event.from, words.Count(event.count, "time", "times"), words.Age(r.At.Sub(event.last)), message))
	}
	return lines
}

// Answer is what Brief renders, whole and without layout: names may have any
// characters.
type Answer struct {
	Conclusion string
	Evidence   []words.Fact // the most important first
	Remedies   []string     // the most useful first; commands are between backquotes
	Events     []string     // that say something else
}

// Answer returns the answer for a reader who has more room than a terminal.
func (r *Report) Answer() Answer {
	answer := Answer{Conclusion: r.conclusion(), Remedies: r.remedies()}
	var shown strings.Builder
	for _, fact := range r.evidence() {
		answer.Evidence = append(answer.Evidence, words.Fact{Label: fact.label, Text: fact.text})
		shown.WriteString(fact.text + "\n")
	}
	for _, bug := range r.Bugs {
		answer.Evidence = append(answer.Evidence, words.Fact{Label: "known bug", Text: bug.Text + " " + bug.Link})
		answer.Remedies = append(answer.Remedies, bug.Remedy)
	}
	answer.Events = r.newEvents(shown.String())
	return answer
}

// remedies returns what would help the main pending reference, else the claims and
// the pods.
func (r *Report) remedies() []string {
	var all []string
	add := func(help []string) {
		for _, advice := range help {
			if advice != "" && !slices.Contains(all, advice) {
				all = append(all, advice)
			}
		}
	}
	main := r.main()
	if main != nil {
		add(main.Help)
	} else if r.Workload != nil && r.Workload.Queued != nil {
		add(r.Workload.Queued.help(r.Namespace))
	}
	for i := range r.Claims {
		if main == nil || r.Claims[i].Name == main.Claim {
			add(r.Claims[i].Help)
		}
	}
	if main == nil {
		for i := range r.Pods {
			add(r.Pods[i].Help)
		}
	}
	return all
}

// evidence returns the facts on which the conclusion rests, the most important first.
func (r *Report) evidence() []briefLine {
	var all []briefLine
	main := r.main()
	if r.Workload != nil && main != nil {
		all = append(all, briefLine{"pods", strings.TrimPrefix(r.short, "has "), 1})
	}
	switch {
	case main != nil:
		all = append(all, r.pendingEvidence(main)...)
	case r.Workload != nil:
		all = append(all, r.nodesFact()...)
		if r.Workload.Queue != "" {
			all = append(all, briefLine{"queue", r.Workload.Queue, 1})
		}
		if r.Workload.Queued != nil {
			all = append(all, briefLine{"message", r.Workload.Queued.Message, 3})
		}
	default:
		all = append(all, r.stateEvidence()...)
	}
	for i := range r.Domains {
		if domain := &r.Domains[i]; !domain.Ready {
			all = append(all, briefLine{"domain", "ComputeDomain " + domain.Name + ", " + domain.text(), 2})
		}
	}
	if len(r.NotRead) > 0 {
		all = append(all, briefLine{"not read", strings.Join(words.Names(r.NotRead, gapName), ", "), 2})
	}
	return all
}

// pendingEvidence returns why a reference is pending, and which others are.
func (r *Report) pendingEvidence(main *PendingRef) []briefLine {
	all := []briefLine{{"reason", main.Reason + ", " + r.concerned(main), 1}}
	all = append(all, main.facts()...)
	if main.Autoscaler != nil {
		all = append(all, briefLine{"autoscaler", main.Autoscaler.text(r.At), 2})
	}
	for i := range r.Claims {
		if claim := &r.Claims[i]; claim.Name == main.Claim {
			if claim.AllocatedAt != nil {
				all = append(all, briefLine{"claim", "allocated " + sinceShort(*claim.AllocatedAt, r.At) + deviceList(claim), 1})
			}
			for _, remark := range claim.Remarks {
				all = append(all, briefLine{"claim", remark, 1})
			}
		}
	}
	var remarks []string
	for i := range r.Pending {
		if other := &r.Pending[i]; other != main {
			remarks = append(remarks, r.concerned(other)+": "+other.Reason)
		}
	}
	if len(remarks) > 0 {
		all = append(all, briefLine{"also", strings.Join(remarks, "; "), 1})
	}
	return all
}

// concerned names what a reference is of, beside the subject: the claim of a pod, or the
// pods of a claim or a workload.
func (r *Report) concerned(ref *PendingRef) string {
	if r.Kind == clusterread.KindPod {
		return ref.where()
	}
	return pods(ref.Pods)
}

// facts returns what the diagnosis has found for the reference.
func (r *PendingRef) facts() []briefLine {
	if len(r.Broken) > 0 {
		return r.brokenFacts()
	}
	all, decisive := r.failures()
	switch {
	case decisive == nil || r.Reason == string(dra.ReasonNoDeviceClass):
		return r.uncountedFacts()
	case len(all) > 1:
		return r.requestFacts(all)
	}
	counts := decisive.counts
	facts := []briefLine{
		{"asked", fmt.Sprintf("%s of class %s, by %s", r.amount(counts), counts.DeviceClass, r.requestName(counts)), 1},
		{"found", r.remaining(*decisive), 1},
	}
	if decisive.stage == dra.StageSelectors {
		for _, selector := range r.selectors(counts.Request) {
			facts = append(facts, briefLine{"selector", selector, 1})
		}
	}
	facts = append(facts, r.removedFacts(*decisive)...)
	return append(facts, r.heldFacts()...)
}

// uncountedFacts returns the evidence of a reason that is not about counts.
func (r *PendingRef) uncountedFacts() []briefLine {
	var facts []briefLine
	if r.Message != "" {
		facts = append(facts, briefLine{"message", r.Message, 3})
	}
	if r.Reason == string(dra.ReasonConstraints) && r.Asked != nil && !r.Asked.TooMany() {
		for _, constraint := range r.Asked.Constraints {
			facts = append(facts, briefLine{"asked", strings.TrimPrefix(constraintText(constraint), "the constraint that "), 1})
		}
	}
	return append(facts, r.heldFacts()...)
}

// brokenFacts returns the CEL expressions that fail.
func (r *PendingRef) brokenFacts() []briefLine {
	var facts []briefLine
	for _, broken := range r.Broken {
		message := broken.Message
		if broken.Device != "" {
			message = "for " + broken.Device + ": " + message
		}
		facts = append(facts, briefLine{"CEL", broken.Where + ": " + broken.Expression, 1}, briefLine{"error", message, 1})
	}
	return facts
}

// requestFacts returns one line for each request or alternative that fails.
func (r *PendingRef) requestFacts(all []shortRequest) []briefLine {
	var facts []briefLine
	for _, failed := range all {
		facts = append(facts, briefLine{"request", fmt.Sprintf("%s asks for %s of class %s: %s", failed.counts.Request, r.amount(failed.counts), failed.counts.DeviceClass, r.remaining(failed)), 2})
	}
	return append(facts, r.heldFacts()...)
}

// amount returns how many devices a request asks for.
func (r *PendingRef) amount(counts RequestCounts) string {
	if counts.Asked == 0 {
		return "all matching devices of a node"
	}
	return words.Count(counts.Asked, "device", "devices")
}

// requestName names a request in a sentence; that of an extended resource has the
// resource's name.
func (r *PendingRef) requestName(counts RequestCounts) string {
	if r.ExtendedResource != "" {
		return r.ExtendedResource
	}
	return "request " + counts.Request
}

// remaining lists how many devices the stages leave, up to the one that fails.
func (r *PendingRef) remaining(failed shortRequest) string {
	names := [dra.Stages]string{"published", "in the class", "selected", "untainted", "free", "on the best node"}
	if len(r.Nodes) > 0 {
		names[dra.StageBestNode] = "on " + r.Nodes[0].Name
	}
	var parts []string
	for stage := dra.StagePublished; stage <= failed.stage; stage++ {
		left, ok := failed.counts.Left[stage.String()]
		if ok {
			parts = append(parts, fmt.Sprintf("%d %s", left, names[stage]))
		}
		if ok && left == 0 {
			break
		}
	}
	return strings.Join(parts, ", ")
}

// selectors returns the expressions of a request.
func (r *PendingRef) selectors(request string) []string {
	if r.Asked == nil {
		return nil
	}
	for _, asked := range r.Asked.Flat() {
		if asked.Name == request {
			return asked.Selectors
		}
	}
	return nil
}

// removedFacts returns what the failing stage removed, except by selectors, which
// are shown themselves.
func (r *PendingRef) removedFacts(failed shortRequest) []briefLine {
	var facts []briefLine
	for _, removal := range r.Removed {
		if removal.Request != failed.counts.Request || removal.Stage != failed.stage.String() || failed.stage < dra.StageUntainted {
			continue
		}
		text := strings.TrimPrefix(removalText(removal), removal.Request+": ")
		text = strings.TrimSuffix(text, ", which is not tolerated")
		if removal.Because == "held" && r.releaseSuffices() {
			continue // the holders are listed
		}
		if removal.Eviction != "" {
			text += "; eviction: " + removal.Eviction
		}
		facts = append(facts, briefLine{failed.stage.String(), text, 1})
	}
	return facts
}

// heldFacts lists the holders, if it would suffice that all of them released their
// devices.
func (r *PendingRef) heldFacts() []briefLine {
	if len(r.Holders) == 0 || !r.releaseSuffices() {
		return nil
	}
	const most = 3
	parts := words.Names(r.Holders[:min(len(r.Holders), most)], func(holder Holder) string {
		return fmt.Sprintf("%d by %s/%s (%s)", len(holder.Devices), holder.Namespace, holder.Claim, holderUsers(holder))
	})
	if more := r.HolderCount - len(parts); more > 0 {
		parts = append(parts, words.Count(more, "more claim", "more claims"))
	}
	return []briefLine{{"held", strings.Join(parts, ", "), 2}}
}

// stateEvidence describes claims and pods of which nothing is pending; the pods
// first if they are starting.
func (r *Report) stateEvidence() []briefLine {
	var claims, pods []briefLine
	for i := range r.Claims {
		claim := &r.Claims[i]
		var parts []string
		if r.Kind == clusterread.KindPod {
			parts = append(parts, claim.Name+": "+claim.State)
		}
		if claim.AllocatedAt != nil {
			parts = append(parts, "allocated "+sinceShort(*claim.AllocatedAt, r.At)+deviceList(claim))
		} else {
			parts = append(parts, "exists "+sinceShort(claim.Created, r.At))
		}
		claims = append(claims, briefLine{"claim", strings.Join(parts, ", "), 2})
		for _, remark := range claim.Remarks {
			claims = append(claims, briefLine{"claim", remark, 2})
		}
		if len(claim.ReservedFor) > 0 && r.Kind == clusterread.KindClaim {
			claims = append(claims, briefLine{"reserved", "for " + words.List(claim.ReservedFor, 4), 1})
		}
	}
	for i := range r.Pods {
		pod := &r.Pods[i]
		text := pod.State + suffix(" on ", pod.Node)
		if r.Kind == clusterread.KindClaim {
			text = pod.Name + ": " + text
		}
		pods = append(pods, briefLine{"pod", text, 1})
		if pod.progress != "" {
			pods = append(pods, briefLine{"phase", pod.progress, 2})
		}
	}
	if phase, _ := r.oldestPhase(); phase != nil {
		return append(pods, claims...)
	}
	return append(claims, pods...)
}

// deviceList lists the devices of an allocation.
func deviceList(claim *Claim) string {
	if len(claim.Devices) == 0 {
		return ""
	}
	names := words.Names(claim.Devices, func(device Device) string { return device.Driver + "/" + device.Pool + "/" + device.Name })
	return ": " + words.List(names, 2)
}

// nodesFact lists the nodes of the pods that are bound, with how many each has.
func (r *Report) nodesFact() []briefLine {
	nodes := make(map[string]int)
	for i := range r.Pods {
		if node := r.Pods[i].Node; node != "" {
			nodes[node]++
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	return []briefLine{{"nodes", words.List(sortedPairs(nodes), 8), 1}}
}
