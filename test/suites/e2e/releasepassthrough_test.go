package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// passedGPU is the GPU that is passed to a virtual machine.
const passedGPU = 1

// passthroughDevices are two GPUs as NVIDIA's driver publishes them with its gate
// PassthroughSupport: one for containers, one for a virtual machine. Its arguments are
// the UUIDs.
const passthroughDevices = `
slices:
- devices:
  - name: gpu-0
    attributes:
      type: {string: gpu}
      uuid: {string: %s}
      productName: {string: NVIDIA A100-SXM4-80GB}
      resource.kubernetes.io/pciBusID: {string: "0000:1b:00.0"}
    capacity: {memory: {value: 80Gi}}
  - name: gpu-vfio-1
    attributes:
      type: {string: vfio}
      uuid: {string: %s}
      productName: {string: NVIDIA A100-SXM4-80GB}
      resource.kubernetes.io/pciBusID: {string: "0000:43:00.0"}
    capacity: {addressableMemory: {value: 80Gi}}
`

const vfioClass = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: vfio.gpu.nvidia.com}
spec:
  selectors:
  - cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'vfio'"}
`

// machineManifest is a pod that gets a GPU for a virtual machine.
const machineManifest = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: vfio, namespace: release-vfio}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: vfio.gpu.nvidia.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: machine, namespace: release-vfio}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: vfio}]
`

// passthroughNode is a node with two GPUs, of which one can be passed to a virtual
// machine. NVIDIA's driver needs an IOMMU for that; the driver of drivers/shapes
// imitates it, in a sysfs of the test.
type passthroughNode struct {
	*stubs.Node
	sysfs string
	uuids [2]string
}

var passthroughAddresses = [2]string{"0000:1b:00.0", "0000:43:00.0"}

func startPassthrough(t *testing.T) *passthroughNode {
	t.Helper()
	sysfs, err := os.MkdirTemp("", "sysfs") // short, see driver_link
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sysfs) })
	n := &passthroughNode{Node: newReleaseGPUs(t, 2), sysfs: sysfs, uuids: [2]string{
		"GPU-5d0d8d1c-0c46-4b57-9f0a-000000000000", "GPU-5d0d8d1c-0c46-4b57-9f0a-000000000001",
	}}
	n.makeSysfs(t)
	for gpu, uuid := range n.uuids {
		n.Script(gpu, map[string]string{"uuid": uuid, "driver_link": n.link("nvidia", gpu)})
	}
	folder := t.TempDir()
	devices, behaviour := filepath.Join(folder, "devices.yaml"), filepath.Join(folder, "behaviour.yaml")
	for path, text := range map[string]string{
		devices: fmt.Sprintf(passthroughDevices, n.uuids[0], n.uuids[1]),
		behaviour: fmt.Sprintf("passthrough: [{device: gpu-vfio-1, file: %s, drivers: %s, address: %q}]\n",
			n.DeviceFile(passedGPU), filepath.Join(sysfs, "bus/pci/drivers"), passthroughAddresses[passedGPU]),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replaceShapes(t, cluster.NVIDIADriver, devices, "--behaviour", behaviour)
	applyFor(t, vfioClass)
	return n
}

// replaceShapes replaces a driver of drivers/shapes by another of its name, with other
// devices and flags, until the test ends.
func replaceShapes(t *testing.T, name, devices string, flags ...string) {
	t.Helper()
	retire := func(ctx context.Context) {
		if err := shared.Retire(ctx, name, shared.Process("driver-"+name)); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			t.Logf("the log of the driver %s:\n%s", name, shared.Process("driver-"+name).LogTail(40))
		}
		retire(ctx)
		if err := startShapes(ctx, shared, name); err != nil {
			t.Error(err)
		}
	})
	retire(t.Context())
	if _, err := shared.StartShapesDriver(t.Context(), name, devices, flags...); err != nil {
		t.Fatal(err)
	}
}

// makeSysfs makes the links of both drivers as the kernel has them.
func (n *passthroughNode) makeSysfs(t *testing.T) {
	t.Helper()
	for gpu, address := range passthroughAddresses {
		folder := filepath.Join(n.sysfs, "bus/pci/devices", address)
		for _, dir := range []string{folder, filepath.Dir(n.link("nvidia", gpu)), filepath.Dir(n.link("vfio-pci", gpu))} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(folder, n.link("nvidia", gpu)); err != nil {
			t.Fatal(err)
		}
	}
}

// link returns the path of a driver's link to a GPU.
func (n *passthroughNode) link(driver string, gpu int) string {
	return filepath.Join(n.sysfs, "bus/pci/drivers", driver, passthroughAddresses[gpu])
}

func (n *passthroughNode) agent(t *testing.T, args ...string) *hostAgent {
	t.Helper()
	return startVendorAgent(t, n.Node, "nvml", append([]string{"--nvml.library=" + stubs.Build(t).NVML, "--path.sysfs=" + n.sysfs}, args...)...)
}

// testPassthrough: a claim of a GPU for a virtual machine makes the agent let go of the
// GPUs before NVIDIA's driver gives up waiting for it. Once the GPU is bound to
// vfio-pci, the agent reads the others.
func testPassthrough(t *testing.T) {
	covers(t)
	n := startPassthrough(t)
	deployText(t, "release-vfio", fmt.Sprintf(releaseManifest, "release-vfio"))
	running(t, "release-vfio", "worker")
	t.Run("kept", n.testPassthroughKept)

	h := watchHolder(t, "passthrough", n.Node, n.agent(t))
	h.waitReopened(t, n.uuids[0], n.uuids[1])
	since := h.readUse(t, n.uuids[0])
	if err := shared.Apply(t.Context(), machineManifest); err != nil {
		t.Fatal(err)
	}
	bound := waitBound(t, "release-vfio", "machine")
	running(t, "release-vfio", "machine")
	took := time.Since(bound)
	t.Logf("the virtual machine's pod runs %s after it was bound to the node", took.Round(10*time.Millisecond))
	if took > 2*releaseLimit {
		t.Error("that is too late")
	}
	if _, err := os.Lstat(n.link("vfio-pci", passedGPU)); err != nil {
		t.Errorf("the GPU is not bound to vfio-pci: %v", err)
	}
	h.waitReopened(t, n.uuids[0])
	for _, holder := range n.Holders() {
		if strings.Contains(strings.Join(holder.Files, " ")+" ", fmt.Sprintf("nvidia%d ", passedGPU)) {
			t.Errorf("the agent holds %v", holder.Files)
		}
	}
	h.checkTruth(t, n.uuids[0], since)
	if err := shared.Client().CoreV1().Pods("release-vfio").Delete(t.Context(), "machine", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	h.waitRead(t, boundLimit, n.uuids[0], n.uuids[1])
	h.checkQuiet(t)
}

// testPassthroughKept: an agent that does not let go keeps the GPU from being passed,
// as every agent did before.
func (n *passthroughNode) testPassthroughKept(t *testing.T) {
	agent := n.agent(t, "--no-device.release-for-passthrough")
	agent.eventually(t, "both GPUs", func(p *scrape.Page) error {
		if count := p.Count("dra_device_power_watts", nil); count != len(n.uuids) {
			return fmt.Errorf("%d GPUs are read", count)
		}
		return nil
	})
	if err := shared.Apply(t.Context(), machineManifest); err != nil {
		t.Fatal(err)
	}
	waitBound(t, "release-vfio", "machine")
	err := cluster.Eventually(t.Context(), "the kubelet or the driver to give up", func(ctx context.Context) error {
		events, err := shared.Client().CoreV1().Events("release-vfio").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=machine"})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "FailedPrepareDynamicResources" {
				t.Logf("before: %s", event.Message)
				return nil
			}
		}
		return fmt.Errorf("there are %d other events", len(events.Items))
	})
	if err != nil {
		t.Error(err)
	}
	agent.process.Process.Kill()
	if err := shared.Delete(t.Context(), machineManifest); err != nil {
		t.Error(err)
	}
	err = cluster.Eventually(t.Context(), "the pod gone", func(ctx context.Context) error {
		_, err := shared.Client().CoreV1().Pods("release-vfio").Get(ctx, "machine", metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("it is there")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// waitBound waits until a pod is bound to the node, and returns when it saw that.
func waitBound(t *testing.T, namespace, name string) (at time.Time) {
	t.Helper()
	err := cluster.Eventually(t.Context(), name+" bound", func(ctx context.Context) error {
		pod, err := shared.Client().CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed {
			return fmt.Errorf("its node is %q, its phase %s", pod.Spec.NodeName, pod.Status.Phase)
		}
		at = time.Now()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}
