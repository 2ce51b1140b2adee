//go:build cgo

package nvml

import (
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// The functions that identify a board.
const (
	boardSerial  = "nvmlDeviceGetSerial"
	boardPart    = "nvmlDeviceGetBoardPartNumber"
	vbiosVersion = "nvmlDeviceGetVbiosVersion"
	gpuIndex     = "nvmlDeviceGetIndex"
	moduleID     = "nvmlDeviceGetModuleId"
	platformInfo = "nvmlDeviceGetPlatformInfo"
)

func hardwareFunctions() []string {
	return []string{boardSerial, boardPart, vbiosVersion, gpuIndex, moduleID, platformInfo}
}

// readHardware reads what identifies the board of a GPU. What cannot be read keeps
// its value.
func readHardware(h *device.Hardware, f *discoveredGPU) {
	for _, part := range []struct {
		field  *string
		symbol string
		call   func() (string, nvml.Return)
	}{
		{&h.Serial, boardSerial, f.gpu.GetSerial},
		{&h.BoardPartNumber, boardPart, f.gpu.GetBoardPartNumber},
		{&h.VBIOS, vbiosVersion, f.gpu.GetVbiosVersion},
	} {
		if !f.symbols.has(part.symbol) {
			continue
		}
		if written, ret := part.call(); ret == nvml.SUCCESS {
			*part.field = text(written)
		}
	}
	if f.symbols.has(gpuIndex) {
		if index, ret := f.gpu.GetIndex(); ret == nvml.SUCCESS {
			h.Index = strconv.Itoa(index)
		}
	}
	if f.symbols.has(moduleID) {
		// 0 is the answer for a GPU without a baseboard, too.
		if id, ret := f.gpu.GetModuleId(); ret == nvml.SUCCESS && id != 0 {
			h.ModuleID = strconv.Itoa(id)
		}
	}
	readPlatform(h, f)
}

// readPlatform reads where in its chassis a GPU is, which NVML knows since Blackwell.
// The binding asks for the first version of the structure, which has the same bytes
// under older names: rackGuid is chassisSerialNumber, chassisPhysicalSlotNumber is
// slotNumber, computeSlotIndex is trayIndex. A slot of an unknown chassis has no
// meaning.
func readPlatform(h *device.Hardware, f *discoveredGPU) {
	if !f.symbols.has(platformInfo) {
		return
	}
	info, ret := f.gpu.GetPlatformInfo()
	if ret != nvml.SUCCESS {
		return
	}
	chassis := make([]int8, len(info.ChassisSerialNumber))
	for i, c := range info.ChassisSerialNumber {
		chassis[i] = int8(c)
	}
	if serial := characters(chassis); serial != "" {
		h.ChassisSerial = serial
		h.Slot, h.Tray = strconv.Itoa(int(info.SlotNumber)), strconv.Itoa(int(info.TrayIndex))
	}
}
