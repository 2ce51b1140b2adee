package vendors

// All returns the rows.
func All() []Vendor {
	return []Vendor{
		nvidia(),
		{Driver: "compute-domain.nvidia.com", Logical: true}, // IMEX channels and daemons of ComputeDomains
		amd(),
		{Name: Intel, PCI: 0x8086, Driver: "gpu.intel.com", Measured: true, Resources: []string{"gpu.intel.com/"}},
		{Name: "habana", PCI: 0x1da3, Driver: "gaudi.intel.com", Resources: []string{"habana.ai/"}}, // Intel Gaudi, with network ports of its own
		{Name: "google", Driver: "tpu.google.com", Resources: []string{"google.com/tpu"}},
		{Name: "aws", Driver: "neuron.aws.com", Resources: []string{"aws.amazon.com/neuron"}}, // not by PCI: Amazon's number is also that of its network adapters
		{Name: Mellanox, PCI: 0x15b3},
		{Driver: "dra.net", Measured: true, Network: true}, // network adapters of any vendor
		{Name: "example", Driver: "gpu.example.com"},       // simulated hardware, and sigs.k8s.io/dra-example-driver
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

// IsMeasured reports whether a source of this exporter reads the devices of a
// DRA driver.
func IsMeasured(driver string) bool {
	for _, vendor := range All() {
		if vendor.Driver == driver {
			return vendor.Measured
		}
	}
	return false
}

// IsNetwork reports whether the devices of a DRA driver are known to be network
// adapters.
func IsNetwork(driver string) bool {
	for _, vendor := range All() {
		if vendor.Driver == driver {
			return vendor.Network
		}
	}
	return false
}

// IsLogical reports whether the devices of a DRA driver are known to be no hardware.
func IsLogical(driver string) bool {
	for _, vendor := range All() {
		if vendor.Driver == driver {
			return vendor.Logical
		}
	}
	return false
}
