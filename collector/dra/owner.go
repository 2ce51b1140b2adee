package dra

// Owner is whose a process is.
type Owner struct {
	PodUID      string // as the API server has it; empty: it runs in no pod
	ContainerID string // the runtime's; empty if unknown
	Gone        bool   // it had ended when it was looked up, or its pid is another's by now
}
