package e2e

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// topologyObjects are two pods of a workload: one whose claim asks for GPUs behind one
// PCIe root complex, and one whose GPU and network adapter are two claims without a
// common constraint.
const topologyObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: topology}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: dranet}
spec: {selectors: [{cel: {expression: "device.driver == 'dra.net'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: pair, namespace: topology}
spec:
  devices:
    requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 2, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].uuid != 'GPU-00000000-0000-0000-0000-000000000003'"}}]}}]
    constraints: [{requests: [gpus], matchAttribute: resource.kubernetes.io/pcieRoot}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: topology}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].uuid == 'GPU-00000000-0000-0000-0000-000000000003'"}}]}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: nic, namespace: topology}
spec: {devices: {requests: [{name: nic, exactly: {deviceClassName: dranet}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: near, namespace: topology, labels: {jobset.sigs.k8s.io/jobset-name: train, jobset.sigs.k8s.io/replicatedjob-name: worker, jobset.sigs.k8s.io/job-index: "0"}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpus}]}}]
  resourceClaims: [{name: gpus, resourceClaimName: pair}]
---
apiVersion: v1
kind: Pod
metadata: {name: far, namespace: topology, labels: {jobset.sigs.k8s.io/jobset-name: train, jobset.sigs.k8s.io/replicatedjob-name: worker, jobset.sigs.k8s.io/job-index: "1"}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}, {name: nic}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: gpu}, {name: nic, resourceClaimName: nic}]
`

// topologyMatrix is what the command prints for the workload, but for the widths of
// columns.
const topologyMatrix = `
Pod topology/far (worker · replica 1): devices and network: different NUMA nodes; at best on this node: same PCIe root complex
Pod topology/near (worker · replica 0): devices: same PCIe root complex
# DEVICE MODEL 1 2 3 4 PCIE ROOT NUMA LINK CLAIMS
1 gpu-0 NVIDIA H100 80GB HBM3 - root root cross pci0000:c0 0 - topology/pair
2 gpu-1 NVIDIA H100 80GB HBM3 root - root cross pci0000:c0 0 - topology/pair
3 gpu-3 NVIDIA H100 80GB HBM3 root root - cross pci0000:c0 0 - topology/gpu
4 pci-0000-81-00-0 MT4129 cross cross cross - pci0000:80 1 - topology/nic
root behind the same PCIe root complex
cross next to different NUMA nodes
`

// TestTopology: of what the scheduler has allocated with and without a constraint, how
// near the devices are to each other, by slices and sysfs; and the domains of nodes.
func TestTopology(t *testing.T) {
	covers(t)
	tree := sysfstest.Plant(t, "rdma")
	for address, at := range map[string]struct{ root, numa string }{
		"0000:c0:00.0": {"pci0000:c0", "0"}, "0000:c1:00.0": {"pci0000:c0", "0"}, "0000:c3:00.0": {"pci0000:c0", "0"},
		"0000:c4:00.0": {"pci0000:80", "1"}, // the only GPU at the side of the adapter
	} {
		folder := "devices/" + at.root + "/" + address
		tree.Set(folder+"/numa_node", at.numa+"\n")
		tree.Link("bus/pci/devices/"+address, "../../../"+folder)
	}
	startOther(t, "dra.net")
	agent := &hostAgent{name: "topology"}
	agent.launch(t, exec.Command(agentBinary(), "node", "--kubelet.pod-resources-socket="+shared.KubeletSocket(), "--device.source=rdma", "--path.sysfs="+tree.Root))
	labelNode(t, "network.topology.nvidia.com/leaf", "leaf-1")
	deployText(t, "topology", topologyObjects)
	running(t, "topology", "near")
	running(t, "topology", "far")
	agent.eventually(t, "how near the devices are to each other", func(p *scrape.Page) error {
		verdict := func(pod, between, is, best string) error {
			return hasGauge(p, "dra_pod_topology_info", scrape.Labels{"namespace": "topology", "pod": pod, "between": between, "alignment": is, "best": best}, 1)
		}
		return errors.Join(
			verdict("near", "devices", "pcie_root", "pcie_root"), verdict("far", "network", "crossing", "pcie_root"),
			hasGauge(p, "dra_claim_topology_info", scrape.Labels{"namespace": "topology", "resourceclaim": "pair", "between": "devices", "alignment": "pcie_root"}, 1),
			hasGauge(p, "dra_device_topology_info", scrape.Labels{"uuid": shared.NodeName() + "/gpu.nvidia.com/" + shared.NodeName() + "/gpu-0", "pcie_root": "pci0000:c0", "numa_node": "0"}, 1),
		)
	})
	waitClusterPage(t, "the racks of the node and of the workload", func(p *scrape.Page) error {
		rack := scrape.Labels{"namespace": "topology", "workload_kind": "JobSet", "workload": "train", "level": "rack"}
		return errors.Join(
			hasGauge(p, "dra_node_topology_info", scrape.Labels{"node": shared.NodeName(), "rack": "leaf-1"}, 1),
			hasGauge(p, "dra_workload_topology_domains", rack, 1), hasGauge(p, "dra_workload_topology_least_domains", rack, 1),
		)
	})
	output, err := exec.CommandContext(t.Context(), agentBinary(), "topology", "workload", "topology/train", "--url="+strings.TrimSuffix(agent.url, "/")).CombinedOutput()
	want := "Node " + shared.NodeName() + topologyMatrix
	if got := strings.Fields(string(output)); err != nil || strings.Join(got, " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("%v\n%s\nwant\n%s", err, output, want)
	}
}
