package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Text renders the whole report for a person: 100 columns wide, in plain text or
// with a few bold lines. Brief is the answer alone.
func (r *Report) Text(styled bool) string {
	p := &printer{styled: styled}
	p.conclusion(r)
	if r.Workload != nil {
		p.heading("Workload")
		p.paragraph(2, r.Workload.Kind+" "+r.Name+" "+r.Workload.text())
		if r.Workload.Queue != "" {
			p.paragraph(2, "queue: "+r.Workload.Queue)
		}
		if queued := r.Workload.Queued; queued != nil {
			p.paragraph(2, queued.text())
			p.paragraph(2, "not admitted "+since(queued.Since, r.At))
			helpText(p, queued.help(r.Namespace))
		}
	}
	domainsText(p, r)
	for i := range r.Pending {
		pendingText(p, r, &r.Pending[i])
	}
	for i := range r.Claims {
		claimText(p, r, &r.Claims[i])
	}
	podsText(p, r)
	bugsText(p, r)
	gapsText(p, r)
	p.events(r, p.text.String())
	return p.text.String()
}

// pendingText describes one pending reference. A claim's report begins with the
// claim's name, so that only the pods are added.
func pendingText(p *printer, r *Report, w *PendingRef) {
	title := words.Capital(w.status()) + ": " + w.Reason
	if r.Kind == clusterread.KindPod {
		title = words.Capital(w.where()) + ": " + w.Reason
	}
	p.heading(title)
	p.paragraph(2, cmp.Or(w.Message, w.Meaning))
	state := w.status() + " " + since(w.Since, r.At)
	if r.Kind != clusterread.KindPod {
		state = pods(w.Pods) + ": " + state
	}
	p.paragraph(2, state)
	if w.Autoscaler != nil {
		p.paragraph(2, w.Autoscaler.text(r.At))
	}
	helpText(p, w.Help)
	specText(p, w.Asked)
	countsText(p, w)
	brokenText(p, w.Broken)
	removedText(p, w.Removed)
	holdersText(p, r, w)
	nodesText(p, w)
}

// holdersText lists the claims that hold devices, and says how many more there are.
func holdersText(p *printer, r *Report, w *PendingRef) {
	if !section(p, "Held by", len(w.Holders)) {
		return
	}
	if !w.releaseSuffices() {
		p.paragraph(4, "It is not certain that releasing all of these devices would suffice.")
	}
	for _, holder := range w.Holders {
		text := fmt.Sprintf("%s/%s (%s)", holder.Namespace, holder.Claim, holderUsers(holder))
		if holder.Since != nil {
			text += " " + since(*holder.Since, r.At)
		}
		p.paragraph(4, fmt.Sprintf("%s: %s", text, words.Count(len(holder.Devices), "device", "devices")))
		p.paragraph(6, words.List(holder.Devices, 4))
	}
	if more := w.HolderCount - len(w.Holders); more > 0 {
		p.paragraph(4, fmt.Sprintf("and %d more", more))
	}
}

// holderUsers returns the users of the devices.
func holderUsers(h Holder) string {
	var parts []string
	if h.PodsGone {
		parts = append(parts, "its pods no longer exist")
	}
	if users := h.used.text(); users != "" {
		parts = append(parts, users)
	}
	if h.used.known {
		return cmp.Or(strings.Join(parts, "; "), "no pod uses it")
	}
	return cmp.Or(strings.Join(parts, "; "), "its users are unknown")
}

// claimText describes a claim that exists, without what a pending reference has
// described already.
func claimText(p *printer, r *Report, claim *Claim) {
	described := slices.ContainsFunc(r.Pending, func(w PendingRef) bool { return w.Claim == claim.Name })
	if described && len(claim.Devices) == 0 && len(claim.Remarks) == 0 {
		return
	}
	p.heading("ResourceClaim " + claim.Name + ": " + claim.State + suffix(", on ", claim.Node))
	p.paragraph(2, claimHistory(r, claim))
	for _, remark := range claim.Remarks {
		p.paragraph(2, remark)
	}
	helpText(p, claim.Help)
	if !described {
		specText(p, claim.Asked)
	}
	devicesText(p, claim.Devices)
	if section(p, "Reserved for", len(claim.ReservedFor)) {
		p.paragraph(4, words.List(claim.ReservedFor, 12))
	}
}

// claimHistory returns the history of the claim.
func claimHistory(r *Report, claim *Claim) string {
	parts := []string{"exists " + since(claim.Created, r.At)}
	if claim.MadeFor != "" {
		made := "created for " + claim.MadeFor
		if claim.ExtendedResource {
			made += ", which requests an extended resource"
		}
		parts = append(parts, made)
	}
	if claim.AllocatedAt != nil {
		parts = append(parts, "allocated "+since(*claim.AllocatedAt, r.At))
	}
	if claim.DeletedSince != nil {
		parts = append(parts, "being deleted "+since(*claim.DeletedSince, r.At))
	}
	if len(claim.Finalizers) > 0 {
		parts = append(parts, "kept by "+strings.Join(claim.Finalizers, ", "))
	}
	return strings.Join(parts, "; ")
}

func devicesText(p *printer, devices []Device) {
	section(p, "Devices", len(devices))
	var rows [][]string
	for _, device := range devices {
		text := device.Driver + "/" + device.Pool + "/" + device.Name
		if device.AdminAccess {
			text += " (admin access)"
		}
		rows = append(rows, []string{device.Request, device.DeviceClass, text})
	}
	p.table(4, rows)
}

// podsText describes the phases of the pods.
func podsText(p *printer, r *Report) {
	for i := range r.Pods {
		pod := &r.Pods[i]
		if pod.State == StatePending && len(pod.Phases) == 0 {
			continue // described by its reference
		}
		p.heading("Pod " + pod.Name + ": " + pod.State + suffix(", on ", pod.Node))
		for _, phase := range pod.Phases {
			p.paragraph(2, phase.Phase+suffix(" of ", phase.Claim)+" in progress "+since(phase.Since, r.At))
		}
		if pod.Message != "" {
			p.paragraph(2, pod.Message)
		}
		for _, taken := range pod.Allocatable {
			p.paragraph(2, fmt.Sprintf("%s takes of the node's allocatable resources: %s", taken.Claim, taken.text()))
		}
		helpText(p, pod.Help)
	}
}

func gapsText(p *printer, r *Report) {
	if len(r.NotRead) == 0 {
		return
	}
	p.heading("Not read")
	for _, gap := range r.NotRead {
		p.item(2, "-", fmt.Sprintf("%s (%s): %s", gapName(gap), gap.Reason, gap.Consequence))
		if gap.Message != "" {
			p.paragraph(4, gap.Message)
		}
	}
}

func specText(p *printer, spec *clusterread.Spec) {
	if spec == nil || !section(p, "Requested", len(spec.Requests)) {
		return
	}
	for _, request := range spec.Requests {
		if len(request.FirstAvailable) == 0 {
			requestText(p, 4, request)
			continue
		}
		p.paragraph(4, request.Name+": the first of these that can be allocated")
		for _, alternative := range request.FirstAvailable {
			requestText(p, 6, alternative)
		}
	}
	for _, constraint := range spec.Constraints {
		p.paragraph(4, strings.TrimPrefix(constraintText(constraint), "the constraint that "))
	}
}

func requestText(p *printer, indent int, request clusterread.Request) {
	amount := words.Count(request.Count, "device", "devices")
	if request.All {
		amount = "all matching devices of a node"
	}
	text := fmt.Sprintf("%s: %s of class %s", request.Name, amount, request.DeviceClass)
	if request.AdminAccess {
		text += ", with admin access"
	}
	p.paragraph(indent, text)
	for _, selector := range request.Selectors {
		p.item(indent+2, "selected by", selector)
	}
	for _, quantity := range sortedPairs(request.Capacity) {
		p.item(indent+2, "with at least", quantity)
	}
	for _, name := range slices.Sorted(maps.Keys(request.Derived)) {
		p.item(indent+2, "derives", name+" = "+request.Derived[name])
	}
	if len(request.Tolerations) > 0 {
		p.item(indent+2, "tolerates", strings.Join(request.Tolerations, ", "))
	}
}

// countsText is the table of stages.
func countsText(p *printer, w *PendingRef) {
	if !section(p, "Devices after each stage", len(w.Counts)) {
		return
	}
	header := []string{"request", "asked"}
	for stage := range dra.Stage(dra.Stages) {
		header = append(header, strings.ReplaceAll(stage.String(), "_", " "))
	}
	rows, numbers := [][]string{header}, make([]int, 0, len(header))
	for i := 1; i < len(header); i++ {
		numbers = append(numbers, i)
	}
	for _, counts := range w.Counts {
		row := []string{counts.Request, "all"}
		if counts.Asked > 0 {
			row[1] = fmt.Sprint(counts.Asked)
		}
		for stage := range dra.Stage(dra.Stages) {
			cell := "?"
			if left, ok := counts.Left[stage.String()]; ok {
				cell = fmt.Sprint(left)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	p.table(4, rows, numbers...)
}

func brokenText(p *printer, broken []BrokenSelector) {
	section(p, "CEL expressions that fail", len(broken))
	for _, selector := range broken {
		p.item(4, selector.Where+":", selector.Expression)
		if selector.Device != "" {
			p.item(6, "fails for", selector.Device)
		}
		p.paragraph(6, selector.Message)
	}
}

func removedText(p *printer, removed []Removal) {
	section(p, "Removed", len(removed))
	for _, removal := range removed {
		p.wrapped(blanks(4), blanks(8), removalText(removal), "")
		if len(removal.Examples) > 0 {
			p.item(6, "such as", strings.Join(removal.Examples, ", "))
		}
		if removal.Eviction != "" {
			p.item(6, "eviction by the rule:", removal.Eviction)
		}
	}
}

// removalText returns in one sentence how many devices a stage removed, and
// why.
func removalText(r Removal) string {
	amount := fmt.Sprint(r.Count)
	if r.Of > 0 {
		amount += fmt.Sprintf(" of %d", r.Of)
	}
	because, be, have := r.Because, words.Plural(r.Count, "is", "are"), words.Plural(r.Count, "has", "have")
	switch r.Stage {
	case dra.StageClass.String():
		return fmt.Sprintf("%s: %s %s not in %s", r.Request, amount, be, cmp.Or(because, "the class"))
	case dra.StageSelectors.String():
		return fmt.Sprintf("%s: %s %s not selected by %s", r.Request, amount, be, cmp.Or(because, "the request"))
	case dra.StageUntainted.String():
		return fmt.Sprintf("%s: %s %s %s, which is not tolerated", r.Request, amount, have, cmp.Or(because, "a taint"))
	default:
		return fmt.Sprintf("%s: %s cannot be allocated now: %s", r.Request, amount, cmp.Or(because, "in use"))
	}
}

func nodesText(p *printer, w *PendingRef) {
	section(p, "Best nodes", len(w.Nodes))
	for _, node := range w.Nodes {
		p.item(4, node.Name+":", nodeText(node))
	}
	if section(p, "Node with matching devices", len(w.Fits)) {
		p.paragraph(4, w.Fits)
	}
}

func nodeText(node Node) string {
	text := ""
	if free := sortedPairs(node.Free); len(free) > 0 {
		text = "free for " + strings.Join(free, ", ")
	}
	if text != "" && node.Message != "" {
		text += "; "
	}
	return text + node.Message
}

func helpText(p *printer, help []string) {
	section(p, "Remedies", len(help))
	for _, advice := range help {
		p.item(4, "-", advice)
	}
}

// section writes a heading within one reference, if it has entries, and reports whether
// it has.
func section(p *printer, title string, entries int) bool {
	if entries > 0 {
		p.wrapped("  ", "  ", title+":", styleBold)
	}
	return entries > 0
}

// constraintText describes what a constraint demands.
func constraintText(c clusterread.Constraint) string {
	subject := "the devices of all requests"
	if len(c.Requests) > 0 {
		subject = "the devices of " + words.Join(c.Requests, "and")
	}
	if c.MatchAttribute != "" {
		return fmt.Sprintf("the constraint that %s have the same %s", subject, c.MatchAttribute)
	}
	return fmt.Sprintf("the constraint that %s each have a different %s", subject, c.DistinctAttribute)
}
