// Package queries reads what a dashboard asks, from its JSON, as Grafana would ask
// it: for tests that hold dashboards to what Prometheus answers.
package queries

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Board is one dashboard.
type Board struct {
	UID       string
	Title     string
	Variables []Variable
	Queries   []Query
}

// Query is one question of a panel, or of an annotation, whose Panel is "annotation"
// with its name.
type Query struct {
	Panel   string
	Ref     string
	Expr    string // with variables
	Instant bool
}

// Variable is a variable that asks Prometheus for the values of a label.
type Variable struct {
	Name     string
	Selector string // the series that are asked; empty: all
	Label    string
	Several  bool   // any number of values may be chosen
	All      string // what stands for all of them; empty where that cannot be chosen
}

// Load reads the dashboards of all sets, each set in a folder of this folder, in the
// order of their paths.
func Load(folder string) ([]Board, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.json"))
	if err != nil {
		return nil, fmt.Errorf("look for dashboards: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no dashboard in %s", folder)
	}
	var boards []Board
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read dashboard: %w", err)
		}
		board, err := Decode(text)
		if err != nil {
			return nil, fmt.Errorf("decode %s: %w", file, err)
		}
		boards = append(boards, board)
	}
	return boards, nil
}

// Decode reads one dashboard. Panels in folded rows count.
func Decode(text []byte) (Board, error) {
	var read struct {
		UID, Title  string
		Panels      []jsonPanel
		Annotations struct{ List []struct{ Name, Expr string } }
		Templating  struct{ List []jsonVariable }
	}
	if err := json.Unmarshal(text, &read); err != nil {
		return Board{}, err
	}
	board := Board{UID: read.UID, Title: read.Title}
	for _, p := range read.Panels {
		board.Queries = append(board.Queries, p.queries()...)
	}
	for _, a := range read.Annotations.List {
		board.Queries = append(board.Queries, Query{Panel: "annotation " + a.Name, Ref: "A", Expr: a.Expr})
	}
	for _, v := range read.Templating.List {
		if v.Type != "query" {
			continue
		}
		variable, err := v.variable()
		if err != nil {
			return Board{}, err
		}
		board.Variables = append(board.Variables, variable)
	}
	return board, nil
}

type jsonPanel struct {
	Title   string
	Targets []struct {
		RefID   string `json:"refId"`
		Expr    string
		Instant bool
	}
	Panels []jsonPanel
}

func (p jsonPanel) queries() (all []Query) {
	for _, target := range p.Targets {
		all = append(all, Query{Panel: p.Title, Ref: target.RefID, Expr: target.Expr, Instant: target.Instant})
	}
	for _, inner := range p.Panels {
		all = append(all, inner.queries()...)
	}
	return all
}

type jsonVariable struct {
	Name, Type, AllValue string
	Definition           string
	Multi, IncludeAll    bool
}

func (v jsonVariable) variable() (Variable, error) {
	values := regexp.MustCompile(`^label_values\((?:(.+),\s*)?([a-zA-Z_]+)\)$`).FindStringSubmatch(v.Definition)
	if values == nil {
		return Variable{}, fmt.Errorf("variable %s: %q is not label_values(series, label)", v.Name, v.Definition)
	}
	variable := Variable{Name: v.Name, Selector: values[1], Label: values[2], Several: v.Multi || v.IncludeAll}
	if v.IncludeAll {
		variable.All = v.AllValue
	}
	return variable, nil
}
