package dra

// Workload is what a pod runs for: the outermost object that is known from the
// pod, such as a JobSet, a RayJob or a Deployment. It is in the pod's namespace.
// Workloads are compared by value, and shared between their pods.
type Workload struct {
	Kind string // of the object; PodGroup for a group of pods without one
	Name string
	// Queue is the queue that the pod was submitted to; empty without one.
	Queue string
}

// Member is the place of a pod in its workload. The zero value is that of a pod
// without a workload.
type Member struct {
	Workload *Workload // nil: none; immutable
	Role     string    // which part of the workload, such as worker; may be empty
	Replica  string    // index of the part's replica, if the part has several
	Rank     string    // index of the pod within that; empty if its pods have none

	// Size is how many pods belong to the pod's gang, if the pod says so; else 0.
	Size int32
}
