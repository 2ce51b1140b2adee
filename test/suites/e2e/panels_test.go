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
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// span is the time range of a dashboard in a test.
type span struct{ from, to time.Time }

// scraped is the scrape and evaluation interval of the Prometheus servers of
// the dashboards' tests.
const scraped = 5 * time.Second

// window returns the values of the range's variables: those of an hour, as
// dashboards are opened with, which ends with the test's span.
func (s span) window() queries.Window {
	return queries.Window{Range: time.Hour, Step: scraped, Interval: scraped}
}

// line is a row of a range query, without values that are not numbers.
type line struct {
	labels scrape.Labels
	values []float64
}

// last returns the newest value, NaN if there is none.
func (l line) last() float64 {
	if len(l.values) == 0 {
		return math.NaN()
	}
	return l.values[len(l.values)-1]
}

// queryRange evaluates an expression over a span. A warning of Prometheus is
// an error, because a dashboard shows an icon for it.
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

// labelValues returns the values of a label, as Grafana reads them.
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

// namedQuery is the query of a dashboard, rule or alert. A board about one
// object has one expression for each choice of the object, because a panel may
// be empty for one claim and not for another.
type namedQuery struct {
	board, panel, ref string
	exprs             []string
	choices           []queries.Chosen // as many as exprs; none for a rule
}

func (q namedQuery) String() string { return q.board + " / " + q.panel + " / " + q.ref }

// with returns the expression for a choice, empty if there is no such choice.
func (q namedQuery) with(choice queries.Chosen) string {
	for i, chosen := range q.choices {
		if maps.EqualFunc(chosen, choice, slices.Equal) {
			return q.exprs[i]
		}
	}
	return ""
}

// hasData reports whether the query has data for at least one choice.
func (q namedQuery) hasData(ctx context.Context, s *prometheus, when span) (bool, error) {
	for _, expr := range q.exprs {
		rows, err := s.queryRange(ctx, expr, when)
		if err != nil || len(rows) > 0 {
			return len(rows) > 0, err
		}
	}
	return false, nil
}

// boardQueries returns the queries of a board, with every choice of the
// variables that have a single value, and how many values each variable has.
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

// maxChoices limits for how many claims a board about one claim is opened.
const maxChoices = 60

// choices returns all choices of the variables that have a single value. The
// values of a later variable depend on the earlier ones.
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

// chosenOf extends a choice by a variable: by all its values if several can be
// selected, else by each. If there is none, Grafana uses an empty value.
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
