package simulation

import "time"

// waiters wait for good: for each reason for which a pod can wait there is
// one, but for those that pass (scenario_far.go).
func waiters() []waiter {
	gpus := func(namespace, name string, from owner, count int, selector string) workload {
		return workload{
			namespace: namespace, name: name, owner: from,
			containers: []container{{name: "main", image: imagePyTorch}},
			claim: claim{name: "gpus", template: name, requests: []request{
				{name: "gpu", class: classGPU, selector: selector, count: count},
			}},
		}
	}
	nothingFits := onEachNode(cannotAllocate)
	return []waiter{
		{ // more than there are
			workload: gpus("llm", "pretrain-70b", ownedByJob, 16, ""), age: 26 * time.Hour, says: nothingFits,
		},
		{ // a model that nobody has
			workload: gpus("llm", "blackwell", ownedByReplicaSet, 1, "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA B200'"),
			age:      3*time.Hour + 12*time.Minute, says: nothingFits,
		},
		{ // so many are free, but not on one node
			workload: gpus("robotics", "train", ownedByJob, 3, ""), age: 42 * time.Minute, says: nothingFits,
		},
		{workload: alignedPair(), age: 20 * time.Minute, says: nothingFits},
		{workload: helloGPU(), age: 17 * time.Minute, says: forAllNodes("request gpu: device class gpu.acme.com does not exist")},
		{workload: typingError(), age: 11 * time.Minute, unmade: true},
		{ // its namespace has as many claims as it may
			workload: gpus("students", "homework", ownedByStatefulSet, 1, ""), age: 9 * time.Minute, refused: exceeded("students", 4),
		},
		{workload: burst(), age: 8 * time.Minute, says: nothingFits},
		{workload: eitherOr(), age: 6 * time.Minute, says: nothingFits},
		{workload: halfRack(), age: 4 * time.Minute, says: nothingFits},
		{ // there are devices, but every processor is taken
			workload: gpus("finance", "etl", ownedByJob, 1, ""), age: 2 * time.Minute, says: crowded("Insufficient cpu"),
		},
		{workload: gatedForGood(gpus("batch", "nightly", ownedByJob, 8, "")), age: 2 * time.Hour},
	}
}

// alignedPair wants a GPU and an adapter that are near each other: there are
// both, far apart.
func alignedPair() workload {
	return workload{
		namespace: "hpc", name: "mpi", owner: ownedByStatefulSet,
		containers: []container{{name: "rank", image: imagePyTorch}},
		claim: claim{name: "pair", template: "gpu-with-nic", align: pcieRoot, requests: []request{
			{name: "gpu", class: classGPU, count: 1}, {name: "nic", class: classNIC, count: 1},
		}},
	}
}

// helloGPU names a class that is nowhere defined.
func helloGPU() workload {
	return workload{
		namespace: "onboarding", name: "hello-gpu", owner: ownedByReplicaSet,
		containers: []container{{name: "hello", image: imageTool}},
		claim:      claim{name: "gpu", template: "hello", requests: []request{{name: "gpu", class: "gpu.acme.com", count: 1}}},
	}
}

// typingError names a claim that is not there.
func typingError() workload {
	return workload{
		namespace: "onboarding", name: "typo", owner: ownedByStatefulSet,
		containers: []container{{name: "jupyter", image: imageNotebook}},
		claim:      claim{name: "shraed-gpu", requests: []request{{name: "gpu", class: classGPU, count: 1}}},
	}
}

// burst asks for more of an extended resource than there is.
func burst() workload {
	return workload{
		namespace: "web", name: "burst", owner: ownedByReplicaSet,
		containers: []container{{name: "worker", image: imageInference}},
		claim:      claim{extended: sliceByClass, requests: []request{{name: "container-0-request-0", class: classSlice, count: 20}}},
	}
}

// eitherOr would like a B200, or else a partition that somebody has.
func eitherOr() workload {
	return workload{
		namespace: "lab", name: "protein", owner: ownedByStatefulSet,
		containers: []container{{name: "jupyter", image: imageNotebook}},
		claim: claim{name: "gpu", template: "big-gpu", requests: []request{
			{name: "gpu", firstAvailable: []alternative{
				{name: "b200", class: classGPU, selector: "device.attributes['gpu.nvidia.com'].productName == 'NVIDIA B200'"},
				{name: "partition", class: classMIG, selector: profileIs("3g.40gb")},
			}},
		}},
	}
}

// halfRack wants an FPGA of a pool that is not published completely.
func halfRack() workload {
	return workload{
		namespace: "genomics", name: "sorter", owner: ownedByJob,
		containers: []container{{name: "sort", image: imageTool}},
		claim: claim{name: "fpga", template: "sorter-fpga", requests: []request{
			{name: "fpga", class: classFPGA, selector: "device.attributes['fpga.example.com'].model == 'V80'", count: 1},
		}},
	}
}

func gatedForGood(w workload) workload {
	w.hindered.gate = "kueue.x-k8s.io/admission"
	return w
}
