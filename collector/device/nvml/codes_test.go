//go:build cgo

package nvml

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// What a return code makes of a quantity.
const (
	value   = "a value"
	absence = "an absence until the GPUs are looked for" // it is not asked again
	pause   = "an absence"
	failed  = "an error"
	ends    = "an error, and the GPU is asked no more"
	gone    = "a lost GPU"
)

// meanings are what each code of nvml.h means, and some that are not in it.
func meanings() map[nvml.Return]string {
	return map[nvml.Return]string{
		nvml.SUCCESS:                         value,
		nvml.ERROR_UNINITIALIZED:             ends,
		nvml.ERROR_INVALID_ARGUMENT:          failed,
		nvml.ERROR_NOT_SUPPORTED:             absence,
		nvml.ERROR_NO_PERMISSION:             failed,
		nvml.ERROR_ALREADY_INITIALIZED:       failed,
		nvml.ERROR_NOT_FOUND:                 failed,
		nvml.ERROR_INSUFFICIENT_SIZE:         failed,
		nvml.ERROR_INSUFFICIENT_POWER:        failed,
		nvml.ERROR_DRIVER_NOT_LOADED:         ends,
		nvml.ERROR_TIMEOUT:                   failed,
		nvml.ERROR_IRQ_ISSUE:                 failed,
		nvml.ERROR_LIBRARY_NOT_FOUND:         failed,
		nvml.ERROR_FUNCTION_NOT_FOUND:        absence,
		nvml.ERROR_CORRUPTED_INFOROM:         failed,
		nvml.ERROR_GPU_IS_LOST:               gone,
		nvml.ERROR_RESET_REQUIRED:            gone,
		nvml.ERROR_OPERATING_SYSTEM:          failed,
		nvml.ERROR_LIB_RM_VERSION_MISMATCH:   ends,
		nvml.ERROR_IN_USE:                    failed,
		nvml.ERROR_MEMORY:                    failed,
		nvml.ERROR_NO_DATA:                   pause,
		nvml.ERROR_VGPU_ECC_NOT_SUPPORTED:    absence,
		nvml.ERROR_INSUFFICIENT_RESOURCES:    failed,
		nvml.ERROR_FREQ_NOT_SUPPORTED:        failed,
		nvml.ERROR_ARGUMENT_VERSION_MISMATCH: absence,
		nvml.ERROR_DEPRECATED:                absence,
		nvml.ERROR_NOT_READY:                 pause,
		nvml.ERROR_GPU_NOT_FOUND:             ends,
		nvml.ERROR_INVALID_STATE:             failed,
		nvml.ERROR_RESET_TYPE_NOT_SUPPORTED:  failed,
		31:                                   failed,
		nvml.ERROR_UNKNOWN:                   failed,
		-1:                                   failed,
	}
}

// A way is one by which a code can come: a call, or a field.
type way struct {
	quantity string
	isField  bool
	answer   func(d *server.Device, ret nvml.Return, asked *int)
}

// fieldWay makes one field of the GPU answer with a code.
func fieldWay(quantity string, id uint32) way {
	return way{quantity, true, func(d *server.Device, ret nvml.Return, asked *int) {
		well := d.GetFieldValuesFunc
		d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
			_ = well(values)
			for i := range values {
				if values[i].FieldId == id && values[i].ScopeId != allLinks {
					values[i].NvmlReturn = uint32(ret)
					*asked++
				}
			}
			return nvml.SUCCESS
		}
	}}
}

func ways() []way {
	return []way{
		{"power", false, func(d *server.Device, ret nvml.Return, asked *int) {
			d.GetPowerUsageFunc = func() (uint32, nvml.Return) {
				*asked++
				return 1, ret
			}
		}},
		{"fabric_state", false, func(d *server.Device, ret nvml.Return, asked *int) {
			d.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) {
				*asked++
				return nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_COMPLETED}, ret
			}
		}},
		{"engine_active", false, func(d *server.Device, ret nvml.Return, asked *int) {
			well := d.GpmSampleGetFunc
			d.GpmSampleGetFunc = func(sample nvml.GpmSample) nvml.Return {
				*asked++
				_ = well(sample)
				return ret
			}
		}},
		fieldWay("pcie_transmit", nvml.FI_DEV_PCIE_COUNT_TX_BYTES),
		fieldWay("recovery_action", nvml.FI_DEV_GET_GPU_RECOVERY_ACTION),
		fieldWay("nvlinks", nvml.FI_DEV_NVLINK_GET_STATE),
		fieldWay("nvlink_link_transmit", nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX),
		fieldWay("temperature memory", nvml.FI_DEV_MEMORY_TEMP),
	}
}

// Every code is a value, an absence or an error of the device and the
// quantity that it is answered for, and of nothing else.
func TestEveryReturnCode(t *testing.T) {
	for code := nvml.SUCCESS; code <= nvml.ERROR_RESET_TYPE_NOT_SUPPORTED; code++ {
		if meanings()[code] == "" {
			t.Errorf("nothing is known of %v", code)
		}
	}
	for code, meaning := range meanings() {
		for _, w := range ways() {
			synctest.Test(t, func(t *testing.T) {
				meaning := meaning
				if w.isField && code == nvml.ERROR_INVALID_ARGUMENT {
					meaning = absence // the library does not know the field
				}
				tryCode(t, w, code, meaning)
			})
		}
	}
}

// tryCode reads a GPU that answers in one way with a code.
func tryCode(t *testing.T, w way, code nvml.Return, meaning string) {
	t.Helper()
	s := equip(fitted(dgxh100.New()), 4)
	s.Devices = s.Devices[:2]
	withGPM(t, s)
	asked := 0
	w.answer(gpu(s, 0), code, &asked)
	d := gpu(s, 0)
	if w.quantity == "nvlinks" { // there is an older call
		d.GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	}
	from := NewOver(s, Options{Links: true, Profiling: true})
	found := readers(t, from)
	var text string
	var err error
	for range 3 {
		time.Sleep(time.Second)
		var all []device.Observation
		all, err = found[0].Read(t.Context(), device.Slow)
		text = written(all, err)
	}
	is := linesWith(text, w.quantity+" ") != ""
	named := strings.Contains(text, "read "+strings.Fields(w.quantity)[0]+" of GPU-0: "+code.Error())
	others := strings.Contains(text, "\tutilization ")
	lost := linesWith(text, "lost")
	ok := err != nil == (meaning == failed || meaning == ends || meaning == gone) && (err == nil || errors.Is(err, code))
	switch meaning {
	case value:
		ok = ok && is && others && lost == "lost  0"
	case absence:
		ok = ok && !is && others && lost == "lost  0" && asked <= 3 // once for each link
	case pause:
		ok = ok && !is && others && lost == "lost  0" && asked >= 3
	case failed:
		ok = ok && !is && others && named && lost == "lost  0" && asked >= 3
	case ends:
		ok = ok && !is && named && lost == "lost  0"
	case gone:
		ok = ok && !is && lost == "lost  1"
	}
	if !ok {
		t.Errorf("%s answers %v (%d), which is not %s; asked %d times:\n%s", w.quantity, code, code, meaning, asked, text)
	}
	if text := written(found[1].Read(t.Context(), device.Slow)); strings.Contains(text, "error:") {
		t.Errorf("%v is reported for another GPU as well:\n%s", code, text)
	}
	if err := from.Close(); err != nil {
		t.Error(err)
	}
}
