package page

import (
	"cmp"
	_ "embed" // for the page
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

//go:embed page.html
var pageHTML string

// Config says what the page shows.
type Config struct {
	Node        string              // shown until a row tells it
	MetricsPath string              // where the page's link to the metrics leads
	Rows        func() []metric.Row // those of the newest snapshot; nil before the first
	Now         func() time.Time    // the wall clock

	// Troubles says, by source, what is amiss and what to do, for people:
	// no row has room for it. It may be nil.
	Troubles func() map[string]string

	// Explain is the command by which a reader of the cluster's page asks why
	// a pod's claims are pending, up to the kind of object. Empty: there is
	// none that works where the page is read.
	Explain string

	// Visible limits what each reader sees to their namespaces. Nil: everybody
	// sees everything.
	Visible Visible
	Log     *slog.Logger
}

// site serves the views of one Config. It is safe for concurrent use.
type site struct {
	config Config
	log    *slog.Logger
	html   *template.Template
}

// Handlers returns what the page consists of, by path: the page itself, its
// style and script, and the JSON.
func Handlers(config Config) (map[string]http.Handler, error) {
	parsed, err := parse(pageHTML, functions())
	if err != nil {
		return nil, err
	}
	s := &site{config: config, log: config.Log, html: parsed}
	return map[string]http.Handler{
		"/":                  http.HandlerFunc(s.servePage),
		"/page.css":          constant("text/css; charset=utf-8", pageCSS),
		"/page.js":           constant("text/javascript; charset=utf-8", pageJS),
		"/api/v1/claims":     http.HandlerFunc(s.serveClaims),
		"/api/v1/namespaces": http.HandlerFunc(s.serveNamespaces),
	}, nil
}

// view is the present one for the reader of a request; false before the first
// snapshot.
func (s *site) view(r *http.Request) (View, bool, error) {
	rows, troubles, err := s.config.shownTo(r)
	if err != nil {
		return View{}, false, err
	}
	view := FromRows(rows, s.config.Now())
	view.Node = cmp.Or(view.Node, s.config.Node)
	explain(view.Sources, troubles)
	return view, rows != nil, nil
}

func (s *site) servePage(w http.ResponseWriter, r *http.Request) {
	view, ready, err := s.view(r)
	if err != nil {
		refuse(w, s.log, err)
		return
	}
	writeHTML(w, s.log, s.html, struct {
		View
		Ready       bool
		MetricsPath string
	}{view, ready, s.config.MetricsPath})
}

func constant(contentType, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(text)) // fails only if the client left
	})
}

// functions are those that the template calls.
func functions() template.FuncMap {
	return template.FuncMap{
		"percent": percent,
		"size":    size,
		"watts":   watts,
		"celsius": celsius,
		"energy":  energy,
		"seconds": seconds,
		"exact":   exact,
		"bar":     newBar,
		"share":   share,
		"money":   money,
		"prices":  prices,
		"use":     useText,
		"shares":  newShares,
		"shade":   func(i int) string { return "p" + strconv.Itoa(i%shades) },
		"unsplit": unsplit,
		"join":    strings.Join,
		"since": func(view View, then time.Time) string {
			age, _ := since(view.At, then)
			return duration(age)
		},
		"age": func(view View) float64 {
			age, _ := view.Age()
			return age.Seconds()
		},
		"deviceRow": func(view View, device Device, partition bool) deviceRow { return deviceRow{view, device, partition} },
		"claimRow":  func(view View, claim Claim) claimRow { return claimRow{view, claim} },
		"healthRow": newHealthRow,
		"flag":      flag,
	}
}

// deviceRow is a device as a line of the table.
type deviceRow struct {
	View View
	Device
	IsPartition bool
}

// claimRow is a claim as a group of lines.
type claimRow struct {
	View View
	Claim
}

// healthRow is the health of a device with its reasons. Parent is there where
// the reason is that the whole device is sick.
type healthRow struct {
	View   View
	UUID   string
	Health Health
	Parent *healthRow
}

// newHealthRow takes a Health or a pointer to one, as templates have it.
func newHealthRow(view View, uuid string, health, parent any) (healthRow, error) {
	row := healthRow{View: view, UUID: uuid}
	switch of := health.(type) {
	case Health:
		row.Health = of
	case *Health:
		row.Health = *of
	default:
		return row, fmt.Errorf("show the health of %s: %T is none", uuid, health)
	}
	isParent := func(s Signal) bool { return s.Name == parentSignal }
	if of, known := parent.(*Health); known && of != nil && slices.ContainsFunc(row.Health.Signals, isParent) {
		row.Parent = &healthRow{View: view, Health: *of}
	}
	return row, nil
}
