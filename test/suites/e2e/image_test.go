package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestImage runs the images of the Dockerfile, which `make -C test image` has
// built by its steps.
func TestImage(t *testing.T) {
	covers(t)
	importBuilt(t, "glibc")
	importBuilt(t, "static")
	t.Run("glibc", testImageLibraries)
	t.Run("user", testImageUser)
}

const (
	imageNamespace = "image"
	imageGPUs      = 2
)

func importBuilt(t *testing.T, name string) {
	t.Helper()
	archive := filepath.Join(os.Getenv("DRA_E2E_BIN"), "image", name+".tar")
	if err := shared.ImportArchive(t.Context(), archive, "localhost/dra-exporter:"+name); err != nil {
		t.Fatalf("%v: `make -C test image` builds it", err)
	}
}

// imageOverlay contains all differences from the shipped manifests: the names,
// the source of the image, the kubelet's folders, and what the driver's
// installation puts into the container: its library, and the linker's
// configuration for it. DCGM's library is part of the image. Its arguments are
// the base's path, the host engine's address, three folders, the hardware's
// and the driver's.
const imageOverlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: ` + imageNamespace + `
nameSuffix: -image
resources: [%q]
images:
- {name: ghcr.io/dra-exporter/dra-exporter, newName: localhost/dra-exporter, newTag: glibc}
patches:
- target: {labelSelector: app.kubernetes.io/component=cluster}
  patch: "{$patch: delete, apiVersion: v1, kind: Any, metadata: {name: any}}"
- patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: dra-exporter-node, namespace: dra-exporter}
    spec:
      template:
        spec:
          containers:
          - name: dra-exporter
            imagePullPolicy: Never
            args: [node, --device.source=nvml, --device.source=dcgm, --dcgm.host-engine=%s]
            env: [{name: DRA_STUB_HARDWARE, value: /hardware}, {name: LD_LIBRARY_PATH, value: /driver}]
            volumeMounts: [{name: hardware, mountPath: /hardware}, {name: driver, mountPath: /driver, readOnly: true}]
          volumes:
          - {name: pod-resources, hostPath: {path: %q}}
          - {name: cdi-run, hostPath: {path: %q}}
          - {name: cdi-etc, hostPath: {path: %q}}
          - {name: hardware, hostPath: {path: %q}}
          - {name: driver, hostPath: {path: %q}}
`

// testImageLibraries: in the shipped DaemonSet, with a read-only root and no
// capability, the program of the glibc image loads the driver's library and
// the image's own DCGM library, and reads the GPUs through both.
func testImageLibraries(t *testing.T) {
	gpus, libraries := stubs.NewNode(t, imageGPUs), stubs.Build(t)
	engine := gpus.StartHostEngine(t, libraries, net.JoinHostPort(shared.GatewayIP(), "0"))
	manifests, err := kustomized(t.Context(), nil, func(deploy string) string {
		return fmt.Sprintf(imageOverlay, filepath.Join(deploy, "base"), engine.Address, filepath.Dir(shared.KubeletSocket()),
			shared.CDIDir(), filepath.Join(shared.Dir(), "no-such-folder"), gpus.Dir, driverFolder(t, libraries.NVML))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { undeployAccess(t, imageNamespace, manifests) })
	if err := shared.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	pod := readyPod(t, imageNamespace, agentSelector)
	agent := &hostAgent{name: "image", url: fmt.Sprintf("http://%s:9420/", pod.Status.PodIP)}
	page := agent.eventually(t, "both libraries to be read", func(p *scrape.Page) error {
		for _, source := range []string{"nvml", "dcgm"} {
			up, err := p.One("dra_exporter_source_up", scrape.Labels{"source": source})
			if err != nil {
				return err
			}
			if up.Value != 1 {
				return fmt.Errorf("%s: %v", source, p.Rows("dra_exporter_source_error_info", nil))
			}
		}
		if found := len(p.Rows("dra_device_utilization_ratio", nil)); found != imageGPUs {
			return fmt.Errorf("there are %d GPUs", found)
		}
		return nil
	})
	if got := engine.Inspect(); got.Connections == 0 || got.Watches == 0 {
		t.Errorf("the host engine has %+v", got)
	}
	if _, err := page.One("dra_exporter_build_info", scrape.Labels{"version": "1.2.3-test"}); err != nil {
		t.Errorf("the version that was given to the build is not the page's: %v", err)
	}
	pid, err := shared.ContainerPID(pod, agentContainer)
	if err != nil {
		t.Fatal(err)
	}
	unprivileged(t, pid, "net", "pid", "ipc", "mnt", "uts")
}

// driverFolder returns a folder with NVML's library only.
func driverFolder(t *testing.T, library string) string {
	t.Helper()
	text, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, filepath.Base(library)), text, 0o644); err != nil { //nolint:gosec // the container's user reads it
		t.Fatal(err)
	}
	return folder
}

// imagePod runs an image with the user of its configuration.
const imagePod = `
apiVersion: v1
kind: Namespace
metadata: {name: image-user}
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: image-user}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  containers:
  - name: main
    image: localhost/dra-exporter:%[1]s
    imagePullPolicy: Never
    args: [--version]
    securityContext:
      runAsNonRoot: true
      allowPrivilegeEscalation: false
      readOnlyRootFilesystem: true
      capabilities: {drop: [ALL]}
      seccompProfile: {type: RuntimeDefault}
`

// testImageUser: without a security context in the pod, both images run as a
// user other than root, which the kubelet verifies, and print their version.
func testImageUser(t *testing.T) {
	for _, image := range []string{"glibc", "static"} {
		deployText(t, "image-user", fmt.Sprintf(imagePod, image))
		err := cluster.Eventually(t.Context(), image+" to end", func(ctx context.Context) error {
			pod, err := shared.Client().CoreV1().Pods("image-user").Get(ctx, image, metav1.GetOptions{})
			if err == nil && pod.Status.Phase != corev1.PodSucceeded {
				err = fmt.Errorf("%s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		output, err := shared.Kubectl(t.Context(), "logs", "--namespace", "image-user", image)
		if err != nil || !strings.Contains(output, "dra-exporter 1.2.3-test") {
			t.Errorf("%s says %q (%v)", image, output, err)
		}
	}
}
