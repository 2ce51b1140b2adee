package upstream

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func now() time.Time { return time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) time.Time { return now().Add(-d) }

func gpu(name string) dra.DeviceID {
	return dra.DeviceID{Driver: "gpu.nvidia.com", Pool: "node-a", Name: name}
}

// held returns a claim with devices that is reserved for pods of its namespace.
func held(name string, pods []string, devices ...string) *dra.ClaimLifecycle {
	claim := &dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ml", Name: name}, Allocated: true, Created: ago(time.Hour)}
	for _, device := range devices {
		claim.Results = append(claim.Results, dra.AllocatedDevice{Request: "gpu", Device: gpu(device)})
	}
	for _, pod := range pods {
		claim.ReservedFor = append(claim.ReservedFor, dra.Consumer{Resource: "pods", Name: pod, UID: "uid-" + pod})
	}
	return claim
}

// user returns a pod with claims; one without a node is not bound.
func user(name, node string, claims ...string) *dra.PodLifecycle {
	pod := &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ml", Name: name}, UID: "uid-" + name, Node: node, Created: ago(time.Hour)}
	for _, claim := range claims {
		pod.Claims = append(pod.Claims, dra.PodClaim{Name: claim, Claim: claim})
	}
	return pod
}

// clusterWith returns a cluster at a version with objects, all pods among them.
func clusterWith(server string, supply *dra.Supply, objects ...any) *ClusterObjects {
	c := NewClusterObjects(now(), server)
	c.Supply, c.PodsKnown = supply, true
	for _, object := range objects {
		switch of := object.(type) {
		case *dra.ClaimLifecycle:
			c.Apply(dra.Change{Claim: of})
		case *dra.PodLifecycle:
			c.Apply(dra.Change{Pod: of})
		case *dra.Node:
			c.Apply(dra.Change{Node: of})
		case *dra.Warning:
			c.Apply(dra.Change{Warning: of})
		}
	}
	return c
}

// changed returns the object after a change.
func changed[T any](object *T, change func(*T)) *T {
	change(object)
	return object
}

func pools(pools ...dra.PoolSupply) *dra.Supply {
	supply := &dra.Supply{}
	for i := range pools {
		supply.Pools = append(supply.Pools, &pools[i])
	}
	return supply
}

func tainted(effect string, holders ...string) *dra.Supply {
	device := dra.TaintedDevice{Device: gpu("gpu-0"), Taints: []dra.Taint{{Key: "gpu.nvidia.com/xid", Value: "79", Effect: effect}}}
	for _, holder := range holders {
		device.Holders = append(device.Holders, dra.ClaimRef{Namespace: "ml", Name: holder})
	}
	return &dra.Supply{Tainted: []dra.TaintedDevice{device}}
}

// signCase is a cluster with the sign of a bug, and clusters that look like it.
type signCase struct {
	bug    string
	sign   *ClusterObjects
	text   string // of the sign
	misses map[string]*ClusterObjects
}

func signCases() []signCase {
	pod := func() *dra.PodLifecycle { return user("train", "node-a", "gpus") }
	waiting := func(message string) *dra.PodLifecycle {
		return changed(user("train", "", "shared", "own"), func(p *dra.PodLifecycle) { p.Unschedulable = message })
	}
	const score = `running Score plugins: plugin "DynamicResources" failed with: number of allocations 1 is smaller than number of claims 2`
	shared := func() *dra.ClaimLifecycle { return held("shared", []string{"first"}, "gpu-0") }
	own := func() *dra.ClaimLifecycle {
		return &dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ml", Name: "own"}, Created: ago(time.Hour)}
	}
	all := func() *dra.ClaimLifecycle {
		return changed(own(), func(c *dra.ClaimLifecycle) { c.AllDevices = true })
	}
	silent := func() *dra.PodLifecycle { return user("train", "", "own") }
	counters := func() *dra.Supply {
		return pools(dra.PoolSupply{Driver: "gpu.nvidia.com", Pool: "node-a", Node: "node-a", Slices: 1, Counters: true})
	}
	extended := func() *dra.ClaimLifecycle {
		return changed(held("gpus", []string{"train"}, "gpu-0"), func(c *dra.ClaimLifecycle) { c.ExtendedResource = true })
	}
	ended := func(d time.Duration) *dra.PodLifecycle {
		return changed(user("first", "node-a", "gpus"), func(p *dra.PodLifecycle) { p.Terminal, p.Ended = true, ago(d) })
	}
	both := func() *dra.ClaimLifecycle { return held("gpus", []string{"first", "train"}, "gpu-0") }
	lost := func(d time.Duration) *dra.PodLifecycle {
		return changed(user("vm", "node-a"), func(p *dra.PodLifecycle) {
			p.Claims = []dra.PodClaim{{Name: "gpu", Template: "gpu"}}
			p.Deleted, p.Grace = ago(d), 30*time.Second
		})
	}
	generated := func() *dra.ClaimLifecycle {
		return changed(held("vm-gpu-x7", []string{"vm"}, "gpu-0"), func(c *dra.ClaimLifecycle) {
			c.MadeFor, c.PodClaim = dra.Consumer{Resource: "pods", Name: "vm", UID: "uid-vm"}, "gpu"
		})
	}
	kubelet := func(version string) *dra.Node { return &dra.Node{Name: "node-a", Kubelet: version} }
	zombie := func(d time.Duration) *dra.ClaimLifecycle {
		return changed(held("gpus", []string{"train"}, "gpu-0"), func(c *dra.ClaimLifecycle) {
			c.Deleted, c.Finalizers = ago(d), []string{"resource.kubernetes.io/delete-protection"}
		})
	}
	slice := func(driver, node string) dra.PoolSupply {
		return dra.PoolSupply{Driver: driver, Pool: node, Node: node, Slices: 1}
	}
	failed := func(count int64, message string) *dra.Warning {
		return &dra.Warning{Name: "ml/train.1", Kind: dra.WarningPreparation, Pod: dra.PodRef{Namespace: "ml", Name: "train"}, PodUID: "uid-train", Count: count, Message: message}
	}
	const handle = "error preparing devices: rollback: error getting device handle by UUID for : Not Found"
	mig := func() *dra.ClaimLifecycle { return held("gpus", []string{"train"}, "gpu-0-mig-1g10gb-19-0") }
	rule := func(effect string) *dra.Supply {
		return &dra.Supply{BroadRules: []dra.BroadRule{{Rule: "maintenance", Taint: dra.Taint{Key: "example.com/down", Effect: effect}}}}
	}
	return []signCase{
		{
			"kubernetes/kubernetes#136269", clusterWith("v1.35.0", nil, held("a", nil, "gpu-0"), held("b", nil, "gpu-1", "gpu-0")),
			"device gpu.nvidia.com/node-a/gpu-0 is allocated to claims ml/a, ml/b", map[string]*ClusterObjects{
				"other devices": clusterWith("v1.35.0", nil, held("a", nil, "gpu-0"), held("b", nil, "gpu-1")),
				"other pool":    clusterWith("v1.35.0", nil, held("a", nil, "gpu-0"), changed(held("b", nil, "gpu-0"), func(c *dra.ClaimLifecycle) { c.Results[0].Device.Pool = "node-b" })),
				"admin access":  clusterWith("v1.35.0", nil, held("a", nil, "gpu-0"), changed(held("b", nil, "gpu-0"), func(c *dra.ClaimLifecycle) { c.Results[0].AdminAccess = true })),
				"shares":        clusterWith("v1.35.0", nil, changed(held("a", nil, "gpu-0"), func(c *dra.ClaimLifecycle) { c.Results[0].Shared = true }), changed(held("b", nil, "gpu-0"), func(c *dra.ClaimLifecycle) { c.Results[0].Shared = true })),
				"one claim":     clusterWith("v1.35.0", nil, held("a", nil, "gpu-0", "gpu-0")),
			},
		},
		{
			"kubernetes/kubernetes#139040", clusterWith("v1.36.1", pools(dra.PoolSupply{Driver: "gpu.nvidia.com", Pool: "node-a", Counters: true, Overdrawn: true}), held("a", nil, "gpu-0")),
			"the allocated devices of pool node-a of gpu.nvidia.com consume more of a counter than it has", map[string]*ClusterObjects{
				"within":    clusterWith("v1.36.1", counters()),
				"no supply": clusterWith("v1.36.1", nil),
			},
		},
		{
			"kubernetes/kubernetes#138882", clusterWith("v1.36.1", counters(), all(), silent()),
			"the scheduler reports nothing of pod ml/train, whose claim own asks for all devices", map[string]*ClusterObjects{
				"a number":    clusterWith("v1.36.1", counters(), own(), silent()),
				"no counters": clusterWith("v1.36.1", pools(dra.PoolSupply{Driver: "gpu.nvidia.com"}), all(), silent()),
				"a message":   clusterWith("v1.36.1", counters(), all(), changed(silent(), func(p *dra.PodLifecycle) { p.Unschedulable = "cannot allocate all claims" })),
				"gated":       clusterWith("v1.36.1", counters(), all(), changed(silent(), func(p *dra.PodLifecycle) { p.Gated = true })),
				"gang":        clusterWith("v1.36.1", counters(), all(), changed(silent(), func(p *dra.PodLifecycle) { p.Group = "gang" })),
				"new pod":     clusterWith("v1.36.1", counters(), all(), changed(silent(), func(p *dra.PodLifecycle) { p.Created = ago(time.Second) })),
				"bound":       clusterWith("v1.36.1", counters(), all(), user("train", "node-a", "own")),
			},
		},
		{
			"kubernetes/kubernetes#139016", clusterWith("v1.35.5", nil, shared(), own(), waiting(score)),
			"pod ml/train is pending with claims that are allocated (ml/shared) and others that are not (ml/own), for which the scheduler cannot score nodes", map[string]*ClusterObjects{
				"no device":       clusterWith("v1.35.5", nil, shared(), own(), waiting("cannot allocate all claims")),
				"none allocated":  clusterWith("v1.35.5", nil, own(), waiting(score)),
				"other allocated": clusterWith("v1.35.5", nil, shared(), held("own", []string{"train"}, "gpu-1"), waiting(score)),
			},
		},
		{
			"kubernetes/kubernetes#141290", clusterWith("v1.37.1", tainted("NoExecute", "gpus"), extended(), pod()),
			"pod ml/train keeps device gpu.nvidia.com/node-a/gpu-0 with the taint gpu.nvidia.com/xid=79:NoExecute", map[string]*ClusterObjects{
				"NoSchedule":    clusterWith("v1.37.1", tainted("NoSchedule", "gpus"), extended(), pod()),
				"a claim":       clusterWith("v1.37.1", tainted("NoExecute", "gpus"), held("gpus", []string{"train"}, "gpu-0"), pod()),
				"being evicted": clusterWith("v1.37.1", tainted("NoExecute", "gpus"), extended(), changed(pod(), func(p *dra.PodLifecycle) { p.Deleted = ago(time.Second) })),
				"ended":         clusterWith("v1.37.1", tainted("NoExecute", "gpus"), extended(), changed(pod(), func(p *dra.PodLifecycle) { p.Terminal = true })),
				"not bound":     clusterWith("v1.37.1", tainted("NoExecute", "gpus"), extended(), user("train", "", "gpus")),
				"another pod":   clusterWith("v1.37.1", tainted("NoExecute", "gpus"), extended(), changed(pod(), func(p *dra.PodLifecycle) { p.UID = "next" })),
				"other holder":  clusterWith("v1.37.1", tainted("NoExecute", "other"), extended(), pod()),
			},
		},
		{
			"kubernetes/kubernetes#141422", clusterWith("", rule("NoExecute")),
			"DeviceTaintRule maintenance evicts the pods of all devices (example.com/down:NoExecute)", map[string]*ClusterObjects{
				"NoSchedule": clusterWith("v1.37.1", rule("NoSchedule")),
				"a selector": clusterWith("v1.37.1", &dra.Supply{}),
			},
		},
		{
			"kubernetes/kubernetes#141274", clusterWith("v1.37.2", nil, both(), ended(2*time.Minute), pod()),
			"claim ml/gpus is reserved for pod first, which has ended", map[string]*ClusterObjects{
				"just now":    clusterWith("v1.37.2", nil, both(), ended(10*time.Second), pod()),
				"running":     clusterWith("v1.37.2", nil, both(), user("first", "node-a", "gpus"), pod()),
				"alone":       clusterWith("v1.37.2", nil, held("gpus", []string{"first"}, "gpu-0"), ended(2*time.Minute)),
				"unknown end": clusterWith("v1.37.2", nil, both(), changed(ended(0), func(p *dra.PodLifecycle) { p.Ended = time.Time{} }), pod()),
			},
		},
		{
			"kubernetes/kubernetes#139772", clusterWith("v1.37.2", nil, kubelet("v1.36.0"), lost(5*time.Minute), generated()),
			"pod ml/vm does not end, and its status has lost the name of its claim vm-gpu-x7", map[string]*ClusterObjects{
				"in time":      clusterWith("v1.36.0", nil, kubelet("v1.36.0"), lost(time.Minute), generated()),
				"has the name": clusterWith("v1.36.0", nil, kubelet("v1.36.0"), changed(lost(5*time.Minute), func(p *dra.PodLifecycle) { p.Claims[0].Claim = "vm-gpu-x7" }), generated()),
				"not deleted":  clusterWith("v1.36.0", nil, kubelet("v1.36.0"), changed(lost(0), func(p *dra.PodLifecycle) { p.Deleted = time.Time{} }), generated()),
				"no claim":     clusterWith("v1.36.0", nil, kubelet("v1.36.0"), lost(5*time.Minute)),
				"new kubelet":  clusterWith("v1.36.0", nil, kubelet("v1.37.0"), lost(5*time.Minute), generated()),
			},
		},
		{
			"kubernetes-sigs/dra-driver-nvidia-gpu#725", clusterWith("v1.37.2", nil, zombie(11*time.Hour)),
			"claim ml/gpus is being deleted and reserved for no pod that runs", map[string]*ClusterObjects{
				"just now":     clusterWith("v1.37.2", nil, zombie(time.Minute)),
				"used":         clusterWith("v1.37.2", nil, zombie(11*time.Hour), pod()),
				"other driver": clusterWith("v1.37.2", nil, changed(zombie(11*time.Hour), func(c *dra.ClaimLifecycle) { c.Results[0].Device.Driver = "gpu.amd.com" })),
				"a group":      clusterWith("v1.37.2", nil, changed(zombie(11*time.Hour), func(c *dra.ClaimLifecycle) { c.ReservedFor[0].Resource = "podgroups" })),
				"a finalizer":  clusterWith("v1.37.2", nil, changed(zombie(11*time.Hour), func(c *dra.ClaimLifecycle) { c.Finalizers = []string{"example.com/keep"} })),
				"pods unknown": changed(clusterWith("v1.37.2", nil, zombie(11*time.Hour)), func(c *ClusterObjects) { c.PodsKnown = false }),
			},
		},
		{
			"kubernetes-sigs/dra-driver-nvidia-gpu#330", clusterWith("v1.37.2", pools(slice("gpu.nvidia.com", "node-a"), slice("gpu.nvidia.com", "node-b"), slice("compute-domain.nvidia.com", "node-a"))),
			"node node-b has no slice of compute-domain.nvidia.com", map[string]*ClusterObjects{
				"both":          clusterWith("v1.37.2", pools(slice("gpu.nvidia.com", "node-a"), slice("compute-domain.nvidia.com", "node-a"))),
				"not installed": clusterWith("v1.37.2", pools(slice("gpu.nvidia.com", "node-a"), slice("gpu.nvidia.com", "node-b"))),
				"no GPUs":       clusterWith("v1.37.2", pools(slice("gpu.amd.com", "node-b"), slice("compute-domain.nvidia.com", "node-a"))),
			},
		},
		{
			"kubernetes-sigs/dra-driver-nvidia-gpu#1452", clusterWith("v1.37.2", nil, mig(), pod(), failed(12, handle)),
			"on node node-a the MIG device of claim ml/gpus cannot be prepared", map[string]*ClusterObjects{
				"once":          clusterWith("v1.37.2", nil, mig(), pod(), failed(1, handle)),
				"other message": clusterWith("v1.37.2", nil, mig(), pod(), failed(12, "error creating GPU instance for '1g.10gb': Insufficient Resources")),
				"whole GPU":     clusterWith("v1.37.2", nil, held("gpus", []string{"train"}, "gpu-0"), pod(), failed(12, handle)),
				"started":       clusterWith("v1.37.2", nil, mig(), changed(pod(), func(p *dra.PodLifecycle) { p.Started = ago(time.Second) }), failed(12, handle)),
				"another pod":   clusterWith("v1.37.2", nil, mig(), changed(pod(), func(p *dra.PodLifecycle) { p.UID = "next" }), failed(12, handle)),
			},
		},
	}
}

// Each sign is found as that of one bug, and what looks like it is not.
func TestSigns(t *testing.T) {
	tested := make([]string, 0, len(Bugs()))
	for _, test := range signCases() {
		tested = append(tested, test.bug)
		found := Find(test.sign)
		if len(found) != 1 || found[0].Bug.ID != test.bug || found[0].Text != test.text {
			t.Errorf("%s: found %+v, want %q", test.bug, found, test.text)
		}
		for name, miss := range test.misses {
			if found := Find(miss); len(found) > 0 {
				t.Errorf("%s, %s: found %s: %s", test.bug, name, found[0].Bug.ID, found[0].Text)
			}
		}
	}
	for _, bug := range Bugs() {
		if !slices.Contains(tested, bug.ID) {
			t.Errorf("%s has no test", bug.ID)
		}
	}
}

// The version of the right component decides at its borders.
func TestVersions(t *testing.T) {
	const no, may, yes = "", "may be", "is"
	for _, test := range []struct{ bug, version, want string }{
		{"#136269", "v1.31.14", may}, // what it has done outlasts an upgrade, and a downgrade
		{"#136269", "v1.34.3", yes},
		{"#136269", "v1.34.4", may},
		{"#136269", "v1.35.0+k3s1", yes},
		{"#136269", "v1.35.1", may},
		{"#136269", "", may},
		{"#139016", "v1.34.9", no},
		{"#139016", "v1.35.0", yes},
		{"#139016", "v1.35.5-gke.1200", yes},
		{"#139016", "v1.35.6-gke.100", no},
		{"#139016", "v1.36.0-alpha.2", no},
		{"#139016", "v1.36.1", yes},
		{"#139016", "v1.36.2", no},
		{"#139016", "dev", may},
		{"#141290", "v1.35.9", no},
		{"#141290", "v1.36.7-eks-1a2b3c", yes},
		{"#141290", "v1.37.1+rke2r1", yes},
		{"#141290", "v1.37.2", no},
		{"#141290", "v1.38.0-beta.0", no},
		{"#141290", "", may},
		{"#141422", "v1.38.0", yes},
		{"#141422", "", yes},
		{"#141274", "v1.37.9", may},
		{"#141274", "v1.38.0-alpha.3", may},
		{"#141274", "v1.38.0-beta.0", no},
		{"#141274", "v1.38.0", no},
		{"#725", "v1.37.2", may},
	} {
		for _, sign := range signCases() {
			if !strings.HasSuffix(sign.bug, test.bug) {
				continue
			}
			sign.sign.Server = test.version
			got := no
			for _, found := range Find(sign.sign) {
				got = may
				if found.Certain {
					got = yes
				}
			}
			if got != test.want {
				t.Errorf("%s at %q: %q, want %q", test.bug, test.version, got, test.want)
			}
		}
	}
	lost := signCases()[7].sign
	for version, want := range map[string]int{"v1.36.9": 1, "v1.37.0-rc.0": 1, "v1.37.0": 0, "v1.37.0-gke.7": 0, "": 1} {
		lost.Server, lost.Nodes["node-a"] = "v1.35.0", &dra.Node{Name: "node-a", Kubelet: version}
		if found := Find(lost); len(found) != want {
			t.Errorf("kubelet %q: %d findings, want %d", version, len(found), want)
		}
	}
}

// What is gone shows nothing.
func TestGone(t *testing.T) {
	c := clusterWith("v1.35.0", nil, held("a", nil, "gpu-0"), held("b", nil, "gpu-0"))
	c.Apply(dra.Change{Claim: held("b", nil, "gpu-0"), Gone: true})
	if found := Find(c); len(found) > 0 {
		t.Errorf("found %s", found[0].Text)
	}
}
