package dcgmnames

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// facts are the contents of info rows about devices and their users.
type facts struct {
	devices   []hardware
	instances map[string]string         // the GPU instance's id, by the partition's uuid
	held      map[holding]bool          // by claims that count
	published map[holding]publishedName // name under which the device was allocated to a claim
	consumers map[string][]consumer     // by uuid, in the order of the rows
}

// hardware is an NVIDIA device.
type hardware struct {
	uuid, parent                           string
	node, model, address, profile, version string
}

// holding is a claim and a device of it.
type holding struct{ namespace, claim, uuid string }

// publishedName is that under which a driver publishes a device.
type publishedName struct{ driver, pool, device string }

// consumer is a container that may use a device: through a claim, or through
// a device plugin if there is none.
type consumer struct {
	container
	claim string
}

type container struct{ namespace, pod, name string }

// deviceInfo is the family of devices that exist, and of removed devices during the grace
// period.
const deviceInfo = metric.DeviceInfo

// isFact reports whether rows of the family determine which series exist.
func isFact(family string) bool {
	switch family {
	case deviceInfo, metric.DevicePartitionInfo, metric.ClaimHeld, metric.ClaimDeviceInfo,
		metric.ClaimConsumerInfo, metric.DevicePluginConsumerInfo:
		return true
	}
	return false
}

// fact is a row that determines which series exist.
type fact struct {
	family *metric.Family
	labels *metric.Labels
	past   bool // the device no longer exists
}

func newFacts(rows []fact) *facts {
	f := &facts{
		instances: map[string]string{}, held: map[holding]bool{},
		published: map[holding]publishedName{}, consumers: map[string][]consumer{},
	}
	seen := map[string]bool{}
	for _, row := range rows {
		uuid := row.labels.Get("uuid")
		switch row.family.Name {
		case deviceInfo:
			if row.isShown() && !seen[uuid] {
				seen[uuid] = true
				f.devices = append(f.devices, newHardware(uuid, row.labels))
			}
		case metric.DevicePartitionInfo:
			f.instances[uuid] = row.labels.Get("gpu_instance_id")
		default:
			f.addUse(row, uuid)
		}
	}
	slices.SortStableFunc(f.devices, compareHardware)
	return f
}

// isShown reports whether the device of the row is shown. A removed partition is not: it
// would have the values of its GPU, and its GPU would not be shown. A removed GPU is
// shown as long as it has a row: its last Xid is the reason for its removal, and other
// GPUs keep their numbers.
func (f fact) isShown() bool {
	return f.labels.Get("vendor") == "nvidia" && (!f.past || f.labels.Get("parent_uuid") == "")
}

func (f *facts) addUse(row fact, uuid string) {
	labels := row.labels
	user := consumer{container{labels.Get("namespace"), labels.Get("pod"), labels.Get("container")}, labels.Get("resourceclaim")}
	held := holding{user.namespace, user.claim, uuid}
	switch row.family.Name {
	case metric.ClaimHeld:
		f.held[held] = true
	case metric.ClaimDeviceInfo:
		if _, known := f.published[held]; !known {
			f.published[held] = publishedName{labels.Get("driver"), labels.Get("pool"), labels.Get("device")}
		}
	default:
		f.consumers[uuid] = append(f.consumers[uuid], user)
	}
}

// users returns the containers that use the device, each once: by the first
// claim that refers to it, as in dcgm-exporter. A claim that does not hold the
// device (it has admin access, or has released it) does not count.
func (f *facts) users(uuid string) []consumer {
	var users []consumer
	for _, user := range f.consumers[uuid] {
		if user.claim != "" && !f.held[holding{user.namespace, user.claim, uuid}] {
			continue
		}
		if !slices.ContainsFunc(users, func(other consumer) bool { return other.container == user.container }) {
			users = append(users, user)
		}
	}
	return users
}

func newHardware(uuid string, labels *metric.Labels) hardware {
	return hardware{
		uuid: uuid, parent: labels.Get("parent_uuid"), node: labels.Get("node"), model: labels.Get("model"),
		address: longAddress(labels.Get("pci_bus_id")), profile: labels.Get("partition_profile"), version: labels.Get("driver_version"),
	}
}

// compareHardware orders whole GPUs as NVIDIA's libraries number them, by
// their PCI addresses, and puts partitions behind them. A GPU without an
// address comes last.
func compareHardware(a, b hardware) int {
	return cmp.Or(
		compareFlags(a.parent == "", b.parent == ""),
		compareFlags(a.address != "", b.address != ""),
		strings.Compare(a.address, b.address),
		strings.Compare(a.uuid, b.uuid),
	)
}

// compareFlags puts true first.
func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// longAddress writes a PCI address as NVIDIA's libraries do, with a domain of
// eight digits and in upper case: 00000000:1A:00.0.
func longAddress(address string) string {
	domain, rest, found := strings.Cut(address, ":")
	if !found {
		return address
	}
	return strings.ToUpper(strings.Repeat("0", max(0, 8-len(domain))) + domain + ":" + rest)
}
