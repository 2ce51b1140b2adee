package vendors

// rows is how many rows there are.
const rows = 13

// All returns the rows. They are values without slices: looking one up allocates
// nothing, and a step of the node role does so for each device.
func All() [rows]Vendor {
	return [rows]Vendor{
		nvidia(),
		{Driver: "compute-domain.nvidia.com", Kind: Channel}, // IMEX channels and daemons of ComputeDomains
		{Driver: "vfio.gpu.nvidia.com", Kind: GPU},           // GPUs for virtual machines: the host has no counters of them
		amd(),
		{Name: Intel, PCI: 0x8086, Driver: "gpu.intel.com", Kind: GPU, Sources: [2]string{"intel"}, Resources: [2]string{"gpu.intel.com/"}},
		{Name: "habana", PCI: 0x1da3, Driver: "gaudi.intel.com", Kind: GPU, Resources: [2]string{"habana.ai/"}}, // Intel Gaudi, with network ports of its own
		{Name: "google", Driver: "tpu.google.com", Kind: GPU, Resources: [2]string{"google.com/tpu"}},
		{Name: "aws", Driver: "neuron.aws.com", Kind: GPU, Resources: [2]string{"aws.amazon.com/neuron"}}, // not by PCI: Amazon's number is also that of its network adapters
		{Name: Mellanox, PCI: 0x15b3},
		{Driver: "dra.net", Kind: Network, Sources: [2]string{"rdma"}},  // network adapters of any vendor
		{Driver: "sriovnetwork.k8snetworkplumbingwg.io", Kind: Network}, // their virtual functions
		{Driver: "dra.cpu", Kind: CPU},                                  // one device for each CPU, or for a NUMA node or socket
		{Name: "example", Driver: "gpu.example.com", Kind: GPU},         // simulated hardware, and sigs.k8s.io/dra-example-driver
	}
}

// ByPCI returns the name of the vendor with a number of the PCI ID repository;
// empty if no DRA driver is known for its devices.
func ByPCI(number uint64) string {
	for _, vendor := range All() {
		if vendor.PCI != 0 && uint64(vendor.PCI) == number {
			return vendor.Name
		}
	}
	return ""
}

// DriverOf returns the DRA driver that a vendor ships for its devices; empty if
// it is not known.
func DriverOf(name string) string {
	for _, vendor := range All() {
		if name != "" && vendor.Name == name {
			return vendor.Driver
		}
	}
	return ""
}

// ByDriver returns the row of a DRA driver. That of a driver without one is empty.
func ByDriver(driver string) Vendor {
	for _, vendor := range All() {
		if driver != "" && vendor.Driver == driver {
			return vendor
		}
	}
	return Vendor{}
}

// IsMeasured reports whether a source of this exporter reads the devices of a
// DRA driver.
func IsMeasured(driver string) bool { return ByDriver(driver).IsMeasured() }

// IsLogical reports whether the devices of a DRA driver are known to be no hardware.
func IsLogical(driver string) bool { return ByDriver(driver).Kind == Channel }

// IsNetwork reports whether the devices of a DRA driver are known to be network
// adapters.
func IsNetwork(driver string) bool { return ByDriver(driver).Kind == Network }
