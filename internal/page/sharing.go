package page

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Use is what somebody's processes do on a device. What is unknown is nil.
type Use struct {
	Utilization *float64 `json:"utilizationRatio,omitempty"`
	MemoryUsed  *float64 `json:"memoryUsedBytes,omitempty"`
}

// known is the use, nil if nothing of it is known.
func (u Use) known() *Use {
	if u.Utilization == nil && u.MemoryUsed == nil {
		return nil
	}
	return &u
}

// Something reports whether anything is done on the device.
func (u *Use) Something() bool {
	some := func(value *float64) bool { return value != nil && *value > 0 }
	return u != nil && (some(u.Utilization) || some(u.MemoryUsed))
}

// PodUse is what one pod does on a device, through whatever it got it by.
type PodUse struct {
	Pod string `json:"pod"`
	Use
}

// Label is a label of a pod, by the name that Prometheus allows it.
type Label struct{ Name, Value string }

// The words for how values relate to a claim that this package must know; it
// passes on whatever else it is told.
const (
	byProcess = "process" // what the claim's processes do
	notSplit  = "shared"  // the device's own
)

// ofSplittable stores a gauge that processes may split, and under which
// attribution it is. Whatever is not split tells how the device is held.
func ofSplittable(field func(*ClaimDevice) (**float64, *string)) func(*reader, metric.Row) {
	return func(r *reader, row metric.Row) {
		device := r.held(row)
		value, attribution := field(device)
		*value, *attribution = known(row.Value), row.Labels.Get("attribution")
		if *attribution != byProcess {
			device.Attribution = *attribution
		}
	}
}

// ofUnattributed stores what processes of no holder do on a device.
func ofUnattributed(field func(*Use) **float64) func(*reader, metric.Row) {
	return func(r *reader, row metric.Row) { *field(&r.device(row).unattributed) = known(row.Value) }
}

// ofPod stores what a pod does on a device.
func ofPod(field func(*Use) **float64) func(*reader, metric.Row) {
	return func(r *reader, row metric.Row) {
		device, key := r.device(row), podKey{row.Labels.Get("namespace"), row.Labels.Get("pod")}
		if device.pods == nil {
			device.pods = map[podKey]*Use{}
		}
		if device.pods[key] == nil {
			device.pods[key] = &Use{}
		}
		*field(device.pods[key]) = known(row.Value)
	}
}

// podKey is a pod by its namespace and name.
type podKey struct{ namespace, name string }

// use is what a pod does on the device, nil if nothing is known of that.
func (d *heldDevice) use(namespace, pod string) *Use {
	if use := d.pods[podKey{namespace, pod}]; use != nil {
		return use.known()
	}
	return nil
}

func (r *reader) processAttribution(row metric.Row) {
	if row.Value == 1 {
		r.view.ProcessAttribution = row.Labels.Get("reason")
	}
}

func (r *reader) partitionInfo(row metric.Row) {
	device, get := r.device(row), row.Labels.Get
	device.GPUInstance, device.ComputeInstance = get("gpu_instance_id"), get("compute_instance_id")
}

// settle says how the device is held where no value of it tells: what
// processes split has several holders; and while the readings are stale, the
// accounts tell, if all of them tell the same.
func (c *ClaimDevice) settle() {
	if c.Attribution != "" || !c.Held {
		return
	}
	if c.UtilizationAttribution == byProcess || c.MemoryAttribution == byProcess {
		c.Attribution = notSplit
		return
	}
	for i, account := range c.Accounts {
		held := account.Attribution
		if held == byProcess {
			held = notSplit
		}
		if i > 0 && held != c.Attribution {
			c.Attribution = ""
			return
		}
		c.Attribution = held
	}
}

// Way is the word for what the claim gets: its processes' share where there is
// one, or else how it holds the device.
func (c ClaimDevice) Way() string {
	if c.UtilizationAttribution == byProcess || c.MemoryAttribution == byProcess {
		return byProcess
	}
	return c.Attribution
}

// use is what the claim's processes do, as far as it is split; nil if nothing
// is.
func (c ClaimDevice) use() *Use {
	var use Use
	if c.UtilizationAttribution == byProcess {
		use.Utilization = c.Utilization
	}
	if c.MemoryAttribution == byProcess {
		use.MemoryUsed = c.MemoryUsed
	}
	return use.known()
}

// NamedAccount is an account as the page shows it: by name where there are
// several, or where its total is the device's own.
type NamedAccount struct {
	Account
	Named bool
}

// BusyAccounts are those that count busy time.
func (c ClaimDevice) BusyAccounts() []NamedAccount {
	return c.accounts(0.05, func(a Account) *float64 { return a.Busy })
}

// EnergyAccounts are those that count energy.
func (c ClaimDevice) EnergyAccounts() []NamedAccount {
	return c.accounts(180, func(a Account) *float64 { return a.Energy })
}

// accounts leaves out those that would be shown as nothing, which a claim has
// from its first moment on a device, unless all are so.
func (c ClaimDevice) accounts(least float64, total func(Account) *float64) []NamedAccount {
	var named []NamedAccount
	for _, account := range c.Accounts {
		if total(account) != nil {
			named = append(named, NamedAccount{account, unsplit(account.Attribution)})
		}
	}
	little := func(a NamedAccount) bool { return *total(a.Account) < least }
	if slices.ContainsFunc(named, func(a NamedAccount) bool { return !little(a) }) {
		named = slices.DeleteFunc(named, little)
	}
	for i := range named {
		named[i].Named = named[i].Named || len(named) > 1
	}
	return named
}

// unsplit reports whether a value under an attribution is the device's own.
func unsplit(attribution string) bool { return attribution == notSplit }

// Labels are those of the pods that use the claim now, each once.
func (c Claim) Labels() []Label {
	var labels []Label
	for _, consumer := range c.Consumers {
		for name, value := range consumer.Labels {
			if label := (Label{name, value}); !consumer.Ended && !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
	}
	slices.SortFunc(labels, func(a, b Label) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Value, b.Value))
	})
	return labels
}

// labelsOf are the pod labels of a consumer's row; nil without any. A pod
// without a label has the empty value for it.
func labelsOf(row metric.Row) map[string]string {
	var labels map[string]string
	for name, value := range row.Labels.Each {
		if of, is := strings.CutPrefix(name, "label_"); is && value != "" {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[of] = value
		}
	}
	return labels
}

// remedy is why shared devices are not split by process, and what to do about
// it; empty where they are, or where nothing is known about it.
func remedy(state string) string {
	switch state {
	case "disabled":
		return "--no-device.processes turns it off. Leave that flag out to have it."
	case "pid_namespace":
		return "The exporter does not see the node's processes, or has not reached the kubelet, which tells. Deploy it with the kustomize component process-attribution, which sets hostPID."
	case "no_procfs":
		return "The exporter cannot read procfs, which tells in which pod a process runs: --path.procfs says where it is mounted."
	case "no_pods":
		return "Nobody knows whose the processes are as long as the API server has not told of the pods. Leave out --kubernetes.disable; see the source pods."
	case "unsupported":
		return "No device source here lists processes. NVML does: add --device.source=nvml on nodes with NVIDIA's driver."
	default:
		return ""
	}
}

// AnyUnsplit reports whether a claim is shown the whole of a device that it
// shares.
func (v View) AnyUnsplit() bool {
	for _, claim := range v.Claims {
		for _, device := range claim.Devices {
			if device.Held && (unsplit(device.UtilizationAttribution) || unsplit(device.MemoryAttribution)) {
				return true
			}
		}
	}
	return false
}

// Remedy is why shared devices are not split by process, and what to do.
func (v View) Remedy() string { return remedy(v.ProcessAttribution) }
