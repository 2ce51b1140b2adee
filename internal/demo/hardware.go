package demo

import (
	_ "embed" // for the hardware
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
)

//go:embed templates.yaml
var templatesYAML string

//go:embed gpu-node-1.yaml
var firstNodeYAML string

//go:embed accelerators.yaml
var acceleratorsYAML string

//go:embed gpu-node-3.yaml
var trainingNodeYAML string

// Minor numbers of GPUs of the first node with special publication.
const (
	minorShareable = 3 // several claims may share it
	minorOnDemand  = 6 // published as all the partitions that could be cut
	minorByPlugin  = 7 // allocated by a device plugin, to several pods in turn
)

// hardware is the devices of a node.
type hardware struct {
	config     simulated.Config
	shareable  int             // minor number of the GPU that several claims may share; -1: none
	gpus       []device.Device // whole ones, by minor number
	migDevices []migDevice
	nics       []device.Device // RDMA adapters

	accelerators []device.Device // of other vendors: TPU chips and an Intel GPU
}

// migDevice is a partition that exists.
type migDevice struct {
	device.Device
	parent int // minor number
}

// readHardware reads the hardware of the first node under a seed.
func readHardware(seed uint64) (hardware, error) {
	return parseHardware(seed, minorShareable, firstNodeYAML+acceleratorsYAML)
}

// readTrainingHardware reads the hardware of the node of a training job.
func readTrainingHardware(seed uint64) (hardware, error) {
	return parseHardware(seed, -1, trainingNodeYAML)
}

func parseHardware(seed uint64, shareable int, devices string) (hardware, error) {
	config, err := simulated.Parse(fmt.Appendf(nil, "seed: %d\n%s%s", seed, templatesYAML, devices))
	if err != nil {
		return hardware{}, fmt.Errorf("read the hardware of a simulated node: %w", err)
	}
	h := hardware{config: config, shareable: shareable}
	for _, gpu := range config.Devices {
		switch gpu.Identity.Vendor {
		case "nvidia":
		case vendorGoogle, vendorIntel:
			h.accelerators = append(h.accelerators, gpu.Identity)
			continue
		default:
			h.nics = append(h.nics, gpu.Identity)
			continue
		}
		h.gpus = append(h.gpus, gpu.Identity)
		for _, partition := range gpu.Partitions {
			h.migDevices = append(h.migDevices, migDevice{partition.Identity, gpu.Identity.Minor})
		}
	}
	return h, nil
}

// partitioned reports whether a GPU is in MIG mode.
func (h hardware) partitioned(minor int) bool {
	for _, p := range h.migDevices {
		if p.parent == minor {
			return true
		}
	}
	return false
}

// byName finds the hardware that a driver publishes under a name.
func (h hardware) byName(name string) (device.Device, bool) {
	for _, gpu := range h.gpus {
		if gpuName(gpu.Minor) == name {
			return gpu, true
		}
	}
	for _, p := range h.migDevices {
		if partitionName(p.parent, p.Profile, p.Placement) == name {
			return p.Device, true
		}
	}
	for _, nic := range h.nics {
		if nicName(nic) == name {
			return nic, true
		}
	}
	for _, accelerator := range h.accelerators {
		if acceleratorName(accelerator) == name {
			return accelerator, true
		}
	}
	return device.Device{}, false
}

// nicName is how dra.net calls a device on the PCI bus: pci-0000-1c-00-0.
func nicName(nic device.Device) string {
	return "pci-" + strings.NewReplacer(":", "-", ".", "-").Replace(nic.PCIBusID)
}

// deviceDriver returns the driver that publishes a device under a name.
func deviceDriver(name string) string {
	switch {
	case strings.HasPrefix(name, "pci-"):
		return networkDriver
	case strings.HasPrefix(name, "fpga-"):
		return fabricDriver
	case strings.HasPrefix(name, "accel"):
		return tpuDriver
	case strings.HasPrefix(name, "0000-"):
		return intelDriver
	default:
		return driver
	}
}

// devicePool returns the pool in which a device of a node is published.
func devicePool(node, name string) string {
	if deviceDriver(name) == fabricDriver {
		return fabricPool
	}
	return node
}

func gpuName(minor int) string { return fmt.Sprintf("gpu-%d", minor) }

// partitionName is how gpu.nvidia.com calls a MIG device, whether it exists
// already or could be cut: gpu-6-mig-1g10gb-19-0.
func partitionName(minor int, profile string, placement int) string {
	return fmt.Sprintf("gpu-%d-mig-%s-%d-%d", minor, strings.ReplaceAll(profile, ".", ""), profiles()[profile].id, placement)
}

// profile is a shape of partition of an H100 with 80 GB.
type profile struct {
	id           int    // of the GPU instance profile
	multiprocs   int    // streaming multiprocessors
	memory       string // as a Kubernetes quantity
	memorySlices int
	computeParts int // of the seven that a GPU has
	placements   []int
}

func profiles() map[string]profile {
	return map[string]profile{
		"1g.10gb": {19, 16, "9984Mi", 1, 1, []int{0, 1, 2, 3, 4, 5, 6}},
		"2g.20gb": {14, 32, "20096Mi", 2, 2, []int{0, 2, 4}},
		"3g.40gb": {9, 60, "40448Mi", 4, 3, []int{0, 4}},
	}
}

// computeSlices is how many compute slices an H100 has in MIG mode.
const computeSlices = 7

// The nodes. The remote node exists only in the API server: its devices, and its pods.
// Agents run on the others.
const (
	nodeName     = "gpu-node-1"
	remoteNode   = "gpu-node-2"
	trainingNode = "gpu-node-3"
)

// withProcesses returns the published names of devices whose processes their
// driver lists: whole GPUs.
func (h hardware) withProcesses() []string {
	var names []string
	for _, gpu := range h.gpus {
		if !h.partitioned(gpu.Minor) {
			names = append(names, gpuName(gpu.Minor))
		}
	}
	return names
}

// deviceNodes returns the device nodes of what is published under a name: a
// partition has its GPU's, and two capabilities, of the GPU instance and of the
// compute instance in it.
func (h hardware) deviceNodes(name string) []string {
	for _, p := range h.migDevices {
		if partitionName(p.parent, p.Profile, p.Placement) == name {
			instance := capability(p.parent, p.GPUInstance)
			return []string{
				fmt.Sprintf("/dev/nvidia%d", p.parent),
				fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", instance),
				fmt.Sprintf("/dev/nvidia-caps/nvidia-cap%d", instance+1+p.ComputeInstance),
			}
		}
	}
	gpu, _ := h.byName(name)
	return gpu.Nodes
}

// capability is the minor number of access to a GPU instance, as
// /proc/driver/nvidia-caps/mig-minors has it; those of its compute instances
// follow.
func capability(gpu, instance int) int { return 3 + 135*gpu + 9*instance }

// fabricDriver publishes FPGAs that are attached to a node over a fabric, once
// they are allocated to a claim: in fabricPool, and in another pool of which
// half is missing.
const (
	fabricDriver = "fpga.example.com"
	fabricPool   = "rack-1"
	brokenPool   = "rack-2"

	conditionAttached     = fabricDriver + "/attached"
	conditionAttachFailed = fabricDriver + "/attach-failed"
)

// remoteGPUs returns the whole GPUs of the remote node, by minor number: one of
// its eight is partitioned.
func remoteGPUs() []int { return []int{0, 1, 2, 3, 5, 6, 7} }

const (
	remoteNIC  = "pci-0000-5d-00-0" // near gpu-3
	remoteFPGA = "fpga-0"
)

// remoteDevices returns the names of all devices that pods of the remote node
// can have.
func remoteDevices() []string {
	names := []string{remoteNIC, remoteFPGA}
	for _, minor := range remoteGPUs() {
		names = append(names, gpuName(minor))
	}
	for name := range remotePartitions() {
		names = append(names, name)
	}
	return names
}
