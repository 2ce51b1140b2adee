//go:build cgo

package nvml

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// The functions that say which GPUs reach each other over NVLink.
const (
	p2pStatus  = "nvmlDeviceGetP2PStatus"
	fabricInfo = "nvmlDeviceGetGpuFabricInfo"
)

// linkDomain is the NVLink domain of a GPU. In a fabric of several nodes it is the
// clique, spelled as NVIDIA's label nvidia.com/gpu.clique does. Else it is the smallest
// UUID among the GPU and those of this node that it reaches over NVLink, which all of
// them have in common if each reaches each, as through switches. A GPU that reaches no
// other has none.
func linkDomain(uuid string, f *discoveredGPU) string {
	if clique := clique(f); clique != "" {
		return clique
	}
	if !f.symbols.has(p2pStatus) {
		return ""
	}
	smallest, reached := uuid, false
	for other, gpu := range f.others {
		if other == uuid {
			continue
		}
		if status, ret := f.gpu.GetP2PStatus(gpu, nvml.P2P_CAPS_INDEX_NVLINK); ret == nvml.SUCCESS && status == nvml.P2P_STATUS_OK {
			smallest, reached = min(smallest, other), true
		}
	}
	if !reached {
		return ""
	}
	return smallest
}

// clique is the clique of a GPU in a fabric of several nodes; empty: it is in none, or
// is not registered yet. A GPU whose fabric is its own node's has a cluster of zeros.
func clique(f *discoveredGPU) string {
	if !f.symbols.has(fabricInfo) {
		return ""
	}
	info, ret := f.gpu.GetGpuFabricInfo()
	if ret != nvml.SUCCESS || info.State != nvml.GPU_FABRIC_STATE_COMPLETED || nvml.Return(info.Status) != nvml.SUCCESS {
		return ""
	}
	cluster := info.ClusterUuid
	if cluster == ([len(cluster)]uint8{}) {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x.%d", cluster[:4], cluster[4:6], cluster[6:8], cluster[8:10], cluster[10:], info.CliqueId)
}
