package dra

import "time"

// KueueWorkload is Kueue's object for a job, or a group of pods, that is submitted to
// a queue. Until it is admitted, its job has no pods, or they have a scheduling gate.
type KueueWorkload struct {
	Ref      PodRef // namespace and name of the object
	UID      string
	Workload Workload // the job, as its pods have it; without a kind for one pod alone
	Pod      Consumer // that it is for alone; empty: a job or several pods

	Pods     int32    // that its job needs
	Claims   bool     // its pods use claims
	Extended []string // extended resources that they request, sorted

	// Waiting is why it is not admitted; nil: it is.
	Waiting *KueueWaiting
}

// KueueWaiting is why a KueueWorkload is not admitted, as Kueue reports it.
type KueueWaiting struct {
	Reason  string // of Kueue's condition, such as WaitingForQuota; Queued if there is none yet
	Message string
	Since   time.Time
}
