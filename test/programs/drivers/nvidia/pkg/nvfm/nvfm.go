// Package nvfm declares what NVIDIA's DRA driver uses of its namesake, NVIDIA's
// bindings of the fabric manager. It never reaches a fabric manager: every call
// fails. The driver calls it behind the gate FabricManagerPartitioning alone,
// which is off.
package nvfm

import "errors"

// Return is the answer of a call.
type Return int

// The answers that the stand-in and the driver know.
const (
	SUCCESS       Return = 0
	NOT_SUPPORTED Return = -1
)

// String makes a Return readable.
func (r Return) String() string {
	if r == SUCCESS {
		return "success"
	}
	return "not supported by the stand-in"
}

// Error returns the error of an answer.
func (r Return) Error() error {
	if r == SUCCESS {
		return nil
	}
	return errors.New(r.String())
}

// LibraryOption configures the library.
type LibraryOption func()

// ConnectOption configures a connection.
type ConnectOption func()

// WithLibraryPath names the library.
func WithLibraryPath(string) LibraryOption { return func() {} }

// WithUnixSocket connects to a socket.
func WithUnixSocket(string) ConnectOption { return func() {} }

// WithAddress connects to an address.
func WithAddress(string) ConnectOption { return func() {} }

// WithTimeoutMs limits a connection.
func WithTimeoutMs(uint32) ConnectOption { return func() {} }

// Interface is the library.
type Interface interface {
	Init() Return
	Shutdown() Return
	Connect(...ConnectOption) (Handle, Return)
}

// Handle is a connection.
type Handle interface {
	Disconnect() Return
	GetSupportedFabricPartitions() (FabricPartitionList, Return)
	ActivateFabricPartition(FabricPartitionId) Return
	DeactivateFabricPartition(FabricPartitionId) Return
}

// FabricPartitionId identifies a partition.
type FabricPartitionId uint32

// FabricPartitionList has the partitions of a node.
type FabricPartitionList struct {
	NumPartitions uint32
	PartitionInfo [1]FabricPartition
}

// FabricPartition is a set of GPUs.
type FabricPartition struct {
	PartitionId FabricPartitionId
	IsActive    uint32
	NumGpus     uint32
	GpuInfo     [1]FabricGPU
}

// FabricGPU is a GPU of a partition.
type FabricGPU struct {
	PhysicalId          uint32
	Uuid                [80]int8
	PciBusId            [32]int8
	NumNvLinksAvailable uint32
	MaxNumNvLinks       uint32
	NvlinkLineRateMBps  uint32
}

type library struct{}

// New returns a library that fails.
func New(...LibraryOption) Interface { return library{} }

func (library) Init() Return                              { return NOT_SUPPORTED }
func (library) Shutdown() Return                          { return NOT_SUPPORTED }
func (library) Connect(...ConnectOption) (Handle, Return) { return nil, NOT_SUPPORTED }
