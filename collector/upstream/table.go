package upstream

import "strings"

// Component is what has a bug, and whose version decides whether it does.
type Component string

// The components. Drivers do not publish their own version.
const (
	ControlPlane Component = "control plane" // by the version of the API server
	Kubelet      Component = "kubelet"       // by the version that the node reports
	Driver       Component = "driver"
)

// Bug is a row of the table.
type Bug struct {
	ID        string // owner/repository#number
	Component Component

	// Affected is the versions with the bug; none: every version. Releases of drivers are
	// named in Releases instead.
	Affected []Range
	Releases string

	Seen   string // what is seen in objects; a sentence without its full stop
	Other  string // another cause of the same sign, a clause; empty: there is none
	Remedy string // sentences

	// Lasting means that what the bug has done stays after the component is upgraded.
	Lasting bool

	find func(*ClusterObjects) []Sign
}

// Link is the address of the report.
func (b *Bug) Link() string {
	repository, number, _ := strings.Cut(b.ID, "#")
	return "https://github.com/" + repository + "/issues/" + number
}

// Name is the ID without the owner of the repository.
func (b *Bug) Name() string {
	_, name, _ := strings.Cut(b.ID, "/")
	return name
}

// Versions names the versions that have the bug.
func (b *Bug) Versions() string {
	if b.Component == Driver {
		return b.Releases
	}
	if len(b.Affected) == 0 {
		return "every version"
	}
	ranges := make([]string, len(b.Affected))
	for i, r := range b.Affected {
		ranges[i] = r.String()
	}
	return strings.Join(ranges, "; ")
}

// Bugs returns the table.
func Bugs() []*Bug {
	return append(controlPlane(), drivers()...)
}

func controlPlane() []*Bug {
	return []*Bug{
		{
			ID: "kubernetes/kubernetes#136269", Component: ControlPlane, Lasting: true, find: doubleAllocations,
			Affected: []Range{{"1.32.0", "1.32.12"}, {"1.33.0", "1.33.8"}, {"1.34.0", "1.34.4"}, {"1.35.0", "1.35.1"}},
			Seen:     "A device is allocated to two claims, neither of them with admin access or a share",
			Remedy:   "Delete the pods of all but one of the claims. Upgrade the control plane.",
		},
		{
			ID: "kubernetes/kubernetes#139040", Component: ControlPlane, Lasting: true, find: overdrawnCounters,
			Affected: []Range{{"1.36.0", "1.36.2"}},
			Seen:     "Allocated devices of a pool, shares among them, consume more of a counter than the pool has",
			Other:    "the driver has published less since the allocation",
			Remedy:   "Delete pods with devices of this pool until its counters suffice. Upgrade the control plane.",
		},
		{
			ID: "kubernetes/kubernetes#138882", Component: ControlPlane, find: silentScheduler,
			Affected: []Range{{"1.35.0", "1.35.6"}, {"1.36.0", "1.36.2"}},
			Seen:     "The scheduler has reported nothing of a pod for a minute, whose claim asks for all devices, and a pool has devices that consume counters",
			Other:    "the scheduler does not run",
			Remedy:   "Check the scheduler's log for a panic in the plugin DynamicResources. Ask for a number of devices (`allocationMode: ExactCount`), or upgrade the control plane.",
		},
		{
			ID: "kubernetes/kubernetes#139016", Component: ControlPlane, find: failedScores,
			Affected: []Range{{"1.35.0", "1.35.6"}, {"1.36.0", "1.36.2"}},
			Seen:     "A pod with an allocated and an unallocated claim is pending, and the scheduler reports that the number of allocations is smaller than the number of claims",
			Remedy:   "Upgrade the control plane. Until then, restrict the pod to one node: one node is not scored.",
		},
		{
			ID: "kubernetes/kubernetes#141290", Component: ControlPlane, find: unevictedPods,
			Affected: []Range{{"1.36.0", "1.37.2"}},
			Seen:     "A pod that requested an extended resource keeps a device with a `NoExecute` taint",
			Remedy:   "Delete the pod: `NoExecute` does not evict it. Upgrade the control plane.",
		},
		{
			ID: "kubernetes/kubernetes#141422", Component: ControlPlane, find: broadRules,
			Seen:   "A DeviceTaintRule with the effect `NoExecute` has an empty selector, which selects all devices of the cluster",
			Remedy: "Delete the rule, or name a driver, a pool or a device in its selector.",
		},
		{
			ID: "kubernetes/kubernetes#141274", Component: ControlPlane, find: reservedForEnded,
			Affected: []Range{{"", "1.38.0-beta.0"}},
			Seen:     "A shared claim is reserved for a pod that ended more than a minute ago",
			Other:    "the controller manager does not run",
			Remedy:   "Delete the pod that has ended.",
		},
		{
			ID: "kubernetes/kubernetes#139772", Component: Kubelet, find: lostClaimNames,
			Affected: []Range{{"", "1.37.0"}},
			Seen:     "A pod is being deleted for longer than its grace period, and its status has lost the name of a claim that is reserved for it",
			Other:    "something else keeps the pod",
			Remedy:   "Find the client that replaces the pod's whole status, such as an old KubeVirt, and upgrade it. Write the claim's name into status.resourceClaimStatuses again, and the kubelet ends the pod. Upgrade the kubelet.",
		},
	}
}

func drivers() []*Bug {
	return []*Bug{
		{
			ID: "kubernetes-sigs/dra-driver-nvidia-gpu#725", Component: Driver, Releases: "v25.8 and older", find: zombieClaims,
			Seen:   "A claim with a device of NVIDIA's driver is being deleted for five minutes, Kubernetes' finalizer keeps it, and no pod that it is reserved for runs",
			Other:  "the controller manager does not run",
			Remedy: "Upgrade the driver. If the pods are gone from their nodes, remove the entries of status.reservedFor.",
		},
		{
			ID: "kubernetes-sigs/dra-driver-nvidia-gpu#330", Component: Driver, Releases: "every release", find: lostDomains,
			Seen:   "A node has slices of gpu.nvidia.com and none of compute-domain.nvidia.com, which other nodes have",
			Other:  "the driver starts there, or without ComputeDomains",
			Remedy: "Restart the pod of the driver's kubelet plugin on this node.",
		},
		{
			ID: "kubernetes-sigs/dra-driver-nvidia-gpu#1452", Component: Driver, Releases: "v0.5.0", find: partialPartitions,
			Seen:   "The preparation of a MIG device fails again and again, and its message reports a device without a UUID",
			Remedy: "Delete the GPU instance without a compute instance on the node (`nvidia-smi mig -lgi`, `nvidia-smi mig -dgi`), and upgrade the driver.",
		},
	}
}

// Unseen returns known bugs whose signs are in no object that is read, and where they are.
func Unseen() []Bug {
	return []Bug{
		{ID: "kubernetes/kubernetes#140212", Component: Kubelet, Affected: []Range{{"", "1.37.0"}},
			Seen: "A pod that is deleted before it runs unprepares a claim that other pods use: the deleted pod is gone"},
		{ID: "kubernetes-sigs/dra-driver-nvidia-gpu#1092", Component: Driver, Releases: "every release",
			Seen: "With DynamicMIG, a node with several models publishes no device: the driver's log alone has the reason"},
		{ID: "kubernetes-sigs/dra-driver-nvidia-gpu#1455", Component: Driver, Releases: "every release",
			Seen: "A health taint stays after the GPU has recovered: NVML alone knows the recovery action"},
		{ID: "kubernetes/autoscaler#10199", Component: Driver, Releases: "Cluster Autoscaler 1.35 to 1.36.1",
			Seen: "Groups of the Cluster API at size 0 are not scaled for claims: neither groups nor the version are in objects that are read"},
	}
}
