package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// topViewer is an account with the permissions that docs/top.md names, in the
// exporters' namespace only.
const topViewer = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: top-viewer, namespace: dra-exporter}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: top-viewer, namespace: dra-exporter}
rules:
- {apiGroups: [""], resources: [pods], verbs: [list]}
- {apiGroups: [""], resources: [pods/proxy], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: top-viewer, namespace: dra-exporter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: top-viewer}
subjects: [{kind: ServiceAccount, name: top-viewer, namespace: dra-exporter}]
`

// topDocument has the fields of top's JSON that the tests read.
type topDocument struct {
	Agents, Answered int
	Failures         []struct{ Agent, Error string }
	Pending          *struct {
		Count   int
		Reasons []struct {
			Reason string
			Count  int
		}
	}
	PendingError string
	Devices      []struct {
		Node, Namespace, Claim, UUID, Device, Attribution string
		Pods                                              []string
	}
}

// TestTop reads the use of claims through the API server's proxy, with only
// the permissions that the document names.
func TestTop(t *testing.T) {
	covers(t)
	deployText(t, "turns", heldPods)
	running(t, "turns", "first")
	deployText(t, "turns", secondPod)
	viewer := topAccount(t)
	err := cluster.Eventually(t.Context(), "top to show both pods", func(ctx context.Context) error {
		text, err := top(ctx, viewer, "--exporter-namespace=dra-exporter", "--namespace=turns", "--output=json")
		if err != nil {
			return err
		}
		return checkTop(text)
	})
	if err != nil {
		t.Error(err)
	}
	t.Run("table", func(t *testing.T) {
		text, err := top(t.Context(), viewer, "--exporter-namespace=dra-exporter", "--once")
		for _, want := range []string{"NAMESPACE", "turns", "first", "insufficient_devices"} {
			if err != nil || !strings.Contains(text, want) {
				t.Errorf("%s is not there: %v\n%s", want, err, text)
			}
		}
	})
	t.Run("without rights", func(t *testing.T) { topWithoutRights(t, viewer) })
}

// topAccount creates the account and returns its kubeconfig.
func topAccount(t *testing.T) string {
	t.Helper()
	if err := shared.Apply(t.Context(), topViewer); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Delete(context.WithoutCancel(t.Context()), topViewer); err != nil {
			t.Error(err)
		}
	})
	path, err := accountKubeconfig(t.Context(), t.TempDir(), "top-viewer")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// top runs the program with a kubeconfig.
func top(ctx context.Context, kubeconfig string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, agentBinary(), append([]string{"top", "--kubeconfig=" + kubeconfig}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, stderr.String())
	}
	return stdout.String(), nil
}

// checkTop returns an error unless the output has the pod that holds the
// device, and the pending one.
func checkTop(text string) error {
	var document topDocument
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return err
	}
	if document.Agents == 0 || document.Answered != document.Agents || len(document.Failures) > 0 || document.PendingError != "" {
		return fmt.Errorf("not all have answered:\n%s", text)
	}
	if len(document.Devices) != 1 || len(document.Devices[0].Pods) != 1 || document.Devices[0].Pods[0] != "first" || document.Devices[0].Node != shared.NodeName() {
		return fmt.Errorf("not the one device of the first pod:\n%s", text)
	}
	if document.Pending == nil || document.Pending.Count != 1 || document.Pending.Reasons[0].Reason != "insufficient_devices" {
		return fmt.Errorf("not the one that waits:\n%s", text)
	}
	return nil
}

// topWithoutRights removes one permission after the other. The message must
// name what is missing.
func topWithoutRights(t *testing.T, viewer string) {
	_, err := top(t.Context(), viewer, "--output=json") // the permissions are of one namespace
	if err == nil || !strings.Contains(err.Error(), "cannot list resource \"pods\"") || !strings.Contains(err.Error(), "--exporter-namespace") {
		t.Errorf("in all namespaces: %v", err)
	}
	lesser := strings.Replace(topViewer, `- {apiGroups: [""], resources: [pods/proxy], verbs: [get]}`, "", 1)
	if err := shared.Apply(t.Context(), lesser); err != nil {
		t.Fatal(err)
	}
	err = cluster.Eventually(t.Context(), "the right to be gone", func(ctx context.Context) error {
		_, err := top(ctx, viewer, "--exporter-namespace=dra-exporter", "--output=json")
		if err == nil || !strings.Contains(err.Error(), "pods/proxy") || !strings.Contains(err.Error(), "403") {
			return fmt.Errorf("top says %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
