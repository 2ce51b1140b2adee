package explain

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Text writes the report for a person: 100 columns wide, in plain text, or
// with a few bold lines where the terminal has them.
func (r *Report) Text(styled bool) string {
	p := &printer{styled: styled}
	style := styleBold
	if len(r.Waiting) > 0 {
		style = styleStrong
	}
	p.wrapped("", "", fmt.Sprintf("%s %s/%s %s", sentenceStart(r.Kind), r.Namespace, r.Name, r.Summary), style)
	for i := range r.Waiting {
		r.waitingText(p, &r.Waiting[i])
	}
	for i := range r.Claims {
		r.claimText(p, &r.Claims[i])
	}
	r.podsText(p)
	r.gapsText(p)
	return p.text.String()
}

func sentenceStart(kind Kind) string {
	if kind == KindPod {
		return "Pod"
	}
	return kind.Object()
}

// waitingText tells of one reference that is not satisfied. A claim's report has the claim's
// name on top, so that only who waits is new.
func (r *Report) waitingText(p *printer, w *Waiting) {
	title := capital(w.status()) + ": " + w.Reason
	if r.Kind == KindPod {
		title = capital(w.where()) + ": " + w.Reason
	}
	p.heading(title)
	if w.Message != "" {
		p.paragraph(2, w.Message)
	} else {
		p.paragraph(2, w.Meaning)
	}
	switch {
	case r.Kind == KindClaim:
		p.paragraph(2, pods(w.Pods)+": "+w.status()+" "+since(w.Since, r.At))
	case len(r.Waiting) > 1:
		p.paragraph(2, w.status()+" "+since(w.Since, r.At))
	}
	helpText(p, w.Help)
	specText(p, w.Asked)
	funnelText(p, w)
	brokenText(p, w.Broken)
	removedText(p, w.Removed)
	r.holdersText(p, w)
	nodesText(p, w)
}

func specText(p *printer, spec *Spec) {
	if spec == nil || len(spec.Requests) == 0 {
		return
	}
	section(p, "Asked for")
	for _, request := range spec.Requests {
		if len(request.FirstAvailable) == 0 {
			requestText(p, 4, request)
			continue
		}
		p.paragraph(4, request.Name+": the first of these that can be had")
		for _, alternative := range request.FirstAvailable {
			requestText(p, 6, alternative)
		}
	}
	for _, constraint := range spec.Constraints {
		p.paragraph(4, strings.TrimPrefix(constraint.text(), "the constraint that "))
	}
}

func requestText(p *printer, indent int, request Request) {
	amount := counted(request.Count, "device", "devices")
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
	if len(request.Tolerations) > 0 {
		p.item(indent+2, "tolerates", strings.Join(request.Tolerations, ", "))
	}
}

// funnelText is the table of stages.
func funnelText(p *printer, w *Waiting) {
	if len(w.Funnel) == 0 {
		return
	}
	section(p, "Devices that each stage leaves")
	header := []string{"request", "asked"}
	for stage := range dra.Stage(dra.Stages) {
		header = append(header, strings.ReplaceAll(stage.String(), "_", " "))
	}
	rows, numbers := [][]string{header}, make([]int, 0, len(header))
	for i := 1; i < len(header); i++ {
		numbers = append(numbers, i)
	}
	for _, funnel := range w.Funnel {
		row := []string{funnel.Request, "all"}
		if funnel.Asked > 0 {
			row[1] = fmt.Sprint(funnel.Asked)
		}
		for stage := range dra.Stage(dra.Stages) {
			left, known := funnel.Left[stage.String()]
			if !known {
				row = append(row, "?")
				continue
			}
			row = append(row, fmt.Sprint(left))
		}
		rows = append(rows, row)
	}
	p.table(4, rows, numbers...)
}

func brokenText(p *printer, broken []BrokenSelector) {
	if len(broken) == 0 {
		return
	}
	section(p, "CEL expressions that cannot be asked")
	for _, selector := range broken {
		p.item(4, selector.Where+":", selector.Expression)
		if selector.Device != "" {
			p.item(6, "fails for", selector.Device)
		}
		p.paragraph(6, selector.Message)
	}
}

func removedText(p *printer, removed []Removal) {
	if len(removed) == 0 {
		return
	}
	section(p, "Taken away")
	for _, removal := range removed {
		p.wrapped(blanks(4), blanks(8), removal.text(), "")
		if len(removal.Examples) > 0 {
			p.item(6, "such as", strings.Join(removal.Examples, ", "))
		}
	}
}

// text says in one sentence what was taken away, and why.
func (r Removal) text() string {
	amount := fmt.Sprint(r.Count)
	if r.Of > 0 {
		amount += fmt.Sprintf(" of %d", r.Of)
	}
	because, be, have := r.Because, verb(r.Count, "is", "are"), verb(r.Count, "has", "have")
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

func nodesText(p *printer, w *Waiting) {
	if len(w.Nodes) > 0 {
		section(p, "Nodes that come closest")
		for _, node := range w.Nodes {
			p.item(4, node.Name+":", nodeText(node))
		}
	}
	if w.Fits != "" {
		section(p, "Devices of one node would do")
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
	if len(help) == 0 {
		return
	}
	section(p, "What would help")
	for _, advice := range help {
		p.item(4, "-", advice)
	}
}

// section is a heading within one reference.
func section(p *printer, title string) { p.wrapped("  ", "  ", title+":", styleBold) }
