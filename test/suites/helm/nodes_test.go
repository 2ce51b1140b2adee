package helm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// clientLabel is the label of NVIDIA's operator for programs that use its driver.
const clientLabel = "nvidia.com/gpu.deploy.client"

// TestOneAgentOnEachNode: by Kubernetes' own matcher, a node that fits the user's selectors
// has exactly one agent, and none while its label is neither true nor absent. An agent that
// holds no GPU stays.
func TestOneAgentOnEachNode(t *testing.T) {
	const mine = "example.com/mine"
	selections := []string{
		"",
		"nodeSelector: {pool: gpu}",
		"nodeSelector: {" + clientLabel + ": 'true'}",
		"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [gpu]}]}, {matchExpressions: [{key: zone, operator: Exists}]}]}}}",
		"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}, {matchExpressions: [{key: type, operator: In, values: [virtual-kubelet]}]}]}}}",
		"affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: []}]}}}",
		"affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}",
		"{nodeSelector: {pool: gpu}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: In, values: [a]}]}, {matchExpressions: [{key: zone, operator: DoesNotExist}]}]}}}}",
	}
	holds := map[string]bool{"none": false, "runtimeClass": true, "claim": true}
	all, seen := nodes(mine), map[string]int{}
	for mode, holding := range holds {
		for _, label := range []string{"auto", mine} {
			for _, selection := range selections {
				selected := strings.TrimSuffix(strings.TrimPrefix(selection, "{"), "}")
				if !strings.HasPrefix(selection, "{") {
					selected = selection
				}
				values := func(label string) string {
					return fmt.Sprintf("node: {access: {mode: %s}, release: {label: '%s'}, %s}", mode, label, selected)
				}
				want := agents(t, values(""))
				if len(want) != 1 {
					t.Fatalf("without a label there are %d DaemonSets", len(want))
				}
				got := agents(t, values(label))
				for _, node := range all {
					value, labelled := node.Labels[map[string]string{"auto": clientLabel, mine: mine}[label]]
					var expected []string
					switch fits := want["dra-exporter-node"].fits(t, node); {
					case !fits:
					case !holding || !labelled:
						expected = []string{"dra-exporter-node"}
					case value == "true":
						expected = []string{"dra-exporter-node-managed"}
					}
					var found []string
					for _, name := range slices.Sorted(maps.Keys(got)) {
						if got[name].fits(t, node) {
							found = append(found, name)
						}
					}
					if !slices.Equal(found, expected) {
						t.Errorf("%s, label %s, %s: node %s %v has %v, not %v", mode, label, selection, node.Name, node.Labels, found, expected)
					}
					seen[strings.Join(found, " ")]++
				}
			}
		}
	}
	if len(seen) != 3 || slices.Min(slices.Collect(maps.Values(seen))) < 50 {
		t.Errorf("the cases are few: %v", seen)
	}
}

// nodes returns nodes with all combinations of labels that count.
func nodes(mine string) []*corev1.Node {
	absent := "" // the label is not there
	choices := []struct {
		key    string
		values []string
	}{
		{clientLabel, []string{absent, "true", "false", "paused-for-driver-upgrade", "true_paused-for-mig-change"}},
		{mine, []string{absent, "true", "false"}},
		{"pool", []string{absent, "gpu", "cpu"}},
		{"zone", []string{absent, "a"}},
		{"nvidia.com/gpu.present", []string{absent, "true"}},
		{"type", []string{absent, "virtual-kubelet"}},
	}
	all := []map[string]string{{"kubernetes.io/os": "linux"}}
	for _, choice := range choices {
		var next []map[string]string
		for _, labels := range all {
			for _, value := range choice.values {
				more := maps.Clone(labels)
				if value != absent {
					more[choice.key] = value
				}
				next = append(next, more)
			}
		}
		all = next
	}
	var out []*corev1.Node
	for i, labels := range all {
		out = append(out, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i%3), Labels: labels}})
	}
	return out
}

// placement is where the pods of a DaemonSet can run.
type placement struct {
	required nodeaffinity.RequiredNodeAffinity
}

func (p placement) fits(t *testing.T, node *corev1.Node) bool {
	t.Helper()
	fits, err := p.required.Match(node)
	if err != nil {
		t.Fatal(err)
	}
	return fits
}

// agents returns the DaemonSets of an install by their names.
func agents(t *testing.T, values string) map[string]placement {
	t.Helper()
	all := map[string]placement{}
	for _, item := range render(t, install{values: values}).objects {
		if item.text("kind") == "DaemonSet" {
			all[item.text("metadata", "name")] = placement{nodeaffinity.GetRequiredNodeAffinity(&corev1.Pod{Spec: podSpec(t, item)})}
		}
	}
	return all
}

// podSpec returns the specification of the pods of an object in Kubernetes' type.
func podSpec(t *testing.T, item object) corev1.PodSpec {
	t.Helper()
	text, err := json.Marshal(item.pod())
	if err != nil {
		t.Fatal(err)
	}
	var spec corev1.PodSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestManagedNodes: the operator waits for pods whose DaemonSet has the label in its
// nodeSelector, and for no others. The two DaemonSets differ in nothing but their nodes and
// their selectors, which exclude each other. That of the first stays what it was in earlier
// charts, because Kubernetes does not change it.
func TestManagedNodes(t *testing.T) {
	out := render(t, install{file: "managed-values.yaml"})
	first := out.need(t, "DaemonSet/dra-exporter/dra-exporter-node")
	second := out.need(t, "DaemonSet/dra-exporter/dra-exporter-node-managed")
	if selector := first.at("spec", "selector", "matchLabels"); fmt.Sprint(selector) != "map[app.kubernetes.io/component:node app.kubernetes.io/instance:dra-exporter app.kubernetes.io/name:dra-exporter]" {
		t.Errorf("the selector of the first is %v", selector)
	}
	for _, pair := range [][2]object{{first, second}, {second, first}} {
		if matches(pair[0].at("spec", "selector", "matchLabels"), pair[1].at("spec", "template", "metadata", "labels")) {
			t.Errorf("%s selects the pods of the other", pair[0].key())
		}
		if !matches(pair[0].at("spec", "selector", "matchLabels"), pair[0].at("spec", "template", "metadata", "labels")) {
			t.Errorf("%s does not select its own pods", pair[0].key())
		}
	}
	if selector := object(second.pod().at("nodeSelector").(map[string]any)); selector.text(clientLabel) != "true" || selector.text("pool") != "gpu" {
		t.Errorf("the nodes of the second are %v", selector)
	}
	if selector := object(first.pod().at("nodeSelector").(map[string]any)); selector[clientLabel] != nil || selector.text("pool") != "gpu" {
		t.Errorf("the nodes of the first are %v", selector)
	}
	for _, item := range []object{first, second} {
		delete(item.pod(), "nodeSelector")
		delete(item.pod(), "affinity")
	}
	if text := difference("", first.at("spec", "template", "spec"), second.at("spec", "template", "spec")); text != "" {
		t.Error(text)
	}
}

// TestTolerations: the agent stays on nodes whose taints keep other pods away, and leaves a
// node whose AMD GPUs are to be partitioned.
func TestTolerations(t *testing.T) {
	spec := podSpec(t, render(t, install{}).need(t, "DaemonSet/dra-exporter/dra-exporter-node"))
	for taint, want := range map[corev1.Taint]bool{
		{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}:      true,
		{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoExecute}:                         true,
		{Key: "amd.com/gpu", Effect: corev1.TaintEffectNoExecute}:                            true,
		{Key: "google.com/tpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}:      true,
		{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}: true,
		{Key: "sku", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}:                     true,
		{Key: "amd-dcm", Value: "up", Effect: corev1.TaintEffectNoExecute}:                   false,
		{Key: "node.kubernetes.io/out-of-service", Effect: corev1.TaintEffectNoExecute}:      false,
	} {
		tolerated := slices.ContainsFunc(spec.Tolerations, func(item corev1.Toleration) bool {
			return (item.Effect == "" || item.Effect == taint.Effect) && (item.Key == "" || item.Key == taint.Key) && item.Operator == corev1.TolerationOpExists
		})
		if tolerated != want {
			t.Errorf("%v is tolerated: %v", taint, tolerated)
		}
	}
}

// TestReleaseFile: the folder of the file is mounted where no other mount is, for reading.
// Without a file, nothing is.
func TestReleaseFile(t *testing.T) {
	for file, want := range map[string]string{"/run/dra-exporter/release": "/run/dra-exporter release", "/data/gpu/stop": "/data/gpu stop", "": "<nil> "} {
		agent := render(t, install{values: "node: {release: {file: '" + file + "'}}"}).need(t, "DaemonSet/dra-exporter/dra-exporter-node")
		container := agent.container(t)
		path := named(container["env"], "DRA_EXPORTER_DEVICE_RELEASE_FILE").text("value")
		base := strings.TrimPrefix(path, "/run/dra-exporter-release/")
		if got := fmt.Sprint(named(agent.pod()["volumes"], "release").at("hostPath", "path"), " ", base); got != want {
			t.Errorf("%q: %s", file, got)
		}
		if mount := named(container["volumeMounts"], "release"); file != "" && (mount.text("mountPath") != "/run/dra-exporter-release" || mount["readOnly"] != true) {
			t.Errorf("%q is mounted %v", file, mount)
		}
	}
}
