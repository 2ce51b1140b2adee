package page

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// clusterPages returns the contents of the pages of a cluster.
type clusterPages struct {
	links    Links
	explain  string
	evidence func(namespace, pod string) map[string]PendingEvidence
}

// clusterPage is what all of them show.
type clusterPage struct {
	ClusterView
	*frame
	ClusterLinks []link
}

func (p clusterPages) common(view ClusterView, around *frame) clusterPage {
	around.DocumentTitle = "Cluster · dra-exporter"
	return clusterPage{view, around, p.links.dashboard("Dashboard", "dra-allocation")}
}

func (p clusterPages) overview(_ *http.Request, view ClusterView, around *frame) any {
	around.Groupings = []grouping{{"", "none"}, {"namespace", "namespace"}, {"class", "device class"}, {"reason", "reason"}}
	common := p.common(view, around)
	if pending := view.Count().Pending; pending > 0 {
		around.DocumentTitle = fmt.Sprintf("(%d pending) %s", pending, around.DocumentTitle)
	}
	return struct {
		clusterPage
		Overview clusterOverview
	}{common, newClusterOverview(view, around.Selection, p.explain)}
}

// clusterOverview is the lists of a cluster that a reader has selected.
type clusterOverview struct {
	Pending  []group[pendingRow]
	Selected int // pending references
	More     int // of those that are not shown
	Long     []ActivePhase
}

func newClusterOverview(view ClusterView, s selection, explain string) clusterOverview {
	matches := s.matcher()
	var o clusterOverview
	var selected []PendingRef
	for _, w := range view.Pending {
		if matches(w.Namespace+"/"+w.Pod, w.PodClaim, w.Claim, w.Class, w.Reason) {
			selected = append(selected, w)
		}
	}
	for _, phase := range view.Long() {
		if matches(phase.Namespace+"/"+phase.Pod, phase.Claim, phase.Phase) {
			o.Long = append(o.Long, phase)
		}
	}
	unread := view.Unread("resourceslices", "deviceclasses")
	o.Selected = len(selected)
	first := showing(selected, shownPending)
	o.More = first.More
	rows := make([]pendingRow, len(first.First))
	for i, w := range first.First {
		rows[i] = newPendingRow(&view, w, unread, explain)
	}
	o.Pending = grouped(s.Group, rows, pendingGroups()[s.Group])
	return o
}

// pendingGroups maps what pending references can be grouped by to the title of the group.
func pendingGroups() map[string]func(pendingRow) string {
	or := func(text, unknown string) string {
		if text == "" {
			return unknown
		}
		return text
	}
	return map[string]func(pendingRow) string{
		"namespace": func(row pendingRow) string { return row.Of.Namespace },
		"class":     func(row pendingRow) string { return or(row.Of.Class, "unknown class") },
		"reason":    func(row pendingRow) string { return or(row.Of.Reason, "not diagnosed") },
	}
}

// pod returns the page of the pod that the query names: why its claims are pending, or
// what it waits for since.
func (p clusterPages) pod(r *http.Request, view ClusterView, around *frame) any {
	namespace, name := r.URL.Query().Get("namespace"), r.URL.Query().Get("name")
	content := struct {
		clusterPage
		Title       string
		Rows        []pendingRow
		PodPhases   []phaseRow
		Command     string
		ObjectLinks []link
	}{clusterPage: p.common(view, around), Title: namespace + "/" + name}
	around.DocumentTitle = content.Title + " · " + around.DocumentTitle
	alerts := map[string]bool{}
	addRunbook := func(alert string) {
		if !alerts[alert] {
			alerts[alert] = true
			content.ObjectLinks = append(content.ObjectLinks, p.links.runbook(alert)...)
		}
	}
	unread := view.Unread("resourceslices", "deviceclasses")
	known := map[string]PendingEvidence{}
	for _, list := range [][]PendingRef{view.Pending, view.Gated} {
		for _, w := range list {
			if w.Namespace != namespace || w.Pod != name {
				continue
			}
			if len(known) == 0 && p.evidence != nil {
				known = p.evidence(namespace, name)
			}
			row := newPendingRow(&view, w, unread, "")
			row.Evidence = &pendingEvidence{known[w.PodClaim].Message, remedyText(w.Reason), known[w.PodClaim].Node}
			content.Rows = append(content.Rows, row)
			addRunbook(pendingAlert(w.Reason))
		}
	}
	for _, phase := range view.Phases {
		if phase.Namespace == namespace && phase.Pod == name {
			content.PodPhases = append(content.PodPhases, phaseRow{phase, ageOf(view.At, phase.Since)})
			addRunbook(phaseAlert(phase.Phase))
		}
	}
	if len(content.Rows) == 0 && len(content.PodPhases) == 0 {
		text := "It has no pending claim, and no claim that is being prepared. It runs, has ended, uses no claim, or its name is different."
		if unread := view.Unread("pods", "resourceclaims"); len(unread) > 0 {
			text = "Which claims are pending is not known: " + listed(unread) + "."
		}
		around.Missing = &absence{"No pending claims known of pod " + namespace + "/" + name, text}
		return content
	}
	if p.explain != "" {
		content.Command = p.explain + " pod " + namespace + "/" + name
	}
	content.ObjectLinks = append(content.ObjectLinks, p.links.dashboard("Dashboard of allocation", "dra-allocation", "namespace", namespace)...)
	return content
}

// remedyText says what to do about a reason, in general, as a sentence.
func remedyText(reason string) string {
	remedy := dra.PendingReason(reason).Info().Remedy
	if remedy == "" {
		return ""
	}
	return strings.ToUpper(remedy[:1]) + remedy[1:] + "."
}
