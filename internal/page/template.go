package page

import (
	_ "embed" // for the parts
	"fmt"
	"html/template"
	"maps"
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
