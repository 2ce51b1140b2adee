package dra

// PodRef names a pod.
type PodRef struct {
	Namespace, Name string
}

func (p PodRef) String() string { return p.Namespace + "/" + p.Name }

// Pod is a pod that uses claims, so far as it concerns who holds which device.
type Pod struct {
	Ref       PodRef
	UID       string
	Node      string // empty until bound
	Terminal  bool   // Succeeded or Failed: it holds nothing any more
	OwnerKind string // of the controller; empty without one
	OwnerName string

	Labels []string // values of the configured labels, in their order
	Member Member   // its workload

	Claims     []PodClaim
	Containers []Container
	Health     []ResourceHealth // the kubelet's reports on the devices
}

// ResourceHealth is the kubelet's report on a device of a container: an entry
// of allocatedResourcesStatus in the container's status (KEP-4680).
type ResourceHealth struct {
	PodClaim   string // the claim's name within the pod
	Request    string // empty: of whichever request
	ResourceID string // the device's first CDI id, else <driver>/<pool>/<device>
	Healthy    bool   // entries that report neither are left out
	Message    string // why it is unhealthy, in the driver's words; only read by the node role
}

// PodClaim is a claim that a pod names in its spec, or the claim that the
// scheduler made for its extended resources (then Name is empty).
type PodClaim struct {
	Name     string // within the pod
	Template string // name of the ResourceClaimTemplate, if it comes from one
	Claim    string // name of the ResourceClaim; empty until it is created
}

// Container is a container of any kind and the requests it may use.
type Container struct {
	Name string
	ID   string // the runtime's, without its scheme; empty until it is created
	Uses []Use
}

// Use is a container's permission to use the devices of a claim's request; of
// every request if Request is empty.
type Use struct {
	Claim   string // name of the ResourceClaim
	Request string
}

// Covers reports whether the use gives access to the devices of the request
// that a result names: a use of "main" covers the results "main" and
// "main/sub".
func (u Use) Covers(request string) bool {
	if u.Request == "" || u.Request == request {
		return true
	}
	return len(request) > len(u.Request) && request[:len(u.Request)] == u.Request && request[len(u.Request)] == '/'
}
