package load

import (
	"errors"
	"os"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/cuda"
)

// Reporter receives the events of a load in their order: Ready, then Progress
// each interval and at the end, or Failure. Each is one object of JSON.
type Reporter func(event any)

// Ready says that the context exists, the memory is held and the work begins.
type Ready struct {
	Event string    `json:"event"` // "ready"
	Time  time.Time `json:"time"`
	PID   int       `json:"pid"`
	Kind  Kind      `json:"kind"`

	Device        int     `json:"device"` // index in CUDA's order
	UUID          string  `json:"uuid"`
	Name          string  `json:"name"`
	PCIBusID      string  `json:"pci_bus_id"`
	Capability    string  `json:"compute_capability"`
	CUDAVersion   string  `json:"cuda_version"` // the newest that the driver supports
	SMCount       int     `json:"sm_count"`
	L2Bytes       int     `json:"l2_bytes"`
	TotalBytes    uint64  `json:"total_bytes"`
	FreeBytes     uint64  `json:"free_bytes"` // after the context, before the memory is held
	HeldBytes     uint64  `json:"held_bytes"`
	Blocks        uint32  `json:"blocks"`
	Threads       uint32  `json:"threads_per_block"`
	DutyPercent   int     `json:"duty_percent"`
	PeriodSeconds float64 `json:"period_seconds"`
}

// Progress is what has been done since Ready. Its numbers never fall.
type Progress struct {
	Event   string    `json:"event"` // "progress", "done" or "faulted"
	Time    time.Time `json:"time"`
	Elapsed float64   `json:"elapsed_seconds"` // of the host's clock
	Totals
	HeldBytes uint64 `json:"held_bytes"`
	Reason    string `json:"reason,omitempty"` // of "done": what ended the load
	Code      int    `json:"code,omitempty"`   // of "faulted", as in Failure
	Name      string `json:"name,omitempty"`
	Call      string `json:"call,omitempty"`
}

// Totals are quantities of work. Bytes are those that the kernels' instructions
// and copies ask for: how many reach the memory depends on the caches.
type Totals struct {
	Periods      uint64  `json:"periods"`
	Kernels      uint64  `json:"kernels"`
	Copies       uint64  `json:"copies"`
	Busy         float64 `json:"busy_seconds"` // by CUDA events
	FLOPs        float64 `json:"flops"`        // exact up to 2^53
	ReadBytes    uint64  `json:"read_bytes"`
	WrittenBytes uint64  `json:"written_bytes"`
	CopiedBytes  uint64  `json:"copied_bytes"`
}

func (t *Totals) add(more Totals) {
	t.Periods += more.Periods
	t.Kernels += more.Kernels
	t.Copies += more.Copies
	t.Busy += more.Busy
	t.FLOPs += more.FLOPs
	t.ReadBytes += more.ReadBytes
	t.WrittenBytes += more.WrittenBytes
	t.CopiedBytes += more.CopiedBytes
}

// Failure is the last event of a load that failed.
type Failure struct {
	Event string    `json:"event"` // "error"
	Time  time.Time `json:"time"`
	PID   int       `json:"pid"`
	Error string    `json:"error"`
	Code  int       `json:"code,omitempty"` // of the CUDA driver, with the next two
	Name  string    `json:"name,omitempty"` // such as CUDA_ERROR_OUT_OF_MEMORY
	Call  string    `json:"call,omitempty"` // such as cuMemAlloc_v2
}

// NewFailure makes the event of an error at a time.
func NewFailure(err error, now time.Time) Failure {
	f := Failure{Event: "error", Time: now, PID: os.Getpid(), Error: err.Error()}
	var driver *cuda.Error
	if errors.As(err, &driver) {
		f.Code, f.Name, f.Call = driver.Code, driver.Name, driver.Call
	}
	return f
}
