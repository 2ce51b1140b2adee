package prometheus

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

// TestDocumentQueriesExist: the PromQL in the README and the documents selects
// families, rules and labels that exist, and its joins are unique in a store
// of several clusters.
func TestDocumentQueriesExist(t *testing.T) {
	families := documented(t)
	families.Record(groups(t))
	for _, name := range regexp.MustCompile(`DCGM_FI_[A-Z_]+`).FindAllString(read(t, root+"/docs/dcgm-names.md"), -1) {
		families[name] = []string{"*"}
	}
	count := 0
	for _, file := range documents(t) {
		for _, query := range shown(read(t, file)) {
			count++
			if _, problems := (promlabels.Checker{Families: families}).Expr(query); len(problems) > 0 {
				t.Errorf("%s: %s: %v", filepath.Base(file), query, problems)
			}
			for _, join := range joins(query) {
				if !strings.HasPrefix(join, "cluster") {
					t.Errorf("%s: a join on (%s) mixes clusters: %s", filepath.Base(file), join, query)
				}
			}
		}
	}
	if count < 25 {
		t.Errorf("found %d queries", count)
	}
}

// documents returns the documents, except for runbooks, which have tests of
// their own.
func documents(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "docs/*.md", "deploy/*/README.md", "deploy/helm/*/README.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) < 20 {
		t.Fatalf("there are %d: %v", len(files), files)
	}
	return files
}

// shown returns the queries of a document's PromQL: a block's paragraphs, and
// the lines of a paragraph with several queries.
func shown(document string) (queries []string) {
	for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(document, -1) {
		for paragraph := range strings.SplitSeq(block[1], "\n\n") {
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(paragraph); err == nil {
				queries = append(queries, strings.TrimSpace(paragraph))
				continue
			}
			for line := range strings.Lines(paragraph) {
				if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
					queries = append(queries, line)
				}
			}
		}
	}
	return queries
}

// joins returns the labels on which an expression matches, for each match that
// names them.
func joins(query string) (on []string) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(query)
	if err != nil {
		return nil
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if e, is := node.(*parser.BinaryExpr); is && e.VectorMatching != nil && e.VectorMatching.On {
			on = append(on, strings.Join(e.VectorMatching.MatchingLabels, ", "))
		}
		return nil
	})
	return on
}
