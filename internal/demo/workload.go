package demo

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// workload is a row of the scenario: the pods of one controller, and the
// claim that they use.
type workload struct {
	namespace, name string
	owner           owner
	labels          map[string]string // of its pods, besides those of the controller
	pods            int               // 0: one; several need a claim that has no template
	ranks           int               // of an indexed job, of which each row has one: their number; 0: no such job
	index           int               // of this one
	containers      []container
	claim           claim
	group           string   // PodGroup of its pods; empty: none
	plugin          []string // replicas of devices that a device plugin allocates to the first container
	load            float64  // of each device while the main containers run, 0 to 1

	node     string          // that it runs on; empty: the first
	delayed  schedulingDelay // before it gets its devices
	binds    time.Duration   // how long its device needs until the pod can be bound; 0: no time
	prepares time.Duration   // how much longer than usual preparation takes
	evicted  bool            // in the end, by a taint of its device

	starts time.Duration // after the scenario began
	lasts  time.Duration // from the start of its main containers; 0: for good
	every  time.Duration // from one start to the next
}

// owner is the kind of controller that pods belong to. Jobs end, and their
// pods stay for a while; pods of the others are deleted while they run.
type owner string

const (
	ownedByJob         owner = "Job"
	ownedByStatefulSet owner = "StatefulSet"
	ownedByReplicaSet  owner = "ReplicaSet"
	ownedByDaemonSet   owner = "DaemonSet"
)

// container is a container of each pod.
type container struct {
	name, image string
	init        time.Duration // duration of an init container; 0: a main one
	request     string        // the only request of the claim that it uses; empty: all
}

// claim is the workload's claim; without requests there is none. It is
// generated from a template for its pod, or for an extended resource, or else
// created by name: then each run of the workload creates it again with that
// name.
type claim struct {
	name     string // within the pod
	template string
	extended string // the extended resource
	requests []request
	align    string // attribute that all its devices must have in common
	sharing  string // requested sharing strategy
}

// request is a request and, in place of a scheduler, what is allocated to it.
type request struct {
	name           string
	class          string
	selector       string
	firstAvailable []alternative // a prioritized list, instead of class and selector: the last is taken
	admin          bool          // admin access to all devices of the class
	devices        []string      // as the driver names them
	count          int           // requested count, if it gets none
	memory         string        // that is consumed of a device that several claims share
}

// alternative is an entry of a prioritized list.
type alternative struct {
	name, class, selector string
}

// chosen returns the name by which an allocation refers to the request.
func (r request) chosen() string {
	if last := len(r.firstAvailable) - 1; last >= 0 {
		return r.name + "/" + r.firstAvailable[last].name
	}
	return r.name
}

// devices are all that the workload gets.
func (w workload) devices() []string {
	devices := w.pluginDevices()
	for _, r := range w.claim.requests {
		devices = append(devices, r.devices...)
	}
	return devices
}

// schedulingDelay keeps a workload's pod from being scheduled for a while.
type schedulingDelay struct {
	lasts        time.Duration // from the pod's creation
	gate         string        // a scheduling gate of the pod
	claimMissing bool          // the claim that the pod names does not exist
	rule         string        // name of a DeviceTaintRule for its first device
}

// on is the node that the workload runs on.
func (w workload) on() string { return cmp.Or(w.node, nodeName) }

// replicaMark stands between a device and the number of its replica, where a
// device plugin gives one to several pods.
const replicaMark = "::"

// replicas is the number of replicas of a device plugin's device.
const replicas = 4

// replica is the id of one of them.
func replica(device string, n int) string { return device + replicaMark + strconv.Itoa(n) }

// pluginDevices returns the devices that a device plugin allocates to the
// workload.
func (w workload) pluginDevices() []string {
	var names []string
	for _, id := range w.plugin {
		name, _, _ := strings.Cut(id, replicaMark)
		names = append(names, name)
	}
	return names
}

// usedBy returns the devices that one of the workload's
// containers uses, without those that it only monitors.
func (w workload) usedBy(container int) []string {
	var names []string
	if container == 0 {
		names = w.pluginDevices()
	}
	if w.claim.extended != "" && container > 0 {
		return names
	}
	for _, r := range w.claim.requests {
		if only := w.containers[container].request; !r.admin && (only == "" || only == r.name) {
			names = append(names, r.devices...)
		}
	}
	return names
}

// Device classes.
const (
	classGPU     = "gpu.nvidia.com"
	classMIG     = "mig.nvidia.com"
	classNIC     = "dra.net"
	classFPGA    = "fpga.example.com"
	classTPU     = "tpu.google.com"
	classIntel   = "gpu.intel.com"
	classSlice   = "mig-1g.nvidia.com" // which backs an extended resource
	sliceByClass = "nvidia.com/mig-1g.10gb"
	gpuByPlugin  = "nvidia.com/gpu"
)

// Names of images.
const (
	imagePyTorch   = "nvcr.io/nvidia/pytorch:25.09-py3"
	imageInference = "docker.io/vllm/vllm-openai:v0.11.0"
	imageNotebook  = "quay.io/jupyter/pytorch-notebook:cuda12-2025-09-30"
	imageMonitor   = "nvcr.io/nvidia/cloud-native/dcgm:4.4.1-2-ubuntu22.04"
	imageCache     = "docker.io/alluxio/alluxio:313"
	imageTool      = "docker.io/library/busybox:1.37"
	imageTPU       = "docker.io/vllm/vllm-tpu:v0.11.0"
	imageIntel     = "docker.io/intel/vllm:0.11.0-xpu"
)

// teams are the owners of the namespaces.
func teams() map[string]string {
	return map[string]string{
		"ml-training": "foundation-models", "ci": "foundation-models",
		"search": "discovery", "ranking": "discovery",
		"chat": "assistants", "web": "media", "vision": "media", "legacy": "media",
		"research": "science", "science": "science", "storage": "platform",
		"translation": "assistants", "captions": "media", "pretraining": "foundation-models",
	}
}

func profileIs(profile string) string {
	return "device.attributes['gpu.nvidia.com'].profile == '" + profile + "'"
}
