// Package cuda calls the CUDA driver, libcuda.so.1, without cgo and without
// CUDA's headers or tools: the library is opened at run time. It has the few
// functions that a load generator needs, and none that changes a setting of a
// GPU.
//
// A context belongs to the operating system's thread that created it. All
// calls after NewContext must be made by a goroutine that has called
// runtime.LockOSThread before it.
package cuda

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Error is what a function of the driver returned.
type Error struct {
	Call string // the function's name in C, such as cuMemAlloc_v2
	Code int    // the number of CUresult
	Name string // CUDA_ERROR_OUT_OF_MEMORY; "unknown" if the driver has no name
	Text string // the driver's description
	Log  string // of the compiler of PTX, if it wrote any
}

// Error names the function, the error and its number.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %s (%d): %s", e.Call, e.Name, e.Code, e.Text)
	if e.Log != "" {
		text += ": " + e.Log
	}
	return text
}

// Library is an opened libcuda. Its methods are safe for concurrent use as far
// as the driver's functions are.
type Library struct {
	current atomic.Pointer[string]

	init             func(flags uint32) int32
	driverGetVersion func(version *int32) int32
	getErrorName     func(code int32, name **byte) int32
	getErrorString   func(code int32, text **byte) int32

	deviceGetCount     func(count *int32) int32
	deviceGet          func(device *int32, ordinal int32) int32
	deviceGetName      func(name *byte, length int32, device int32) int32
	deviceGetUUID      func(uuid *[16]byte, device int32) int32
	deviceGetPCIBusID  func(address *byte, length int32, device int32) int32
	deviceGetAttribute func(value *int32, attribute int32, device int32) int32

	ctxCreate  func(context *uintptr, flags uint32, device int32) int32
	ctxDestroy func(context uintptr) int32

	memGetInfo      func(free, total *uintptr) int32
	memAlloc        func(address *uint64, bytes uintptr) int32
	memFree         func(address uint64) int32
	memHostAlloc    func(memory **byte, bytes uintptr, flags uint32) int32
	memFreeHost     func(memory *byte) int32
	memcpyHtoDAsync func(to uint64, from *byte, bytes uintptr, stream uintptr) int32
	memcpyDtoHAsync func(to *byte, from uint64, bytes uintptr, stream uintptr) int32

	moduleLoadDataEx  func(module *uintptr, image *byte, count uint32, options *int32, values *uintptr) int32
	moduleGetFunction func(function *uintptr, module uintptr, name *byte) int32
	launchKernel      func(function uintptr, gridX, gridY, gridZ, blockX, blockY, blockZ, shared uint32, stream uintptr, parameters *unsafe.Pointer, extra uintptr) int32

	streamCreate      func(stream *uintptr, flags uint32) int32
	streamSynchronize func(stream uintptr) int32
	streamDestroy     func(stream uintptr) int32
	eventCreate       func(event *uintptr, flags uint32) int32
	eventRecord       func(event, stream uintptr) int32
	eventElapsedTime  func(milliseconds *float32, start, end uintptr) int32
	eventDestroy      func(event uintptr) int32
}

// Open opens a libcuda: a path, or a soname that the dynamic linker finds. An
// error says what is missing. The library stays open as long as the process.
func Open(path string) (*Library, error) {
	// The dynamic linker keeps the text of an error for the thread that it
	// happened on.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("open the CUDA driver: %w", err)
	}
	l := &Library{}
	for _, f := range l.functions() {
		symbol, err := purego.Dlsym(handle, f.name)
		if err != nil {
			return nil, fmt.Errorf("find %s in the CUDA driver %s: %w", f.name, path, err)
		}
		purego.RegisterFunc(f.pointer, symbol)
	}
	return l, nil
}

type function struct {
	name    string
	pointer any // to the field of Library
}

// functions are the functions of the ABI by their exported names. All exist
// since driver 470.
func (l *Library) functions() []function {
	return []function{
		{"cuInit", &l.init},
		{"cuDriverGetVersion", &l.driverGetVersion},
		{"cuGetErrorName", &l.getErrorName},
		{"cuGetErrorString", &l.getErrorString},
		{"cuDeviceGetCount", &l.deviceGetCount},
		{"cuDeviceGet", &l.deviceGet},
		{"cuDeviceGetName", &l.deviceGetName},
		{"cuDeviceGetUuid_v2", &l.deviceGetUUID},
		{"cuDeviceGetPCIBusId", &l.deviceGetPCIBusID},
		{"cuDeviceGetAttribute", &l.deviceGetAttribute},
		{"cuCtxCreate_v2", &l.ctxCreate},
		{"cuCtxDestroy_v2", &l.ctxDestroy},
		{"cuMemGetInfo_v2", &l.memGetInfo},
		{"cuMemAlloc_v2", &l.memAlloc},
		{"cuMemFree_v2", &l.memFree},
		{"cuMemHostAlloc", &l.memHostAlloc},
		{"cuMemFreeHost", &l.memFreeHost},
		{"cuMemcpyHtoDAsync_v2", &l.memcpyHtoDAsync},
		{"cuMemcpyDtoHAsync_v2", &l.memcpyDtoHAsync},
		{"cuModuleLoadDataEx", &l.moduleLoadDataEx},
		{"cuModuleGetFunction", &l.moduleGetFunction},
		{"cuLaunchKernel", &l.launchKernel},
		{"cuStreamCreate", &l.streamCreate},
		{"cuStreamSynchronize", &l.streamSynchronize},
		{"cuStreamDestroy_v2", &l.streamDestroy},
		{"cuEventCreate", &l.eventCreate},
		{"cuEventRecord", &l.eventRecord},
		{"cuEventElapsedTime", &l.eventElapsedTime},
		{"cuEventDestroy_v2", &l.eventDestroy},
	}
}

// Functions returns the names in C of the functions that this package calls.
func Functions() []string {
	var names []string
	for _, f := range (&Library{}).functions() {
		names = append(names, f.name)
	}
	return names
}

// Current returns the name of the function that was called last: while a call
// does not return, it is that call.
func (l *Library) Current() string {
	if name := l.current.Load(); name != nil {
		return *name
	}
	return "no function"
}

// call calls one function of the driver and turns what it returns into an
// Error.
func (l *Library) call(name string, function func() int32) error {
	l.current.Store(&name)
	code := function()
	if code == 0 {
		return nil
	}
	return &Error{Call: name, Code: int(code), Name: l.describe(code, l.getErrorName), Text: l.describe(code, l.getErrorString)}
}

func (l *Library) describe(code int32, of func(int32, **byte) int32) string {
	var text *byte
	if of(code, &text) != 0 || text == nil {
		return "unknown"
	}
	length := 0
	for length < 256 && *(*byte)(unsafe.Add(unsafe.Pointer(text), length)) != 0 {
		length++
	}
	return string(unsafe.Slice(text, length))
}

// text is a C string in a buffer.
func text(buffer []byte) string {
	for i, b := range buffer {
		if b == 0 {
			return string(buffer[:i])
		}
	}
	return string(buffer)
}
