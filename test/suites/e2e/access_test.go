package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestAccess runs the agent with each of the first four modes of
// docs/access.md, from the shipped manifests, beside NVIDIA's own driver,
// container runtime and plugin over the imitated library. In each mode the
// agent must read both GPUs, attribute the held one to its claim, and have no
// more privileges than without the mode.
func TestAccess(t *testing.T) {
	n := startAccess(t)
	t.Run("dcgm", n.testHostEngineAccess)
	t.Run("runtime-class", n.testRuntimeClass)
	t.Run("cdi", n.testCDI)
	t.Run("claim", n.testAdminClaim)
}

const (
	accessGPUs  = 2
	accessImage = "localhost/dra-exporter-access:e2e"

	// presentLabel is the label that NVIDIA's operator sets on nodes with
	// GPUs. The shipped manifests select it.
	presentLabel = "nvidia.com/gpu.present"
)

// accessNode has two GPUs. A pod holds one of them by a claim.
type accessNode struct {
	*nvidiaNode
	libraries stubs.Libraries
}

// accessPodManifest is the pod whose claim the agents must report.
const accessPodManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: access}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: whole, namespace: access}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: worker, namespace: access}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: whole}]
`

func startAccess(t *testing.T) *accessNode {
	t.Helper()
	n := &accessNode{libraries: stubs.Build(t)}
	n.nvidiaNode = startNVIDIA(t, stubs.NewNode(t, accessGPUs), accessGPUs, "TimeSlicingSettings=true")
	n.importImage(t)
	labelNode(t, presentLabel, "true")
	deployText(t, "access", accessPodManifest)
	running(t, "access", "worker")
	return n
}

// importImage makes the image that ships with a build with cgo. It contains
// DCGM's library. It does not contain NVML's, which comes with the driver.
func (n *accessNode) importImage(t *testing.T) {
	t.Helper()
	program := filepath.Join(os.Getenv("DRA_E2E_BIN"), "agent-cgo", "dra-exporter")
	files := linked(t, program, n.libraries.DCGM, n.libraries.NVML)
	files["/dra-exporter"] = program
	files["/usr/lib/x86_64-linux-gnu/libdcgm.so.4"] = n.libraries.DCGM
	image := cluster.Image{Name: accessImage, Files: files, Entrypoint: []string{"/dra-exporter"}, User: "nonroot"}
	if err := shared.ImportImage(t.Context(), image); err != nil {
		t.Fatal(err)
	}
}

// labelNode labels the node until the test ends.
func labelNode(t *testing.T, key, value string) {
	t.Helper()
	label := func(ctx context.Context, value string) {
		patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, key, value)
		if _, err := shared.Client().CoreV1().Nodes().Patch(ctx, shared.NodeName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	label(t.Context(), fmt.Sprintf("%q", value))
	t.Cleanup(func() { label(context.WithoutCancel(t.Context()), "null") })
}

// checkAgent fails the test unless the agent reads every GPU, reports the
// worker's claim on the GPU that the worker can open, with that GPU's values,
// reports no other claim, and has no privilege.
func (n *accessNode) checkAgent(t *testing.T, a *accessAgent) {
	t.Helper()
	expected := heldNVIDIADeviceOf(t, "access", []string{"worker/main"})
	memory := n.scriptMemory(expected.nvidiaDevice)
	claim := wantedClaim{claim: "worker-gpu-*", class: gpuClass, template: "whole", devices: []wantedDevice{
		{wholeGPU, "gpu", "exclusive", []string{"worker/main"}},
	}}
	a.eventually(t, "the worker's claim", func(p *scrape.Page) error {
		infos, err := currentClaims(t, p, "access")
		if err != nil {
			return err
		}
		labels, err := checkNVIDIA(p, claim, infos, expected.gpuUUID)
		if err != nil {
			return err
		}
		if held := p.Count("dra_claim_held", nil); held != 1 {
			return fmt.Errorf("%d devices are held", held)
		}
		return errors.Join(n.hasEveryGPU(t, p), checkNVIDIAQuantities(p, labels, "exclusive"),
			claimHas(p, "dra_claim_memory_used_bytes", labels, memory), checkInvariants(p))
	})
	pid, err := shared.ContainerPID(a.pod, agentContainer)
	if err != nil {
		t.Fatal(err)
	}
	unprivileged(t, pid, "net", "pid", "ipc", "mnt", "uts")
	a.runCheck(t)
}

// runCheck runs the agent's own check in its container. It must find no
// failure, and devices from the source of this mode.
func (a *accessAgent) runCheck(t *testing.T) {
	t.Helper()
	output, err := shared.Kubectl(t.Context(), "exec", "--namespace", a.path.namespace, a.pod.Name, "--", "/dra-exporter", "check", "-o", "json")
	if err != nil {
		t.Errorf("the check finds a failure: %v\n%s", err, output)
		return
	}
	source := "nvml"
	if a.path.component == "dcgm" {
		source = "dcgm"
	}
	var report struct {
		Findings []struct{ Area, Subject, Outcome, Text string }
	}
	// The output begins with progress lines. The report follows.
	if err := json.Unmarshal([]byte(output[max(0, strings.Index(output, "{")):]), &report); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, finding := range report.Findings {
		if finding.Area == "devices" && finding.Subject == source && finding.Outcome == "ok" {
			t.Logf("check: %s: %s", source, finding.Text)
			return
		}
	}
	t.Errorf("the check has no devices of %s:\n%s", source, output)
}

// hasEveryGPU returns an error unless the page has the memory of each GPU that
// the driver publishes.
func (n *accessNode) hasEveryGPU(t *testing.T, p *scrape.Page) error {
	for gpu := range accessGPUs {
		if _, err := p.One("dra_device_memory_used_bytes", scrape.Labels{"uuid": publishedUUID(t, gpu)}); err != nil {
			return err
		}
	}
	return nil
}

// checkDeviceNodes fails the test unless the agent's container has exactly the
// device nodes of these GPUs.
func (a *accessAgent) checkDeviceNodes(t *testing.T, want ...int) {
	t.Helper()
	devices, err := openableDevices(a.pod, agentContainer)
	if err != nil {
		t.Fatal(err)
	}
	var minors []int
	for _, device := range devices {
		minors = append(minors, device.gpu)
	}
	slices.Sort(minors)
	if !slices.Equal(minors, want) {
		t.Errorf("the agent's container has the GPUs %v, want %v", minors, want)
	}
}
