package page

import (
	"cmp"
	_ "embed" // for the pages
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

//go:embed cluster.html
var clusterHTML string

//go:embed cluster_objects.html
var clusterObjectsHTML string

//go:embed cluster.css
var clusterCSS string

//go:embed cluster.js
var clusterJS string

// ClusterHandlers returns what the page of a cluster consists of, by path: the page
// itself, its styles and scripts, and the JSON. Config.Node is not used.
func ClusterHandlers(config Config) (map[string]http.Handler, error) {
	parsed, err := parse([]string{clusterHTML, clusterObjectsHTML}, clusterFunctions())
	if err != nil {
		return nil, err
	}
	s := &site[*model.Cluster, ClusterView]{
		config: config, html: parsed, view: newClusterView, source: func(v *ClusterView) []Source { return v.Sources },
		known: config.Cluster, isReady: func(c *model.Cluster) bool { return c != nil }, namespaces: listClusterNamespaces, limit: limitCluster,
	}
	pages := clusterPages{&config}
	return map[string]http.Handler{
		"/":               s.page("page", pages.overview),
		"/pod":            s.page("explained-page", pages.pod),
		"/claim":          s.page("explained-page", pages.claim),
		"/page.css":       constant("text/css; charset=utf-8", pageCSS),
		"/cluster.css":    constant("text/css; charset=utf-8", clusterCSS),
		"/page.js":        constant("text/javascript; charset=utf-8", pageJS),
		"/cluster.js":     constant("text/javascript; charset=utf-8", clusterJS),
		"/api/v1/pending": s.document(pendingAnswer),
	}, nil
}

// Limits of long lists on the page; JSON and metrics have all entries.
const (
	shownPending = 100
	shownItems   = 25
)

// clusterFunctions are those that the templates call.
func clusterFunctions() template.FuncMap {
	return template.FuncMap{
		"phase":      phaseText,
		"stages":     newStages,
		"whole":      whole,
		"count":      func(v float64) string { return whole(&v) },
		"none":       func(count *float64) bool { return count != nil && *count == 0 },
		"percent":    percent,
		"bar":        newBar,
		"share":      share,
		"phaseRow":   func(at time.Time, phase ActivePhase) phaseRow { return phaseRow{phase, formatAge(at, phase.Since)} },
		"underway":   func(all []ActivePhase) shown[ActivePhase] { return showing(all, shownItems) },
		"items":      func(all []Anomaly) shown[Anomaly] { return showing(all, shownItems) },
		"clock":      clockText,
		"codes":      codes,
		"since":      formatAge,
		"stack":      newStack,
		"listed":     listed,
		"names":      namesOnly,
		"gatedItems": gatedItems,
		"anomalies":  func(at time.Time, kind AnomalyKind) anomalyRow { return anomalyRow{at, kind} },
	}
}

// pendingRow is a pending reference as the page shows it. It embeds nothing, since
// templates find embedded fields slowly.
type pendingRow struct {
	Of             PendingRef
	Key            string
	Age            string
	Because, Claim string
	Command        string // explains more; empty if no command can
	Remedy         string // in general, where there is no explanation
}

// phaseRow is a phase under way.
type phaseRow struct {
	Of  ActivePhase
	Age string
}

// newPendingRow returns a reference as a row; explain is the prefix of the commands about
// pods, empty for none.
func newPendingRow(view *ClusterView, w PendingRef, unread []Source, explain string) pendingRow {
	row := pendingRow{Of: w, Key: w.Namespace + "/" + w.Pod + "/" + w.PodClaim, Age: formatAge(view.At, w.Since), Because: w.because(unread), Claim: w.claimText()}
	if explain != "" {
		row.Command = explain + " pod " + w.Namespace + "/" + w.Pod
	}
	return row
}

// anomalyRow is a kind of oddities as of a moment.
type anomalyRow struct {
	At time.Time
	Of AnomalyKind
}

// formatAge is the time since then, for people.
func formatAge(at, then time.Time) string {
	age, ok := since(at, then)
	if !ok {
		return absent
	}
	return words.Duration(age)
}

// shown is the first entries of a list, and the number of the others.
type shown[T any] struct {
	First []T
	More  int
}

func showing[T any](all []T, most int) shown[T] {
	first := all[:min(len(all), most)]
	return shown[T]{first, len(all) - len(first)}
}

// stack is the bar of a supply: what is taken, and what cannot be had.
type stack struct{ Allocated, Unavailable, From string }

// newStack returns nil if the states are unknown or there are no devices.
func newStack(devices DeviceStates) *stack {
	total := devices.Total()
	allocated, unavailable := newBar("", share(devices.Allocated, total)), newBar("", share(devices.Unavailable, total))
	if allocated == nil || unavailable == nil {
		return nil
	}
	return &stack{Allocated: allocated.Width, Unavailable: unavailable.Width, From: allocated.Width}
}

// textPart is a part of a sentence.
type textPart struct {
	Text string
	Code bool
}

// codes splits a text at its backquotes: what is between two is code.
func codes(text string) []textPart {
	var parts []textPart
	for i, part := range strings.Split(text, "`") {
		if part != "" {
			parts = append(parts, textPart{part, i%2 == 1})
		}
	}
	return parts
}

// gatedItems returns the references of gated pods as items of a list.
func gatedItems(view ClusterView) []Anomaly {
	return each(view.Gated, func(w PendingRef) Anomaly {
		return Anomaly{Name: w.Namespace + "/" + w.Pod, Detail: w.PodClaim, Since: w.Since}
	})
}

// phaseText describes a phase.
func phaseText(phase string) string {
	return cmp.Or(map[string]string{
		"binding":           "Its devices are not ready for binding.",
		"scheduling":        "The scheduler has not bound the pod yet.",
		"preparation":       "Its volumes, its devices or its sandbox are not ready yet.",
		"start":             "Its first container has not started yet, for example because of the image.",
		"preparation_start": "Its devices, its sandbox or its first container are not ready yet.",
	}[phase], phase)
}

// PendingAnswer is the document of /api/v1/pending. docs/api.md describes it;
// its names do not change within v1.
type PendingAnswer struct {
	APIVersion string       `json:"apiVersion"`
	At         time.Time    `json:"at"`
	Unread     []string     `json:"unread,omitempty"` // unread sources without which pending claims are unknown
	Pending    []PendingRef `json:"pending"`
	Gated      []PendingRef `json:"gated"`
}

// pendingAnswer returns the pending claims of all namespaces, or of those that
// the query names, and the gated ones; the oldest first.
func pendingAnswer(r *http.Request, view ClusterView) any {
	namespace := func(w PendingRef) string { return w.Namespace }
	answer := PendingAnswer{
		APIVersion: APIVersion, At: view.At,
		Pending: selected(r, view.Pending, namespace), Gated: selected(r, view.Gated, namespace),
	}
	for _, source := range view.Unread("pods", "resourceclaims") {
		answer.Unread = append(answer.Unread, source.Name)
	}
	return answer
}
