package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
)

// deviceFault is a temporary fault of a device: an XID is reported when it
// starts.
type deviceFault struct {
	device  string // name given by its driver; each has at most one fault
	xid     int
	signs   []simulated.Fault // of a whole device: additional faults meanwhile
	tainted bool              // its driver taints it meanwhile
	starts  time.Duration     // after the scenario began
	lasts   time.Duration
	every   time.Duration // from one start to the next
}

// check reports what is wrong with a fault on this hardware.
func (a deviceFault) check(h hardware) error {
	if _, ok := h.byName(a.device); !ok {
		return fmt.Errorf("device fault: there is no device %s", a.device)
	}
	if a.every <= a.lasts {
		return fmt.Errorf("device fault of %s: it starts again before it has ended", a.device)
	}
	return nil
}

// scenarioClock is the time of the scenario, which may run faster than real
// time.
type scenarioClock struct {
	began time.Time
	speed float64 // seconds of the scenario per real second
}

// now returns how long the scenario has been running.
func (t scenarioClock) now() time.Duration {
	return time.Duration(float64(time.Since(t.began)) * t.speed)
}

// until waits for a time of the scenario. It reports false if ctx ended first.
func (t scenarioClock) until(ctx context.Context, at time.Duration) bool {
	timer := time.NewTimer(time.Duration(float64(at-t.now()) / t.speed))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// scenario returns all workloads of the nodes: permanent ones, so that there is
// something to see from the start, and recurring ones. gpu-4 and one partition of the
// first node are never requested.
func scenario() []workload {
	return slices.Concat(wholeGPUWorkloads(), partitionWorkloads(), acceleratorWorkloads(), trainingWorkloads(), recurringWorkloads(), remoteWorkloads())
}

// wholeGPUWorkloads run all the time and hold whole GPUs, except for kube-proxy.
func wholeGPUWorkloads() []workload {
	return []workload{
		{
			namespace: "kube-system", name: "kube-proxy", owner: ownedByDaemonSet,
			containers: []container{{name: "kube-proxy", image: "registry.k8s.io/kube-proxy:v1.37.1"}},
		},
		{ // one claim, two GPUs, each for a different container
			namespace: "ml-training", name: "llama-pretrain", owner: ownedByJob, load: 0.97,
			labels: map[string]string{
				"jobset.sigs.k8s.io/jobset-name": "llama", "jobset.sigs.k8s.io/replicatedjob-name": "pretrain", "jobset.sigs.k8s.io/job-index": "0",
				"kueue.x-k8s.io/local-queue-name": "foundation-models",
			},
			containers: []container{
				{name: "rank-0", image: imagePyTorch, request: "rank-0"},
				{name: "rank-1", image: imagePyTorch, request: "rank-1"},
			},
			claim: claim{name: "gpus", template: "two-gpus", requests: []request{
				{name: "rank-0", class: classGPU, devices: []string{"gpu-0"}},
				{name: "rank-1", class: classGPU, devices: []string{"gpu-1"}},
			}},
		},
		{ // two claims share gpu-3, each with so much of its memory; and a process outside of any pod uses it, too
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

// partitionWorkloads run all the time with partitions, an adapter, admin access or
// a device plugin.
func partitionWorkloads() []workload {
	return []workload{
		{ // one claim, two pods
			namespace: "chat", name: "assistant", owner: ownedByReplicaSet, pods: 2, load: 0.7,
			containers: []container{{name: "server", image: imageInference}},
			claim: claim{name: "assistant-gpu", sharing: "MPS", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("3g.40gb"), devices: []string{"gpu-6-mig-3g40gb-9-4"}},
			}},
		},
		{ // a claim that is idle all the time
			namespace: "research", name: "notebook", owner: ownedByStatefulSet, load: 0,
			containers: []container{{name: "jupyter", image: imageNotebook}},
			claim: claim{name: "gpu", template: "notebook-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("3g.40gb"), devices: []string{"gpu-5-mig-3g40gb-9-0"}},
			}},
		},
		{ // requests a B200 or else a partition
			namespace: "vision", name: "detector", owner: ownedByReplicaSet, load: 0.85,
			containers: []container{{name: "server", image: imageInference}},
			claim: claim{name: "gpu", template: "prefer-b200", requests: []request{
				{name: "gpu", devices: []string{"gpu-5-mig-2g20gb-14-4"}, firstAvailable: []alternative{
					{name: "b200", class: classGPU, selector: "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA B200'"},
					{name: "partition", class: classMIG, selector: profileIs("2g.20gb")},
				}},
			}},
		},
		{ // requests an extended resource and gets a claim
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
		{ // monitors all GPUs and holds none
			namespace: "monitoring", name: "dcgm", owner: ownedByDaemonSet,
			containers: []container{{name: "dcgm", image: imageMonitor}},
			claim: claim{name: "all", template: "all-gpus", requests: []request{
				{name: "admin", class: classGPU, admin: true, devices: []string{"gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4", "gpu-7"}},
			}},
		},
		{ // uses no claims; a DeviceTaintRule
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

// acceleratorWorkloads run all the time on the devices of other vendors.
func acceleratorWorkloads() []workload {
	return []workload{
		{ // one claim, all four chips of the slice
			namespace: "translation", name: "translator", owner: ownedByStatefulSet, load: 0.75,
			containers: []container{{name: "server", image: imageTPU}},
			claim: claim{name: "tpus", template: "tpu-slice", requests: []request{
				{name: "tpus", class: classTPU, devices: []string{"accel0", "accel1", "accel2", "accel3"}},
			}},
		},
		{
			namespace: "captions", name: "captions", owner: ownedByReplicaSet, load: 0.5,
			containers: []container{{name: "server", image: imageIntel}},
			claim: claim{name: "gpu", template: "intel-gpu", requests: []request{
				{name: "gpu", class: classIntel, devices: []string{"0000-3a-00-0-0x0bda"}},
			}},
		},
	}
}

// trainingWorkloads hold all GPUs of the training node, all the time: a job of six ranks,
// of which one is slow, because its GPU (gpu-4) is hot, and two GPUs that nothing uses.
func trainingWorkloads() []workload {
	rows := []workload{{
		namespace: "research", name: "interactive", owner: ownedByStatefulSet, node: trainingNode, load: 0,
		containers: []container{{name: "jupyter", image: imageNotebook}},
		claim: claim{name: "gpus", template: "interactive-gpus", requests: []request{
			{name: "gpus", class: classGPU, devices: []string{"gpu-6", "gpu-7"}},
		}},
	}}
	for rank := range 6 {
		rows = append(rows, workload{
			namespace: "pretraining", name: "gpt", owner: ownedByJob, node: trainingNode, ranks: 6, index: rank, load: 0.98,
			containers: []container{{name: "rank", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "rank-gpu", requests: []request{
				{name: "gpu", class: classGPU, devices: []string{gpuName(rank)}},
			}},
		})
	}
	return rows
}

// recurringWorkloads come and go.
func recurringWorkloads() []workload {
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
		{ // a claim that is recreated with the same name
			namespace: "research", name: "scratch", owner: ownedByStatefulSet, load: 0.35,
			containers: []container{{name: "jupyter", image: imageNotebook}},
			claim: claim{name: "scratch", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("1g.10gb"), devices: []string{"gpu-5-mig-1g10gb-19-6"}},
			}},
			lasts: 25 * time.Second, every: 30 * time.Second,
		},
	}
}

// hostProcesses run in no pod, and Kubernetes does not know them.
func hostProcesses() []hostProcess {
	return []hostProcess{
		{ // a container that was started by hand uses a part of what two claims share
			command: "jupyter-lab", unit: "/system.slice/docker-4f0c1b7d9ae25386c4d17f20b93e5a6814cd7b02f6e98d3571ab04c2e8d9f613.scope",
			use: use{device: "gpu-3", load: 0.12, memory: 0.12},
		},
		{ // a process that outlived its session keeps memory of a GPU that no claim holds
			command: "python3", unit: "/user.slice/user-1000.slice/session-4.scope",
			use: use{device: "gpu-4", memory: 1},
		},
	}
}

// deviceFaults returns the faults of the devices. The first starts within the
// first two minutes of a demo.
func deviceFaults() []deviceFault {
	return []deviceFault{
		{ // an application fails on a partition, which does not affect the hardware
			device: "gpu-5-mig-2g20gb-14-4", xid: 13,
			starts: 15 * time.Second, lasts: time.Second, every: 75 * time.Second,
		},
		{ // an NVLink of a training job's GPU goes down and is retrained
			device: "gpu-1", xid: 74, tainted: true,
			signs: []simulated.Fault{
				{Kind: "set", Quantity: "nvlinks", Details: [2]string{"active"}, Value: 17},
				{Kind: "set", Quantity: "nvlinks", Details: [2]string{"inactive"}, Value: 1},
			},
			starts: 35 * time.Second, lasts: 20 * time.Second, every: 4 * time.Minute,
		},
		{ // an application reads an invalid address
			device: "gpu-3", xid: 31,
			starts: 50 * time.Second, lasts: time.Second, every: 3 * time.Minute,
		},
	}
}

// remoteWorkloads come and go on the remote node. Each is pending for another
// reason for a while.
func remoteWorkloads() []workload {
	return []workload{
		{ // holds the only partition of its shape for a while
			namespace: "science", name: "fold", owner: ownedByJob, node: remoteNode,
			containers: []container{{name: "fold", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "fold-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("2g.35gb"), devices: []string{"gpu-4-mig-2g35gb-14-2"}},
			}},
			starts: 3 * time.Second, lasts: 30 * time.Second, every: 60 * time.Second,
		},
		{ // requests the same one, and gets it when the other has ended
			namespace: "science", name: "dock", owner: ownedByJob, node: remoteNode,
			containers: []container{{name: "dock", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "dock-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("2g.35gb"), devices: []string{"gpu-4-mig-2g35gb-14-2"}},
			}},
			starts: 9 * time.Second, lasts: 14 * time.Second, every: 60 * time.Second,
		},
		{ // its driver hangs while it prepares the devices
			namespace: "science", name: "assay", owner: ownedByJob, node: remoteNode,
			containers: []container{{name: "assay", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "assay-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("1g.18gb"), devices: []string{"gpu-4-mig-1g18gb-19-0"}},
			}},
			prepares: 30 * time.Second,
			starts:   15 * time.Second, lasts: 12 * time.Second, every: 90 * time.Second,
		},
		{ // a queue lets it pass only after a while
			namespace: "batch", name: "sweep", owner: ownedByJob, node: remoteNode,
			containers: []container{{name: "sweep", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "sweep-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("1g.18gb"), devices: []string{"gpu-4-mig-1g18gb-19-1"}},
			}},
			delayed: schedulingDelay{lasts: 20 * time.Second, gate: "kueue.x-k8s.io/admission"},
			starts:  5 * time.Second, lasts: 10 * time.Second, every: 70 * time.Second,
		},
		{ // the claim is created after the pod
			namespace: "onboarding", name: "tutorial", owner: ownedByStatefulSet, node: remoteNode,
			containers: []container{{name: "jupyter", image: imageNotebook}},
			claim: claim{name: "tutorial-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("1g.18gb"), devices: []string{"gpu-4-mig-1g18gb-19-1"}},
			}},
			delayed: schedulingDelay{lasts: 18 * time.Second, claimMissing: true},
			starts:  40 * time.Second, lasts: 8 * time.Second, every: 70 * time.Second,
		},
		{ // its device is serviced every now and then, and drives it out
			namespace: "video", name: "transcode", owner: ownedByReplicaSet, node: remoteNode,
			containers: []container{{name: "worker", image: imageInference}},
			claim: claim{name: "gpu", template: "transcode-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("3g.71gb"), devices: []string{"gpu-4-mig-3g71gb-9-4"}},
			}},
			delayed: schedulingDelay{lasts: 24 * time.Second, rule: "maintenance"},
			evicted: true,
			starts:  time.Second, lasts: 24 * time.Second, every: 50 * time.Second,
		},
		{ // its FPGA is attached to the node first
			namespace: "genomics", name: "aligner", owner: ownedByJob, node: remoteNode,
			containers: []container{{name: "align", image: imageTool}},
			claim: claim{name: "fpga", template: "aligner-fpga", requests: []request{
				{name: "fpga", class: classFPGA, selector: "device.attributes['fpga.example.com'].model == 'U55C'", devices: []string{remoteFPGA}},
			}},
			binds:  8 * time.Second,
			starts: 7 * time.Second, lasts: 15 * time.Second, every: 45 * time.Second,
		},
	}
}

// hostProcess is a process that runs in no pod: it was started on the node.
type hostProcess struct {
	command string
	unit    string // of systemd
	use
}

// processesOfHost are the processes of the host, which run from the beginning.
func processesOfHost(rows []hostProcess) []process {
	var made []process
	for _, s := range rows {
		made = append(made, process{command: s.command, cgroup: s.unit, uses: []use{s.use}})
	}
	return made
}

// check reports what is wrong with a host process on this hardware.
func (s hostProcess) check(h hardware) error {
	if !slices.Contains(h.withProcesses(), s.device) {
		return fmt.Errorf("%s: the processes of %s are not listed", s.command, s.device)
	}
	return nil
}

// published reports whether a node has a device of that name.
func published(nodes map[string]hardware, node, name string) bool {
	h, ok := nodes[node]
	if !ok {
		return slices.Contains(remoteDevices(), name)
	}
	_, ok = h.byName(name)
	return ok
}

// check returns an error if a scenario does not fit the hardware, or is
// inconsistent.
func check(rows []workload, befalls []deviceFault, strange []hostProcess, nodes map[string]hardware) error {
	var wrong []error
	h := nodes[nodeName] // faults and processes of the host are the first node's
	for _, s := range strange {
		if err := s.check(h); err != nil {
			wrong = append(wrong, err)
		}
	}
	for _, a := range befalls {
		if err := a.check(h); err != nil {
			wrong = append(wrong, err)
		}
	}
	for _, w := range rows {
		for _, name := range w.devices() {
			if !published(nodes, w.on(), name) {
				wrong = append(wrong, fmt.Errorf("%s/%s: there is no device %s", w.namespace, w.name, name))
			}
		}
		if w.pods > 1 && (w.claim.template != "" || w.claim.extended != "") {
			wrong = append(wrong, fmt.Errorf("%s/%s: several pods cannot have one claim of a template", w.namespace, w.name))
		}
		for _, c := range w.containers {
			known := func(r request) bool { return r.name == c.request }
			if c.request != "" && !slices.ContainsFunc(w.claim.requests, known) {
				wrong = append(wrong, fmt.Errorf("%s/%s: container %s: there is no request %s", w.namespace, w.name, c.name, c.request))
			}
		}
	}
	return errors.Join(wrong...)
}
