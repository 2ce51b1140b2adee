// Package thresholds reads the marks of alerts.yaml, which name the texts of a
// rule that a value of the Helm chart replaces.
package thresholds

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Threshold is a mark of alerts.yaml: a value of the chart, and the texts of a
// rule in which it is.
type Threshold struct {
	Alert, Name, Standard string
	Texts                 []string
	Sentence              string // empty if an earlier rule of the alert has it
}

// Rule is a rule of alerts.yaml with the comment above it.
type Rule struct {
	Alert, Text string
	Thresholds  []Threshold
}

// Body returns the comment above the rule, and the rule from its name on.
func (r Rule) Body() (comment, body string) {
	comment, body, _ = strings.Cut(r.Text, beforeName)
	return comment, body
}

const beforeName = "      - alert: "

// Read returns the text of alerts.yaml in pieces, each of which ends with a rule.
// The error names each mark that has another form.
func Read(text string) ([]Rule, error) {
	begin := regexp.MustCompile(`(?m)^` + beforeName + `(\w+)\n`)
	mark := regexp.MustCompile(`(?m)^      # Threshold (\w+)=(\S+) in ("[^"]+"(?:, "[^"]+")*)(?:: (.+))?\.$`)
	outdented := regexp.MustCompile(`(?m)^ {0,6}\S`)
	starts := begin.FindAllStringSubmatchIndex(text, -1)
	if len(starts) == 0 {
		return nil, errors.New("there are no alerts")
	}
	var rules []Rule
	var errs []error
	end := 0
	for _, at := range starts {
		stop := len(text) // of the rule: the next line that is indented less
		if next := outdented.FindStringIndex(text[at[1]:]); next != nil {
			stop = at[1] + next[0]
		}
		rule := Rule{Alert: text[at[2]:at[3]], Text: text[end:stop]}
		comment := text[end:at[0]]
		for _, match := range mark.FindAllStringSubmatch(comment, -1) {
			var texts []string
			for quoted := range strings.SplitSeq(match[3], `", "`) {
				texts = append(texts, strings.Trim(quoted, `"`))
			}
			rule.Thresholds = append(rule.Thresholds, Threshold{rule.Alert, match[1], match[2], texts, match[4]})
		}
		if strings.Count(comment, "# Threshold ") != len(rule.Thresholds) {
			errs = append(errs, fmt.Errorf("%s: a mark is not of the form NAME=DEFAULT in \"TEXT\": SENTENCE.\n%s", rule.Alert, comment))
		}
		rules = append(rules, rule)
		end = stop
	}
	rules[len(rules)-1].Text += text[end:]
	return rules, errors.Join(errs...)
}

// WithPlaces returns alerts.yaml with a place for each threshold, which is
// <<value ALERT NAME>> or <<seconds ALERT NAME>>. The error names each text that
// is not in its rule.
func WithPlaces(rules []Rule) (string, error) {
	var out strings.Builder
	var errs []error
	for _, rule := range rules {
		comment, body := rule.Body()
		for _, mark := range rule.Thresholds {
			for _, text := range mark.Texts {
				place, err := mark.place(text)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				whole := Whole(text)
				if !whole.MatchString(body) {
					errs = append(errs, fmt.Errorf("%s: %q of the threshold %s is not in the rule", rule.Alert, text, mark.Name))
				}
				body = whole.ReplaceAllString(body, "${1}"+place+"${2}")
			}
		}
		out.WriteString(comment + beforeName + body)
	}
	return out.String(), errors.Join(errs...)
}

// Whole returns what finds a text that is neither a part of another word nor of
// another number, with what is before and after it as the groups 1 and 2.
func Whole(text string) *regexp.Regexp {
	return regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(text) + `($|[^\w.])`)
}

// place returns a text of a rule with a place in it for the threshold.
func (t Threshold) place(text string) (string, error) {
	if before, after, ok := strings.Cut(text, t.Standard); ok {
		return fmt.Sprintf("%s<<value %s %s>>%s", before, t.Alert, t.Name, after), nil
	}
	if seconds := t.seconds(); seconds != "" {
		if before, after, ok := strings.Cut(text, seconds); ok {
			return fmt.Sprintf("%s<<seconds %s %s>>%s", before, t.Alert, t.Name, after), nil
		}
	}
	return "", fmt.Errorf("%s: %q has not the default of %s, %s", t.Alert, text, t.Name, t.Standard)
}

// seconds returns the default in seconds; empty if it is no duration.
func (t Threshold) seconds() string {
	days, inDays := strings.CutSuffix(t.Standard, "d")
	if inDays {
		days += "h"
	}
	duration, err := time.ParseDuration(days)
	if err != nil {
		return ""
	}
	if inDays {
		duration *= 24
	}
	return strconv.FormatFloat(duration.Seconds(), 'f', -1, 64)
}
