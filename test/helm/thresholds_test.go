package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	alertsFile    = root + "/alerts/alerts.yaml"
	recordingFile = root + "/alerts/recording.yaml"
)

// threshold is a mark of alerts.yaml: a value of the chart, and the texts of a
// rule in which it is.
type threshold struct {
	alert, name, standard string
	texts                 []string
	sentence              string // empty if an earlier rule of the alert has it
}

// rule is a rule of alerts.yaml with the comment above it.
type rule struct {
	alert, text string
	thresholds  []threshold
}

// TestThresholds: values.yaml and the schema have the thresholds that the marks
// of alerts.yaml name. With -update they are rewritten.
func TestThresholds(t *testing.T) {
	rules := markedRules(t)
	agrees(t, filepath.Join(chart, "values.yaml"), withDefaults(t, rules))
	agrees(t, filepath.Join(chart, "values.schema.json"), withSchema(t, rules))
}

// agrees compares a file with what it should be, or writes it.
func agrees(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, file) != want {
		t.Errorf("%s is not what alerts/alerts.yaml says; run `make chart`", filepath.Base(file))
	}
}

// markedRules returns the text of alerts.yaml in pieces, each of which ends
// with a rule.
func markedRules(t *testing.T) (rules []rule) {
	t.Helper()
	begin := regexp.MustCompile(`(?m)^      - alert: (\w+)\n`)
	mark := regexp.MustCompile(`(?m)^      # Threshold (\w+)=(\S+) in ("[^"]+"(?:, "[^"]+")*)(?:: (.+))?\.$`)
	text := read(t, alertsFile)
	starts := begin.FindAllStringSubmatchIndex(text, -1)
	if len(starts) < 20 {
		t.Fatalf("alerts.yaml has %d alerts", len(starts))
	}
	end := 0
	for _, at := range starts {
		stop := len(text) // of the rule: the next line that is indented less
		if next := regexp.MustCompile(`(?m)^ {0,6}\S`).FindStringIndex(text[at[1]:]); next != nil {
			stop = at[1] + next[0]
		}
		one := rule{alert: text[at[2]:at[3]], text: text[end:stop]}
		comment := text[end:at[0]]
		for _, found := range mark.FindAllStringSubmatch(comment, -1) {
			var texts []string
			for _, quoted := range strings.Split(found[3], `", "`) {
				texts = append(texts, strings.Trim(quoted, `"`))
			}
			one.thresholds = append(one.thresholds, threshold{one.alert, found[1], found[2], texts, found[4]})
		}
		if strings.Count(comment, "# Threshold ") != len(one.thresholds) {
			t.Errorf("%s: a mark is not of the form NAME=DEFAULT in \"TEXT\": SENTENCE.\n%s", one.alert, comment)
		}
		rules = append(rules, one)
		end = stop
	}
	rules[len(rules)-1].text += text[end:]
	return rules
}

// withPlaces returns alerts.yaml with a place for each threshold.
func withPlaces(t *testing.T, rules []rule) string {
	t.Helper()
	var out strings.Builder
	for _, one := range rules {
		comment, body, _ := strings.Cut(one.text, "      - alert: ")
		for _, mark := range one.thresholds {
			for _, text := range mark.texts {
				// Neither a part of another word nor of another number.
				whole := regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(text) + `($|[^\w.])`)
				if !whole.MatchString(body) {
					t.Errorf("%s: %q of the threshold %s is not in the rule", one.alert, text, mark.name)
				}
				body = whole.ReplaceAllString(body, "${1}"+place(t, mark, text)+"${2}")
			}
		}
		out.WriteString(comment + "      - alert: " + body)
	}
	return out.String()
}

// place returns the text of a rule with a place in it for the threshold.
func place(t *testing.T, mark threshold, text string) string {
	t.Helper()
	seconds := ""
	if duration, err := time.ParseDuration(strings.Replace(mark.standard, "d", "h", 1)); err == nil {
		if strings.HasSuffix(mark.standard, "d") {
			duration *= 24
		}
		seconds = strconv.FormatFloat(duration.Seconds(), 'f', -1, 64)
	}
	for form, standard := range map[string]string{"value": mark.standard, "seconds": seconds} {
		if before, after, found := strings.Cut(text, standard); found && standard != "" {
			return fmt.Sprintf("%s<<%s %s %s>>%s", before, form, mark.alert, mark.name, after)
		}
	}
	t.Errorf("%s: %q has not the default of %s, %s", mark.alert, text, mark.name, mark.standard)
	return text
}

// distinct returns the thresholds of each alert, in the order of alerts.yaml.
// Rules that share one have the same default.
func distinct(t *testing.T, rules []rule) (marks []threshold) {
	t.Helper()
	for _, one := range rules {
		for _, mark := range one.thresholds {
			at := slices.IndexFunc(marks, func(other threshold) bool { return other.alert == mark.alert && other.name == mark.name })
			switch {
			case at < 0 && mark.sentence == "":
				t.Errorf("%s: the threshold %s has no sentence", mark.alert, mark.name)
			case at < 0:
				marks = append(marks, mark)
			case marks[at].standard != mark.standard || mark.sentence != "":
				t.Errorf("%s: the threshold %s is there twice, and not with the same default and one sentence", mark.alert, mark.name)
			}
		}
	}
	// The rules of one alert may have others between them.
	slices.SortStableFunc(marks, func(a, b threshold) int {
		first := func(alert string) int {
			return slices.IndexFunc(rules, func(one rule) bool { return one.alert == alert })
		}
		return first(a.alert) - first(b.alert)
	})
	return marks
}

// withDefaults returns values.yaml with the thresholds.
func withDefaults(t *testing.T, rules []rule) string {
	t.Helper()
	var out strings.Builder
	out.WriteString("  thresholds:\n")
	last := ""
	for _, mark := range distinct(t, rules) {
		if mark.alert != last {
			fmt.Fprintf(&out, "    %s:\n", mark.alert)
			last = mark.alert
		}
		fmt.Fprintf(&out, "      # -- %s.\n      %s: %s\n", strings.ToUpper(mark.sentence[:1])+mark.sentence[1:], mark.name, mark.standard)
	}
	return between(t, read(t, filepath.Join(chart, "values.yaml")), "  # <thresholds>\n", "  # </thresholds>\n", out.String())
}

// withSchema returns values.schema.json with the thresholds.
func withSchema(t *testing.T, rules []rule) string {
	t.Helper()
	type schema struct {
		Type       string `json:"type,omitempty"`
		Additional *bool  `json:"additionalProperties,omitempty"`
		Properties any    `json:"properties,omitempty"`
		Ref        string `json:"$ref,omitempty"`
	}
	no := false
	alerts := map[string]map[string]schema{}
	for _, mark := range distinct(t, rules) {
		if alerts[mark.alert] == nil {
			alerts[mark.alert] = map[string]schema{}
		}
		kind := "alertDuration"
		if number, err := strconv.ParseFloat(mark.standard, 64); err == nil && number > 0 && number < 1 {
			kind = "alertShare"
		} else if err == nil {
			kind = "alertCount"
		}
		alerts[mark.alert][mark.name] = schema{Ref: "#/definitions/" + kind}
	}
	properties := map[string]schema{}
	for alert, names := range alerts {
		properties[alert] = schema{Type: "object", Additional: &no, Properties: names}
	}
	text, err := json.MarshalIndent(schema{Type: "object", Additional: &no, Properties: properties}, "        ", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return between(t, read(t, filepath.Join(chart, "values.schema.json")), "        \"thresholds\": ", "\n        }", strings.TrimSuffix(string(text), "\n        }"))
}

// between replaces what is between the first begin and the next end.
func between(t *testing.T, text, begin, end, what string) string {
	t.Helper()
	before, rest, found := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("there is no place between %q and %q", begin, end)
	}
	return before + begin + what + end + after
}

// ruleGroups returns the groups that a release renders.
func ruleGroups(t *testing.T, values string) []any {
	t.Helper()
	out := render(t, install{values: values, apis: []string{prometheusRules}})
	return out.need(t, "PrometheusRule/dra-exporter/dra-exporter").at("spec", "groups").([]any)
}

// groupsOf returns the groups of files of rules.
func groupsOf(t *testing.T, texts ...string) (groups []any) {
	t.Helper()
	for _, text := range texts {
		groups = append(groups, parse(t, text)["groups"].([]any)...)
	}
	return groups
}

// TestDefaultRulesAreTheFiles: without values the release has exactly the
// rules of the two files.
func TestDefaultRulesAreTheFiles(t *testing.T) {
	if got, want := ruleGroups(t, "{}"), groupsOf(t, read(t, alertsFile), read(t, recordingFile)); !reflect.DeepEqual(got, want) {
		t.Errorf("the rules differ:\n%s", difference("", any(got), any(want)))
	}
}

// TestEachThresholdChangesItsRule: each value appears in the rules where its
// mark says so, and nowhere else.
func TestEachThresholdChangesItsRule(t *testing.T) {
	shipped := read(t, alertsFile)
	rules := markedRules(t)
	for _, mark := range distinct(t, rules) {
		other, seconds := "77", ""
		switch number, err := strconv.ParseFloat(mark.standard, 64); {
		case err != nil:
			other, seconds = "77m", "4620"
		case number > 0 && number < 1:
			other = "0.77"
		}
		// What the file would be with the other default.
		var want strings.Builder
		for _, one := range rules {
			comment, body, _ := strings.Cut(one.text, "      - alert: ")
			for _, own := range one.thresholds {
				for _, text := range own.texts {
					if own.alert != mark.alert || own.name != mark.name {
						continue
					}
					changed := regexp.MustCompile(`[\d.]+[mhs]?`).ReplaceAllStringFunc(text, func(old string) string {
						if seconds != "" && !strings.ContainsAny(old[len(old)-1:], "mhs") {
							return seconds
						}
						return other
					})
					body = regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(text)+`($|[^\w.])`).ReplaceAllString(body, "${1}"+changed+"${2}")
				}
			}
			want.WriteString(comment + "      - alert: " + body)
		}
		if want.String() == shipped {
			t.Errorf("%s: %s changes nothing", mark.alert, mark.name)
		}
		got := ruleGroups(t, fmt.Sprintf("rules: {thresholds: {%s: {%s: %s}}}", mark.alert, mark.name, other))
		if wanted := groupsOf(t, want.String(), read(t, recordingFile)); !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s.%s=%s:\n%s", mark.alert, mark.name, other, difference("", any(got), any(wanted)))
		}
	}
}

// TestThresholdsInUnits: durations in other units are seconds in expressions,
// and large counts are numbers that Prometheus reads.
func TestThresholdsInUnits(t *testing.T) {
	groups, err := yaml.Marshal(ruleGroups(t, `rules: {thresholds: {
		DRAClaimIdle: {after: 1d}, DRAClassExhausted: {after: 90s}, DRANVLinkErrors: {corrected: 3000000}, DRAMemoryNearlyFull: {share: 0.5, after: 1h}}}`))
	if err != nil {
		t.Fatal(err)
	}
	text := string(groups)
	for _, part := range []string{
		"(claim:dra_claim_idle_since_timestamp_seconds:max) > 86400\n", `{deviceclass!=""}) > 90` + "\n", `{state="free"}[90s])) == 0`, "Claims pending for less than 90s are not",
		"[1h])) > 3000000\n", "[5m])) > 0.5\n", "for: 1h\n",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in the rules", part)
		}
	}
	if strings.Contains(text, "<<") {
		t.Error("a place is left")
	}
}
