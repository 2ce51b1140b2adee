package cuda

import (
	"errors"
	"runtime"
	"time"
	"unsafe"
)

// Context is what a process has of a device: memory, compiled kernels and one
// stream, in which work is done in the order of its submission.
type Context struct {
	library *Library
	handle  uintptr
	stream  uintptr
	start   uintptr // the events of Time
	end     uintptr
}

// Address is an address in the device's memory.
type Address uint64

const (
	blockingSync    = 4 // CU_CTX_SCHED_BLOCKING_SYNC: waiting takes no processor time
	defaultEvent    = 0 // with timing
	nonBlocking     = 1 // CU_STREAM_NON_BLOCKING
	defaultHost     = 0
	jitErrorLog     = 5 // CU_JIT_ERROR_LOG_BUFFER
	jitErrorLogSize = 6 // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
	logBytes        = 2048
)

// NewContext creates a context of a device, which is current on the calling
// thread.
func (l *Library) NewContext(d Device) (*Context, error) {
	c := &Context{library: l}
	for _, step := range []struct {
		call     string
		function func() int32
	}{
		{"cuCtxCreate_v2", func() int32 { return l.ctxCreate(&c.handle, blockingSync, d.handle) }},
		{"cuStreamCreate", func() int32 { return l.streamCreate(&c.stream, nonBlocking) }},
		{"cuEventCreate", func() int32 { return l.eventCreate(&c.start, defaultEvent) }},
		{"cuEventCreate", func() int32 { return l.eventCreate(&c.end, defaultEvent) }},
	} {
		if err := l.call(step.call, step.function); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Destroy destroys the context, with its memory and modules. It returns the
// error of a fault that happened in it before.
func (c *Context) Destroy() error {
	l := c.library
	for _, step := range []struct {
		call     string
		function func() int32
	}{
		{"cuEventDestroy_v2", func() int32 { return l.eventDestroy(c.start) }},
		{"cuEventDestroy_v2", func() int32 { return l.eventDestroy(c.end) }},
		{"cuStreamDestroy_v2", func() int32 { return l.streamDestroy(c.stream) }},
		{"cuCtxDestroy_v2", func() int32 { return l.ctxDestroy(c.handle) }},
	} {
		if err := l.call(step.call, step.function); err != nil {
			return err
		}
	}
	return nil
}

// MemoryInfo returns the bytes of the device's memory that are free, and those
// that there are.
func (c *Context) MemoryInfo() (free, total uint64, err error) {
	var left, all uintptr
	err = c.library.call("cuMemGetInfo_v2", func() int32 { return c.library.memGetInfo(&left, &all) })
	return uint64(left), uint64(all), err
}

// Allocate allocates bytes of the device's memory: plain, not managed.
func (c *Context) Allocate(bytes uint64) (Address, error) {
	var address uint64
	err := c.library.call("cuMemAlloc_v2", func() int32 { return c.library.memAlloc(&address, uintptr(bytes)) })
	return Address(address), err
}

// Free frees what Allocate has allocated.
func (c *Context) Free(address Address) error {
	return c.library.call("cuMemFree_v2", func() int32 { return c.library.memFree(uint64(address)) })
}

// AllocateHost allocates bytes of the host's memory that the device can read
// directly.
func (c *Context) AllocateHost(bytes uint64) ([]byte, error) {
	var memory *byte
	err := c.library.call("cuMemHostAlloc", func() int32 { return c.library.memHostAlloc(&memory, uintptr(bytes), defaultHost) })
	if err != nil {
		return nil, err
	}
	return unsafe.Slice(memory, bytes), nil
}

// FreeHost frees what AllocateHost has allocated.
func (c *Context) FreeHost(memory []byte) error {
	return c.library.call("cuMemFreeHost", func() int32 { return c.library.memFreeHost(&memory[0]) })
}

// CopyToDevice submits a copy of memory of AllocateHost, which must not change
// until Synchronize has returned.
func (c *Context) CopyToDevice(to Address, from []byte) error {
	return c.library.call("cuMemcpyHtoDAsync_v2", func() int32 {
		return c.library.memcpyHtoDAsync(uint64(to), &from[0], uintptr(len(from)), c.stream)
	})
}

// CopyFromDevice submits a copy into memory of AllocateHost, which holds it
// once Synchronize has returned.
func (c *Context) CopyFromDevice(to []byte, from Address) error {
	return c.library.call("cuMemcpyDtoHAsync_v2", func() int32 {
		return c.library.memcpyDtoHAsync(&to[0], uint64(from), uintptr(len(to)), c.stream)
	})
}

// Synchronize waits until all submitted work is done, and returns the error of
// a kernel that failed.
func (c *Context) Synchronize() error {
	return c.library.call("cuStreamSynchronize", func() int32 { return c.library.streamSynchronize(c.stream) })
}

// Time submits work, waits for it and returns how long the device was busy
// with it, by CUDA events (resolution about 0.5 µs).
func (c *Context) Time(submit func() error) (time.Duration, error) {
	l := c.library
	if err := l.call("cuEventRecord", func() int32 { return l.eventRecord(c.start, c.stream) }); err != nil {
		return 0, err
	}
	if err := submit(); err != nil {
		return 0, err
	}
	if err := l.call("cuEventRecord", func() int32 { return l.eventRecord(c.end, c.stream) }); err != nil {
		return 0, err
	}
	if err := c.Synchronize(); err != nil {
		return 0, err
	}
	var milliseconds float32
	err := l.call("cuEventElapsedTime", func() int32 { return l.eventElapsedTime(&milliseconds, c.start, c.end) })
	return time.Duration(float64(milliseconds) * float64(time.Millisecond)), err
}

// Module is compiled PTX. It goes with its context.
type Module struct {
	context *Context
	handle  uintptr
}

// Load compiles PTX for the context's device. The error has the compiler's
// log.
func (c *Context) Load(ptx string) (*Module, error) {
	image := append([]byte(ptx), 0)
	log := make([]byte, logBytes)
	options := [...]int32{jitErrorLog, jitErrorLogSize}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&log[0])
	// The driver takes a size in the place of a pointer.
	values := [...]uintptr{uintptr(unsafe.Pointer(&log[0])), logBytes}
	m := &Module{context: c}
	err := c.library.call("cuModuleLoadDataEx", func() int32 {
		return c.library.moduleLoadDataEx(&m.handle, &image[0], uint32(len(options)), &options[0], &values[0])
	})
	var failure *Error
	if errors.As(err, &failure) {
		failure.Log = text(log)
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Kernel is a function of a module.
type Kernel struct {
	context *Context
	handle  uintptr
}

// Kernel returns the entry of a name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	terminated := append([]byte(name), 0)
	l := m.context.library
	k := &Kernel{context: m.context}
	err := l.call("cuModuleGetFunction", func() int32 { return l.moduleGetFunction(&k.handle, m.handle, &terminated[0]) })
	return k, err
}

// Word is a parameter of a kernel: a number of 64 or 32 bits, or the bits of a
// float (math.Float32bits). Both architectures of GPU servers are
// little-endian, so that the low bytes are the parameter whatever its size.
type Word uint64

// Launch submits a kernel with one-dimensional grid and blocks. An error of
// the kernel itself is returned by Synchronize.
func (k *Kernel) Launch(blocks, threads uint32, parameters ...Word) error {
	pointers := make([]unsafe.Pointer, len(parameters))
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&parameters[0])
	for i := range parameters {
		pointers[i] = unsafe.Pointer(&parameters[i])
	}
	l := k.context.library
	return l.call("cuLaunchKernel", func() int32 {
		return l.launchKernel(k.handle, blocks, 1, 1, threads, 1, 1, 0, k.context.stream, &pointers[0], 0)
	})
}
