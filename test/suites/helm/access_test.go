package helm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestAccess: each access mode has the same objects with the chart as with
// Kustomize.
func TestAccess(t *testing.T) {
	const hostIP = "[{name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]" // of the component, for other engines
	for _, path := range []struct{ mode, values, folder, component string }{
		{"none", "", "deploy/kustomize/base", ""},
		{"dcgm", "env: " + hostIP, "deploy/kustomize/base", "dcgm"},
		{"runtimeClass", "", "deploy/kustomize/overlays/nvidia", ""},
		{"cdi", "", "deploy/kustomize/base", "cdi"},
		{"claim", "", "deploy/kustomize/base", "admin-access"},
	} {
		t.Run(path.mode, func(t *testing.T) {
			var components []string
			if path.component != "" {
				components = append(components, path.component)
			}
			want := agentsOwn(kustomized(t, path.folder, components...))
			values := fmt.Sprintf("node: {access: {mode: %s, dcgm: {hostEngine: 'nvidia-dcgm.gpu-operator.svc:5555'}}, release: {label: ''}, %s}", path.mode, path.values)
			got := agentsOwn(sameTemplateName(t, render(t, install{values: values}).objects))
			if len(want) == 0 {
				t.Fatal("there is no agent")
			}
			same(t, got, want)
		})
	}
}

// TestNodesWithoutKubelet: in each mode, and with each affinity of the user, every term
// excludes the nodes that cannot run the agent, unless the user's term names them.
func TestNodesWithoutKubelet(t *testing.T) {
	const fargate, virtual = "eks.amazonaws.com/compute-type NotIn [fargate]", "type NotIn [virtual-kubelet]"
	for values, want := range map[string][]string{
		"access: {mode: none}":                                  {fargate + " " + virtual},
		"access: {mode: runtimeClass}, release: {label: ''}":    {"nvidia.com/gpu.present In [true] " + fargate + " " + virtual, "feature.node.kubernetes.io/pci-10de.present In [true] " + fargate + " " + virtual},
		"access: {mode: none}, affinity: {podAntiAffinity: {}}": {fargate + " " + virtual},
		"access: {mode: none}, affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}":                                                                                                               {fargate + " " + virtual},
		"access: {mode: none}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}, {matchFields: []}]}}}":                        {"a Exists [] " + fargate + " " + virtual, ""},
		"access: {mode: none}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: type, operator: In, values: [gpu]}]}]}}}":                             {"type In [gpu] " + fargate},
		"access: {mode: none}, nodeSelector: {pool: gpu}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: In, values: [a, b]}]}]}}}": {"pool In [a b] " + fargate + " " + virtual},
	} {
		agent := render(t, install{values: "node: {" + values + "}"}).need(t, "DaemonSet/dra-exporter/dra-exporter-node")
		terms, _ := agent.at("spec", "template", "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").([]any)
		var got []string
		for _, term := range terms {
			var all []string
			expressions, _ := term.(map[string]any)["matchExpressions"].([]any)
			for _, expression := range expressions {
				one := expression.(map[string]any)
				list, _ := one["values"].([]any)
				all = append(all, fmt.Sprint(one["key"], " ", one["operator"], " ", list))
			}
			got = append(got, strings.Join(all, " "))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", values, got, want)
		}
	}
}

// agentsOwn returns the objects that an access mode may change.
func agentsOwn(all map[string]object) map[string]object {
	own := map[string]object{}
	for key, one := range all {
		if strings.HasPrefix(key, "DaemonSet/") || strings.HasPrefix(key, "ResourceClaimTemplate/") {
			own[key] = one
		}
	}
	return own
}

// sameTemplateName gives the claim's template the name that it has with
// Kustomize, after a check that the pods refer to the existing one.
func sameTemplateName(t *testing.T, all map[string]object) map[string]object {
	t.Helper()
	agent := all["DaemonSet/dra-exporter/dra-exporter-node"]
	claims, _ := agent.pod()["resourceClaims"].([]any)
	for _, claim := range claims {
		claim := claim.(map[string]any)
		key := fmt.Sprintf("ResourceClaimTemplate/dra-exporter/%s", claim["resourceClaimTemplateName"])
		template := all[key]
		if template == nil {
			t.Fatalf("the pods name a template that is not there: %s", key)
		}
		delete(all, key)
		claim["resourceClaimTemplateName"] = "dra-exporter-node"
		template["metadata"].(map[string]any)["name"] = "dra-exporter-node"
		all[template.key()] = template
	}
	return all
}

// TestClaimTemplateIsNeverChanged: the API server does not allow changes of a
// template's request. Another request must have another name, and the same
// request the same name, because each new name restarts every agent.
func TestClaimTemplateIsNeverChanged(t *testing.T) {
	named := map[string]string{}
	for _, values := range []string{
		"", "claim: {deviceClassName: mig.nvidia.com}", "claim: {selectors: ['true']}", "claim: {selectors: ['true', 'false']}",
	} {
		out := render(t, install{values: "node: {access: {mode: claim, " + values + "}}"})
		for key, one := range out.objects {
			if one.text("kind") != "ResourceClaimTemplate" {
				continue
			}
			request := fmt.Sprint(one["spec"])
			if other, exists := named[key]; exists && other != request {
				t.Errorf("%s asks for %s and for %s", key, other, request)
			}
			named[key] = request
		}
		sameTemplateName(t, out.objects)
	}
	if len(named) != 4 {
		t.Errorf("four requests have the names %v", named)
	}
	before := render(t, install{values: "node: {access: {mode: claim}}"}).keys()
	after := render(t, install{values: "{node: {access: {mode: claim}}, log: {level: debug}, commonLabels: {a: b}}"}).keys()
	if !slices.Equal(before, after) {
		t.Errorf("the same request has another name:\n%v\n%v", before, after)
	}
}

// TestHostEngineIsUsed: a configured engine is used, whatever the cluster has,
// and is not reported as detected.
func TestHostEngineIsUsed(t *testing.T) {
	out := render(t, install{values: "node: {access: {dcgm: {hostEngine: 'engine.ns.svc:5555'}}}"})
	agent := out.need(t, "DaemonSet/dra-exporter/dra-exporter-node")
	if got := named(agent.container(t)["env"], "DRA_EXPORTER_DCGM_HOST_ENGINE").text("value"); got != "engine.ns.svc:5555" {
		t.Errorf("the engine is %q", got)
	}
	if reason := named(agent.container(t)["env"], "DRA_EXPORTER_ACCESS_REASON").text("value"); reason != "host_engine" {
		t.Errorf("the reason is %q", reason)
	}
	if annotations := agent.at("metadata", "annotations"); annotations != nil {
		t.Errorf("it is written down: %v", annotations)
	}
	if notes := out.release.Info.Notes; !strings.Contains(notes, "dcgm (node.access.dcgm.hostEngine is set)") {
		t.Error(notes)
	}
}

// TestCDIComponent: the component, used as its first lines show, goes into a
// namespace that belongs to others. If it contained a Namespace, this would be
// applied over the existing one, and `kubectl delete -k` would delete it with
// everything in it.
func TestCDIComponent(t *testing.T) {
	head, _, _ := strings.Cut(read(t, root+"/deploy/kustomize/components/cdi/kustomization.yaml"), "\napiVersion:")
	var shown []string
	for line := range strings.Lines(head) {
		if text, ok := strings.CutPrefix(line, "#   "); ok {
			shown = append(shown, text)
		}
	}
	file := parse(t, strings.Join(shown, ""))
	file["resources"], file["components"] = nil, nil
	made := kustomizedWith(t, file, "deploy/kustomize/base", "cdi")
	if made["DaemonSet/gpu-operator/dra-exporter-node"] == nil {
		t.Fatalf("there is no agent in gpu-operator: %v", rendered{objects: made}.keys())
	}
	for key, one := range made {
		if one.text("kind") == "Namespace" {
			t.Errorf("it has %s", key)
		}
	}
}
