package prometheus

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
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

// TestDocumentJoins: each row of the table of joins has a query that selects families and
// labels that exist, is unique in a store of several clusters, and names the labels of the
// other exporter and ours.
func TestDocumentJoins(t *testing.T) {
	families := documented(t)
	maps.Copy(families, promlabels.Families{
		"kube_pod_resourceclaim_info": {"cluster", "namespace", "pod", "uid", "claim_name", "resourceclaim_name", "resourceclaim_template_name"},
		"DCGM_FI_DEV_GPU_TEMP":        {"cluster", "namespace", "UUID", "dra_claim_name", "dra_claim_namespace", "dra_mig_device_uuid"},
		"DCGM_FI_DEV_GPU_UTIL":        {"cluster", "namespace", "UUID", "dra_claim_name", "dra_claim_namespace", "dra_mig_device_uuid"},
		"gpu_gfx_activity":            {"cluster", "namespace", "pod", "serial_number"},
	})
	_, table, _ := strings.Cut(read(t, root+"/docs/queries.md"), "<!-- table of joins -->\n")
	table, _, _ = strings.Cut(table, "<!-- end of joins -->")
	count := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 4 || !strings.Contains(cells[3], "`") {
			continue
		}
		count++
		query := strings.Trim(cells[3], "`")
		if _, problems := (promlabels.Checker{Families: families}).Expr(query); len(problems) > 0 {
			t.Errorf("%s: %v", query, problems)
		}
		matched := joins(query)
		if len(matched) != 1 || !strings.HasPrefix(matched[0], "cluster, ") {
			t.Errorf("%s: joins on %q", query, matched)
		}
		checkJoinLabels(t, families, query, cells[1], cells[2])
	}
	if count < 6 {
		t.Errorf("found %d joins", count)
	}
}

// checkJoinLabels fails the test unless families of others in the query have the labels there,
// and families of ours the labels here.
func checkJoinLabels(t *testing.T, families promlabels.Families, query, there, here string) {
	t.Helper()
	var foreign, own []string
	for name, labels := range families {
		switch ours := strings.HasPrefix(name, "dra_") && name != "dra_resource_claims_in_use"; {
		case ours:
			own = append(own, labels...)
		case strings.Contains(query, name):
			foreign = append(foreign, labels...)
		}
	}
	word := regexp.MustCompile("`([a-z_]+)`")
	for _, label := range word.FindAllStringSubmatch(there, -1) {
		if !slices.Contains(foreign, label[1]) {
			t.Errorf("%s: the other exporter has no label %s", query, label[1])
		}
	}
	for _, label := range word.FindAllStringSubmatch(here, -1) {
		if !slices.Contains(own, label[1]) && families[label[1]] == nil {
			t.Errorf("%s: there is no label %s", query, label[1])
		}
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
