package prometheus

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

var update = flag.Bool("update", false, "write the PrometheusRule")

const ruleComponent = root + "/deploy/kustomize/components/prometheusrule/"

// TestPrometheusRule: the PrometheusRule has the contents of the two rule
// files, including comments. With -update it is rewritten.
func TestPrometheusRule(t *testing.T) {
	file := ruleComponent + "prometheusrule.yaml"
	want := prometheusRule(t)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, file); got != string(want) {
		t.Error("prometheusrule.yaml is not what the rule files say; run `cd test/suites/prometheus && go test -run TestPrometheusRule . -update`")
	}
}

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

// prometheusRule returns the object, with the labels of the PodMonitors.
func prometheusRule(t *testing.T) []byte {
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

// expandAliases replaces aliases by their contents, because some readers of
// manifests do not support them.
func expandAliases(node *yaml.Node) {
	for i, child := range node.Content {
		if child.Kind == yaml.AliasNode {
			whole := *child.Alias
			node.Content[i] = &whole
		}
		node.Content[i].Anchor = ""
		expandAliases(node.Content[i])
	}
}

// TestPrometheusRuleMatchesRuleFiles: Prometheus decodes the same rules from
// the object as from the files.
func TestPrometheusRuleMatchesRuleFiles(t *testing.T) {
	var object struct {
		Spec yaml.Node
	}
	if err := yaml.Unmarshal([]byte(read(t, ruleComponent+"prometheusrule.yaml")), &object); err != nil {
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
	got, err := promlabels.Rules(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := promlabels.Rules(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	if want = append(want, groups(t)...); !reflect.DeepEqual(got, want) {
		t.Errorf("of %d groups the object has %d, or others", len(want), len(got))
	}
}
