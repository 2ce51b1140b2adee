package page

import (
	_ "embed" // for the page
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

//go:embed cluster.html
var clusterHTML string

//go:embed cluster.css
var clusterCSS string

//go:embed cluster.js
var clusterJS string

// clusterSite serves the views of one Config. It is safe for concurrent use.
type clusterSite struct {
	config Config
	log    *slog.Logger
	html   *template.Template
}

// ClusterHandlers returns what the cluster's page consists of, by path: the
// page itself, its styles and scripts, and the JSON. Of the Config, Node means
// nothing.
func ClusterHandlers(config Config) (map[string]http.Handler, error) {
	parsed, err := parse(clusterHTML, clusterFunctions(config.Explain))
	if err != nil {
		return nil, err
	}
	s := &clusterSite{config: config, log: config.Log, html: parsed}
	return map[string]http.Handler{
		"/":               http.HandlerFunc(s.servePage),
		"/page.css":       constant("text/css; charset=utf-8", pageCSS),
		"/cluster.css":    constant("text/css; charset=utf-8", clusterCSS),
		"/page.js":        constant("text/javascript; charset=utf-8", pageJS),
		"/cluster.js":     constant("text/javascript; charset=utf-8", clusterJS),
		"/api/v1/pending": http.HandlerFunc(s.servePending),
	}, nil
}

// view is the present one for the reader of a request; false before the first
// snapshot.
func (s *clusterSite) view(r *http.Request) (ClusterView, bool, error) {
	rows, troubles, err := s.config.shownTo(r)
	if err != nil {
		return ClusterView{}, false, err
	}
	view := ClusterFromRows(rows, s.config.Now())
	explain(view.Sources, troubles)
	return view, rows != nil, nil
}

func (s *clusterSite) servePage(w http.ResponseWriter, r *http.Request) {
	view, ready, err := s.view(r)
	if err != nil {
		refuse(w, s.log, err)
		return
	}
	writeHTML(w, s.log, s.html, struct {
		ClusterView
		Ready       bool
		MetricsPath string
	}{view, ready, s.config.MetricsPath})
}

// How much a page shows of what there may be very much of; JSON and metrics
// have all.
const (
	shownWaits = 100
	shownItems = 25
)

// clusterFunctions are those that the template calls; explain is that of Config.
func clusterFunctions(explain string) template.FuncMap {
	return template.FuncMap{
		"phase":    phaseText,
		"stages":   stagesOf,
		"whole":    whole,
		"count":    func(v float64) string { return whole(&v) },
		"none":     func(count *float64) bool { return count != nil && *count == 0 },
		"percent":  percent,
		"bar":      newBar,
		"share":    share,
		"waits":    func(view ClusterView) shown[waitRow] { return newWaitRows(view, explain) },
		"underway": func(all []Underway) shown[Underway] { return showing(all, shownItems) },
		"items":    func(all []Oddity) shown[Oddity] { return showing(all, shownItems) },
		"clock":    func(at time.Time) string { return at.UTC().Format("15:04:05 UTC") },
		"since":    ageOf,
		"stack":    newStack,
		"listed":   listed,
		"names":    namesOnly,
		"gates":    gates,
		"odd":      func(at time.Time, of Oddities) oddRow { return oddRow{at, of} },
	}
}

// waitRow is a waiting reference as the page shows it. What it embeds would be
// slow to find for a template.
type waitRow struct {
	Of             Waiting
	Key            string
	Age            string
	Because, Claim string
	Command        string // tells a person more; empty where none can
}

// newWaitRows are the first of the pending claims; explain is what the commands
// about their pods begin with, empty for none.
func newWaitRows(view ClusterView, explain string) shown[waitRow] {
	unjudged := view.Unread("resourceslices", "deviceclasses")
	waiting := showing(view.Waiting, shownWaits)
	rows := make([]waitRow, len(waiting.First))
	for i, w := range waiting.First {
		rows[i] = waitRow{w, w.Namespace + "/" + w.Pod + "/" + w.PodClaim, ageOf(view.At, w.Since), w.because(unjudged), w.claimText(), ""}
		if explain != "" {
			rows[i].Command = explain + " pod " + w.Namespace + "/" + w.Pod
		}
	}
	return shown[waitRow]{rows, waiting.More}
}

// oddRow is a kind of oddities as of a moment.
type oddRow struct {
	At time.Time
	Of Oddities
}

// ageOf is the time since then, for people.
func ageOf(at, then time.Time) string {
	age, known := since(at, then)
	if !known {
		return absent
	}
	return duration(age)
}

// shown are the first of many, and how many more there are.
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

// newStack is nil where nothing is known or there is nothing.
func newStack(devices DeviceStates) *stack {
	total := devices.Total()
	allocated, unavailable := newBar("", share(devices.Allocated, total)), newBar("", share(devices.Unavailable, total))
	if allocated == nil || unavailable == nil {
		return nil
	}
	return &stack{Allocated: allocated.Width, Unavailable: unavailable.Width, From: allocated.Width}
}

// gates are the references that are held back, as items of a list: nobody has
// to do anything about them.
func gates(view ClusterView) []Oddity {
	var items []Oddity
	for _, w := range view.Gated {
		items = append(items, Oddity{Name: w.Namespace + "/" + w.Pod, Detail: w.PodClaim, Since: w.Since})
	}
	return items
}

// phaseText says what a phase waits for.
func phaseText(phase string) string {
	switch phase {
	case "binding":
		return "Waits until its devices can be bound."
	case "scheduling":
		return "Waits for the scheduler to bind the pod."
	case "preparation":
		return "Waits for its volumes, for its driver to prepare the devices, and for the sandbox."
	case "start":
		return "Waits for its first container, such as for its image."
	case "preparation_start":
		return "Waits for its devices, its sandbox and its first container."
	default:
		return phase
	}
}

// longAfter is when a phase that is under way has taken long.
const longAfter = 10 * time.Second

// Long are the phases under way that have taken long.
func (v ClusterView) Long() []Underway {
	return slices.DeleteFunc(slices.Clone(v.Underway), func(u Underway) bool {
		age, known := since(v.At, u.Since)
		return known && age < longAfter
	})
}
