package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

// TestKustomize: both ways of installation create the same objects, so that
// documentation and tests of one apply to the other. The list has the
// exceptions, which only Helm creates.
func TestKustomize(t *testing.T) {
	const policies = "networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}], egress: {enabled: true}}"
	of := func(components ...string) []string { return append([]string{"podmonitor"}, components...) }
	for name, test := range map[string]struct {
		in         install
		folder     string
		components []string
	}{
		"all but access":      {install{file: "kustomize-values.yaml"}, "deploy/kustomize/base", of("prometheusrule", "otlp", "process-attribution")},
		"access runtimeClass": {install{values: "node: {access: {mode: runtimeClass}, release: {label: ''}}"}, "deploy/kustomize/overlays/nvidia", of()},
		"access dcgm":         {install{values: "node: {access: {mode: dcgm, dcgm: {hostEngine: 'nvidia-dcgm.gpu-operator.svc:5555'}}}"}, "deploy/kustomize/base", of("dcgm")},
		"access cdi":          {install{values: "node: {access: {mode: cdi}, release: {label: ''}}"}, "deploy/kustomize/base", of("cdi")},
		"access claim":        {install{values: "node: {access: {mode: claim}, release: {label: ''}}"}, "deploy/kustomize/base", of("admin-access")},
		"profiling":           {install{values: "node: {profiling: true, access: {mode: none}}"}, "deploy/kustomize/base", of("profiling")},
		"networkpolicy":       {install{values: "{node: {access: {mode: none}}, " + policies + "}"}, "deploy/kustomize/base", of("networkpolicy")},
		"networkpolicy dcgm":  {install{values: "{node: {access: {mode: dcgm, dcgm: {hostEngine: 'nvidia-dcgm.gpu-operator.svc:5555'}}}, " + policies + "}"}, "deploy/kustomize/base", of("networkpolicy", "dcgm")},
		"networkpolicy otlp":  {install{values: "{node: {access: {mode: none}}, otlp: {endpoint: 'http://otel-collector.observability:4317'}, " + policies + "}"}, "deploy/kustomize/base", of("networkpolicy", "otlp")},
		"exporterDir":         {install{values: "node: {exporterDir: /var/run/dra-exporter/plugins, access: {mode: none}}"}, "deploy/kustomize/base", of("driver-sockets")},
		"podsAPI":             {install{values: "node: {podsAPI: true, access: {mode: none}}"}, "deploy/kustomize/base", of("pods-api")},
	} {
		t.Run(name, func(t *testing.T) {
			test.in.apis = []string{podMonitors}
			want := kustomized(t, test.folder, test.components...)
			got := sameTemplateName(t, render(t, test.in).objects)
			for _, key := range []string{
				"Service/dra-exporter/dra-exporter-node",    // for ServiceMonitors and helm test
				"Service/dra-exporter/dra-exporter-cluster", // for ServiceMonitors and helm test
				"Pod/dra-exporter/dra-exporter-test",        // helm test
			} {
				if got[key] == nil {
					t.Errorf("the chart has no %s", key)
				}
				delete(got, key)
			}
			if want["Namespace/dra-exporter"] == nil {
				t.Error("the base has no namespace any more") // with Helm it must exist before
			}
			delete(want, "Namespace/dra-exporter")
			for key, one := range got {
				if one.text("kind") == "ConfigMap" { // TestDashboardsKustomize
					delete(got, key)
				}
			}
			same(t, got, want)
		})
	}
}

// TestManagedNodesComponent: the component makes the agents of the overlay those of the
// chart's second DaemonSet.
func TestManagedNodesComponent(t *testing.T) {
	want := kustomized(t, "deploy/kustomize/overlays/nvidia", "managed-nodes")["DaemonSet/dra-exporter/dra-exporter-node"]
	got := render(t, install{values: "node: {access: {mode: runtimeClass}}"}).need(t, "DaemonSet/dra-exporter/dra-exporter-node-managed")
	for _, one := range []object{got, want} {
		delete(one.at("metadata").(map[string]any), "name")
		for _, path := range [][]string{{"metadata", "labels"}, {"spec", "selector", "matchLabels"}, {"spec", "template", "metadata", "labels"}} {
			delete(one.at(path...).(map[string]any), "app.kubernetes.io/component")
		}
	}
	plain(got, want)
	if text := difference("", map[string]any(got), map[string]any(want)); text != "" {
		t.Error(text)
	}
}

// TestEveryComponentIsCompared: each component has values in the chart, or a
// reason here.
func TestEveryComponentIsCompared(t *testing.T) {
	source := read(t, "kustomize_test.go")
	folders, err := filepath.Glob(root + "/deploy/kustomize/components/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no components (%v)", err)
	}
	for _, folder := range folders {
		if name := filepath.Base(folder); !strings.Contains(source, `"`+name+`"`) {
			t.Errorf("the component %s is compared with no values of the chart", name)
		}
	}
}

// TestDashboardsKustomize: the dashboards of the chart are those that the
// kustomizations of its sets create.
func TestDashboardsKustomize(t *testing.T) {
	for name, chosen := range map[string][]string{"core": {sets.Core}, "two": {sets.Core, "capacity"}} {
		want := map[string]object{}
		for _, set := range chosen {
			maps.Copy(want, kustomized(t, "dashboards/"+set))
		}
		got := map[string]object{}
		values := "{dashboards: {enabled: true}, sets: [" + strings.Join(chosen, ", ") + "]}"
		for key, one := range render(t, install{values: values}).objects {
			if one.text("kind") == "ConfigMap" {
				labels := one["metadata"].(map[string]any)["labels"].(map[string]any)
				delete(labels, "app.kubernetes.io/component")
				delete(one["metadata"].(map[string]any), "namespace")
				got[strings.Replace(key, "/dra-exporter/", "/", 1)] = one
			}
		}
		t.Logf("%s: %d dashboards", name, len(got))
		same(t, got, want)
	}
}

// TestSets: the chart has the rules and alerts of the chosen sets, as the components do,
// and its schema knows each set.
func TestSets(t *testing.T) {
	var schema struct {
		Properties struct {
			Sets struct{ Items struct{ Enum []string } }
		}
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(chart, "values.schema.json"))), &schema); err != nil {
		t.Fatal(err)
	}
	names := setNames()
	if enum := schema.Properties.Sets.Items.Enum; !slices.Equal(enum, names) {
		t.Errorf("the schema has the sets %v, and there are %v", enum, names)
	}
	for _, set := range sets.All() {
		chosen, components := "core", []string{"prometheusrule"}
		if set.Name != sets.Core {
			chosen, components = "core, "+set.Name, append(components, "prometheusrule/"+set.Name)
		}
		want := map[string]int{}
		for _, one := range kustomized(t, "deploy/kustomize/base", components...) {
			count(want, one)
		}
		got := map[string]int{}
		for _, one := range render(t, install{values: "{rules: {enabled: true}, sets: [" + chosen + "]}"}).objects {
			count(got, one)
		}
		if !maps.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: the chart has %d rules, the components %d, or others", chosen, len(got), len(want))
		}
	}
	if _, err := tryRender(t, install{values: "{sets: [capacity]}"}); err == nil || !strings.Contains(err.Error(), "sets lacks core") {
		t.Errorf("sets without core: %v", err)
	}
}

func setNames() (names []string) {
	for _, set := range sets.All() {
		names = append(names, set.Name)
	}
	return names
}

// count counts the rules of a PrometheusRule by group and contents.
func count(rules map[string]int, one object) {
	if one.text("kind") != "PrometheusRule" {
		return
	}
	for _, group := range one["spec"].(map[string]any)["groups"].([]any) {
		group := group.(map[string]any)
		for _, rule := range group["rules"].([]any) {
			rules[fmt.Sprint(group["name"], group["interval"], rule)]++
		}
	}
}

// same compares objects, except for Helm's own labels.
func same(t *testing.T, got, want map[string]object) {
	t.Helper()
	for key := range got {
		if want[key] == nil {
			t.Errorf("the chart alone has %s", key)
		}
	}
	for key, one := range want {
		if got[key] == nil {
			t.Errorf("the chart lacks %s", key)
			continue
		}
		plain(got[key], one)
		if !reflect.DeepEqual(got[key], one) {
			t.Errorf("%s differs:\n%s", key, difference("", map[string]any(got[key]), map[string]any(one)))
		}
	}
}

// plain removes Helm's labels and the peer of helm test from the chart's
// object, and sorts variables, whose order is irrelevant here, in both
// objects.
func plain(helm, kustomize object) {
	own := []string{"app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "helm.sh/chart"}
	for _, path := range [][]string{
		{"metadata", "labels"}, {"spec", "selector", "matchLabels"}, {"spec", "podSelector", "matchLabels"}, {"spec", "template", "metadata", "labels"},
	} {
		if labels, ok := helm.at(path...).(map[string]any); ok {
			for _, label := range own {
				delete(labels, label)
			}
		}
	}
	if rules, ok := helm.at("spec", "ingress").([]any); ok { // without the pod of helm test
		for _, rule := range rules {
			rule := rule.(map[string]any)
			rule["from"] = slices.DeleteFunc(rule["from"].([]any), func(peer any) bool { return peer.(map[string]any)["podSelector"] != nil })
		}
	}
	for _, one := range []object{helm, kustomize} {
		containers, _ := one.pod().at("containers").([]any)
		for _, container := range containers {
			env, _ := container.(map[string]any)["env"].([]any)
			slices.SortFunc(env, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
}

// difference returns the paths at which two values differ.
func difference(path string, got, want any) string {
	if reflect.DeepEqual(got, want) {
		return ""
	}
	var out strings.Builder
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			for key := range want {
				out.WriteString(difference(path+"/"+key, got[key], want[key]))
			}
			for key := range got {
				if _, ok := want[key]; !ok {
					fmt.Fprintf(&out, "  %s/%s: the chart alone has %v\n", path, key, got[key])
				}
			}
			return out.String()
		}
	case []any:
		if got, ok := got.([]any); ok && len(got) == len(want) {
			for i := range want {
				out.WriteString(difference(fmt.Sprintf("%s/%d", path, i), got[i], want[i]))
			}
			return out.String()
		}
	}
	return fmt.Sprintf("  %s: %v by the chart, %v by Kustomize\n", path, got, want)
}

// kustomized returns the objects of a folder with components, as `kubectl
// kustomize` renders them.
func kustomized(t *testing.T, folder string, components ...string) map[string]object {
	t.Helper()
	return kustomizedWith(t, map[string]any{}, folder, components...)
}

// kustomizedWith is kustomized with more keys in the kustomization.
func kustomizedWith(t *testing.T, file map[string]any, folder string, components ...string) map[string]object {
	t.Helper()
	dir := t.TempDir()
	file["resources"] = []string{relative(t, dir, folder)}
	var paths []string
	for _, component := range components {
		paths = append(paths, relative(t, dir, "deploy/kustomize/components/"+component))
	}
	file["components"] = paths
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]object{}
	for _, resource := range made.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		var one object
		if err := yaml.Unmarshal(text, &one); err != nil {
			t.Fatal(err)
		}
		all[one.key()] = one
	}
	return all
}

// relative returns the path of a folder of the repository relative to another.
// Kustomize does not accept absolute paths.
func relative(t *testing.T, from, folder string) string {
	t.Helper()
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		t.Fatal(err)
	}
	to, err := filepath.Abs(filepath.Join(root, folder))
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Rel(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
