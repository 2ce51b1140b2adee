package page

import (
	"cmp"
	_ "embed" // for the pages
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

//go:embed page.html
var pageHTML string

//go:embed node_objects.html
var nodeObjectsHTML string

// Handlers returns what the page of a node consists of, by path: the page itself,
// its style and script, and the JSON.
func Handlers(config Config) (map[string]http.Handler, error) {
	parsed, err := parse([]string{pageHTML, nodeObjectsHTML}, nodeFunctions())
	if err != nil {
		return nil, err
	}
	s := &site[*model.Node, View]{
		config: config, html: parsed, source: func(v *View) []Source { return v.Sources },
		known: config.Model, isReady: func(n *model.Node) bool { return n != nil }, namespaces: listNamespaces, limit: limitNode,
	}
	s.view = func(n *model.Node, at time.Time) View {
		view := newView(n, at)
		view.Node = cmp.Or(view.Node, config.Node)
		return view
	}
	if config.History != nil {
		s.history = func(view *View, all bool) { view.addHistory(config.History, all) }
	}
	pages := nodePages{config.Links}
	return map[string]http.Handler{
		"/":                  s.page("page", pages.overview),
		"/claim":             s.page("claim-page", pages.claim),
		"/device":            s.page("device-page", pages.device),
		"/workload":          s.page("workload-page", pages.workload),
		"/page.css":          constant("text/css; charset=utf-8", pageCSS),
		"/page.js":           constant("text/javascript; charset=utf-8", pageJS),
		"/api/v1/claims":     s.document(claimsAnswer),
		"/api/v1/namespaces": s.document(namespacesAnswer),
	}, nil
}

// nodeFunctions returns those that the template calls.
func nodeFunctions() template.FuncMap {
	return template.FuncMap{
		"percent": percent,
		"size":    size,
		"watts":   func(power *float64) string { return number(power, words.Watts) },
		"celsius": func(temperature *float64) string { return number(temperature, words.Celsius) },
		"energy":  func(joules *float64) string { return number(joules, words.Energy) },
		"seconds": seconds,
		"exact":   exact,
		"bar":     newBar,
		"share":   share,
		"money":   money,
		"prices":  prices,
		"use":     useText,
		"shares":  newShares,
		"graph":   newGraph,
		"shade":   func(i int) string { return "p" + strconv.Itoa(i%shades) },
		"unsplit": unsplit,
		"join":    strings.Join,
		"since": func(view View, then time.Time) string {
			age, _ := since(view.At, then)
			return words.Duration(age)
		},
		"age": func(view View) float64 {
			age, _ := view.Age()
			return age.Seconds()
		},
		"clock":      clockText,
		"price":      func(price *Price) string { return prices([]Price{*price}) },
		"reported":   reportedText,
		"claimTable": func(view View, columns []column, claims []Claim) claimTable { return claimTable{view, columns, claims} },
		"deviceRow":  func(view View, device Device, partition bool) deviceRow { return deviceRow{view, device, partition} },
		"claimRow":   func(view View, claim Claim) claimRow { return claimRow{view, claim} },
		"healthRow":  newHealthRow,
		"flag":       flag,
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
// the reason is that the whole device is unhealthy.
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
	if health, ok := parent.(*Health); ok && health != nil && slices.ContainsFunc(row.Health.Signals, isParent) {
		row.Parent = &healthRow{View: view, Health: *health}
	}
	return row, nil
}

// bar is a share, drawn; nothing is drawn for an unknown one.
type bar struct {
	Kind  string // selects the colour
	Width string // percent
	Parts []part // drawn over it, from the left
}

// part is a holder's part of a bar.
type part struct {
	Kind     string // p0, p1, … of holders in turn, or unattributed
	X, Width string // percent
}

func newBar(kind string, ratio *float64) *bar {
	if ratio == nil {
		return nil
	}
	return &bar{Kind: kind, Width: percents(min(max(*ratio, 0), 1))}
}

// shades is how many colours a bar has for holders; then they repeat.
const shades = 6

// newShares returns the bar of a device's utilization or memory, with the parts
// of each holder and the unattributed part, as far as they are known.
func newShares(kind string, device Device) *bar {
	width := func(use *Use) *float64 {
		if use == nil {
			return nil
		}
		if kind == "memory" {
			return share(use.MemoryUsed, device.MemorySize)
		}
		return use.Utilization
	}
	whole := device.Utilization
	if kind == "memory" {
		whole = share(device.MemoryUsed, device.MemorySize)
	}
	drawn := newBar(kind, whole)
	if drawn == nil {
		return nil
	}
	at := 0.0
	add := func(kind string, ratio *float64) {
		if ratio == nil || *ratio <= 0 {
			return
		}
		width := min(*ratio, 1-at)
		drawn.Parts = append(drawn.Parts, part{kind, percents(at), percents(width)})
		at += width
	}
	for i, holder := range device.Holders {
		add("p"+strconv.Itoa(i%shades), width(holder.Use))
	}
	add("unattributed", width(device.Unattributed))
	return drawn
}

func percents(ratio float64) string { return fmt.Sprintf("%.1f%%", 100*ratio) }

// ClaimsAnswer is the document of /api/v1/claims. docs/api.md describes it; its
// names do not change within v1.
type ClaimsAnswer struct {
	APIVersion string    `json:"apiVersion"`
	Node       string    `json:"node"`
	SampledAt  time.Time `json:"sampledAt,omitzero"`

	ProcessAttribution string `json:"processAttribution,omitempty"`
	Released           string `json:"released,omitempty"`

	// Devices counts the devices of the node, whatever namespaces the query
	// names. Documents of older agents have none.
	Devices *DeviceCount `json:"deviceCount,omitempty"`
	Claims  []Claim      `json:"claims"`

	// All is each device, if the query has devices=all. Documents of older agents
	// have none.
	All []NodeDevice `json:"devices,omitzero"`
}

// totalsAnswer is the document of /api/v1/namespaces.
type totalsAnswer struct {
	APIVersion   string    `json:"apiVersion"`
	Node         string    `json:"node"`
	SampledAt    time.Time `json:"sampledAt,omitzero"`
	CountedSince time.Time `json:"countedSince,omitzero"`
	Namespaces   []Totals  `json:"namespaces"`
}

// claimsAnswer returns the claims of all namespaces, or of those that the query
// names. They are sorted by name, since their health changes.
func claimsAnswer(r *http.Request, view View) any {
	claims := selected(r, view.Claims, func(c Claim) string { return c.Namespace })
	slices.SortFunc(claims, compareClaims)
	count := view.Count()
	return ClaimsAnswer{
		APIVersion: APIVersion, Node: view.Node, SampledAt: view.SampledAt, ProcessAttribution: view.ProcessAttribution, Released: view.Released,
		Devices: &count, Claims: claims, All: nodeDevices(r, view),
	}
}

// namespacesAnswer returns the totals of all namespaces, or of those that the
// query names.
func namespacesAnswer(r *http.Request, view View) any {
	return totalsAnswer{
		APIVersion: APIVersion, Node: view.Node, SampledAt: view.SampledAt, CountedSince: view.CountedSince,
		Namespaces: selected(r, view.Totals, func(t Totals) string { return t.Namespace }),
	}
}

// prices shows the price of an hour: one price, or a range where classes
// differ.
func prices(list []Price) string {
	if len(list) == 0 {
		return ""
	}
	cheapest, dearest := list[0], list[len(list)-1]
	text := money(&dearest.PerHour, dearest.Currency)
	if cheapest != dearest {
		text = strconv.FormatFloat(cheapest.PerHour, 'f', 2, 64) + "–" + text
	}
	return text + "/h"
}

// useText shows the known values of a use.
func useText(use Use) string {
	switch {
	case use.MemoryUsed == nil:
		return percent(use.Utilization)
	case use.Utilization == nil:
		return size(use.MemoryUsed)
	default:
		return percent(use.Utilization) + " · " + size(use.MemoryUsed)
	}
}
