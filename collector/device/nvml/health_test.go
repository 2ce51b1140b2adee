//go:build cgo

package nvml

import (
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// present are the states of a set that are reported as present, and how many
// are reported at all.
func present(text, set string) (states string, all int) {
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != set {
			continue
		}
		all++
		if words[2] == "1" {
			states += words[1]
		}
	}
	return states, all
}

func TestRecoveryAction(t *testing.T) {
	s := fitted(dgxh100.New())
	f := fieldsOf(4, 0)
	gpu(s, 0).GetFieldValuesFunc = f.answer
	r := readers(t, NewOver(s, Options{}))[0]
	for value, want := range []string{
		"none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset", "recover_imex_domain", "other", "other",
	} {
		f[[2]uint32{nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, 0}] = uint64(value)
		text := written(r.Read(t.Context(), device.Fast))
		if got, all := present(text, "recovery_action"); got != want || all != 7 {
			t.Errorf("action %d is %q of %d, want %q", value, got, all, want)
		}
	}
	delete(f, [2]uint32{nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, 0})
	if _, all := present(written(r.Read(t.Context(), device.Fast)), "recovery_action"); all != 0 {
		t.Errorf("what is not supported is reported")
	}
}

func TestFabricState(t *testing.T) {
	for _, test := range []struct {
		info nvml.GpuFabricInfo
		want string
		all  int
	}{
		{nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_NOT_SUPPORTED}, "", 0},
		{nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_NOT_STARTED}, "not_started", 4},
		{nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_IN_PROGRESS, Status: 999}, "in_progress", 4},
		{nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_COMPLETED}, "success", 4},
		{nvml.GpuFabricInfo{State: nvml.GPU_FABRIC_STATE_COMPLETED, Status: 999}, "failure", 4},
		{nvml.GpuFabricInfo{State: 9}, "", 0},
	} {
		s := fitted(dgxh100.New())
		gpu(s, 0).GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) { return test.info, nvml.SUCCESS }
		text := read(t, NewOver(s, Options{}), 0, device.Slow)
		if got, all := present(text, "fabric_state"); got != test.want || all != test.all {
			t.Errorf("%+v is %q of %d, want %q", test.info, got, all, test.want)
		}
	}
}

// Where the library does not know the fields, the older calls answer, each
// once.
func TestOlderHealthCalls(t *testing.T) {
	s := fitted(dgxh100.New())
	text := read(t, NewOver(s, Options{}), 0, device.Slow)
	want := "ecc_errors uncorrected 2000; row_remap_failed  0; row_remap_pending  1; " +
		"ecc_errors corrected 1000; pcie_replays  70; remapped_rows corrected 3; remapped_rows uncorrected 2"
	if got := linesWith(text, "ecc", "row_", "remapped", "pcie_replays", "error:"); got != want {
		t.Errorf("the older calls give\n%s, want\n%s", got, want)
	}
	if calls := len(gpu(s, 0).GetRemappedRowsCalls()); calls != 1 {
		t.Errorf("one read asked %d times for the remapped rows", calls)
	}
}
