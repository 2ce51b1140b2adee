package naming

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

const (
	gpuLabels   = `node="node-a",uuid="GPU-0",parent_uuid=""`
	migLabels   = `node="node-a",uuid="MIG-0",parent_uuid="GPU-0"`
	nicLabels   = `node="node-a",uuid="node-a/pci-0000:c1:00.0",parent_uuid=""`
	gpuInfo     = `dra_device_info{` + gpuLabels + `,vendor="nvidia",model="NVIDIA H100",pci_bus_id="0000:10:00.0",partition_profile="",driver_version="580.65.06",source="nvml"} 1` + "\n"
	gpuHardware = `dra_device_hardware_info{node="node-a",uuid="GPU-0",serial="1650923004310",board_part_number="",vbios="96.00",minor_number="0",index="0",module_id="",chassis_serial="",slot="",tray=""} 1` + "\n"
	migInfo     = `dra_device_info{` + migLabels + `,vendor="nvidia",model="NVIDIA H100",pci_bus_id="",partition_profile="1g.10gb",driver_version="580.65.06",source="nvml"} 1` + "\n"
	nicInfo     = `dra_device_info{` + nicLabels + `,vendor="nvidia",model="ConnectX-7",pci_bus_id="0000:c1:00.0",partition_profile="",driver_version="",source="rdma"} 1` + "\n"
	claimLabels = `node="node-a",namespace="ml",resourceclaim="train",uuid="GPU-0"`
	claimFact   = `dra_claim_info{node="node-a",namespace="ml",resourceclaim="train",claim_uid="uid-1",deviceclass="gpu.nvidia.com",template="",sharing="none",admin_access="false",extended_resource="false"} 1` + "\n"
	energyRow   = `dra_claim_energy_joules_total{` + claimLabels + `,attribution="exclusive"} 900` + "\n"
)

// rowsOf reads rows as a page has them; counters that the exporter accrues
// began at start.
func rowsOf(t testing.TB, text string, start time.Time) []metric.Row {
	t.Helper()
	rows := parsePage(t, text, rolesFamilies())
	if len(rows) == 0 {
		t.Fatalf("no rows in:\n%s", text)
	}
	slices.SortStableFunc(rows, func(a, b metric.Row) int { return strings.Compare(a.Family.Name, b.Family.Name) })
	for i := range rows {
		hardwares := strings.HasPrefix(rows[i].Family.Name, "dra_device_") && rows[i].Family.Name != "dra_device_xid_errors_total"
		if rows[i].Family.Type == metric.Counter && !hardwares {
			rows[i].Start = start
		}
	}
	return rows
}

// keeper gives the same labels to rows that say the same, as reducers do.
type keeper map[string]*metric.Labels

func (k keeper) rowsOf(t testing.TB, text string, start time.Time) []metric.Row {
	t.Helper()
	rows := rowsOf(t, text, start)
	for i := range rows {
		var said strings.Builder
		for name, value := range rows[i].Labels.Each {
			fmt.Fprintf(&said, "%q=%q,", name, value)
		}
		if k[said.String()] == nil {
			k[said.String()] = rows[i].Labels
		}
		rows[i].Labels = k[said.String()]
	}
	return rows
}

// semconvText is everything that was made, sorted.
func semconvText(made []metricdata.Metrics) string {
	var lines []string
	for _, m := range made {
		for _, p := range semconvPoints(m) {
			lines = append(lines, pointText(m.Name, p.Attributes, anything, p.Value, p.StartTime)+" ["+semconvKind(m)+" "+m.Unit+"]")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// A page with a GPU, a partition of it, a network adapter and a claim.
func TestSemconvText(t *testing.T) {
	rows := rowsOf(t, gpuInfo+gpuHardware+migInfo+nicInfo+claimFact+energyRow+
		`dra_device_utilization_ratio{`+gpuLabels+`} 0.75
dra_device_engine_active_ratio{`+gpuLabels+`,engine="encoder"} 0.25
dra_device_memory_used_bytes{`+gpuLabels+`} 2e10
dra_device_memory_size_bytes{`+gpuLabels+`} 8e10
dra_device_memory_used_bytes{`+migLabels+`} 1e9
dra_device_power_watts{`+gpuLabels+`} 300
dra_device_power_limit_watts{`+gpuLabels+`} 700
dra_device_energy_joules_total{`+gpuLabels+`} 1000
dra_device_temperature_celsius{`+gpuLabels+`,sensor="memory"} 55
dra_device_pcie_receive_bytes_total{`+gpuLabels+`} 10
dra_device_pcie_transmit_bytes_total{`+gpuLabels+`} 11
dra_device_nvlink_receive_bytes_total{`+gpuLabels+`} 12
dra_device_nvlink_transmit_bytes_total{`+gpuLabels+`} 13
dra_device_nvlink_link_receive_bytes_total{`+gpuLabels+`,link="0",peer="switch"} 12
dra_device_network_receive_bytes_total{`+nicLabels+`} 14
dra_device_network_transmit_bytes_total{`+nicLabels+`} 15
dra_device_network_link_state{`+nicLabels+`,port="1",state="active"} 1
dra_device_network_link_state{`+nicLabels+`,port="1",state="down"} 0
dra_device_network_errors_total{`+nicLabels+`,kind="symbol"} 2
dra_device_xid_errors_total{`+gpuLabels+`,xid="63"} 1
dra_device_xid_errors_total{`+gpuLabels+`,xid="other"} 0
dra_device_ecc_errors_total{`+gpuLabels+`,severity="corrected"} 3
dra_device_pcie_replays_total{`+gpuLabels+`} 4
dra_device_healthy{`+gpuLabels+`,by="hardware"} 1
dra_device_healthy{`+gpuLabels+`,by="driver"} 0
dra_device_healthy{`+nicLabels+`,by="hardware"} 0
dra_device_healthy{`+migLabels+`,by="hardware"} 1
dra_device_health_signal_info{`+gpuLabels+`,signal="xid_63",severity="warning"} 1
dra_device_health_signal_info{`+nicLabels+`,signal="network_link_down",severity="critical"} 1
dra_claim_held{`+claimLabels+`} 1
dra_claim_utilization_ratio{`+claimLabels+`,attribution="exclusive"} 0.75
dra_claim_engine_active_ratio{`+claimLabels+`,attribution="exclusive",engine="encoder"} 0.25
dra_claim_memory_used_bytes{`+claimLabels+`,attribution="exclusive"} 2e10
dra_claim_memory_allocated_bytes{`+claimLabels+`} 8e10
dra_claim_pcie_receive_bytes_total{`+claimLabels+`,attribution="exclusive"} 5
dra_claim_throttled_seconds_total{`+claimLabels+`,attribution="exclusive",reason="thermal"} 2
dra_claim_idle_since_timestamp_seconds{`+claimLabels+`,attribution="exclusive"} 1.7e9
dra_pod_utilization_ratio{node="node-a",namespace="ml",pod="train-0",uuid="GPU-0"} 0.5
dra_namespace_busy_seconds_total{node="node-a",namespace="ml",deviceclass="gpu.nvidia.com",model="NVIDIA H100"} 7
`, semconvTime.Add(-time.Hour))
	made := NewSemConv().Metrics(rows, parseNode(rows), semconvTime)
	checkSemconv(t, rows, made, semconvTime)
	metrictest.CompareGolden(t, "testdata/semconv.txt", semconvText(made))
}

// The state follows the health that the hardware reports, and disappears with it.
func TestSemconvStatus(t *testing.T) {
	naming := NewSemConv()
	state := func(text string) string {
		t.Helper()
		var present []string
		rows := rowsOf(t, gpuInfo+text, time.Time{})
		for _, m := range naming.Metrics(rows, parseNode(rows), semconvTime) {
			for _, p := range semconvPoints(m) {
				if is, _ := p.Attributes.Value(hwState); m.Name == "hw.status" && p.Value == 1 {
					present = append(present, is.AsString())
				}
			}
		}
		return strings.Join(present, " ")
	}
	word := func(by string, value int) string {
		return fmt.Sprintf("dra_device_healthy{%s,by=%q} %d\n", gpuLabels, by, value)
	}
	warning := `dra_device_health_signal_info{` + gpuLabels + `,signal="xid_63",severity="warning"} 1` + "\n"
	for _, step := range []struct{ text, want string }{
		{word("hardware", 1), "ok"},
		{word("hardware", 1) + warning, "degraded"},
		{word("hardware", 0) + warning, "failed"},
		{word("hardware", 1) + word("driver", 0), "ok"},
		{word("driver", 0) + warning, ""},
	} {
		if got := state(step.text); got != step.want {
			t.Errorf("state %q, want %q, with\n%s", got, step.want, step.text)
		}
	}
}

// An account that goes on under another UID must not count again.
func TestSemconvOfARecreatedClaim(t *testing.T) {
	start := semconvTime.Add(-time.Hour)
	naming, labels, turn := NewSemConv(), keeper{}, 0
	energy := func(text string, start time.Time) string {
		t.Helper()
		turn++
		rows := labels.rowsOf(t, text, start)
		for _, m := range naming.Metrics(rows, parseNode(rows), semconvTime.Add(time.Duration(turn)*time.Minute)) {
			if m.Name == "dra.resourceclaim.device.energy" {
				p := semconvPoints(m)[0]
				uid, _ := p.Attributes.Value(ResourceClaimUID)
				return fmt.Sprintf("%s %v %t", uid.AsString(), p.Value, p.StartTime.Equal(start))
			}
		}
		return "nothing"
	}
	again := strings.ReplaceAll(claimFact, "uid-1", "uid-2")
	for i, step := range []struct {
		text  string
		start time.Time
		want  string
	}{
		{claimFact + energyRow, start, "uid-1 900 true"},
		{energyRow, start, "uid-1 900 true"}, // the model has it no longer
		{again + energyRow, start, "uid-2 900 false"},
		{again + energyRow, start, "uid-2 900 false"},
		{again + energyRow, semconvTime.Add(10 * time.Minute), "uid-2 900 true"}, // an account of its own
		{gpuInfo, start, "nothing"},
		{energyRow, start, " 900 true"},
		{claimFact + energyRow, start, "uid-1 900 false"}, // the UID came late
	} {
		if got := energy(step.text, step.start); got != step.want {
			t.Errorf("step %d: %s, want %s", i, got, step.want)
		}
	}
}

// The memory utilization needs both numbers of the same snapshot.
func TestSemconvMemoryUtilization(t *testing.T) {
	naming, labels := NewSemConv(), keeper{}
	used, size := gpuInfo+`dra_device_memory_used_bytes{`+gpuLabels+"} 2\n", `dra_device_memory_size_bytes{`+gpuLabels+"} "
	for _, step := range []struct{ text, want string }{
		{used + size + "8\n", "0.25"}, {used, ""}, {used + size + "0\n", ""}, {gpuInfo + size + "8\n", ""}, {used + size + "4\n", "0.5"},
	} {
		got := ""
		rows := labels.rowsOf(t, step.text, time.Time{})
		for _, m := range naming.Metrics(rows, parseNode(rows), semconvTime) {
			if m.Name == "hw.gpu.memory.utilization" {
				got = fmt.Sprint(semconvPoints(m)[0].Value)
			}
		}
		if got != step.want {
			t.Errorf("%q, want %q, of\n%s", got, step.want, step.text)
		}
	}
}

// What a device is stays known while the model does not have it, and follows the model
// where it changes.
func TestSemconvFactsOfDevices(t *testing.T) {
	naming, labels := NewSemConv(), keeper{}
	facts := func(text string) string {
		t.Helper()
		rows := labels.rowsOf(t, text, time.Time{})
		lines := semconvText(naming.Metrics(rows, parseNode(rows), semconvTime))
		for line := range strings.Lines(lines) {
			if strings.HasPrefix(line, "hw.gpu.memory.limit") || strings.HasPrefix(line, "hw.errors") {
				return line[:strings.Index(line, "}")+1]
			}
		}
		return "nothing"
	}
	size := `dra_device_memory_size_bytes{` + gpuLabels + `} 8e10` + "\n"
	symbol := func(labels string) string {
		return `dra_device_network_errors_total{` + labels + `,kind="symbol"} 2` + "\n"
	}
	untyped := strings.ReplaceAll(nicInfo, "rdma", "simulated")
	for i, step := range []struct{ text, want string }{
		{size, `hw.gpu.memory.limit{hw.id="GPU-0"}`},
		{gpuInfo + size, `hw.gpu.memory.limit{hw.driver_version="580.65.06",hw.id="GPU-0",hw.model="NVIDIA H100",hw.vendor="nvidia"}`},
		{size, `hw.gpu.memory.limit{hw.driver_version="580.65.06",hw.id="GPU-0",hw.model="NVIDIA H100",hw.vendor="nvidia"}`},
		{strings.ReplaceAll(gpuInfo, "580", "590") + size, `hw.gpu.memory.limit{hw.driver_version="590.65.06",hw.id="GPU-0",hw.model="NVIDIA H100",hw.vendor="nvidia"}`},
		{nicInfo + symbol(nicLabels), `hw.errors{error.type="network_symbol",hw.id="node-a/pci-0000:c1:00.0",hw.type="network"}`},
		{migInfo, "nothing"},
		{untyped + symbol(nicLabels), `hw.errors{error.type="network_symbol",hw.id="node-a/pci-0000:c1:00.0"}`},
		{untyped + symbol(nicLabels) + `dra_device_network_link_state{` + nicLabels + `,port="1",state="down"} 1` + "\n", `hw.errors{error.type="network_symbol",hw.id="node-a/pci-0000:c1:00.0",hw.type="network"}`},
	} {
		if got := facts(step.text); got != step.want {
			t.Errorf("step %d: %s\nwant %s", i, got, step.want)
		}
	}
}

// A filter or a limit that leaves out info rows, sizes and signals leaves the facts.
func TestSemconvOfFilteredRows(t *testing.T) {
	rows := rowsOf(t, gpuInfo+gpuHardware+claimFact+energyRow+
		`dra_device_memory_used_bytes{`+gpuLabels+`} 2e10
dra_device_memory_size_bytes{`+gpuLabels+`} 8e10
dra_device_healthy{`+gpuLabels+`,by="hardware"} 1
dra_device_health_signal_info{`+gpuLabels+`,signal="xid_63",severity="warning"} 1
`, time.Time{})
	node := parseNode(rows)
	filtered := slices.DeleteFunc(slices.Clone(rows), func(row metric.Row) bool {
		return strings.HasSuffix(row.Family.Name, "_info") || row.Family.Name == metric.DeviceMemorySizeBytes
	})
	whole := semconvText(NewSemConv().Metrics(rows, node, semconvTime))
	points := 0
	for line := range strings.Lines(semconvText(NewSemConv().Metrics(filtered, node, semconvTime))) {
		if points++; !strings.Contains(whole, line) {
			t.Errorf("without info rows there is %s", line)
		}
	}
	if points != 7 {
		t.Errorf("%d points, want those of energy, memory, health and state", points)
	}
}
