package queries

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Chosen are the values that are chosen of variables, by name. A variable that is
// not in it has all its values, if it can have all.
type Chosen map[string][]string

// Window is the time range of a dashboard and how often its data is scraped.
type Window struct {
	Range    time.Duration
	Step     time.Duration // of a range query
	Interval time.Duration // of scrapes
}

// Expr is an expression of the dashboard as it is sent to Prometheus. A variable
// that it does not have, or that has no value, is an error. $1 is no variable, but
// what label_replace() found: Grafana leaves alone what it does not know.
func (b Board) Expr(expr string, chosen Chosen, window Window) (string, error) {
	var failed error
	text := regexp.MustCompile(`\$([A-Za-z_]\w*)|\$\{(\w+)(?::\w+)?\}`).ReplaceAllStringFunc(expr, func(found string) string {
		name := strings.Trim(strings.SplitN(found, ":", 2)[0], "${}")
		value, err := b.value(name, chosen, window)
		if err != nil {
			failed = err
		}
		return value
	})
	return text, failed
}

func (b Board) value(name string, chosen Chosen, window Window) (string, error) {
	switch name {
	case "__rate_interval": // Grafana: max(step + scrape interval, 4 × scrape interval)
		return promDuration(max(window.Step+window.Interval, 4*window.Interval)), nil
	case "__interval":
		return promDuration(window.Step), nil
	case "__range":
		return promDuration(window.Range), nil
	case "__range_s":
		return strconv.Itoa(int(window.Range.Seconds())), nil
	}
	for _, v := range b.Variables {
		if v.Name == name {
			return v.interpolated(chosen[name])
		}
	}
	return "", fmt.Errorf("dashboard %s has no variable %q", b.UID, name)
}

// interpolated is what Grafana's Prometheus data source puts in the place of a
// variable: values of one that may have several are quoted for a regular
// expression, whose backslashes are quoted once more for the string that it stands
// in; of one that has a single value, the string's own special characters alone.
// (npm package @grafana/prometheus 13.2, interpolateQueryExpr in escaping.ts, with
// the feature prometheusSpecialCharsInLabelValues: without it a quotation mark in
// a value breaks the query, but no name in Kubernetes has one)
func (v Variable) interpolated(values []string) (string, error) {
	if len(values) == 0 && v.All != "" {
		return v.All, nil
	}
	if len(values) == 0 {
		return "", fmt.Errorf("variable %s has no value", v.Name)
	}
	if !v.Several {
		return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(values[0]), nil
	}
	quoted := make([]string, len(values))
	for i, value := range values {
		quoted[i] = quotedRegex(value)
	}
	if len(quoted) == 1 {
		return quoted[0], nil
	}
	return "(" + strings.Join(quoted, "|") + ")", nil
}

func quotedRegex(value string) string {
	value = strings.ReplaceAll(value, `\`, `\\\\`)
	value = strings.ReplaceAll(value, `"`, `\\\"`)
	return regexp.MustCompile(`[$^*{}\[\]'+?.()|]`).ReplaceAllString(value, `\\$0`)
}

func promDuration(d time.Duration) string { return fmt.Sprintf("%ds", max(1, int(d.Seconds()))) }
