package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
	"github.com/dra-exporter/dra-exporter/test/e2e/scrape"
)

// span is the time range of a dashboard in a test.
type span struct{ from, to time.Time }

// scraped is how often the Prometheus servers of the dashboards' tests scrape and
// evaluate rules.
const scraped = 5 * time.Second

// window is what variables of the range stand for: of an hour, as dashboards are
// opened with, of which a test has seen the end.
func (s span) window() queries.Window {
	return queries.Window{Range: time.Hour, Step: scraped, Interval: scraped}
}

// line is a row of an answer over time, without values that are no numbers.
type line struct {
	labels scrape.Labels
	values []float64
}

// last is the newest value; none is no number.
func (l line) last() float64 {
	if len(l.values) == 0 {
		return math.NaN()
	}
	return l.values[len(l.values)-1]
}

// queryRange evaluates an expression throughout a span. What Prometheus warns of is an
// error: a dashboard shows a triangle for it.
func (s *prometheus) queryRange(ctx context.Context, expr string, when span) ([]line, error) {
	var answer struct {
		Status, Error string
		Warnings      []string
		Data          struct {
			Result []struct {
				Metric     scrape.Labels
				Values     [][2]any
				Histograms []any
			}
		}
	}
	parameters := url.Values{"query": {expr}, "step": {scraped.String()}, "start": {instant(when.from)}, "end": {instant(when.to)}}
	if err := s.get(ctx, "/api/v1/query_range?"+parameters.Encode(), &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	if answer.Status != "success" || len(answer.Warnings) > 0 {
		return nil, fmt.Errorf("%s: %s %q", expr, answer.Error, answer.Warnings)
	}
	var found []line
	for _, result := range answer.Data.Result {
		if len(result.Histograms) > 0 {
			return nil, fmt.Errorf("%s: the answer has native histograms, which no panel shows", expr)
		}
		row := line{labels: result.Metric}
		for _, sample := range result.Values {
			text, _ := sample[1].(string)
			if value, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(value) {
				row.values = append(row.values, value)
			}
		}
		if len(row.values) > 0 {
			found = append(found, row)
		}
	}
	return found, nil
}

// labelValues are those of a label, as Grafana asks for them.
func (s *prometheus) labelValues(ctx context.Context, selector, label string, when span) ([]string, error) {
	var answer struct {
		Status, Error string
		Data          []string
	}
	parameters := url.Values{"start": {instant(when.from)}, "end": {instant(when.to)}}
	if selector != "" {
		parameters.Set("match[]", selector)
	}
	if err := s.get(ctx, "/api/v1/label/"+label+"/values?"+parameters.Encode(), &answer); err != nil {
		return nil, fmt.Errorf("values of %s of %s: %w", label, selector, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("values of %s of %s: %s", label, selector, answer.Error)
	}
	return answer.Data, nil
}

func instant(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// namedQuery is one that a dashboard, a rule or an alert asks. It is asked in one
// way for each choice of a board about one thing: a claim has panels that another
// leaves empty.
type namedQuery struct {
	board, panel, ref string
	exprs             []string
	choices           []queries.Chosen // as many as exprs; none of a rule
}

func (q namedQuery) String() string { return q.board + " / " + q.panel + " / " + q.ref }

// with is the expression for a choice; empty, if there is no such choice.
func (q namedQuery) with(choice queries.Chosen) string {
	for i, chosen := range q.choices {
		if maps.EqualFunc(chosen, choice, slices.Equal) {
			return q.exprs[i]
		}
	}
	return ""
}

// hasData: it has data for one choice at least.
func (q namedQuery) hasData(ctx context.Context, s *prometheus, when span) (bool, error) {
	for _, expr := range q.exprs {
		rows, err := s.queryRange(ctx, expr, when)
		if err != nil || len(rows) > 0 {
			return len(rows) > 0, err
		}
	}
	return false, nil
}

// boardQueries are the questions of a board, with every choice of the variables that
// have a single value, and how many values each variable has.
func (s *prometheus) boardQueries(ctx context.Context, board queries.Board, when span) ([]namedQuery, map[string]int, error) {
	choices, offered, err := s.choices(ctx, board, when)
	if err != nil {
		return nil, nil, err
	}
	var all []namedQuery
	for _, query := range board.Queries {
		q := namedQuery{board: board.UID, panel: query.Panel, ref: query.Ref}
		for _, chosen := range choices {
			expr, err := board.Expr(query.Expr, chosen, when.window())
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", q, err)
			}
			q.exprs, q.choices = append(q.exprs, expr), append(q.choices, chosen)
		}
		all = append(all, q)
	}
	return all, offered, nil
}

// maxChoices bounds how many claims a board about one is opened for.
const maxChoices = 60

// choices are what can be chosen of the variables that have a single value, one
// within the other.
func (s *prometheus) choices(ctx context.Context, board queries.Board, when span) (choices []queries.Chosen, offered map[string]int, err error) {
	choices, offered = []queries.Chosen{{}}, map[string]int{}
	for _, variable := range board.Variables {
		var next []queries.Chosen
		for _, chosen := range choices {
			selector, err := board.Expr(variable.Selector, chosen, when.window())
			if err != nil {
				return nil, nil, fmt.Errorf("%s: variable %s: %w", board.UID, variable.Name, err)
			}
			values, err := s.labelValues(ctx, selector, variable.Label, when)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: variable %s: %w", board.UID, variable.Name, err)
			}
			offered[variable.Name] += len(values)
			next = append(next, chosenOf(variable, chosen, values)...)
		}
		choices = next[:min(len(next), maxChoices)]
	}
	return choices, offered, nil
}

// chosenOf extends a choice by a variable: by all its values together, where that
// can be chosen, else by each. Where there is none Grafana takes an empty one.
func chosenOf(variable queries.Variable, chosen queries.Chosen, values []string) (all []queries.Chosen) {
	if variable.All != "" {
		return []queries.Chosen{chosen}
	}
	if len(values) == 0 {
		values = []string{""}
	}
	for _, value := range values {
		all = append(all, merged(chosen, queries.Chosen{variable.Name: {value}}))
	}
	return all
}
