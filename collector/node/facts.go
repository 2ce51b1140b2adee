package node

import (
	"log/slog"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Facts is everything that the node role is given at one time. Step only reads
// it.
type Facts struct {
	Samples  []device.Sample  // merged: no UUID twice
	Listing  dra.PodResources // the kubelet's last successful List
	ListedAt clock.Instant    // when it was listed; zero: never
	Cluster  APIFacts
	CDI      []dra.CDIDevice
	Sources  []source.Status

	Locations *device.Locations // of the node's PCI functions; nil: not known

	Access    DeviceAccess
	Processes Processes
	Prices    *price.Prices // valid from now on, in the currency of Config.Prices; nil: the prices before stay valid
}

// DeviceAccess is whether the sources keep the devices of the node open, and why not.
type DeviceAccess struct {
	State  device.Access
	Reason string // empty: they do
}

// Processes is the owners of the processes in samples.
type Processes struct {
	State  ProcessState
	Owners map[int]dra.Owner // by pid; one that is missing has not been looked up yet
}

// ProcessState is whether processes can be attributed to pods, and if not, why.
type ProcessState uint8

// The states, as dra_exporter_process_attribution names them.
const (
	ProcessesOK           ProcessState = iota
	ProcessesDisabled                  // --no-device.processes
	ProcessesPIDNamespace              // this program cannot see the node's processes
	ProcessesNoProcfs                  // nor can it read procfs
	ProcessesNoPods                    // without the API server the UIDs of pods are not known
	ProcessesUnsupported               // no device source here lists processes
	processStates
)

// String returns the reason label of dra_exporter_process_attribution.
func (p ProcessState) String() string {
	return [processStates]string{
		ProcessesOK:           "ok",
		ProcessesDisabled:     "disabled",
		ProcessesPIDNamespace: "pid_namespace",
		ProcessesNoProcfs:     "no_procfs",
		ProcessesNoPods:       "no_pods",
		ProcessesUnsupported:  "unsupported",
	}[p]
}

// APIFacts is what the API server has of this node.
type APIFacts struct {
	Enabled     bool // false with --kubernetes.disable
	Fresh       bool // the pod watch is synced and alive
	SlicesFresh bool // and so is the watch of slices
	Pods        []dra.Pod
	Claims      []dra.Claim
	PluginPods  []dra.Pod      // that use device plugins and no claims
	Unread      []dra.ClaimRef // that pods reference, and that have not been read
	Published   []dra.PublishedDevice
}

// claimsDown reports whether the read of claims failed, although pods may be read.
func (f Facts) claimsDown() bool {
	for _, status := range f.Sources {
		if status.Name == SourceClaims {
			return !status.Up && status.Errors > 0
		}
	}
	return false
}

// The names of the sources that read pods and ResourceClaims.
const (
	SourcePods   = "pods"
	SourceClaims = "resourceclaims"
)

// Snapshot is what the node role exports at one time. It is immutable.
type Snapshot struct {
	At     clock.Instant
	Series *metric.Snapshot // shares what has not changed with the snapshot before
	Model  *model.Node
}

// Rows returns all rows, which must not be changed.
func (s *Snapshot) Rows() []metric.Row { return s.Series.Rows() }

// Event is a change to be logged, once.
type Event struct {
	Level   slog.Level
	Message string
	Attrs   []slog.Attr
}

// Config is what does not change while the node role runs.
type Config struct {
	Node          string        // the node's name, a label of every row
	Version       self.Build    // of this binary
	Access        GPUAccess     // to NVIDIA's GPUs
	Interval      time.Duration // between two samples of the fast quantities
	Grace         time.Duration // for how long counters and info rows are kept after the hold
	IdleThreshold float64       // utilization ratio below which a claim is idle
	MaxSeries     int           // per family; 0: no limit
	HealthHold    time.Duration // for how long a signal must have been gone until the device is healthy again
	PodLabels     []string      // labels of pods that dra_claim_consumer_info shows, as dra.Pod.Labels has their values
	EachDevice    bool          // there are no bundles: each device of a claim has its rows
	Extensions    []string      // metrics of extensions, by their names after dra_device_ext_, as device.ParseExtension takes them
	Prices        *price.Prices // at the start; nil: none are known, now or later
	ThrottleRatio float64       // share of a minute in thermal slowdown, or under the power brake, that makes a device unhealthy; 0: none does
}

// GPUAccess is how the manifests give the agent access to NVIDIA's GPUs, and why. They know
// it, the agent does not. An empty mode is unknown.
type GPUAccess struct {
	Mode, Reason string
}

// Staleness is until which age readings are used: three intervals, and ten seconds
// at least.
func (c Config) Staleness() time.Duration { return device.StaleAfter(c.Interval) }

// listIdentity identifies a list by its place in memory. Facts are immutable, so two
// lists with the same span are the same list.
type listIdentity[T any] struct {
	first *T
	n     int
}

func newListIdentity[T any](list []T) listIdentity[T] {
	if len(list) == 0 {
		return listIdentity[T]{}
	}
	return listIdentity[T]{&list[0], len(list)}
}
