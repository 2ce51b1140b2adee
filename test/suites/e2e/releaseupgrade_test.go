package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// upgradedDriver is the version of the driver after the upgrade.
const upgradedDriver = "590.44.01"

// testDriverUpgrade: the chart's agent goes when NVIDIA's operator asks for it before
// it upgrades the driver, and is back afterwards, with the new library. The operator
// is an imitation: its label flips, and its wait for the pods of DaemonSets that
// select the label.
func testDriverUpgrade(t *testing.T) {
	covers(t)
	n := &accessNode{libraries: stubs.Build(t)}
	gpus := newReleaseGPUs(t, accessGPUs)
	n.nvidiaNode = &nvidiaNode{Node: gpus}
	options := nvidiaOptions(t, gpus, accessGPUs, "")
	var driver *cluster.Process
	replaceDriver(t, shared.Process("driver-"+cluster.NVIDIADriver), func() (started *cluster.Process, err error) {
		driver, err = shared.StartNVIDIADriver(t.Context(), options)
		return driver, err
	})
	n.importImage(t)
	labelNode(t, presentLabel, "true")
	labelNode(t, clientLabel, "true")
	if err := shared.InstallNVIDIARuntime(n.Env()); err != nil {
		t.Fatal(err)
	}
	applyFor(t, nvidiaRuntimeClass)
	applyFor(t, "{apiVersion: v1, kind: Namespace, metadata: {name: release-chart}}")
	r := release{name: "upgraded", namespace: "release-chart"}
	r.install(t, n.chartValues())
	deployText(t, "release-upgrade", fmt.Sprintf(releaseManifest, "release-upgrade"))
	running(t, "release-upgrade", "worker")

	pod := readyPod(t, r.namespace, agentSelector)
	h := watchHolder(t, "upgrade", gpus, podAgent(pod))
	h.eventually(t, "the driver before", func(p *scrape.Page) error { return checkDriverVersion(p, "580.65.06", accessGPUs) })
	pid, err := shared.ContainerPID(pod, agentContainer)
	if err != nil {
		t.Fatal(err)
	}
	upgrade := func() error { return gpus.ReplaceDriver(upgradedDriver) }
	checkRefused(t, "an upgrade of the driver", pid, upgrade)

	began := time.Now()
	setNodeLabel(t, clientLabel, "paused-for-driver-upgrade")
	waitClientsGone(t, clientLabel)
	waitClosed(t, gpus)
	t.Logf("the agent had gone after %s", time.Since(began).Round(10*time.Millisecond))
	deleteWorkloads(t, "release-upgrade") // the operator evicts the pods with GPUs
	options.Version = upgradedDriver
	replaceDriver(t, driver, func() (*cluster.Process, error) {
		if err := upgrade(); err != nil {
			t.Error(err)
		}
		return shared.StartNVIDIADriver(t.Context(), options)
	})
	setNodeLabel(t, clientLabel, "true")

	h.hostAgent = podAgent(readyPod(t, r.namespace, agentSelector))
	h.eventually(t, "the driver after", func(p *scrape.Page) error { return checkDriverVersion(p, upgradedDriver, accessGPUs) })
	deployText(t, "release-upgrade", fmt.Sprintf(releaseManifest, "release-upgrade"))
	held := heldNVIDIADeviceOf(t, "release-upgrade", []string{"worker/main"})
	since := h.readUse(t, held.gpuUUID)
	time.Sleep(5 * time.Second)
	h.checkTruth(t, held.gpuUUID, since)
	h.checkQuiet(t)
}

// chartValues are those of an agent in a pod that reads the scripted GPUs through
// NVIDIA's runtime.
func (n *accessNode) chartValues() object {
	return object{
		"image":   object{"repository": "localhost/dra-exporter-access", "tag": "e2e", "pullPolicy": "Never"},
		"cluster": object{"enabled": false},
		"node": object{
			"kubeletDir":        shared.KubeletDir(),
			"deviceSources":     []string{"nvml"},
			"cdiDirs":           []string{shared.CDIDir()},
			"access":            object{"mode": "runtimeClass"},
			"env":               []object{{"name": "DRA_STUB_HARDWARE", "value": "/hardware"}},
			"extraVolumes":      []object{{"name": "hardware", "hostPath": object{"path": n.Dir}}},
			"extraVolumeMounts": []object{{"name": "hardware", "mountPath": "/hardware"}},
		},
	}
}

// podAgent returns the agent of a pod.
func podAgent(pod *corev1.Pod) *hostAgent {
	return &hostAgent{name: pod.Name, url: fmt.Sprintf("http://%s:9420/", pod.Status.PodIP)}
}

// setNodeLabel changes a label of the node, which labelNode removes.
func setNodeLabel(t *testing.T, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}}}`, key, value)
	if _, err := shared.Client().CoreV1().Nodes().Patch(t.Context(), shared.NodeName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitClientsGone waits as NVIDIA's operator does (k8s-driver-manager v0.12.0) before
// it unloads the driver: until no pod is left on the node that a DaemonSet controls
// and whose node selector has the label's key. It sees no affinity.
func waitClientsGone(t *testing.T, key string) {
	t.Helper()
	waited := false
	err := cluster.Eventually(t.Context(), "no client on the node", func(ctx context.Context) error {
		pods, err := shared.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + shared.NodeName()})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			owner := metav1.GetControllerOf(pod)
			if _, ok := pod.Spec.NodeSelector[key]; ok && owner != nil && owner.Kind == "DaemonSet" {
				waited = true
				return errors.New(pod.Namespace + "/" + pod.Name + " is left")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !waited {
		t.Error("the operator waits for no pod: the agent's does not select the label")
	}
}

// checkDriverVersion returns an error unless the page has so many GPUs, all with this
// version of the driver.
func checkDriverVersion(p *scrape.Page, version string, gpus int) error {
	rows := p.Rows("dra_device_info", scrape.Labels{"driver_version": version})
	if len(rows) != gpus {
		return fmt.Errorf("%d GPUs have driver %s", len(rows), version)
	}
	return nil
}
