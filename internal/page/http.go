package page

import (
	"bytes"
	_ "embed" // for the pages
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

//go:embed parts.html
var partsHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// parse makes the templates of a role's pages from their texts, the first of which is that
// of the overview, the parts of all pages, and the functions that they call.
func parse(texts []string, functions ...template.FuncMap) (*template.Template, error) {
	all := template.FuncMap{"absent": func() string { return absent }, "duration": words.Duration}
	for _, more := range functions {
		maps.Copy(all, more)
	}
	page := template.New("page").Funcs(all)
	for _, source := range append(texts, partsHTML) { // those that contain only definitions leave the first
		if _, err := page.Parse(source); err != nil {
			return nil, fmt.Errorf("parse the page: %w", err)
		}
	}
	return page, nil
}

// failure is the document of an answer that is not 200.
type failure struct {
	APIVersion string `json:"apiVersion"`
	Error      string `json:"error"`
}

// APIVersion is that of all documents.
const APIVersion = "v1"

// selected returns the entries of the namespaces that the query names, all if
// it names none. It is never nil, so that JSON has an empty list.
func selected[T any](r *http.Request, all []T, namespace func(T) string) []T {
	names, picked := requestedNamespaces(r), []T{}
	for _, item := range all {
		if len(names) == 0 || names[namespace(item)] {
			picked = append(picked, item)
		}
	}
	return picked
}

// requestedNamespaces returns the namespaces of the query; none means all.
func requestedNamespaces(r *http.Request) map[string]bool {
	wanted := map[string]bool{}
	for _, namespace := range r.URL.Query()["namespace"] {
		wanted[namespace] = true
	}
	return wanted
}

func constant(contentType, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(text)) // fails only if the client left
	})
}

// site serves the page and the documents of one role, of what it knows: Known and View
// are the role's. It is safe for concurrent use.
type site[Known, View any] struct {
	config Config
	html   *template.Template
	view   func(Known, time.Time) View
	source func(*View) []Source

	known      func() Known                                       // of the newest snapshot
	isReady    func(Known) bool                                   // there is a snapshot
	namespaces func(known Known, wanted map[string]bool) []string // that it has something of; if wanted is not empty, only those in it
	limit      func(known Known, visible map[string]bool) Known   // to what a reader of these namespaces may see

	history func(view *View, all bool) // adds it; all: the reader sees all namespaces; may be nil
}

// read returns the view for the reader of a request; false before the first
// snapshot.
func (s *site[Known, View]) read(r *http.Request) (View, bool, error) {
	known := s.known()
	ready, all := s.isReady(known), true
	if s.config.Visible != nil && ready {
		visible, everything, err := s.config.Visible(r, s.namespaces(known, requestedNamespaces(r)))
		if err != nil {
			var none View
			return none, false, err
		}
		if all = everything; !all {
			known = s.limit(known, visible)
		}
	}
	view := s.view(known, s.config.Now())
	if all {
		s.addMessages(&view)
	}
	if s.history != nil {
		s.history(&view, all)
	}
	return view, ready, nil
}

// addMessages adds messages for people, which may name objects of any namespace.
func (s *site[Known, View]) addMessages(view *View) {
	if s.config.Messages != nil {
		known := s.config.Messages()
		for i, source := range s.source(view) {
			s.source(view)[i].Message = known[source.Name]
		}
	}
}

// frame is what all pages of a role have around their contents.
type frame struct {
	Ready       bool
	MetricsPath string
	Selection   selection
	Groupings   []grouping // choices of the form; nil: the page has neither filter nor groups
	Missing     *absence   // there is no such object; nil: there is

	DocumentTitle string
}

// absence is why there is no such object.
type absence struct{ Title, Text string }

// page serves a page: contents returns what its template renders, whose frame is given
// and may be changed.
func (s *site[Known, View]) page(name string, contents func(*http.Request, View, *frame) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		view, ready, err := s.read(r)
		if err != nil {
			status, message := s.refusal(err)
			http.Error(w, message, status)
			return
		}
		around := &frame{Ready: ready, MetricsPath: s.config.MetricsPath, Selection: parseSelection(r.URL.Query())}
		content := contents(r, view, around)
		var html bytes.Buffer
		if err := s.html.ExecuteTemplate(&html, name, content); err != nil {
			s.config.Log.Error("render the page", "error", err.Error())
			http.Error(w, "render the page: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if around.Missing != nil && ready {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write(terminal.Markup(html.Bytes())) // fails only if the client left
	})
}

// document serves the answer for the reader's view as JSON.
func (s *site[Known, View]) document(answer func(*http.Request, View) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		view, ready, err := s.read(r)
		switch {
		case err != nil:
			status, message := s.refusal(err)
			s.writeJSON(w, status, failure{APIVersion, message})
		case !ready:
			s.writeJSON(w, http.StatusServiceUnavailable, failure{APIVersion, "no snapshot yet"})
		default:
			s.writeJSON(w, http.StatusOK, answer(r, view))
		}
	})
}

// refusal returns the answer to a reader who may not see the page.
func (s *site[Known, View]) refusal(err error) (status int, message string) {
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		return refused.Status, refused.Message
	}
	s.config.Log.Warn("cannot determine the permissions of a reader", "error", err.Error())
	return http.StatusServiceUnavailable, "your permissions cannot be determined"
}

func (s *site[Known, View]) writeJSON(w http.ResponseWriter, status int, document any) {
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		s.config.Log.Error("encode an answer", "error", err.Error())
		http.Error(w, "encode an answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(terminal.EscapeJSON(text), '\n')) // fails only if the client left
}
