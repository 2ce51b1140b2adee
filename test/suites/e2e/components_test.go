package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rendered returns the objects of a kustomization over the shipped manifests,
// each as text.
func rendered(t *testing.T, base, component, more string) []string {
	t.Helper()
	manifests, err := kustomized(t.Context(), nil, func(deploy string) string {
		text := fmt.Sprintf("kind: Kustomization\nresources: [%q]\n%s\n", filepath.Join(deploy, base), more)
		if component != "" {
			text += fmt.Sprintf("components: [%q]\n", filepath.Join(deploy, "components", component))
		}
		return text
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(manifests, "\n---\n")
}

// TestProcessAttributionComponent: the component adds hostPID to the node's
// agent and changes nothing else, whatever the agent's name.
func TestProcessAttributionComponent(t *testing.T) {
	for _, base := range []string{"base", "overlays/nvidia"} {
		for name, more := range map[string]string{"as shipped": "", "renamed": "namespace: monitoring\nnamePrefix: my-\n"} {
			t.Run(base+" "+name, func(t *testing.T) {
				var want []string
				agents := 0
				for _, object := range rendered(t, base, "", more) {
					if strings.Contains(object, "kind: DaemonSet\n") {
						agents++
						object = strings.Replace(object, "hostPID: false\n", "hostPID: true\n", 1)
						if !strings.Contains(object, "hostPID: true\n") {
							t.Fatalf("the default says nothing of the host's pids:\n%s", object)
						}
					}
					want = append(want, object)
				}
				if agents != 1 {
					t.Fatalf("there are %d DaemonSets", agents)
				}
				if got := rendered(t, base, "process-attribution", more); !slices.Equal(got, want) {
					t.Errorf("it is\n%s\nand not\n%s", strings.Join(got, "\n---\n"), strings.Join(want, "\n---\n"))
				}
			})
		}
	}
}

// TestPushComponentRenders: the component configures endpoint and interval of
// the push for both roles and changes nothing else, whatever their names.
func TestPushComponentRenders(t *testing.T) {
	const variables = `        - name: OTEL_EXPORTER_OTLP_ENDPOINT
          value: http://otel-collector.observability:4317
        - name: OTEL_METRIC_EXPORT_INTERVAL
          value: "30000"
`
	const noVariables = "        env:\n        image:" // of a role without variables
	for _, base := range []string{"base", "overlays/nvidia"} {
		for name, more := range map[string]string{"as shipped": "", "renamed": "namespace: monitoring\nnamePrefix: my-\n"} {
			t.Run(base+" "+name, func(t *testing.T) {
				roles := 0
				var got []string
				for _, object := range rendered(t, base, "otlp", more) {
					roles += strings.Count(object, variables)
					object = strings.Replace(object, variables, "", 1)
					got = append(got, strings.Replace(object, noVariables, "        image:", 1))
				}
				if want := rendered(t, base, "", more); roles != 2 || !slices.Equal(got, want) {
					t.Errorf("%d roles have the variables, and the rest is\n%s\nand not\n%s", roles, strings.Join(got, "\n---\n"), strings.Join(want, "\n---\n"))
				}
			})
		}
	}
}

// TestRenamedNamespace: bindings refer to the agents' accounts in another
// namespace.
func TestRenamedNamespace(t *testing.T) {
	bindings := 0
	for _, object := range rendered(t, "base", "", "namespace: monitoring\nnamePrefix: my-\n") {
		if !strings.Contains(object, "kind: ClusterRoleBinding\n") {
			continue
		}
		bindings++
		_, subjects, _ := strings.Cut(object, "\nsubjects:\n")
		if !strings.Contains(subjects, "name: my-dra-exporter-") || !strings.Contains(subjects, "namespace: monitoring") {
			t.Errorf("permissions are given to\n%s", subjects)
		}
	}
	if bindings != 2 {
		t.Errorf("there are %d bindings", bindings)
	}
}
