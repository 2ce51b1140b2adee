package cuda

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Device is a GPU or a MIG device that the process may use.
type Device struct {
	Ordinal         int // as CUDA counts, which need not be the order of nvidia-smi
	UUID            string
	Name            string
	PCIBusID        string // 0000:3b:00.0 or with capitals, as the driver prints it
	Multiprocessors int
	L2Bytes         int
	Capability      Capability

	handle int32
}

// Capability is a compute capability, such as 9.0.
type Capability struct {
	Major, Minor int
}

// AtLeast reports whether a device has what is available from a compute
// capability on.
func (c Capability) AtLeast(major int) bool { return c.Major >= major }

func (c Capability) String() string { return fmt.Sprintf("%d.%d", c.Major, c.Minor) }

// The numbers of CUdevice_attribute.
const (
	attributeMultiprocessors = 16
	attributeL2Bytes         = 38
	attributeMajor           = 75
	attributeMinor           = 76
)

// Init initializes the driver. It reads CUDA_VISIBLE_DEVICES, once in the life
// of a process.
func (l *Library) Init() error {
	return l.call("cuInit", func() int32 { return l.init(0) })
}

// Version returns the newest version of CUDA that the driver supports, such as
// 13.0.
func (l *Library) Version() (string, error) {
	var version int32
	if err := l.call("cuDriverGetVersion", func() int32 { return l.driverGetVersion(&version) }); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d.%d", version/1000, version%1000/10), nil
}

// Devices returns the devices that the process may use.
func (l *Library) Devices() ([]Device, error) {
	var count int32
	if err := l.call("cuDeviceGetCount", func() int32 { return l.deviceGetCount(&count) }); err != nil {
		return nil, err
	}
	var devices []Device
	for ordinal := range count {
		device, err := l.device(ordinal)
		if err != nil {
			return nil, err
		}
		devices = append(devices, device)
	}
	return devices, nil
}

func (l *Library) device(ordinal int32) (Device, error) {
	d := Device{Ordinal: int(ordinal)}
	var name, address [256]byte
	var uuid [16]byte
	attribute := func(number int32, to *int) func() int32 {
		return func() int32 {
			var value int32
			code := l.deviceGetAttribute(&value, number, d.handle)
			*to = int(value)
			return code
		}
	}
	for _, read := range []struct {
		call     string
		function func() int32
	}{
		{"cuDeviceGet", func() int32 { return l.deviceGet(&d.handle, ordinal) }},
		{"cuDeviceGetName", func() int32 { return l.deviceGetName(&name[0], int32(len(name)), d.handle) }},
		{"cuDeviceGetUuid_v2", func() int32 { return l.deviceGetUUID(&uuid, d.handle) }},
		{"cuDeviceGetPCIBusId", func() int32 { return l.deviceGetPCIBusID(&address[0], int32(len(address)), d.handle) }},
		{"cuDeviceGetAttribute", attribute(attributeMultiprocessors, &d.Multiprocessors)},
		{"cuDeviceGetAttribute", attribute(attributeL2Bytes, &d.L2Bytes)},
		{"cuDeviceGetAttribute", attribute(attributeMajor, &d.Capability.Major)},
		{"cuDeviceGetAttribute", attribute(attributeMinor, &d.Capability.Minor)},
	} {
		if err := l.call(read.call, read.function); err != nil {
			return Device{}, err
		}
	}
	d.Name, d.PCIBusID = text(name[:]), text(address[:])
	d.UUID = formatUUID(uuid, strings.Contains(d.Name, " MIG "))
	return d, nil
}

// formatUUID writes a UUID as nvidia-smi does. The driver's function does not
// say whether it is that of a GPU or of a MIG device; the device's name does.
func formatUUID(uuid [16]byte, mig bool) string {
	prefix := "GPU-"
	if mig {
		prefix = "MIG-"
	}
	text := hex.EncodeToString(uuid[:])
	return prefix + strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

// Find returns the device with a UUID (GPU-… or MIG-…) or an index in CUDA's
// order. Its error lists what there is.
func Find(devices []Device, wanted string) (Device, error) {
	index, err := strconv.Atoi(wanted)
	var present []string
	for _, d := range devices {
		if strings.EqualFold(d.UUID, wanted) || err == nil && d.Ordinal == index {
			return d, nil
		}
		present = append(present, d.UUID)
	}
	return Device{}, fmt.Errorf("no CUDA device %q; this process may use: %s", wanted, strings.Join(present, ", "))
}
