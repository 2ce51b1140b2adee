package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// conformanceObjects have the names that deploy/conformance/values.yaml gives to agents
// in pods. The agent of the test is a process of the host.
const conformanceObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: gpu-operator}
---
apiVersion: v1
kind: Service
metadata: {name: nvidia-dcgm-exporter, namespace: gpu-operator}
spec: {type: ExternalName, externalName: dra-exporter-dcgm-names.dra-exporter.svc.cluster.local}
---
apiVersion: v1
kind: Pod
metadata:
  name: labeled
  namespace: gpu-operator
  labels: {app: nvidia-dcgm-exporter, dra-exporter.github.io/role: node}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never}]
`

// testConformance: deploy/conformance/check.sh finds all that it looks for in a cluster
// that has it, and says what a cluster without it lacks. The adapter reports for pods
// the values of their GPU, if this is NVIDIA's.
func (s *autoscalingEnv) testConformance(t *testing.T) {
	t.Helper()
	output, err := checkConformance(t.Context()) // of the agents in pods
	var failed *exec.ExitError
	if !errors.As(err, &failed) || failed.ExitCode() != 1 {
		t.Errorf("without the names: %v\n%s", err, output)
	}
	for _, want := range []string{
		"\nok       agents\n", ": DCGM_FI_DEV_GPU_UTIL: 0\n", "\nMISSING  Service nvidia-dcgm-exporter in gpu-operator",
		"\nMISSING  agents with the label app=nvidia-dcgm-exporter\n", "\nMISSING  gpu_utilization of pods",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("without the names there is no %q in\n%s", want, output)
		}
	}
	applyFor(t, conformanceObjects)
	running(t, "gpu-operator", "labeled")
	err = cluster.Eventually(t.Context(), "what conformance asks for", func(ctx context.Context) error {
		if output, err = checkConformance(ctx, "PAGE="+s.agent.url+"metrics", "NAMESPACES=none web"); err != nil {
			return fmt.Errorf("%w\n%s", err, output)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, shared.Process(adapterProcess).LogTail(40))
	}
	if strings.Count(output, "\nok ") != 11 {
		t.Errorf("it says\n%s", output)
	}
	for metric, want := range map[string]float64{"gpu_utilization": 80, "gpu_memory_used": 1e9 / (1 << 20), "gpu_power_usage": 300} {
		values, err := podMetric(t.Context(), "web", metric)
		if err := errors.Join(err, valuesNear(values, map[string]float64{"half-a": want, "half-b": want})); err != nil || len(values) != 2 {
			t.Errorf("%s: %v (%v)", metric, values, err)
		}
	}
}

// checkConformance runs the script with these variables.
func checkConformance(ctx context.Context, variables ...string) (string, error) {
	script := exec.CommandContext(ctx, "../../../deploy/conformance/check.sh")
	kubernetes := filepath.Join(os.Getenv("DRA_E2E_BIN"), "kubernetes-"+os.Getenv("DRA_E2E_KUBERNETES_VERSION"))
	script.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig(), "PATH="+kubernetes+":"+os.Getenv("PATH"))
	script.Env = append(script.Env, variables...)
	output, err := script.CombinedOutput()
	return string(output), err
}
