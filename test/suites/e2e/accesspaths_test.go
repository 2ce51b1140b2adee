package e2e

import (
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// engineAlias maps the name of the operator's Service to the address of the
// host engine, because the cluster has no DNS here. Its argument is the
// address.
const engineAlias = `
- target: {kind: DaemonSet}
  patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: any}
    spec: {template: {spec: {hostAliases: [{ip: %s, hostnames: [nvidia-dcgm.gpu-operator.svc]}]}}}
`

// testHostEngineAccess: the agent reads a host engine on the node over the
// pods' network, at the component's port and name. The agent has no device.
func (n *accessNode) testHostEngineAccess(t *testing.T) {
	covers(t)
	n.StartHostEngine(t, n.libraries, net.JoinHostPort(shared.GatewayIP(), "5555"))
	a := n.deploy(t, accessPath{
		namespace: "access-dcgm", base: "base", component: "dcgm",
		patches: []string{fmt.Sprintf(engineAlias, shared.GatewayIP())},
	})
	n.checkAgent(t, a)
	a.checkDeviceNodes(t)
	if _, err := a.page(t).One("dra_exporter_source_up", scrape.Labels{"source": "dcgm"}); err != nil {
		t.Error(err)
	}
}

const nvidiaRuntimeClass = `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, handler: ` + cluster.NVIDIARuntimeHandler + `}`

// testRuntimeClass: NVIDIA's container runtime, selected by the overlay
// nvidia, generates a CDI spec for the container that it starts.
func (n *accessNode) testRuntimeClass(t *testing.T) {
	covers(t)
	if err := shared.InstallNVIDIARuntime(n.Env()); err != nil {
		t.Fatal(err)
	}
	applyFor(t, nvidiaRuntimeClass)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of NVIDIA's runtime:\n%s", shared.NVIDIARuntimeLog())
		}
	})
	a := n.deploy(t, accessPath{namespace: "access-runtime", base: "overlays/nvidia"})
	n.checkAgent(t, a)
	a.checkDeviceNodes(t, 0, 1)
	t.Run("by-mount", n.testVisibleByMount)
}

// testVisibleByMount: a toolkit that ignores the variable in unprivileged
// containers accepts the mount of docs/access.md instead.
func (n *accessNode) testVisibleByMount(t *testing.T) {
	if err := shared.InstallNVIDIARuntime(n.Env(), "accept-nvidia-visible-devices-envvar-when-unprivileged = false",
		"accept-nvidia-visible-devices-as-volume-mounts = true"); err != nil {
		t.Fatal(err)
	}
	refused := n.deploy(t, accessPath{namespace: "access-refused", base: "overlays/nvidia"})
	refused.checkDeviceNodes(t)
	mounted := n.deploy(t, accessPath{namespace: "access-mounted", base: "overlays/nvidia", patches: []string{visibleByMount}})
	n.checkAgent(t, mounted)
	mounted.checkDeviceNodes(t, 0, 1)
}

// visibleByMount requests all GPUs by a mount.
const visibleByMount = `
- target: {kind: DaemonSet}
  patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: any}
    spec:
      template:
        spec:
          containers:
          - name: dra-exporter
            volumeMounts: [{name: all-gpus, mountPath: /var/run/nvidia-container-devices/all}]
          volumes: [{name: all-gpus, hostPath: {path: /dev/null}}]
`

// testCDI: NVIDIA's plugin of containerd reads the component's annotation in
// its own namespace. The annotation of the CDI project is one that the kubelet
// passes to container runtimes: on a pod it has no effect.
func (n *accessNode) testCDI(t *testing.T) {
	covers(t)
	spec, err := shared.WriteManagementSpec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(spec) })
	plugin, err := shared.StartNRIPlugin(t.Context(), "gpu-operator")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plugin.Stop(); err != nil {
			t.Error(err)
		}
	})
	a := n.deploy(t, accessPath{namespace: "gpu-operator", base: "base", component: "cdi"})
	n.checkAgent(t, a)
	a.checkDeviceNodes(t, 0, 1)

	t.Run("elsewhere", func(t *testing.T) {
		other := n.deploy(t, accessPath{namespace: "access-cdi", base: "base", component: "cdi", patches: []string{ignoredAnnotation}})
		other.checkDeviceNodes(t)
	})
}

// ignoredAnnotation adds the annotation by which the kubelet passes CDI
// devices to runtimes.
const ignoredAnnotation = `
- target: {kind: DaemonSet}
  patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: any}
    spec: {template: {metadata: {annotations: {cdi.k8s.io/dra-exporter: "` + cluster.ManagementDevice + `"}}}}
`
