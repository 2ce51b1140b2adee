package vendors

// AMDDriver is the DRA driver for AMD's GPUs.
const AMDDriver = "gpu.amd.com"

// amd is AMD's row. The driver publishes for each card how it is partitioned:
// the compute partitioning, then that of memory. A card that is not
// partitioned (spx_nps1) has the type amdgpu, each partition (of cpx_nps4, for
// example) the type amdgpu-partition. Both publish the card's address under one
// name, except some drivers before 1.0, which published that of a partition as
// its parent's.
func amd() Vendor {
	return Vendor{Name: AMD, PCI: 0x1002, Driver: AMDDriver, Kind: GPU, Sources: [2]string{"amdgpu"}, Resources: [2]string{"amd.com/"}, WholeProfile: "spx", PartitionType: "amdgpu-partition"}
}
