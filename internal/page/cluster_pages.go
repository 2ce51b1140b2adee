package page

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// clusterPages returns the contents of the pages of a cluster.
type clusterPages struct{ config *Config }

// clusterPage is what all of them show.
type clusterPage struct {
	ClusterView
	*frame
	ClusterLinks []link
}

func (p clusterPages) common(view ClusterView, around *frame) clusterPage {
	around.DocumentTitle = "Cluster · dra-exporter"
	return clusterPage{view, around, p.config.Links.dashboard("Dashboard", "dra-allocation")}
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
	}{common, newClusterOverview(view, around.Selection, p.config.Explain)}
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
	return map[string]func(pendingRow) string{
		"namespace": func(row pendingRow) string { return row.Of.Namespace },
		"class":     func(row pendingRow) string { return cmp.Or(row.Of.Class, "unknown class") },
		"reason":    func(row pendingRow) string { return cmp.Or(row.Of.Reason, "not diagnosed") },
	}
}

// explainedPage is the page of a pod or claim: what explain says about it, and what is
// known of the pending references and the phases.
type explainedPage struct {
	clusterPage
	Kind, Title string
	Explanation *Explanation // nil: there is none, because of Failure
	Failure     string
	Rows        []pendingRow
	Phases      []phaseRow
	Command     string
	ObjectLinks []link
}

// pod returns the page of the pod that the query names: why its claims are pending, or
// what it waits for since.
func (p clusterPages) pod(r *http.Request, view ClusterView, around *frame) any {
	name := r.URL.Query().Get("name")
	return p.explained(r, view, around, "pod", func(pod, _ string) bool { return pod == name })
}

// claim returns the page of the claim that the query names, with the pods that use it.
func (p clusterPages) claim(r *http.Request, view ClusterView, around *frame) any {
	name := r.URL.Query().Get("name")
	return p.explained(r, view, around, "claim", func(_, claim string) bool { return claim == name })
}

// explained returns the page of an object; concerns reports whether a reference of a pod
// to a claim concerns it.
func (p clusterPages) explained(r *http.Request, view ClusterView, around *frame, kind string, concerns func(pod, claim string) bool) any {
	namespace, name := r.URL.Query().Get("namespace"), r.URL.Query().Get("name")
	content := &explainedPage{clusterPage: p.common(view, around), Kind: kind, Title: namespace + "/" + name}
	around.DocumentTitle = content.Title + " · " + around.DocumentTitle
	refused := p.explain(r, content, ExplainedObject{Kind: kind, Namespace: namespace, Name: name})
	runbooks := map[string]bool{}
	addRunbook := func(alert string) {
		if !runbooks[alert] {
			runbooks[alert] = true
			content.ObjectLinks = append(content.ObjectLinks, p.config.Links.runbook(alert)...)
		}
	}
	unread := view.Unread("resourceslices", "deviceclasses")
	for _, list := range [][]PendingRef{view.Pending, view.Gated} {
		for _, w := range list {
			if w.Namespace != namespace || !concerns(w.Pod, w.Claim) {
				continue
			}
			row := newPendingRow(&view, w, unread, "")
			if content.Explanation == nil {
				row.Remedy = remedyText(w.Reason)
			}
			content.Rows = append(content.Rows, row)
			addRunbook(pendingAlert(w.Reason))
		}
	}
	for _, phase := range view.Phases {
		if phase.Namespace == namespace && concerns(phase.Pod, phase.Claim) {
			content.Phases = append(content.Phases, phaseRow{phase, formatAge(view.At, phase.Since)})
			addRunbook(phaseAlert(phase.Phase))
		}
	}
	if content.Explanation == nil && len(content.Rows) == 0 && len(content.Phases) == 0 {
		around.Missing = notExplained(&view, content, refused)
		return content
	}
	if p.config.Explain != "" {
		content.Command = p.config.Explain + " " + kind + " " + namespace + "/" + name
	}
	content.ObjectLinks = append(content.ObjectLinks, p.config.Links.dashboard("Dashboard of allocation", "dra-allocation", "namespace", namespace)...)
	return content
}

// explain adds the explanation, or why there is none. It returns the text
// to show if nothing else is known of the object.
func (p clusterPages) explain(r *http.Request, content *explainedPage, object ExplainedObject) (refused string) {
	if p.config.Explanation == nil {
		return ""
	}
	namespaceOnly, allowed, err := p.config.mayExplain(r, object.Namespace)
	if err != nil || !allowed {
		return "" // what the view has is subject to the same permissions
	}
	object.NamespaceOnly = namespaceOnly
	content.Explanation, err = p.config.Explanation(r.Context(), object)
	if refusal := (*Refusal)(nil); errors.As(err, &refusal) {
		return refusal.Message
	}
	if err != nil {
		content.Failure = err.Error()
	}
	return content.Failure
}

// notExplained says why nothing is known of an object.
func notExplained(view *ClusterView, content *explainedPage, refused string) *absence {
	missing := &absence{Title: "Nothing is known about " + content.Kind + " " + content.Title}
	unread := view.Unread("pods", "resourceclaims")
	switch {
	case len(unread) > 0:
		missing.Text = "Which claims are pending is not known: " + listed(unread) + "."
	case refused != "":
		missing.Text = words.Sentence(refused)
	default:
		missing.Text = "It has no pending claim, and no claim that is being prepared. It runs, has ended, uses no claim, or its name is different."
	}
	return missing
}

// remedyText says what to do about a reason, in general, as a sentence.
func remedyText(reason string) string {
	remedy := dra.PendingReason(reason).Info().Remedy
	if remedy == "" {
		return ""
	}
	return words.Sentence(remedy)
}
