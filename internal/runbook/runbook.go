package runbook

import (
	"bytes"
	_ "embed" // for the page
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"github.com/dra-exporter/dra-exporter/docs/runbooks"
)

// Path is where the pages are. The name of a runbook follows, with or without .md, as in
// the project's repository, so that the two folders can stand for each other.
const Path = "/runbooks/"

// documents is the folder to which links lead that leave the runbooks.
const documents = "https://github.com/dra-exporter/dra-exporter/blob/main/docs/"

// overview is the name of the document that lists the runbooks.
const overview = "README"

//go:embed runbook.html
var pageHTML string

// Names returns the names of the runbooks, which are those of their alerts, sorted.
func Names() ([]string, error) {
	files, err := fs.Glob(runbooks.Files(), "*.md")
	if err != nil {
		return nil, fmt.Errorf("list the runbooks: %w", err)
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		if name := strings.TrimSuffix(file, ".md"); name != overview {
			names = append(names, name)
		}
	}
	return names, nil
}

// Text returns a runbook in Markdown; false if there is none of this name.
func Text(name string) (string, bool) {
	data, err := fs.ReadFile(runbooks.Files(), name+".md")
	return string(data), err == nil
}

// Handlers returns the pages by path: of each runbook, and at Path of all.
func Handlers() (map[string]http.Handler, error) {
	page, err := template.New("runbook").Parse(pageHTML)
	if err != nil {
		return nil, fmt.Errorf("parse the page of runbooks: %w", err)
	}
	names, err := Names()
	if err != nil {
		return nil, err
	}
	handlers := make(map[string]http.Handler)
	for _, name := range append(names, overview) {
		markdown, _ := Text(name)
		html, err := render(page, name, markdown)
		if err != nil {
			return nil, fmt.Errorf("render the runbook %s: %w", name, err)
		}
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(html) // fails only if the client left
		})
		handlers[Path+name], handlers[Path+name+".md"] = handler, handler
		if name == overview {
			handlers[Path] = handler
		}
	}
	return handlers, nil
}

// render returns the page of a runbook.
func render(page *template.Template, name, markdown string) ([]byte, error) {
	source := []byte(markdown)
	converter := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	document := converter.Parser().Parse(text.NewReader(source))
	if err := ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := node.(*ast.Link); ok && entering {
			if outside, ok := bytes.CutPrefix(link.Destination, []byte("../")); ok {
				link.Destination = append([]byte(documents), outside...)
			}
		}
		return ast.WalkContinue, nil
	}); err != nil {
		return nil, err
	}
	var body, html bytes.Buffer
	if err := converter.Renderer().Render(&body, source, document); err != nil {
		return nil, err
	}
	err := page.Execute(&html, struct {
		Name string
		Body template.HTML // of the project's own document, without raw HTML
	}{name, template.HTML(body.String())})
	return html.Bytes(), err
}
