package direct

import (
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// The layouts are those that gcc makes of nvml.h.
func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"nvmlMemory_t", unsafe.Sizeof(memoryV1{}), sizeOfMemory},
		{"nvmlMemory_v2_t", unsafe.Sizeof(memoryV2{}), sizeOfMemoryV2},
		{"nvmlMemory_v2_t.used", unsafe.Offsetof(memoryV2{}.used), 32},
		{"nvmlBAR1Memory_t", unsafe.Sizeof(bar1Memory{}), sizeOfBAR1Memory},
		{"nvmlUtilization_t", unsafe.Sizeof(utilizationRates{}), sizeOfUtilization},
		{"nvmlPciInfo_t", unsafe.Sizeof(pciInfo{}), sizeOfPCIInfo},
		{"nvmlPciInfo_t.busId", unsafe.Offsetof(pciInfo{}.busID), 36},
		{"nvmlFieldValue_t", unsafe.Sizeof(fieldValue{}), sizeOfFieldValue},
		{"nvmlFieldValue_t.valueType", unsafe.Offsetof(fieldValue{}.valueType), 24},
		{"nvmlFieldValue_t.value", unsafe.Offsetof(fieldValue{}.value), 32},
		{"nvmlProcessInfo_t", unsafe.Sizeof(processInfo{}), sizeOfProcessInfo},
		{"nvmlProcessInfo_t.usedGpuMemory", unsafe.Offsetof(processInfo{}.memory), 8},
		{"nvmlProcessUtilizationSample_t", unsafe.Sizeof(processSample{}), sizeOfProcessSample},
		{"nvmlProcessUtilizationSample_t.smUtil", unsafe.Offsetof(processSample{}.sm), 16},
		{"nvmlGpmMetric_t", unsafe.Sizeof(gpmMetric{}), sizeOfGPMMetric},
		{"nvmlGpmMetricsGet_t", unsafe.Sizeof(gpmMetrics{}), sizeOfGPMMetrics},
		{"nvmlGpmMetricsGet_t.metrics", unsafe.Offsetof(gpmMetrics{}.metrics), 24},
		{"nvmlGpmSupport_t", unsafe.Sizeof(gpmSupport{}), sizeOfGPMSupport},
		{"nvmlMemory_v2", memoryVersion, 0x2000028},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, not %d", c.name, c.got, c.want)
		}
	}
}

// Nothing that is called changes a setting, and no name is there twice.
func TestFunctionsOnlyRead(t *testing.T) {
	names := Functions()
	for _, name := range names {
		reads := strings.Contains(name, "Get") || strings.Contains(name, "Query") ||
			slices.Contains([]string{"nvmlInit_v2", "nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString", "nvmlGpmSampleAlloc", "nvmlGpmSampleFree"}, name)
		if !reads || strings.Contains(name, "Set") || strings.Contains(name, "Reset") || strings.Contains(name, "Clear") {
			t.Errorf("%s may change a setting", name)
		}
	}
	slices.Sort(names)
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("a function is there twice: %v", names)
	}
}

func TestFieldNumbers(t *testing.T) {
	for _, c := range []struct {
		valueType uint32
		value     [8]byte
		want      *float64
	}{
		{0, [8]byte{0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, finite(1.5)},
		{0, [8]byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}, nil}, // NaN
		{1, [8]byte{1, 1, 0, 0, 9, 9, 9, 9}, finite(257)},
		{2, [8]byte{0, 0, 0, 0, 1}, finite(1 << 32)},
		{3, [8]byte{0, 0, 0, 0, 1}, finite(1 << 32)},
		{4, [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, finite(-1)},
		{5, [8]byte{0xfe, 0xff, 0xff, 0xff, 9, 9, 9, 9}, finite(-2)},
		{6, [8]byte{2, 1, 9, 9}, finite(258)},
		{7, [8]byte{1}, nil},
	} {
		got := (&fieldValue{valueType: c.valueType, value: c.value}).number()
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("type %d is %v, not %v", c.valueType, got, c.want)
		}
	}
}
