package page

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// partitioned returns a GPU in MIG mode, whose driver publishes only its MIG
// devices, with the given names.
func partitioned(driver string, names ...string) []metric.Row {
	rows := []metric.Row{
		row("dra_device_info", 1, "uuid", "gpu", "model", "NVIDIA H100 80GB HBM3", "source", "nvml"),
		row("dra_claim_held", 1, "uuid", "mig-0", "parent_uuid", "gpu", "namespace", "lab", "resourceclaim", "c"),
	}
	for i, name := range names {
		uuid := "mig-" + string(rune('0'+i))
		rows = append(rows, row("dra_device_info", 1, "uuid", uuid, "parent_uuid", "gpu", "model", "NVIDIA H100 80GB HBM3", "partition_profile", "1g.10gb", "source", "nvml"))
		if name != "" {
			rows = append(rows, row("dra_device_published_info", 1, "uuid", uuid, "parent_uuid", "gpu", "driver", driver, "pool", "node-a", "device", name))
		}
	}
	return rows
}

// A GPU in MIG mode keeps its name, though only its MIG devices are published.
// Names that do not follow the driver's naming rule are not guessed.
func TestNameOfGPUInMIGMode(t *testing.T) {
	for name, test := range map[string]struct {
		rows        []metric.Row
		whole, part string
	}{
		"by its MIG devices":         {partitioned("gpu.nvidia.com", "gpu-5-mig-1g10gb-19-6", "gpu-5-mig-2g20gb-14-4"), "gpu-5", "gpu-5-mig-1g10gb-19-6"},
		"by those with names":        {partitioned("gpu.nvidia.com", "", "gpu-5-mig-2g20gb-14-4"), "gpu-5", "1g.10gb of gpu-5"},
		"by its own name":            {append(partitioned("gpu.nvidia.com", "gpu-5-mig-1g10gb-19-6"), row("dra_device_published_info", 1, "uuid", "gpu", "driver", "gpu.nvidia.com", "device", "own")), "own", "gpu-5-mig-1g10gb-19-6"},
		"they do not agree":          {partitioned("gpu.nvidia.com", "gpu-5-mig-1g10gb-19-6", "gpu-6-mig-2g20gb-14-4"), "NVIDIA H100 80GB HBM3", "gpu-5-mig-1g10gb-19-6"},
		"another driver's names":     {partitioned("gpu.example.com", "gpu-5-mig-1g10gb-19-6"), "NVIDIA H100 80GB HBM3", "gpu-5-mig-1g10gb-19-6"},
		"names of another kind":      {partitioned("gpu.nvidia.com", "slice-0"), "NVIDIA H100 80GB HBM3", "slice-0"},
		"nothing has been published": {partitioned("gpu.nvidia.com", ""), "NVIDIA H100 80GB HBM3", "1g.10gb of NVIDIA H100 80GB HBM3"},
	} {
		view := newView(parseNode(test.rows), noon)
		whole := findDevice(t, view.Devices, "gpu")
		part := findDevice(t, whole.Partitions, "mig-0")
		if whole.Title() != test.whole || part.Title() != test.part || part.ParentName != test.whole || view.Claims[0].Devices[0].ParentName != test.whole {
			t.Errorf("%s: %q with %q of %q, the claim has one of %q", name, whole.Title(), part.Title(), part.ParentName, view.Claims[0].Devices[0].ParentName)
		}
		_, text := get(t, handler(t, test.rows), "/")
		if !strings.Contains(text, "partition of "+test.whole) {
			t.Errorf("%s: the claim's line does not name the whole device", name)
		}
	}
}
