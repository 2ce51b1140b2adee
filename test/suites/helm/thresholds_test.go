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

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/chart/thresholds"
)

const (
	alertsFile    = root + "/alerts/alerts.yaml"
	recordingFile = root + "/alerts/recording.yaml"
)

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

// markedRules returns the rules of alerts.yaml with their thresholds.
func markedRules(t *testing.T) []thresholds.Rule {
	t.Helper()
	rules, err := thresholds.Read(read(t, alertsFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(rules) < 20 {
		t.Fatalf("alerts.yaml has %d alerts", len(rules))
	}
	return rules
}

// distinct returns the thresholds of each alert, in the order of alerts.yaml.
// Rules that share one have the same default.
func distinct(t *testing.T, rules []thresholds.Rule) (marks []thresholds.Threshold) {
	t.Helper()
	for _, one := range rules {
		for _, mark := range one.Thresholds {
			at := slices.IndexFunc(marks, func(other thresholds.Threshold) bool { return other.Alert == mark.Alert && other.Name == mark.Name })
			switch {
			case at < 0 && mark.Sentence == "":
				t.Errorf("%s: the threshold %s has no sentence", mark.Alert, mark.Name)
			case at < 0:
				marks = append(marks, mark)
			case marks[at].Standard != mark.Standard || mark.Sentence != "":
				t.Errorf("%s: the threshold %s is there twice, and not with the same default and one sentence", mark.Alert, mark.Name)
			}
		}
	}
	// The rules of one alert may have others between them.
	slices.SortStableFunc(marks, func(a, b thresholds.Threshold) int {
		first := func(alert string) int {
			return slices.IndexFunc(rules, func(one thresholds.Rule) bool { return one.Alert == alert })
		}
		return first(a.Alert) - first(b.Alert)
	})
	return marks
}

// withDefaults returns values.yaml with the thresholds.
func withDefaults(t *testing.T, rules []thresholds.Rule) string {
	t.Helper()
	var out strings.Builder
	out.WriteString("  thresholds:\n")
	last := ""
	for _, mark := range distinct(t, rules) {
		if mark.Alert != last {
			fmt.Fprintf(&out, "    %s:\n", mark.Alert)
			last = mark.Alert
		}
		fmt.Fprintf(&out, "      # -- %s.\n      %s: %s\n", strings.ToUpper(mark.Sentence[:1])+mark.Sentence[1:], mark.Name, mark.Standard)
	}
	return between(t, read(t, filepath.Join(chart, "values.yaml")), "  # <thresholds>\n", "  # </thresholds>\n", out.String())
}

// withSchema returns values.schema.json with the thresholds.
func withSchema(t *testing.T, rules []thresholds.Rule) string {
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
		if alerts[mark.Alert] == nil {
			alerts[mark.Alert] = map[string]schema{}
		}
		kind := "alertDuration"
		if number, err := strconv.ParseFloat(mark.Standard, 64); err == nil && number > 0 && number < 1 {
			kind = "alertShare"
		} else if err == nil {
			kind = "alertCount"
		}
		alerts[mark.Alert][mark.Name] = schema{Ref: "#/definitions/" + kind}
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

// ruleGroups returns the groups that a release with all sets renders.
func ruleGroups(t *testing.T, values string) []any {
	t.Helper()
	given := parse(t, values)
	if given == nil {
		given = map[string]any{}
	}
	given["sets"] = setNames()
	text, err := json.Marshal(given)
	if err != nil {
		t.Fatal(err)
	}
	out := render(t, install{values: string(text), apis: []string{prometheusRules}})
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

// TestDefaultRulesAreTheFiles: without other values the release of all sets has exactly
// the rules of the two files.
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
		switch number, err := strconv.ParseFloat(mark.Standard, 64); {
		case err != nil:
			other, seconds = "77m", "4620"
		case number > 0 && number < 1:
			other = "0.77"
		}
		// What the file would be with the other default.
		var want strings.Builder
		for _, one := range rules {
			comment, body := one.Body()
			for _, own := range one.Thresholds {
				for _, text := range own.Texts {
					if own.Alert != mark.Alert || own.Name != mark.Name {
						continue
					}
					changed := regexp.MustCompile(`[\d.]+[mhs]?`).ReplaceAllStringFunc(text, func(old string) string {
						if seconds != "" && !strings.ContainsAny(old[len(old)-1:], "mhs") {
							return seconds
						}
						return other
					})
					body = thresholds.Whole(text).ReplaceAllString(body, "${1}"+changed+"${2}")
				}
			}
			want.WriteString(comment + "      - alert: " + body)
		}
		if want.String() == shipped {
			t.Errorf("%s: %s changes nothing", mark.Alert, mark.Name)
		}
		got := ruleGroups(t, fmt.Sprintf("rules: {thresholds: {%s: {%s: %s}}}", mark.Alert, mark.Name, other))
		if wanted := groupsOf(t, want.String(), read(t, recordingFile)); !reflect.DeepEqual(got, wanted) {
			t.Errorf("%s.%s=%s:\n%s", mark.Alert, mark.Name, other, difference("", any(got), any(wanted)))
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
