package prometheus

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

const boardsFolder = root + "/dashboards"

// readBoard is a dashboard with the parts that queries.Board omits.
type readBoard struct {
	queries.Board
	panels []boardPanel
}

// boardPanel has the parts of a panel that name labels.
type boardPanel struct {
	Title           string
	Type            string
	Targets         []boardTarget
	Transformations []struct {
		ID      string
		Options struct {
			RenameByName  map[string]string
			ExcludeByName map[string]bool
			Fields        []string // of partitionByValues
		}
	}
	FieldConfig struct{ Overrides []json.RawMessage }
	Panels      []boardPanel

	text string // all of it, with its links
}

// textOf returns the panel without what it says of other queries alone.
func (p boardPanel) textOf(query string) string {
	text := p.text
	for _, override := range p.FieldConfig.Overrides {
		var decoded struct {
			Matcher struct {
				ID      string
				Options any
			}
		}
		if json.Unmarshal(override, &decoded) == nil && decoded.Matcher.ID == "byFrameRefID" && decoded.Matcher.Options != query {
			text = strings.ReplaceAll(text, string(override), "")
		}
	}
	return text
}

type boardTarget struct {
	RefID        string `json:"refId"`
	Expr         string
	LegendFormat string
}

// annotated has the annotations of a dashboard.
type annotated struct {
	Annotations struct {
		List []struct{ Name, Expr, TitleFormat, TextFormat string }
	}
}

// panels returns the annotations as panels, whose texts are legends.
func (a annotated) panels() (all []boardPanel) {
	for _, annotation := range a.Annotations.List {
		all = append(all, boardPanel{Title: "annotation " + annotation.Name, Targets: []boardTarget{
			{RefID: "A", Expr: annotation.Expr, LegendFormat: annotation.TitleFormat + annotation.TextFormat},
		}})
	}
	return all
}

func (p *boardPanel) UnmarshalJSON(text []byte) error {
	type plain boardPanel
	p.text = string(text)
	return json.Unmarshal(text, (*plain)(p))
}

// boards returns all dashboards for import. Panels in collapsed rows are
// included.
func boards(t testing.TB) (all []readBoard) {
	t.Helper()
	files, err := filepath.Glob(boardsFolder + "/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 7 {
		t.Fatalf("%s has %d dashboards: make dashboards", boardsFolder, len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		board, err := queries.Decode(text)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var outer boardPanel
		if err := json.Unmarshal(text, &outer); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		var marked annotated
		if err := json.Unmarshal(text, &marked); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, readBoard{Board: board, panels: append(outer.within(), marked.panels()...)})
	}
	return all
}

// within returns the panels with queries, at any depth.
func (p boardPanel) within() (all []boardPanel) {
	for _, inner := range p.Panels {
		if len(inner.Targets) > 0 {
			all = append(all, inner)
		}
		all = append(all, inner.within()...)
	}
	return all
}

func (p boardPanel) problems(board queries.Board, checker promlabels.Checker) (all []string) {
	var answers [][]string
	for _, target := range p.Targets {
		expr, err := board.Expr(target.Expr, anyChoice(board), anHour())
		if err != nil {
			return append(all, err.Error())
		}
		labels, problems := checker.Expr(expr)
		problems = append(problems, missing(labels, labelsNamed(`{{\s*([^{}\s]+)\s*}}`, target.LegendFormat)...)...)
		problems = append(problems, missing(labels, labelsNamed(`__field\.labels\.(\w+)`, p.textOf(target.RefID))...)...)
		problems = append(problems, missing(labels, p.partitions()...)...)
		for _, problem := range problems {
			all = append(all, fmt.Sprintf("query %s: %s", target.RefID, problem))
		}
		answers = append(answers, labels)
	}
	return append(all, p.columnProblems(answers)...)
}

// partitions returns the labels by which the panel separates its rows.
func (p boardPanel) partitions() (labels []string) {
	for _, transformation := range p.Transformations {
		labels = append(labels, transformation.Options.Fields...)
	}
	return labels
}

// keys returns the labels that are columns of a table. "Value" is not a label,
// and a store of one cluster has no label cluster.
func (p boardPanel) keys() (keys, excluded []string) {
	for _, transformation := range p.Transformations {
		for field := range transformation.Options.RenameByName {
			if field != "Time" && field != "cluster" && field != "Value" && !strings.HasPrefix(field, "Value #") {
				keys = append(keys, field)
			}
		}
		excluded = append(excluded, slices.Collect(maps.Keys(transformation.Options.ExcludeByName))...)
	}
	return keys, excluded
}

// columnProblems: Grafana joins the results of a table's queries by the labels
// that all of them have, so there must be one. Each column of a label must
// come from a query, and each label must have a column, because two rows would
// look the same otherwise.
func (p boardPanel) columnProblems(answers [][]string) (problems []string) {
	if p.Type != "table" || len(answers) == 0 {
		return nil
	}
	keys, excluded := p.keys()
	problems = missing(slices.Concat(answers...), keys...)
	shared := answers[0]
	for i, labels := range answers {
		shared = slices.DeleteFunc(slices.Clone(shared), func(label string) bool { return !slices.Contains(labels, label) })
		for _, label := range labels {
			if label != "cluster" && !slices.Contains(keys, label) && !slices.Contains(excluded, label) {
				problems = append(problems, fmt.Sprintf("query %s: there is no column of %q", p.Targets[i].RefID, label))
			}
		}
	}
	if len(keys) > 0 && !slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(shared, key) }) {
		problems = append(problems, "no column is of a label that all answers have, which rows are merged by")
	}
	return problems
}

// labelsNamed returns the matches of a pattern's group in a text.
func labelsNamed(pattern, text string) (found []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// missing returns a problem for each label that a result does not have.
func missing(labels []string, wanted ...string) (problems []string) {
	for _, label := range wanted {
		if !slices.Contains(labels, label) {
			problems = append(problems, fmt.Sprintf("label %q is not in the answer, which has %v", label, labels))
		}
	}
	return problems
}

// anyChoice selects a value for each variable without All.
func anyChoice(board queries.Board) queries.Chosen {
	chosen := queries.Chosen{}
	for _, v := range board.Variables {
		if v.All == "" {
			chosen[v.Name] = []string{"any"}
		}
	}
	return chosen
}

// anHour is the default range of the dashboards, as a window 1440 pixels wide
// requests it: each 30 s, the least step of the panels, which is how often the shipped
// monitors scrape.
func anHour() queries.Window {
	return queries.Window{Range: time.Hour, Step: 30 * time.Second, Interval: 30 * time.Second}
}

// recordedFamilies returns all names that a query may select.
func recordedFamilies(t testing.TB) promlabels.Families {
	t.Helper()
	families, err := promlabels.Documented(root)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := promlabels.Rules(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	families.Record(groups)
	return families
}
