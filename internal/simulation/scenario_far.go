package simulation

import "time"

// farVisitors come and go on the far node. Each of them waits for something
// in its own way.
func farVisitors() []workload {
	return []workload{
		{ // holds the only partition of its shape for a while
			namespace: "science", name: "fold", owner: ownedByJob, node: farNode,
			containers: []container{{name: "fold", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "fold-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("2g.35gb"), devices: []string{"gpu-4-mig-2g35gb-14-2"}},
			}},
			starts: 3 * time.Second, lasts: 30 * time.Second, every: 60 * time.Second,
		},
		{ // wants that one as well, and gets it when the other has done
			namespace: "science", name: "dock", owner: ownedByJob, node: farNode,
			containers: []container{{name: "dock", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "dock-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("2g.35gb"), devices: []string{"gpu-4-mig-2g35gb-14-2"}},
			}},
			starts: 9 * time.Second, lasts: 14 * time.Second, every: 60 * time.Second,
		},
		{ // its driver hangs while it prepares the devices
			namespace: "science", name: "assay", owner: ownedByJob, node: farNode,
			containers: []container{{name: "assay", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "assay-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("1g.18gb"), devices: []string{"gpu-4-mig-1g18gb-19-0"}},
			}},
			prepares: 30 * time.Second,
			starts:   15 * time.Second, lasts: 12 * time.Second, every: 90 * time.Second,
		},
		{ // a queue lets it pass only after a while
			namespace: "batch", name: "sweep", owner: ownedByJob, node: farNode,
			containers: []container{{name: "sweep", image: imagePyTorch}},
			claim: claim{name: "gpu", template: "sweep-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("1g.18gb"), devices: []string{"gpu-4-mig-1g18gb-19-1"}},
			}},
			hindered: hindrance{lasts: 20 * time.Second, gate: "kueue.x-k8s.io/admission"},
			starts:   5 * time.Second, lasts: 10 * time.Second, every: 70 * time.Second,
		},
		{ // somebody forgot to make the claim, and makes it when asked why nothing happens
			namespace: "onboarding", name: "tutorial", owner: ownedByStatefulSet, node: farNode,
			containers: []container{{name: "jupyter", image: imageNotebook}},
			claim: claim{name: "tutorial-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("1g.18gb"), devices: []string{"gpu-4-mig-1g18gb-19-1"}},
			}},
			hindered: hindrance{lasts: 18 * time.Second, unmade: true},
			starts:   40 * time.Second, lasts: 8 * time.Second, every: 70 * time.Second,
		},
		{ // its device is serviced every now and then, and drives it out
			namespace: "video", name: "transcode", owner: ownedByReplicaSet, node: farNode,
			containers: []container{{name: "worker", image: imageInference}},
			claim: claim{name: "gpu", template: "transcode-gpu", requests: []request{
				{name: "gpu", class: classMIG, selector: profileIs("3g.71gb"), devices: []string{"gpu-4-mig-3g71gb-9-4"}},
			}},
			hindered: hindrance{lasts: 24 * time.Second, rule: "maintenance"},
			evicted:  true,
			starts:   time.Second, lasts: 24 * time.Second, every: 50 * time.Second,
		},
		{ // its FPGA is attached to the node first
			namespace: "genomics", name: "aligner", owner: ownedByJob, node: farNode,
			containers: []container{{name: "align", image: imageTool}},
			claim: claim{name: "fpga", template: "aligner-fpga", requests: []request{
				{name: "fpga", class: classFPGA, selector: "device.attributes['fpga.example.com'].model == 'U55C'", devices: []string{farFPGA}},
			}},
			binds:  8 * time.Second,
			starts: 7 * time.Second, lasts: 15 * time.Second, every: 45 * time.Second,
		},
	}
}
