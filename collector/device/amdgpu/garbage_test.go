package amdgpu

import (
	"fmt"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/devicetest"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

// The kernel has numbers of all bits in the files of a card, or counters of another
// state of it.
func TestGarbageOfTheKernel(t *testing.T) {
	const all32, all64 = "4294967295", "18446744073709551615"
	const sensors = "hwmon/hwmon5/"
	trees := []*sysfstest.Tree{sysfstest.Plant(t, "amdgpu"), sysfstest.Plant(t, "amdgpu")}
	var found []device.Reader
	for _, tree := range trees {
		found = append(found, cards(t, New(tree.Root))[1])
	}
	devicetest.Garbage{
		Wrong: map[string][]string{
			"gpu_busy_percent":        {"65535", all32},
			"mem_info_vram_used":      {all64, "9223372036854775808"},
			sensors + "power1_input":  {"4294967295000000", all64},
			sensors + "power1_cap":    {"0", all64},
			sensors + "temp1_input":   {"0", "65535000"},
			sensors + "energy1_input": {"0", "200000000", all64},
			"ras/umc_err_count":       {"ue: 0\nce: 0\n", "ue: 4294967295\nce: 4294967295\n"},
			"pcie_replay_count":       {"0", all32, all64},
		},
		Truth: func(second int) map[string]string {
			return map[string]string{
				"gpu_busy_percent": "50", "mem_info_vram_used": "40000000000", sensors + "power1_input": "300000000", sensors + "power1_cap": "750000000",
				sensors + "temp1_input": "54000", sensors + "energy1_input": fmt.Sprint(22500000000000 + 300000000*second),
				"ras/umc_err_count": "ue: 5\nce: 100\n", "pcie_replay_count": "9",
			}
		},
		Set: func(gpu int, values map[string]string) {
			for path, text := range values {
				trees[gpu].Set(whole+path, text+"\n")
			}
		},
		Read: func(gpu int) (device.Observation, error) {
			observations, _ := found[gpu].Read(t.Context(), device.Slow) // an error is of the files that make no sense
			if len(observations) == 0 {
				return device.Observation{}, fmt.Errorf("card %d cannot be read", gpu)
			}
			return observations[0], nil
		},
	}.Run(t)
}
