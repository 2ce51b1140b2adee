package sets

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Belongs has the set of each dashboard (by its file without .json), alert and
// recorded name.
type Belongs struct {
	Dashboards map[string]string
	Alerts     map[string]string
	Records    map[string]string
}

// Rule is a rule of a file for Prometheus.
type Rule struct {
	Record, Alert, Expr string
	Annotations         map[string]string
	Runbook             string `yaml:"-"` // its text
}

// Compute says where everything belongs. A recorded name belongs to core, if that needs
// it, else to the one set that does. dashboards are their texts by file without .json.
// It fails if something is in no set or in two, or if a set would need more than core
// and itself.
func Compute(sets []Set, dashboards map[string]string, rules []Rule) (Belongs, error) {
	belongs := Belongs{Dashboards: map[string]string{}, Alerts: map[string]string{}, Records: map[string]string{}}
	recorded := expressions{}
	alerts := map[string][]Rule{}
	for _, rule := range rules {
		if rule.Alert != "" {
			alerts[rule.Alert] = append(alerts[rule.Alert], rule)
			continue
		}
		recorded[rule.Record] = append(recorded[rule.Record], rule.Expr)
	}
	var problems []error
	say := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	assign := func(members map[string]string, name, set string) {
		if other := members[name]; other != "" {
			say("%s is in %s and in %s", name, other, set)
		}
		members[name] = set
	}
	for _, set := range sets {
		needs := map[string]bool{}
		for _, name := range set.Dashboards {
			text, ok := dashboards[name]
			if !ok {
				say("%s: there is no dashboard %s", set.Name, name)
			}
			assign(belongs.Dashboards, name, set.Name)
			recorded.add(needs, text)
		}
		for _, name := range set.Alerts {
			if len(alerts[name]) == 0 {
				say("%s: there is no alert %s", set.Name, name)
			}
			assign(belongs.Alerts, name, set.Name)
			for _, rule := range alerts[name] {
				recorded.add(needs, rule.Expr+"\n"+rule.Runbook)
				for _, text := range rule.Annotations {
					recorded.add(needs, text)
				}
			}
		}
		for _, pattern := range set.Records {
			matches := recorded.matches(pattern)
			if len(matches) == 0 {
				say("%s: nothing recorded is %s", set.Name, pattern)
			}
			for _, name := range matches {
				recorded.add(needs, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(needs)) {
			if belongs.Records[name] != Core {
				assign(belongs.Records, name, set.Name)
			}
		}
	}
	requireAll(say, "dashboard", dashboards, belongs.Dashboards)
	requireAll(say, "alert", alerts, belongs.Alerts)
	requireAll(say, "recorded name", recorded, belongs.Records)
	problems = append(problems, checkLinks(belongs, dashboards, alerts)...)
	return belongs, errors.Join(problems...)
}

// requireAll says what is a member of no set.
func requireAll[V any](say func(string, ...any), kind string, all map[string]V, members map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if members[name] == "" {
			say("no set has the %s %s", kind, name)
		}
	}
}

// checkLinks says which links of dashboards and alerts lead to a dashboard that may be
// absent: of another set than core and their own.
func checkLinks(belongs Belongs, dashboards map[string]string, alerts map[string][]Rule) (problems []error) {
	address := regexp.MustCompile(`/d/dra-([a-z-]+)`)
	check := func(what, set, text string) {
		for _, link := range address.FindAllStringSubmatch(text, -1) {
			if target := belongs.Dashboards[link[1]]; target != Core && target != set {
				problems = append(problems, fmt.Errorf("%s of %s links to %s of %s", what, set, link[1], target))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dashboards)) {
		check(name, belongs.Dashboards[name], dashboards[name])
	}
	for _, name := range slices.Sorted(maps.Keys(alerts)) {
		for _, rule := range alerts[name] {
			for _, key := range slices.Sorted(maps.Keys(rule.Annotations)) {
				check(name, belongs.Alerts[name], rule.Annotations[key])
			}
		}
	}
	return problems
}

// expressions are those of each recorded name.
type expressions map[string][]string

// add adds the recorded names in a text, and those that they are made of.
func (e expressions) add(needs map[string]bool, text string) {
	for _, name := range regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*(:[A-Za-z0-9_]+)+`).FindAllString(text, -1) {
		if exprs, ok := e[name]; ok && !needs[name] {
			needs[name] = true
			e.add(needs, strings.Join(exprs, "\n"))
		}
	}
}

func (e expressions) matches(pattern string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(e)), func(name string) bool {
		ok, err := path.Match(pattern, name)
		return err != nil || !ok
	})
}

// Read is Compute with the files of a repository.
func Read(repository string) (Belongs, error) {
	dashboards := map[string]string{}
	files, err := filepath.Glob(filepath.Join(repository, "dashboards", "*", "*.json"))
	if err != nil {
		return Belongs{}, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return Belongs{}, err
		}
		dashboards[strings.TrimSuffix(filepath.Base(file), ".json")] = string(text)
	}
	var rules []Rule
	for _, file := range []string{"alerts.yaml", "recording.yaml"} {
		text, err := os.ReadFile(filepath.Join(repository, "alerts", file))
		if err != nil {
			return Belongs{}, err
		}
		more, err := Decode(text)
		if err != nil {
			return Belongs{}, fmt.Errorf("%s: %w", file, err)
		}
		rules = append(rules, more...)
	}
	for i, rule := range rules {
		if rule.Alert != "" {
			text, err := os.ReadFile(filepath.Join(repository, "docs", "runbooks", rule.Alert+".md"))
			if err != nil {
				return Belongs{}, err
			}
			rules[i].Runbook = string(text)
		}
	}
	return Compute(All(), dashboards, rules)
}

// Decode returns the rules of a file.
func Decode(text []byte) ([]Rule, error) {
	var file struct{ Groups []struct{ Rules []Rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("decode rules: %w", err)
	}
	var rules []Rule
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	return rules, nil
}
