package load

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/cuda"
)

// threads is the size of a block, of all kernels.
const threads = 256

// What one iteration of a kernel does.
const (
	computeFLOPs = 64 * 2              // of a thread: 64 fused multiplications and additions
	tensorFLOPs  = 8 * 2 * 16 * 8 * 16 // of a warp: 8 products of 16×16 and 16×8 matrices
	warp         = 32
	vector       = 16 // bytes that a thread of the memory kernel copies in a step
)

// mostPiece is how many bytes one launch of the memory kernel copies at most.
const mostPiece = 64 << 20

//go:embed kernels/compute.ptx
var computePTX string

//go:embed kernels/memory.ptx
var memoryPTX string

//go:embed kernels/tensor.ptx
var tensorPTX string

//go:embed kernels/fault.ptx
var faultPTX string

// work is what a load repeats: units of equal size. Where a launch can do
// several units, it does perLaunch of them at most.
type work interface {
	submit(units, perLaunch uint64) (Totals, error)
	// result is where the first unit writes a word that is not all ones.
	result() cuda.Address
}

// memory is the memory that a load holds.
type memory struct {
	address cuda.Address
	bytes   uint64
}

// newWork prepares the work of a kind on a device; nil for those without.
func newWork(kind Kind, c *cuda.Context, d cuda.Device, held memory, blocks uint32, chunk uint64) (work, error) {
	switch kind {
	case Compute:
		k, err := kernel(c, computePTX, "gpukit_compute")
		factor, addend := cuda.Word(math.Float32bits(0.999)), cuda.Word(math.Float32bits(0.001))
		return iterations{k, blocks, held.address, []cuda.Word{factor, addend}, float64(blocks) * threads * computeFLOPs}, err
	case Tensor:
		if !d.Capability.AtLeast(8) {
			return nil, fmt.Errorf("--kind=tensor: the device has compute capability %s, and the kernel needs 8.0", d.Capability)
		}
		k, err := kernel(c, tensorPTX, "gpukit_tensor")
		return iterations{k, blocks, held.address, nil, float64(blocks) * threads / warp * tensorFLOPs}, err
	case Memory:
		k, err := kernel(c, memoryPTX, "gpukit_memory")
		if err != nil {
			return nil, err
		}
		return newStream(k, blocks, held)
	case Copy:
		host, err := c.AllocateHost(chunk)
		if err != nil {
			return nil, err
		}
		for i := range host {
			host[i] = byte(i*7 + i>>8)
		}
		return &copies{context: c, host: host, held: held}, nil
	default:
		return nil, nil
	}
}

func kernel(c *cuda.Context, ptx, name string) (*cuda.Kernel, error) {
	module, err := c.Load(ptx)
	if err != nil {
		return nil, err
	}
	return module.Kernel(name)
}

// iterations is a kernel whose last parameter is how often it repeats itself;
// a unit is one iteration of the whole grid.
type iterations struct {
	kernel  *cuda.Kernel
	blocks  uint32
	to      cuda.Address
	between []cuda.Word // parameters between the first and the last
	flops   float64     // of a unit
}

func (i iterations) result() cuda.Address { return i.to }

func (i iterations) submit(units, perLaunch uint64) (Totals, error) {
	var done Totals
	for units > 0 {
		n := min(units, perLaunch, math.MaxUint32)
		parameters := append([]cuda.Word{cuda.Word(i.to)}, i.between...)
		if err := i.kernel.Launch(i.blocks, threads, append(parameters, cuda.Word(n))...); err != nil {
			return done, err
		}
		done.Kernels++
		done.FLOPs += i.flops * float64(n)
		units -= n
	}
	return done, nil
}

// stream copies the first half of the memory to the second, piece by piece; a
// unit is a piece.
type stream struct {
	kernel   *cuda.Kernel
	blocks   uint32
	from, to cuda.Address
	row      uint64 // bytes that the grid copies in a step
	rows     uint64 // of a half
	perPiece uint64 // rows
	next     uint64 // row
}

func newStream(k *cuda.Kernel, blocks uint32, held memory) (*stream, error) {
	s := &stream{kernel: k, blocks: blocks, row: uint64(blocks) * threads * vector}
	s.rows = held.bytes / 2 / s.row
	if s.rows == 0 {
		return nil, fmt.Errorf("--memory=%d: must be at least %d bytes for a grid of %d blocks", held.bytes, 2*s.row, blocks)
	}
	s.perPiece = max(1, mostPiece/s.row)
	s.from, s.to = held.address, held.address+cuda.Address(s.rows*s.row)
	return s, nil
}

func (s *stream) result() cuda.Address { return s.to }

func (s *stream) submit(units, _ uint64) (Totals, error) {
	var done Totals
	for range units {
		rows := min(s.perPiece, s.rows-s.next)
		offset := cuda.Word(s.next * s.row)
		if err := s.kernel.Launch(s.blocks, threads, cuda.Word(s.to)+offset, cuda.Word(s.from)+offset, cuda.Word(rows)); err != nil {
			return done, err
		}
		s.next = (s.next + rows) % s.rows
		done.Kernels++
		done.ReadBytes += rows * s.row
		done.WrittenBytes += rows * s.row
	}
	return done, nil
}

// copies copies a chunk of the host's memory to one place of the held memory
// after another; a unit is a chunk.
type copies struct {
	context *cuda.Context
	host    []byte
	held    memory
	next    uint64
}

func (c *copies) result() cuda.Address { return c.held.address }

func (c *copies) submit(units, _ uint64) (Totals, error) {
	var done Totals
	for range units {
		if err := c.context.CopyToDevice(c.held.address+cuda.Address(c.next), c.host); err != nil {
			return done, err
		}
		size := uint64(len(c.host))
		if c.next += size; c.next+size > c.held.bytes {
			c.next = 0
		}
		done.Copies++
		done.CopiedBytes += size
	}
	return done, nil
}
