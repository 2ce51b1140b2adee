package prometheus

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

const runbooksFolder = "../../../docs/runbooks"

// TestEachAlertHasARunbook: each alert has a runbook, each runbook an alert,
// and both a line in the index.
func TestEachAlertHasARunbook(t *testing.T) {
	pages, alerts := runbooks(t), alertsByName(t)
	index := read(t, filepath.Join(runbooksFolder, "README.md"))
	for name, rules := range alerts {
		if pages[name] == "" {
			t.Errorf("docs/runbooks has no %s.md", name)
		}
		url := "https://github.com/dra-exporter/dra-exporter/blob/main/docs/runbooks/" + name + ".md"
		for _, rule := range rules {
			if got := rule.Annotations["runbook_url"]; got != url {
				t.Errorf("the runbook of %s is at %q, not at %s", name, got, url)
			}
		}
	}
	for name := range pages {
		if alerts[name] == nil {
			t.Errorf("docs/runbooks/%s.md is about no alert", name)
		}
		if !strings.Contains(index, "["+name+"]("+name+".md)") {
			t.Errorf("docs/runbooks/README.md does not list %s", name)
		}
	}
}

// TestRunbookSections: all runbooks have the same sections in the same order,
// none is empty, and none is too long.
func TestRunbookSections(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^#+ .*$`)
	for name, text := range runbooks(t) {
		want := []string{"# " + name, "## Meaning", "## Impact", "## Diagnosis", "## Mitigation", "## When it is not a fault"}
		if got := heading.FindAllString(withoutBlocks(text), -1); !slices.Equal(got, want) {
			t.Errorf("%s has the parts %q", name, got)
		}
		for _, part := range want[1:] {
			if len(section(text, part)) < 40 {
				t.Errorf("%s: %q says nothing", name, part)
			}
		}
		if lines := strings.Count(text, "\n"); lines < 40 || lines > 100 {
			t.Errorf("%s has %d lines", name, lines)
		}
		if diagnosis := section(text, "## Diagnosis"); len(blocks(diagnosis, "promql")) == 0 || len(blocks(diagnosis, "sh")) == 0 {
			t.Errorf("%s: the diagnosis has no query or no command", name)
		}
	}
}

// TestRunbookQueriesExist: families and labels are documented or recorded,
// clusters are not mixed, and the reader only has to fill in labels that the
// alerts have.
func TestRunbookQueriesExist(t *testing.T) {
	families, err := promlabels.Documented("../../..")
	if err != nil {
		t.Fatal(err)
	}
	groups, err := promlabels.Rules(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	families.Record(groups)
	placeholder := regexp.MustCompile(`<(namespace|pod|claim|node|uuid|class|domain|driver|reason)>`)
	for name, text := range runbooks(t) {
		for _, query := range blocks(text, "promql") {
			filled := placeholder.ReplaceAllString(query, "x")
			_, problems := promlabels.Checker{Families: families}.Expr(filled)
			problems = append(problems, promlabels.Mixed(filled)...)
			if strings.Contains(filled, `"<`) {
				problems = append(problems, "a placeholder that is not explained")
			}
			for _, problem := range problems {
				t.Errorf("%s: %s\n%s", name, problem, query)
			}
		}
	}
}

// TestRunbookLinksExist: links lead to existing files and headings.
func TestRunbookLinksExist(t *testing.T) {
	pages := allPages(t)
	link := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	for name, text := range pages {
		for _, match := range link.FindAllStringSubmatch(withoutBlocks(text), -1) {
			target, anchor := match[1], match[2]
			if strings.HasPrefix(target, "https://") {
				continue
			}
			file := filepath.Join(runbooksFolder, target)
			if target == "" {
				file = filepath.Join(runbooksFolder, name+".md")
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if anchor == "" {
				continue
			} else if !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s: %s has no heading #%s", name, target, anchor)
			}
		}
	}
}

// anchors returns GitHub's anchors of a page's headings.
func anchors(text string) (found []string) {
	dropped := regexp.MustCompile(`[^a-z0-9 _-]`)
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(withoutBlocks(text), -1) {
		found = append(found, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(match[1]), ""), " ", "-"))
	}
	return found
}

// runbooks returns the pages by the names of their alerts.
func runbooks(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(runbooksFolder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "README" {
			pages[name] = read(t, file)
		}
	}
	if len(pages) < 20 {
		t.Fatalf("docs/runbooks has %d pages: %v", len(pages), slices.Sorted(maps.Keys(pages)))
	}
	return pages
}

// section returns the text below a heading, up to the next one of its level.
func section(text, heading string) string {
	_, below, _ := strings.Cut("\n"+text, "\n"+heading+"\n")
	below, _, _ = strings.Cut(below, "\n## ")
	return strings.TrimSpace(below)
}

// blocks returns the fenced blocks in a language, including those of list
// items.
func blocks(text, language string) (found []string) {
	block := regexp.MustCompile("(?ms)^ *```" + language + "\n(.*?)^ *```$")
	for _, match := range block.FindAllStringSubmatch(text, -1) {
		found = append(found, strings.TrimSpace(match[1]))
	}
	return found
}

// withoutBlocks returns the text without fenced blocks, in which comments of
// shells look like headings.
func withoutBlocks(text string) string {
	return regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
}
