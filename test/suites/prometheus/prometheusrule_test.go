package prometheus

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"go.yaml.in/yaml/v3"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

var update = flag.Bool("update", false, "write the PrometheusRule")

const ruleComponent = root + "/deploy/kustomize/components/prometheusrule/"

// TestPrometheusRule: the PrometheusRule of each set has its rules of the two files,
// with their comments, and a component has it. With -update they are rewritten.
func TestPrometheusRule(t *testing.T) {
	belongs, err := sets.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range sets.All() {
		want := map[string]string{ruleFile(set.Name): string(prometheusRule(t, set.Name, belongs))}
		if set.Name != sets.Core {
			want[filepath.Join(filepath.Dir(ruleFile(set.Name)), "kustomization.yaml")] = fmt.Sprintf(ruleKustomization, set.Name)
		}
		for file, text := range want {
			if *update {
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			if read(t, file) != text {
				t.Errorf("%s is not what the rule files say; run `cd test/suites/prometheus && go test -run TestPrometheusRule . -update`", file)
			}
		}
	}
	files, err := filepath.Glob(ruleComponent + "*/prometheusrule.yaml")
	if err != nil || len(files) != len(sets.All())-1 {
		t.Errorf("beside that of core there are %v (%v)", files, err)
	}
}

// ruleFile is that of a set. The component of core has those of other sets in it.
func ruleFile(set string) string {
	if set == sets.Core {
		set = "."
	}
	return filepath.Join(ruleComponent, set, "prometheusrule.yaml")
}

const ruleKustomization = `# Recording rules and alerts of the set %s, beside those of core.
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
resources:
  - prometheusrule.yaml
`

// TestPatchOfTheDocument: the example of docs/alerts.md changes the rule that
// it names.
func TestPatchOfTheDocument(t *testing.T) {
	path := regexp.MustCompile(`path: /spec/groups/(\d+)/rules/(\d+)/alert\n +value: (\w+)`)
	match := path.FindStringSubmatch(read(t, root+"/docs/alerts.md"))
	if match == nil {
		t.Fatal("docs/alerts.md has no example")
	}
	var object struct {
		Spec struct {
			Groups []struct{ Rules []struct{ Alert string } }
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, ruleComponent+"prometheusrule.yaml")), &object); err != nil {
		t.Fatal(err)
	}
	group, _ := strconv.Atoi(match[1])
	rule, _ := strconv.Atoi(match[2])
	if got := object.Spec.Groups[group].Rules[rule].Alert; got != match[3] {
		t.Errorf("docs/alerts.md calls it %s, and it is %s", match[3], got)
	}
}

// prometheusRule returns the object of a set, with the labels of the PodMonitors.
func prometheusRule(t *testing.T, set string, belongs sets.Belongs) []byte {
	t.Helper()
	groups := &yaml.Node{Kind: yaml.SequenceNode}
	for _, file := range []string{alertsFile, rulesFile} {
		var document struct{ Groups yaml.Node }
		if err := yaml.Unmarshal([]byte(read(t, file)), &document); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		groups.Content = append(groups.Content, document.Groups.Content...)
	}
	expandAliases(groups)
	groups.Content = slices.DeleteFunc(groups.Content, func(group *yaml.Node) bool {
		rules := child(group, "rules")
		rules.Content = slices.DeleteFunc(rules.Content, func(rule *yaml.Node) bool {
			if alert := child(rule, "alert"); alert != nil {
				return belongs.Alerts[alert.Value] != set
			}
			return belongs.Records[child(rule, "record").Value] != set
		})
		return len(rules.Content) == 0
	})
	object := struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct {
			Name, Namespace string
			Labels          map[string]string
		}
		Spec struct{ Groups *yaml.Node }
	}{APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule"}
	object.Metadata.Name, object.Metadata.Namespace = "dra-exporter", "dra-exporter"
	if set != sets.Core {
		object.Metadata.Name += "-" + set
	}
	object.Metadata.Labels = map[string]string{"app.kubernetes.io/name": "dra-exporter", "app.kubernetes.io/component": "rules"}
	object.Spec.Groups = groups
	var out bytes.Buffer
	out.WriteString("# Made from alerts/alerts.yaml and alerts/recording.yaml by a test; `make rules` says when it differs.\n")
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(object); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// child returns the value of a key, nil if there is none.
func child(object *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(object.Content); i += 2 {
		if object.Content[i].Value == key {
			return object.Content[i+1]
		}
	}
	return nil
}

// expandAliases replaces aliases by their contents, because some readers of
// manifests do not support them.
func expandAliases(node *yaml.Node) {
	for i, inner := range node.Content {
		if inner.Kind == yaml.AliasNode {
			whole := *inner.Alias
			node.Content[i] = &whole
		}
		node.Content[i].Anchor = ""
		expandAliases(node.Content[i])
	}
}

// TestPrometheusRuleMatchesRuleFiles: Prometheus decodes the same rules from the
// objects of all sets as from the files.
func TestPrometheusRuleMatchesRuleFiles(t *testing.T) {
	count := func(groups []rulefmt.RuleGroup) map[string]int {
		counts := map[string]int{}
		for _, group := range groups {
			for _, rule := range group.Rules {
				counts[fmt.Sprintf("%s %s %+v", group.Name, group.Interval, rule)]++
			}
		}
		return counts
	}
	var shipped []rulefmt.RuleGroup
	for _, set := range sets.All() {
		var object struct{ Spec yaml.Node }
		if err := yaml.Unmarshal([]byte(read(t, ruleFile(set.Name))), &object); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(&object.Spec)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "spec.yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		more, err := promlabels.Rules(file)
		if err != nil {
			t.Fatal(err)
		}
		shipped = append(shipped, more...)
	}
	alerts, err := promlabels.Rules(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := count(shipped), count(append(alerts, groups(t)...)); !maps.Equal(got, want) {
		t.Errorf("the objects have %d different rules, the files %d, or others", len(got), len(want))
	}
}
