package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// operatorDCGM is the Service of NVIDIA's GPU operator. Its argument is the
// traffic policy.
const operatorDCGM = `
apiVersion: v1
kind: Namespace
metadata: {name: gpu-operator}
---
apiVersion: v1
kind: Service
metadata: {name: nvidia-dcgm, namespace: gpu-operator}
spec: {internalTrafficPolicy: %s, ports: [{name: dcgm, port: 5555}], selector: {app: nvidia-dcgm}}
`

// operatorDCGMExporter is the Service of the operator's dcgm-exporter.
const operatorDCGMExporter = `
apiVersion: v1
kind: Namespace
metadata: {name: gpu-operator}
---
apiVersion: v1
kind: Service
metadata: {name: nvidia-dcgm-exporter, namespace: gpu-operator}
spec: {internalTrafficPolicy: Local, ports: [{name: gpu-metrics, port: 9400}], selector: {app: nvidia-dcgm-exporter}}
`

// TestAccessAuto: the chart's mode auto selects what the cluster supports at
// the first installation, or at an upgrade if there was nothing, reports the
// selection in the notes, and keeps it on upgrades, whatever is installed later.
func TestAccessAuto(t *testing.T) {
	covers(t)
	release := autoRelease{release{name: "auto", namespace: "access-auto"}}
	applyFor(t, "{apiVersion: v1, kind: Namespace, metadata: {name: access-auto}}")
	release.installed(t)
	release.checkMode(t, "none", "")
	release.checkRenderedMode(t, "none")

	applyFor(t, nvidiaRuntimeClass)
	release.checkRenderedMode(t, "runtimeClass")
	release.run(t, "upgrade", release.flags(t)...)
	release.checkMode(t, "runtimeClass", "nvidia") // where there was nothing, it is selected again

	operatorExporter(t)
	release.checkRenderedMode(t, "exporter")
	notes := release.run(t, "upgrade", release.flags(t)...)
	release.checkMode(t, "runtimeClass", "nvidia")
	if !strings.Contains(notes, "Access to the devices: runtimeClass (") || !strings.Contains(notes, "Later upgrades keep this") {
		t.Errorf("the notes do not say that the choice is kept:\n%s", notes)
	}
	operatorService(t, "Cluster")
	release.checkRenderedMode(t, "exporter") // the Service of the engine may route to any node
	operatorService(t, "Local")
	release.checkRenderedMode(t, "dcgm")
	release.run(t, "upgrade", append(release.flags(t), "--set=node.access.mode=runtimeClass")...)
	release.checkMode(t, "", "nvidia")
	release.run(t, "upgrade", release.flags(t)...)
	release.checkMode(t, "dcgm", "") // after a change back to auto, the mode is selected again
}

// operatorExporter creates the Service of the operator's dcgm-exporter, which keeps to its
// node, until the test ends.
func operatorExporter(t *testing.T) {
	t.Helper()
	operatorObjects(t, operatorDCGMExporter)
}

// operatorService creates the Service of the engine with this policy until the test ends.
func operatorService(t *testing.T, policy string) {
	t.Helper()
	operatorObjects(t, fmt.Sprintf(operatorDCGM, policy))
}

// operatorObjects creates objects until the test ends. Their namespace may still be
// terminating after an earlier test.
func operatorObjects(t *testing.T, manifests string) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "the operator's Service", func(ctx context.Context) error {
		return shared.Apply(ctx, manifests)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Delete(context.WithoutCancel(t.Context()), manifests); err != nil {
			t.Error(err)
		}
	})
}

// autoRelease is a release whose agents do not fit any node. The test reads
// only their specification.
type autoRelease struct{ release }

func (r autoRelease) flags(t *testing.T) []string {
	t.Helper()
	nowhere := object{"nodeSelector": object{"e2e.example.com/nowhere": "true"}}
	return append(valueFlags(t, []object{{"node": nowhere, "cluster": nowhere}}), chartFolder)
}

func (r autoRelease) installed(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := helm(context.WithoutCancel(t.Context()), "uninstall", r.name, "--namespace="+r.namespace, "--wait"); err != nil {
			t.Error(err)
		}
	})
	r.run(t, "install", r.flags(t)...)
}

// checkMode fails the test unless the DaemonSet reports that auto selected
// this mode (empty: the mode was not auto) and has this RuntimeClass.
func (r autoRelease) checkMode(t *testing.T, mode, runtimeClass string) {
	t.Helper()
	set, err := shared.Client().AppsV1().DaemonSets(r.namespace).Get(t.Context(), "auto-dra-exporter-node", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var class string
	if name := set.Spec.Template.Spec.RuntimeClassName; name != nil {
		class = *name
	}
	if recorded := set.Annotations["dra-exporter.github.io/access"]; recorded != mode || class != runtimeClass {
		t.Errorf("the release has the mode %q and the RuntimeClass %q, want %q and %q", recorded, class, mode, runtimeClass)
	}
}

// checkRenderedMode fails the test unless an installation now would get this
// mode, and a rendering without a cluster would get none.
func (r autoRelease) checkRenderedMode(t *testing.T, mode string) {
	t.Helper()
	output := release{name: "other", namespace: r.namespace}.run(t, "install", append(r.flags(t), "--dry-run=server")...)
	if want := "dra-exporter.github.io/access: " + mode + "\n"; !strings.Contains(output, want) {
		t.Errorf("a new release has no %q:\n%s", want, output)
	}
	rendered, err := helm(t.Context(), append([]string{"template", "other", "--kube-version=" + os.Getenv("DRA_E2E_KUBERNETES_VERSION")}, r.flags(t)...)...)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(rendered, "dra-exporter.github.io/access: none\n") {
		t.Error("helm template does not choose none")
	}
}
