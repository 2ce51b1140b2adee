//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// healthRows tell how well a GPU is. What speaks of a GPU that should not be
// used any more is read fast, so that it shows within seconds: as field
// values, all of them cost one call.
func healthRows() []row {
	const eccErrors, remappedRows = "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetRemappedRows"
	return []row{
		// Over the GPU's lifetime: the counts since the driver was loaded are others.
		valued(device.ECCErrors, "uncorrected", device.Fast, field{id: nvml.FI_DEV_ECC_DBE_AGG_TOTAL, scale: 1}),
		called(device.ECCErrors, "uncorrected", device.Fast, eccErrors, memoryErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED)),
		valued(device.ECCErrors, "corrected", device.Slow, field{id: nvml.FI_DEV_ECC_SBE_AGG_TOTAL, scale: 1}),
		called(device.ECCErrors, "corrected", device.Slow, eccErrors, memoryErrors(nvml.MEMORY_ERROR_TYPE_CORRECTED)),
		// From Ampere on rows are remapped; before, pages were retired.
		valued(device.RemappedRows, "corrected", device.Slow, field{id: nvml.FI_DEV_REMAPPED_COR, scale: 1}),
		called(device.RemappedRows, "corrected", device.Slow, remappedRows, remappedOf(func(r remapped) float64 { return r.corrected })),
		valued(device.RemappedRows, "uncorrected", device.Slow, field{id: nvml.FI_DEV_REMAPPED_UNC, scale: 1}),
		called(device.RemappedRows, "uncorrected", device.Slow, remappedRows, remappedOf(func(r remapped) float64 { return r.uncorrected })),
		valued(device.RowRemapPending, "", device.Fast, field{id: nvml.FI_DEV_REMAPPED_PENDING, scale: 1}),
		called(device.RowRemapPending, "", device.Fast, remappedRows, remappedOf(func(r remapped) float64 { return r.pending })),
		valued(device.RowRemapFailed, "", device.Fast, field{id: nvml.FI_DEV_REMAPPED_FAILURE, scale: 1}),
		called(device.RowRemapFailed, "", device.Fast, remappedRows, remappedOf(func(r remapped) float64 { return r.failed })),
		valued(device.RetiredPages, "corrected", device.Slow, field{id: nvml.FI_DEV_RETIRED_SBE, scale: 1}),
		valued(device.RetiredPages, "uncorrected", device.Slow, field{id: nvml.FI_DEV_RETIRED_DBE, scale: 1}),
		valued(device.PCIeReplays, "", device.Slow, field{id: nvml.FI_DEV_PCIE_REPLAY_COUNTER, scale: 1}),
		called(device.PCIeReplays, "", device.Slow, "nvmlDeviceGetPcieReplayCounter", pcieReplays),
		states(valued(device.RecoveryAction, "", device.Fast, field{id: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, scale: 1}),
			"none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "other"),
		states(called(device.FabricState, "", device.Slow, "nvmlDeviceGetGpuFabricInfo", fabric),
			"not_started", "in_progress", "success", "failure"),
	}
}

// states makes a row a state set: its value is the index of the present one.
// The last one stands for all others.
func states(r row, words ...string) row {
	one := r
	r.tell = func(p *probe, told []device.Reading) ([]device.Reading, nvml.Return) {
		value, ret := p.one(one)
		if ret != nvml.SUCCESS {
			return told, ret
		}
		present := len(words) - 1
		if value >= 0 && value < float64(present) {
			present = int(value)
		}
		for i, word := range words {
			told = append(told, device.Reading{
				Quantity: one.quantity, Details: [2]string{word}, Value: truth(i == present),
			})
		}
		return told, ret
	}
	return r
}

// memoryErrors counts the errors of a kind over the GPU's lifetime.
func memoryErrors(kind nvml.MemoryErrorType) func(*probe) (float64, nvml.Return) {
	return func(p *probe) (float64, nvml.Return) {
		count, ret := p.device.GetTotalEccErrors(kind, nvml.AGGREGATE_ECC)
		return float64(count), ret
	}
}

// remapped is what the library tells of remapped rows in one call.
type remapped struct{ corrected, uncorrected, pending, failed float64 }

func remappedOf(of func(remapped) float64) func(*probe) (float64, nvml.Return) {
	return func(p *probe) (float64, nvml.Return) {
		rows, ret := p.rows.once(func() (remapped, nvml.Return) {
			corrected, uncorrected, pending, failed, ret := p.device.GetRemappedRows()
			return remapped{float64(corrected), float64(uncorrected), truth(pending), truth(failed)}, ret
		})
		return of(rows), ret
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func pcieReplays(p *probe) (float64, nvml.Return) {
	count, ret := p.device.GetPcieReplayCounter()
	return float64(count), ret
}

// fabric is how far the GPU is registered with the NVLink fabric: not started,
// in progress, done, failed. A GPU without a fabric has no such state. The
// call's successor tells nothing more of it.
func fabric(p *probe) (float64, nvml.Return) {
	info, ret := p.device.GetGpuFabricInfo()
	if ret != nvml.SUCCESS {
		return 0, ret
	}
	switch info.State {
	case nvml.GPU_FABRIC_STATE_NOT_STARTED:
		return 0, ret
	case nvml.GPU_FABRIC_STATE_IN_PROGRESS:
		return 1, ret
	case nvml.GPU_FABRIC_STATE_COMPLETED:
		if nvml.Return(info.Status) == nvml.SUCCESS {
			return 2, ret
		}
		return 3, ret
	default:
		return 0, nvml.ERROR_NOT_SUPPORTED
	}
}
