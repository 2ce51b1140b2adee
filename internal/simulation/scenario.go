package simulation

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
)

// Device classes.
const (
	classGPU     = "gpu.nvidia.com"
	classMIG     = "mig.nvidia.com"
	classNIC     = "dra.net"
	classFPGA    = "fpga.example.com"
	classSlice   = "mig-1g.nvidia.com" // which stands for an extended resource
	sliceByClass = "nvidia.com/mig-1g.10gb"
	gpuByPlugin  = "nvidia.com/gpu"
)

// Images, so far as anyone looks at them.
const (
	imagePyTorch   = "nvcr.io/nvidia/pytorch:25.09-py3"
	imageInference = "docker.io/vllm/vllm-openai:v0.11.0"
	imageNotebook  = "quay.io/jupyter/pytorch-notebook:cuda12-2025-09-30"
	imageMonitor   = "nvcr.io/nvidia/cloud-native/dcgm:4.4.1-2-ubuntu22.04"
	imageCache     = "docker.io/alluxio/alluxio:313"
	imageTool      = "docker.io/library/busybox:1.37"
)

// scenario is all that happens on the nodes: what stays for good, so that there
// is something to see from the start, and what comes and goes. gpu-4 and one
// partition are never asked for.
func scenario() []workload { return slices.Concat(holders(), services(), visitors(), farVisitors()) }

// holders stay, and hold whole GPUs; but for kube-proxy, which holds nothing.
func holders() []workload {
	return []workload{
		{
			namespace: "kube-system", name: "kube-proxy", owner: ownedByDaemonSet,
			containers: []container{{name: "kube-proxy", image: "registry.k8s.io/kube-proxy:v1.37.1"}},
		},
		{ // one claim, two GPUs, each for a container of its own
			namespace: "ml-training", name: "llama-pretrain", owner: ownedByJob, load: 0.97,
			containers: []container{
				{name: "rank-0", image: imagePyTorch, request: "rank-0"},
				{name: "rank-1", image: imagePyTorch, request: "rank-1"},
			},
			claim: claim{name: "gpus", template: "two-gpus", requests: []request{
				{name: "rank-0", class: classGPU, devices: []string{"gpu-0"}},
				{name: "rank-1", class: classGPU, devices: []string{"gpu-1"}},
			}},
		},
		{ // two claims share gpu-3, each with so much of its memory; and somebody else is on it, too
			namespace: "search", name: "embedder", owner: ownedByReplicaSet, load: 0.48,
			containers: []container{{name: "server", image: imageInference}},
			claim: claim{name: "gpu", template: "half-gpu", requests: []request{
				{name: "gpu", class: classGPU, devices: []string{"gpu-3"}, memory: "40Gi"},
			}},
		},
		{
			namespace: "ranking", name: "reranker", owner: ownedByReplicaSet, load: 0.2,
			containers: []container{{name: "server", image: imageInference}},
			claim: claim{name: "gpu", template: "quarter-gpu", requests: []request{
				{name: "gpu", class: classGPU, devices: []string{"gpu-3"}, memory: "20Gi"},
			}},
		},
	}
}

// services stay, with partitions, an adapter, or nothing that a claim holds.
func services() []workload {
	return []workload{
		{ // one claim, two pods
			namespace: "chat", name: "assistant", owner: ownedByReplicaSet, pods: 2, load: 0.7,
			containers: []container{{name: "server", image: imageInference}},
			claim: claim{name: "assistant-gpu", sharing: "MPS", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("3g.40gb"), devices: []string{"gpu-6-mig-3g40gb-9-4"}},
			}},
		},
		{ // a claim that does nothing for its whole life
			namespace: "research", name: "notebook", owner: ownedByStatefulSet, load: 0,
			containers: []container{{name: "jupyter", image: imageNotebook}},
			claim: claim{name: "gpu", template: "notebook-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("3g.40gb"), devices: []string{"gpu-5-mig-3g40gb-9-0"}},
			}},
		},
		{ // would like a B200, takes a partition
			namespace: "vision", name: "detector", owner: ownedByReplicaSet, load: 0.85,
			containers: []container{{name: "server", image: imageInference}},
			claim: claim{name: "gpu", template: "prefer-b200", requests: []request{
				{name: "gpu", devices: []string{"gpu-5-mig-2g20gb-14-4"}, firstAvailable: []alternative{
					{name: "b200", class: classGPU, selector: "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA B200'"},
					{name: "partition", class: classMIG, selector: profileIs("2g.20gb")},
				}},
			}},
		},
		{ // asks for an extended resource and gets a claim
			namespace: "web", name: "thumbnails", owner: ownedByReplicaSet, load: 0.4,
			containers: []container{{name: "worker", image: imageInference}},
			claim: claim{extended: sliceByClass, requests: []request{
				{name: "container-0-request-0", class: classSlice, devices: []string{"gpu-6-mig-1g10gb-19-0"}},
			}},
		},
		{ // holds an RDMA adapter
			namespace: "storage", name: "dataset-cache", owner: ownedByStatefulSet, load: 0.6,
			containers: []container{{name: "server", image: imageCache}},
			claim: claim{name: "nic", template: "rdma-nic", requests: []request{
				{name: "nic", class: classNIC, devices: []string{"pci-0000-1c-00-0"}},
			}},
		},
		{ // watches all GPUs and holds none
			namespace: "monitoring", name: "dcgm", owner: ownedByDaemonSet,
			containers: []container{{name: "dcgm", image: imageMonitor}},
			claim: claim{name: "all", template: "all-gpus", requests: []request{
				{name: "admin", class: classGPU, admin: true, devices: []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-7"}},
			}},
		},
		{ // knows nothing of claims; a DeviceTaintRule keeps claims from its GPU, which no slice shows
			namespace: "legacy", name: "stable-diffusion", owner: ownedByReplicaSet, load: 0.45,
			containers: []container{{name: "webui", image: imagePyTorch}},
			plugin:     []string{replica("gpu-7", 0)},
		},
		{ // takes turns with it
			namespace: "legacy", name: "captioner", owner: ownedByReplicaSet, load: 0.15,
			containers: []container{{name: "server", image: imageInference}},
			plugin:     []string{replica("gpu-7", 1)},
		},
	}
}

// visitors come and go.
func visitors() []workload {
	return []workload{
		{ // its init container holds the GPU before the main one does
			namespace: "ml-training", name: "finetune", owner: ownedByJob, load: 0.9,
			containers: []container{
				{name: "download", image: imageTool, init: 5 * time.Second},
				{name: "train", image: imagePyTorch},
			},
			claim: claim{name: "gpu", template: "single-gpu", requests: []request{
				{name: "gpu", class: classGPU, devices: []string{"gpu-2"}},
			}},
			starts: 2 * time.Second, lasts: 28 * time.Second, every: 70 * time.Second,
		},
		{
			namespace: "ml-training", name: "evaluate", owner: ownedByJob, load: 0.55,
			containers: []container{{name: "evaluate", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "single-gpu", requests: []request{
				{name: "gpu", class: classGPU, devices: []string{"gpu-2"}},
			}},
			starts: 42 * time.Second, lasts: 18 * time.Second, every: 70 * time.Second,
		},
		{ // short jobs, one after the other
			namespace: "ci", name: "unit-tests", owner: ownedByJob, load: 0.8,
			containers: []container{{name: "test", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "slice", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("1g.10gb"), devices: []string{"gpu-6-mig-1g10gb-19-1"}},
			}},
			starts: time.Second, lasts: 12 * time.Second, every: 21 * time.Second,
		},
		{ // a claim that is made again under its name
			namespace: "research", name: "scratch", owner: ownedByStatefulSet, load: 0.35,
			containers: []container{{name: "jupyter", image: imageNotebook}},
			claim: claim{name: "scratch", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("1g.10gb"), devices: []string{"gpu-5-mig-1g10gb-19-6"}},
			}},
			lasts: 25 * time.Second, every: 30 * time.Second,
		},
	}
}

// strays run in no pod, and nothing that Kubernetes knows tells of them.
func strays() []stray {
	return []stray{
		{ // a container that somebody has started by hand takes some of what two claims share
			command: "jupyter-lab", unit: "/system.slice/docker-4f0c1b7d9ae25386c4d17f20b93e5a6814cd7b02f6e98d3571ab04c2e8d9f613.scope",
			use: use{device: "gpu-3", load: 0.12, memory: 0.12},
		},
		{ // what is left of a session keeps memory of a GPU that nobody holds
			command: "python3", unit: "/user.slice/user-1000.slice/session-4.scope",
			use: use{device: "gpu-4", memory: 1},
		},
	}
}

// teams are whose the namespaces are.
func teams() map[string]string {
	return map[string]string{
		"ml-training": "foundation-models", "ci": "foundation-models",
		"search": "discovery", "ranking": "discovery",
		"chat": "assistants", "web": "media", "vision": "media", "legacy": "media",
		"research": "science", "science": "science", "storage": "platform",
	}
}

// ailments are what befalls the devices. The first is early enough for whoever
// looks at the node for two minutes to see it come and go.
func ailments() []ailment {
	return []ailment{
		{ // an application fails on a partition, which is nothing to the hardware
			device: "gpu-5-mig-2g20gb-14-4", xid: 13,
			starts: 15 * time.Second, lasts: time.Second, every: 75 * time.Second,
		},
		{ // an NVLink of a training job's GPU goes down and is trained anew
			device: "gpu-1", xid: 74, tainted: true,
			signs: []simulated.Fault{
				{Kind: "set", Quantity: "nvlinks", Details: [2]string{"active"}, Value: 17},
				{Kind: "set", Quantity: "nvlinks", Details: [2]string{"inactive"}, Value: 1},
			},
			starts: 35 * time.Second, lasts: 20 * time.Second, every: 4 * time.Minute,
		},
		{ // an application reads where there is nothing
			device: "gpu-3", xid: 31,
			starts: 50 * time.Second, lasts: time.Second, every: 3 * time.Minute,
		},
	}
}

func profileIs(profile string) string {
	return "device.attributes['gpu.nvidia.com'].profile == '" + profile + "'"
}
