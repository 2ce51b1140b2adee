package page

import (
	"bytes"
	_ "embed" // for the parts
	"fmt"
	"html/template"
	"log/slog"
	"maps"
	"net/http"

	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

//go:embed parts.html
var partsHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

// parse makes a page's template of its text, of the parts that all pages
// share, and of the functions that it calls.
func parse(text string, functions ...template.FuncMap) (*template.Template, error) {
	all := template.FuncMap{"absent": func() string { return absent }, "duration": duration}
	for _, more := range functions {
		maps.Copy(all, more)
	}
	page := template.New("page").Funcs(all)
	for _, source := range []string{text, partsHTML} { // the parts, which are definitions alone, leave the page's own text in place
		if _, err := page.Parse(source); err != nil {
			return nil, fmt.Errorf("parse the page: %w", err)
		}
	}
	return page, nil
}

// writeHTML answers with a page of what there is to show.
func writeHTML(w http.ResponseWriter, log *slog.Logger, page *template.Template, shown any) {
	var html bytes.Buffer
	if err := page.Execute(&html, shown); err != nil {
		log.Error("render the page", "error", err.Error())
		http.Error(w, "render the page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(terminal.Markup(html.Bytes())) // fails only if the client left
}
