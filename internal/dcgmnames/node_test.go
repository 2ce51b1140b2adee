package dcgmnames

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

const sceneNode = "gpu-node-1"

// testNode is a node's rows, as its reducer writes them: labels are made once,
// and the rows of a family are adjacent.
type testNode struct {
	families []*metric.Family
	rows     map[string][]metric.Row // by the family's name
	labels   map[string]*metric.Labels
}

func newTestNode() *testNode {
	return &testNode{rows: map[string][]metric.Row{}, labels: map[string]*metric.Labels{}}
}

// set adds a row, or changes the value of the row with these labels. Labels are
// written name=value; node is added.
func (s *testNode) set(family string, value float64, labels ...string) *metric.Row {
	if !slices.ContainsFunc(s.families, func(f *metric.Family) bool { return f.Name == family }) {
		s.families = append(s.families, &metric.Family{Name: family, Help: "A family of a scene"})
	}
	made := s.labelsOf(family, labels)
	rows := s.rows[family]
	at := slices.IndexFunc(rows, func(row metric.Row) bool { return row.Labels == made })
	if at < 0 {
		at = len(rows)
		rows = append(rows, metric.Row{Labels: made})
		s.rows[family] = rows
	}
	rows[at].Value = value
	return &rows[at]
}

func (s *testNode) labelsOf(family string, labels []string) *metric.Labels {
	key := family + "{" + strings.Join(labels, ",")
	if s.labels[key] == nil {
		names, values := []string{"node"}, []string{sceneNode}
		for _, label := range labels {
			name, value, _ := strings.Cut(label, "=")
			names, values = append(names, name), append(values, value)
		}
		s.labels[key] = metric.NewLabels(names, values...)
	}
	return s.labels[key]
}

// unset removes every row of the family that has the labels.
func (s *testNode) unset(family string, labels ...string) {
	s.rows[family] = slices.DeleteFunc(s.rows[family], func(row metric.Row) bool {
		return !slices.ContainsFunc(labels, func(label string) bool {
			name, value, _ := strings.Cut(label, "=")
			return row.Labels.Get(name) != value
		})
	})
}

// snapshot returns all rows, in a new slice.
func (s *testNode) snapshot() []metric.Row {
	var all []metric.Row
	for _, family := range s.families {
		for _, row := range s.rows[family.Name] {
			row.Family = family
			all = append(all, row)
		}
	}
	return all
}

// gpu adds the whole GPU of the given number, of which nothing is read yet.
func (s *testNode) gpu(number int) string {
	uuid := fmt.Sprintf("GPU-%d", number)
	s.set("dra_device_info", 1, "uuid="+uuid, "parent_uuid=", "vendor=nvidia", "model=NVIDIA H100 80GB HBM3",
		fmt.Sprintf("pci_bus_id=0000:%x:00.0", 0x1a+number), "partition_profile=", "driver_version=580.65.06", "source=nvml")
	return uuid
}

// partition adds a MIG partition of it, in a GPU instance of its own.
func (s *testNode) partition(gpu, instance int) string {
	uuid, parent := fmt.Sprintf("MIG-%d-%d", gpu, instance), fmt.Sprintf("GPU-%d", gpu)
	s.set("dra_device_info", 1, "uuid="+uuid, "parent_uuid="+parent, "vendor=nvidia", "model=NVIDIA H100 80GB HBM3 MIG 1g.10gb",
		fmt.Sprintf("pci_bus_id=0000:%x:00.0", 0x1a+gpu), "partition_profile=1g.10gb", "driver_version=580.65.06", "source=nvml")
	s.set("dra_device_partition_info", 1, "uuid="+uuid, "parent_uuid="+parent,
		fmt.Sprintf("gpu_instance_id=%d", instance), "compute_instance_id=0")
	return uuid
}

// read sets quantities of a device: utilization_ratio=0.5 and the like, with
// the value of their label behind a slash.
func (s *testNode) read(uuid string, values map[string]float64) {
	labelOf := map[string]string{"temperature_celsius": "sensor", "clock_hertz": "clock", "engine_active_ratio": "engine", "remapped_rows": "severity"}
	for _, o := range origins() {
		name := strings.TrimPrefix(o.family, "dra_device_")
		key, labels := name, []string{"uuid=" + uuid, "parent_uuid=" + parentOf(uuid)}
		if o.label != "" {
			key, labels = name+"/"+o.value, append(labels, labelOf[name]+"="+o.value)
		}
		if value, set := values[key]; set {
			s.set(o.family, value, labels...)
		}
	}
}

func parentOf(uuid string) string {
	if number, partition := strings.CutPrefix(uuid, "MIG-"); partition {
		gpu, _, _ := strings.Cut(number, "-")
		return "GPU-" + gpu
	}
	return ""
}

// claim makes a claim hold the device, for the containers (pod/container).
func (s *testNode) claim(namespace, claim, uuid string, containers ...string) {
	in, of, device := "namespace="+namespace, "resourceclaim="+claim, "uuid="+uuid
	s.set("dra_claim_held", 1, in, of, device)
	s.consumers(namespace, claim, uuid, containers...)
}

// consumers lets containers use a device of a claim, which may not hold it.
func (s *testNode) consumers(namespace, claim, uuid string, containers ...string) {
	in, of, device := "namespace="+namespace, "resourceclaim="+claim, "uuid="+uuid
	s.set("dra_claim_device_info", 1, in, of, "request=gpu", "deviceclass=gpu.nvidia.com", "driver=gpu.nvidia.com",
		"pool="+sceneNode, "device="+strings.ToLower(uuid), device, "share_id=")
	for _, each := range containers {
		pod, container, _ := strings.Cut(each, "/")
		s.set("dra_claim_consumer_info", 1, in, of, device, "pod="+pod, "pod_uid=uid-"+pod, "container="+container, "owner_kind=", "owner_name=")
	}
}

func (s *testNode) plugin(namespace, uuid, pod, container string) {
	s.set("dra_device_plugin_consumer_info", 1, "uuid="+uuid, "namespace="+namespace, "pod="+pod, "container="+container, "resource=nvidia.com/gpu")
}

// splits sets the use of the device by the processes of a claim.
func (s *testNode) splits(namespace, claim, uuid, attribution string, utilization, memory float64) {
	labels := []string{"namespace=" + namespace, "resourceclaim=" + claim, "uuid=" + uuid, "attribution=" + attribution}
	s.set("dra_claim_utilization_ratio", utilization, labels...)
	s.set("dra_claim_memory_used_bytes", memory, labels...)
}

// podSplits sets the use by the processes of a pod.
func (s *testNode) podSplits(namespace, pod, uuid string, utilization, memory float64) {
	labels := []string{"namespace=" + namespace, "pod=" + pod, "uuid=" + uuid}
	s.set("dra_pod_utilization_ratio", utilization, labels...)
	s.set("dra_pod_memory_used_bytes", memory, labels...)
}

func newTranslator(mode Mode) *Translator {
	return New(Options{Mode: mode, Interval: time.Second, Staleness: 10 * time.Second})
}

// seriesOf returns the rows of a family, "pod/container value" each, or the
// value alone.
func seriesOf(rows []metric.Row, family string) []string {
	var found []string
	for _, row := range rows {
		if row.Family.Name == "DCGM_FI_"+family {
			text := fmt.Sprintf("%g", row.Value)
			if pod := row.Labels.Get("pod"); pod != "" {
				text = pod + "/" + row.Labels.Get("container") + " " + text
			}
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return found
}

func wantSeries(t *testing.T, rows []metric.Row, family string, want ...string) {
	t.Helper()
	if got := seriesOf(rows, family); !slices.Equal(got, want) {
		t.Errorf("%s has the series %q, want %q", family, got, want)
	}
}
