package direct

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Error is what a function of the library returned.
type Error struct {
	Call string // the function's name in C
	Code int    // the number of nvmlReturn_t
	Text string // the library's description
}

// Error names the function, the number and the description.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (%d)", e.Call, e.Text, e.Code) }

// call is a function of the library: its name in C, and the function, which is
// nil if the library does not have it.
type call[F any] struct {
	name     string
	function F
}

// The types of functions. A device is an opaque pointer of the library.
type (
	systemText    = call[func(text *byte, length uint32) int32]
	deviceText    = call[func(device uintptr, text *byte, length uint32) int32]
	deviceNumber  = call[func(device uintptr, number *uint32) int32]
	deviceLong    = call[func(device uintptr, number *uint64) int32]
	deviceKind    = call[func(device uintptr, kind int32, number *uint32) int32]
	processesCall = call[func(device uintptr, count *uint32, processes *processInfo) int32]
)

// Library is an opened libnvidia-ml. It must be used by one goroutine at a time.
type Library struct {
	current atomic.Pointer[string]

	init          call[func() int32]
	initWithFlags call[func(flags uint32) int32]
	shutdown      call[func() int32]
	errorString   call[func(code int32) *byte]

	driverVersion, nvmlVersion systemText

	count         call[func(count *uint32) int32]
	handleByIndex call[func(index uint32, device *uintptr) int32]
	uuid          deviceText
	name          deviceText
	serial        deviceText
	pciInfo       call[func(device uintptr, info *pciInfo) int32]

	migMode         call[func(device uintptr, current, pending *uint32) int32]
	migCount        deviceNumber
	migHandle       call[func(device uintptr, index uint32, mig *uintptr) int32]
	gpuInstance     deviceNumber
	computeInstance deviceNumber

	memory      call[func(device uintptr, memory *memoryV1) int32]
	memoryNewer call[func(device uintptr, memory *memoryV2) int32]
	bar1        call[func(device uintptr, memory *bar1Memory) int32]
	utilization call[func(device uintptr, rates *utilizationRates) int32]

	power, powerEnforced, powerLimit, powerDefault deviceNumber // milliwatts
	powerConstraints                               call[func(device uintptr, least, most *uint32) int32]
	energy                                         deviceLong // millijoules
	temperature                                    deviceKind // degrees Celsius
	clock, maxClock                                deviceKind // MHz
	pstate                                         deviceNumber
	eventReasons                                   deviceLong

	eccMode   call[func(device uintptr, current, pending *uint32) int32]
	eccErrors call[func(device uintptr, errors, counter int32, count *uint64) int32]
	remapped  call[func(device uintptr, corrected, uncorrected, pending, failed *uint32) int32]

	pcieGeneration, pcieMaxGeneration, pcieWidth, pcieMaxWidth, pcieReplays deviceNumber
	pcieThroughput                                                          deviceKind // KB/s

	fields call[func(device uintptr, count int32, values *fieldValue) int32]

	compute, graphics, mps processesCall
	processUtilization     call[func(device uintptr, samples *processSample, count *uint32, since uint64) int32]

	gpmQuery     call[func(device uintptr, support *gpmSupport) int32]
	gpmAlloc     call[func(sample *uintptr) int32]
	gpmFree      call[func(sample uintptr) int32]
	gpmSample    call[func(device, sample uintptr) int32]
	gpmMIGSample call[func(device uintptr, instance uint32, sample uintptr) int32]
	gpmMetrics   call[func(request *gpmMetrics) int32]
}

// binding is where a function goes, and under which names libraries have it.
type binding struct {
	names    []string
	name     *string
	function any
	needed   bool
}

func bind[F any](c *call[F], names ...string) binding {
	return binding{names: names, name: &c.name, function: &c.function}
}

func (b binding) always() binding {
	b.needed = true
	return b
}

// bindings are all functions that this package calls, none of which changes a
// setting.
func (l *Library) bindings() []binding {
	return []binding{
		bind(&l.init, "nvmlInit_v2").always(),
		bind(&l.initWithFlags, "nvmlInitWithFlags"),
		bind(&l.shutdown, "nvmlShutdown").always(),
		bind(&l.errorString, "nvmlErrorString").always(),
		bind(&l.driverVersion, "nvmlSystemGetDriverVersion"),
		bind(&l.nvmlVersion, "nvmlSystemGetNVMLVersion"),
		bind(&l.count, "nvmlDeviceGetCount_v2").always(),
		bind(&l.handleByIndex, "nvmlDeviceGetHandleByIndex_v2").always(),
		bind(&l.uuid, "nvmlDeviceGetUUID").always(),
		bind(&l.name, "nvmlDeviceGetName"),
		bind(&l.serial, "nvmlDeviceGetSerial"),
		bind(&l.pciInfo, "nvmlDeviceGetPciInfo_v3"),
		bind(&l.migMode, "nvmlDeviceGetMigMode"),
		bind(&l.migCount, "nvmlDeviceGetMaxMigDeviceCount"),
		bind(&l.migHandle, "nvmlDeviceGetMigDeviceHandleByIndex"),
		bind(&l.gpuInstance, "nvmlDeviceGetGpuInstanceId"),
		bind(&l.computeInstance, "nvmlDeviceGetComputeInstanceId"),
		bind(&l.memory, "nvmlDeviceGetMemoryInfo"),
		bind(&l.memoryNewer, "nvmlDeviceGetMemoryInfo_v2"),
		bind(&l.bar1, "nvmlDeviceGetBAR1MemoryInfo"),
		bind(&l.utilization, "nvmlDeviceGetUtilizationRates"),
		bind(&l.power, "nvmlDeviceGetPowerUsage"),
		bind(&l.powerEnforced, "nvmlDeviceGetEnforcedPowerLimit"),
		bind(&l.powerLimit, "nvmlDeviceGetPowerManagementLimit"),
		bind(&l.powerDefault, "nvmlDeviceGetPowerManagementDefaultLimit"),
		bind(&l.powerConstraints, "nvmlDeviceGetPowerManagementLimitConstraints"),
		bind(&l.energy, "nvmlDeviceGetTotalEnergyConsumption"),
		bind(&l.temperature, "nvmlDeviceGetTemperature"),
		bind(&l.clock, "nvmlDeviceGetClockInfo"),
		bind(&l.maxClock, "nvmlDeviceGetMaxClockInfo"),
		bind(&l.pstate, "nvmlDeviceGetPerformanceState"),
		bind(&l.eventReasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
		bind(&l.eccMode, "nvmlDeviceGetEccMode"),
		bind(&l.eccErrors, "nvmlDeviceGetTotalEccErrors"),
		bind(&l.remapped, "nvmlDeviceGetRemappedRows"),
		bind(&l.pcieGeneration, "nvmlDeviceGetCurrPcieLinkGeneration"),
		bind(&l.pcieMaxGeneration, "nvmlDeviceGetMaxPcieLinkGeneration"),
		bind(&l.pcieWidth, "nvmlDeviceGetCurrPcieLinkWidth"),
		bind(&l.pcieMaxWidth, "nvmlDeviceGetMaxPcieLinkWidth"),
		bind(&l.pcieReplays, "nvmlDeviceGetPcieReplayCounter"),
		bind(&l.pcieThroughput, "nvmlDeviceGetPcieThroughput"),
		bind(&l.fields, "nvmlDeviceGetFieldValues"),
		bind(&l.compute, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"),
		bind(&l.graphics, "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"),
		bind(&l.mps, "nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2"),
		bind(&l.processUtilization, "nvmlDeviceGetProcessUtilization"),
		bind(&l.gpmQuery, "nvmlGpmQueryDeviceSupport"),
		bind(&l.gpmAlloc, "nvmlGpmSampleAlloc"),
		bind(&l.gpmFree, "nvmlGpmSampleFree"),
		bind(&l.gpmSample, "nvmlGpmSampleGet"),
		bind(&l.gpmMIGSample, "nvmlGpmMigSampleGet"),
		bind(&l.gpmMetrics, "nvmlGpmMetricsGet"),
	}
}

// Functions returns the names in C of all functions that this package calls.
func Functions() []string {
	var names []string
	for _, b := range (&Library{}).bindings() {
		names = append(names, b.names...)
	}
	return names
}

// Open opens and initializes a libnvidia-ml: a path, or a soname that the dynamic
// linker finds. Close ends it; the library stays loaded.
func Open(path string) (*Library, error) {
	l, err := load(path)
	if err != nil {
		return nil, err
	}
	if code := l.init.function(); code != success {
		return nil, fmt.Errorf("initialize %s: %w", path, l.failure(l.init.name, code))
	}
	return l, nil
}

// load opens a libnvidia-ml without initializing it.
func load(path string) (*Library, error) {
	// The dynamic linker keeps the text of an error for the thread that it
	// happened on.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("open NVIDIA's management library: %w", err)
	}
	l := &Library{}
	for _, b := range l.bindings() {
		if err := b.find(handle); err != nil {
			return nil, fmt.Errorf("find a function of %s: %w", path, err)
		}
	}
	return l, nil
}

// find looks up the first of the names that the library has.
func (b binding) find(handle uintptr) error {
	*b.name = b.names[0]
	var first error
	for _, name := range b.names {
		symbol, err := purego.Dlsym(handle, name)
		if err == nil {
			*b.name = name
			purego.RegisterFunc(b.function, symbol)
			return nil
		}
		if first == nil {
			first = err
		}
	}
	if b.needed {
		return first
	}
	return nil
}

// Close shuts the library down.
func (l *Library) Close() error {
	if code := l.shutdown.function(); code != success {
		return fmt.Errorf("shut NVIDIA's management library down: %w", l.failure(l.shutdown.name, code))
	}
	return nil
}

// Current returns the name of the function that was called last: while a call
// does not return, it is that call. It may be called by any goroutine.
func (l *Library) Current() string {
	if name := l.current.Load(); name != nil {
		return *name
	}
	return "no function"
}

func (l *Library) failure(name string, code int32) *Error {
	description := "unknown"
	if pointer := l.errorString.function(code); pointer != nil {
		length := 0
		for length < 256 && *(*byte)(unsafe.Add(unsafe.Pointer(pointer), length)) != 0 {
			length++
		}
		description = valid(unsafe.Slice(pointer, length))
	}
	return &Error{Call: name, Code: int(code), Text: description}
}

func valid(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }
