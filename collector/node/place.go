package node

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// A place is where a MIG partition is: the minor number of its GPU, and the
// ids of its GPU instance and compute instance there.
type place struct {
	minor, gpu, compute int
}

func (p place) String() string {
	return fmt.Sprintf("minor %d gpu instance %d compute instance %d", p.minor, p.gpu, p.compute)
}

// capabilityNodes is how the paths begin of the device nodes that give access
// to MIG partitions.
const capabilityNodes = "/dev/nvidia-caps/"

// placeOf finds the partition to which device nodes give access: those of its
// GPU instance and of its compute instance, beside which its GPU's own may
// stand. It is not told where they are of several.
func placeOf(nodes []string) (place, bool) {
	at, instances, computes := place{}, 0, 0
	for _, path := range nodes {
		number, isCapability := strings.CutPrefix(path, capabilityNodes+"nvidia-cap")
		if !isCapability {
			continue
		}
		node, known := capability(number)
		if !known {
			return place{}, false
		}
		if instances++; instances > 1 && (node.minor != at.minor || node.gpu != at.gpu) {
			return place{}, false
		}
		at.minor, at.gpu = node.minor, node.gpu
		if node.compute != device.Unknown {
			at.compute = node.compute
			computes++
		}
	}
	return at, computes == 1 && !otherGPU(nodes, at.minor)
}

// capability decodes the number of a capability node. NVIDIA's driver numbers
// them once and for all (/proc/driver/nvidia-caps/mig-minors): 1 and 2 are for
// the management of MIG; then each GPU, by its minor number, has fifteen GPU
// instances, each of which has a node for itself and eight for its compute
// instances. The compute instance is unknown for a node of a GPU instance.
func capability(number string) (place, bool) {
	const first, instances, nodes = 3, 15, 9
	n, err := strconv.ParseUint(number, 10, 20)
	if err != nil || n < first {
		return place{}, false
	}
	at := int(n) - first
	return place{minor: at / (instances * nodes), gpu: at / nodes % instances, compute: at%nodes - 1}, true
}

// otherGPU reports whether a node of a GPU with another minor number is among
// the nodes.
func otherGPU(nodes []string, minor int) bool {
	for _, path := range nodes {
		number, isNVIDIA := strings.CutPrefix(path, "/dev/nvidia")
		if isNVIDIA && numberedNode(path) && number != strconv.Itoa(minor) {
			return true
		}
	}
	return false
}

// placeUUID is NVIDIA's older spelling of a partition's UUID, which says where
// it is: MIG-<UUID of the GPU>/<GPU instance>/<compute instance>. It is empty
// where that is not known.
func placeUUID(d device.Device) string {
	if !placed(d) {
		return ""
	}
	return fmt.Sprintf("MIG-%s/%d/%d", d.ParentUUID, d.GPUInstance, d.ComputeInstance)
}

// spellsPlace reports whether a UUID is one of the older spelling.
func spellsPlace(uuid string) bool { return strings.HasPrefix(uuid, "MIG-GPU-") }

// numberedNode reports whether a path names one device, unlike /dev/nvidiactl,
// /dev/kfd, /dev/infiniband/rdma_cm and other nodes that all devices share.
func numberedNode(path string) bool {
	for _, prefix := range []string{"/dev/nvidia", "/dev/dri/renderD", "/dev/infiniband/uverbs"} {
		if number, ok := strings.CutPrefix(path, prefix); ok {
			_, err := strconv.ParseUint(number, 10, 16)
			return err == nil
		}
	}
	return false
}
