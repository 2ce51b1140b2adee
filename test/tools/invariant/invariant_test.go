package invariant

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// bundled is the number of devices of a bundle.
func bundled(count float64) string {
	return row("dra_claim_bundled_devices", count, "namespace", "ml", "resourceclaim", "a", "uuid", "n/dra.cpu/claim:ml/a")
}

// parsed returns the page of an exposition at its time.
func parsed(t testing.TB, second int, text string) Page {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return FromFamilies(sorted(families), time.Unix(1_700_000_000+int64(second), 0))
}

func sorted(families map[string]*dto.MetricFamily) []*dto.MetricFamily {
	return slices.SortedFunc(maps.Values(families), func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
}

// The page of every case begins with a GPU, an MIG partition of another one,
// and that other one. Two claims share the GPU, one has the partition.
const common = `process_start_time_seconds 7
dra_device_info{node="n",uuid="GPU-0",parent_uuid="",source="nvml"} 1
dra_device_info{node="n",uuid="GPU-1",parent_uuid="",source="nvml"} 1
dra_device_info{node="n",uuid="MIG-a",parent_uuid="GPU-1",source="nvml"} 1
dra_device_info{node="n",uuid="MIG-b",parent_uuid="GPU-1",source="nvml"} 1
dra_device_info{node="n",uuid="n/d/p/x",parent_uuid="",source=""} 1
dra_device_partition_info{node="n",uuid="MIG-a",parent_uuid="GPU-1",gpu_instance_id="1",compute_instance_id="0"} 1
dra_device_partition_info{node="n",uuid="MIG-b",parent_uuid="GPU-1",gpu_instance_id="1",compute_instance_id="1"} 1
dra_claim_held{node="n",namespace="ml",resourceclaim="part",uuid="MIG-a"} 1
dra_claim_held{node="n",namespace="ml",resourceclaim="lost",uuid="n/d/p/x"} 1
dra_device_holders{node="n",uuid="MIG-a",parent_uuid="GPU-1",kind="claim"} 1
dra_device_holders{node="n",uuid="n/d/p/x",parent_uuid="",kind="claim"} 1
`

// row returns a series from its short form: the labels after the name are those
// of a claim on a device, of a device, or of a pod.
func row(family string, value float64, labels ...string) string {
	spelled := []string{`node="n"`}
	for i := 0; i < len(labels); i += 2 {
		spelled = append(spelled, fmt.Sprintf("%s=%q", labels[i], labels[i+1]))
	}
	return fmt.Sprintf("%s{%s} %v\n", family, strings.Join(spelled, ","), value)
}

// claimRow returns a claim's value of a device, by attribution.
func claimRow(quantity string, value float64, claim, uuid, attribution string, more ...string) string {
	labels := append([]string{"namespace", "ml", "resourceclaim", claim, "uuid", uuid, "attribution", attribution}, more...)
	return row(ofClaim+quantity, value, labels...)
}

// deviceRow returns a device's own value.
func deviceRow(quantity string, value float64, uuid string, more ...string) string {
	parent := ""
	if strings.HasPrefix(uuid, "MIG") {
		parent = "GPU-1"
	}
	return row(ofDevice+quantity, value, append([]string{"uuid", uuid, "parent_uuid", parent}, more...)...)
}

func pod(quantity string, value float64, name, uuid string) string {
	return row(ofPod+quantity, value, "namespace", "ml", "pod", name, "uuid", uuid)
}

func held(claim, uuid string) string {
	return row("dra_claim_held", 1, "namespace", "ml", "resourceclaim", claim, "uuid", uuid)
}

func plugins(count float64, uuid string) string {
	return row("dra_device_holders", count, "uuid", uuid, "parent_uuid", "", "kind", "device_plugin")
}

func claims(count float64, uuid string) string {
	return row("dra_device_holders", count, "uuid", uuid, "parent_uuid", "", "kind", "claim")
}

func alone(uuid string) string    { return held("a", uuid) + claims(1, uuid) }
func bothHold(uuid string) string { return held("a", uuid) + held("b", uuid) + claims(2, uuid) }

// seconds returns rows of a claim's held and charged device-seconds.
func seconds(claim, uuid string, held, charged float64) string {
	labels := []string{"namespace", "ml", "resourceclaim", claim, "uuid", uuid}
	return row(heldSeconds, held, labels...) + row(deviceSeconds, charged, labels...)
}

func dropped(family string) string {
	return "dra_exporter_series_dropped_total{family=\"" + family + "\"} 1\n"
}

const resets = "dra_exporter_hardware_resets_total "

// sample is a page, or one page and ten seconds later another, and the words of
// the one violation; none where want is empty.
type sample struct {
	rule, name    string
	before, after string
	want          string
}

func samples() []sample {
	one := func(rule, name, page, want string) sample { return sample{rule, name, "", page, want} }
	return []sample{
		one(UniqueSeries, "labels differ", row("dra_x", 1, "a", "1")+row("dra_x", 1, "a", "2"), ""),
		one(UniqueSeries, "twice", row("dra_x", 1, "a", "1", "b", "2")+row("dra_x", 2, "b", "2", "a", "1"), `dra_x{a="1",b="2",node="n"} is on the page twice, with 1 and with 2`),
		one(UniqueSeries, "of another program", "y 1\ny 1\n", ""),

		one(UniqueInfo, "two claims", row("dra_claim_info", 1, "namespace", "ml", "resourceclaim", "a", "claim_uid", "1")+row("dra_claim_info", 1, "namespace", "ml", "resourceclaim", "b", "claim_uid", "1"), ""),
		one(UniqueInfo, "two lives of a claim", row("dra_claim_info", 1, "namespace", "ml", "resourceclaim", "a", "claim_uid", "1")+row("dra_claim_info", 1, "namespace", "ml", "resourceclaim", "a", "claim_uid", "2"), "dra_claim_info has several rows with the same node, namespace, resourceclaim: n, ml, a"),
		one(UniqueInfo, "two names", deviceRow("published_info", 1, "GPU-0", "device", "a")+deviceRow("published_info", 1, "GPU-0", "device", "b"), "dra_device_published_info has several"),

		one(ValueRange, "all there is", deviceRow("utilization_ratio", 1, "GPU-0")+deviceRow("temperature_celsius", -5, "GPU-0"), ""),
		one(ValueRange, "percent", deviceRow("utilization_ratio", 50, "GPU-0"), "is 50, which is not from 0 to 1"),
		one(ValueRange, "a negative counter", deviceRow("energy_joules_total", -1, "GPU-0"), "is -1, which is impossible for a counter"),
		one(ValueRange, "no number", deviceRow("power_watts", math.NaN(), "GPU-0"), "is NaN, which is not a number"),

		one(HardwareKnown, "held, and no more", seconds("lost", "n/d/p/x", 5, 5)+deviceRow("healthy", 1, "n/d/p/x", "by", "driver")+deviceRow("taint_info", 1, "n/d/p/x")+row("dra_claim_memory_allocated_bytes", 5, "namespace", "ml", "resourceclaim", "lost", "uuid", "n/d/p/x"), ""),
		one(HardwareKnown, "a claim's", claimRow("energy_joules_total", 1, "lost", "n/d/p/x", "exclusive"), "the hardware of n/d/p/x is unknown (its dra_device_info has no source, or is not there), but it has dra_claim_energy_joules_total"),
		one(HardwareKnown, "the device's", deviceRow("temperature_celsius", 1, "n/d/p/x")+deviceRow("power_watts", 1, "n/d/p/x"), "it has dra_device_"),
		one(HardwareKnown, "health", deviceRow("healthy", 1, "n/d/p/x", "by", "hardware"), "it has dra_device_healthy"),
		one(HardwareKnown, "no info at all", deviceRow("temperature_celsius", 1, "GPU-9"), "the hardware of GPU-9 is unknown"),
		one(HardwareKnown, "accrued before", claimRow("energy_joules_total", 1, "a", "GPU-9", "exclusive"), ""),
		one(HardwareKnown, "capped", deviceRow("temperature_celsius", 1, "GPU-9")+dropped("dra_device_info"), ""),

		one(HoldersAgree, "agreed", bothHold("GPU-0"), ""),
		one(HoldersAgree, "a wrong count", held("a", "GPU-0")+claims(2, "GPU-0"), "dra_device_holders counts 2 claims that hold GPU-0, and dra_claim_held has 1"),
		one(HoldersAgree, "no count", held("a", "GPU-0"), "claims hold GPU-0, which has no row of dra_device_holders"),
		one(HoldersAgree, "capped", held("a", "GPU-0")+dropped("dra_device_holders"), ""),

		one(GaugesHeld, "held", alone("GPU-0")+claimRow("power_watts", 1, "a", "GPU-0", "exclusive")+deviceRow("power_watts", 1, "GPU-0"), ""),
		one(GaugesHeld, "not held", claimRow("power_watts", 1, "a", "GPU-0", "exclusive")+deviceRow("power_watts", 1, "GPU-0"), "ml/a has dra_claim_power_watts of GPU-0, which it does not hold"),
		one(GaugesHeld, "a counter", claimRow("energy_joules_total", 1, "a", "GPU-0", "exclusive"), ""),
		one(GaugesHeld, "capped", claimRow("power_watts", 1, "a", "GPU-0", "exclusive")+deviceRow("power_watts", 1, "GPU-0")+dropped("dra_claim_held"), ""),

		one(AloneOnDevice, "two share", bothHold("GPU-0")+claimRow("power_watts", 1, "a", "GPU-0", "shared")+deviceRow("power_watts", 1, "GPU-0"), ""),
		one(AloneOnDevice, "two claims", bothHold("GPU-0")+claimRow("power_watts", 1, "a", "GPU-0", "exclusive")+deviceRow("power_watts", 1, "GPU-0"), "dra_claim_power_watts as exclusive of GPU-0 for ml/a, but 2 claims hold the device: ml/a, ml/b"),
		one(AloneOnDevice, "an attribution of the past", bothHold("GPU-0")+claimRow("energy_joules_total", 1, "a", "GPU-0", "exclusive"), ""),
		one(AloneOnDevice, "a device plugin", alone("GPU-0")+plugins(1, "GPU-0")+claimRow("power_watts", 1, "a", "GPU-0", "exclusive")+deviceRow("power_watts", 1, "GPU-0"), "but pods hold it through a device plugin, too: 1"),
		one(AloneOnDevice, "the parent of a partition", alone("GPU-1")+claimRow("power_watts", 1, "a", "GPU-1", "exclusive")+deviceRow("power_watts", 1, "GPU-1"), "but MIG-a is held too"),
		one(AloneOnDevice, "a partition of a held one", alone("GPU-1")+claimRow("power_watts", 1, "part", "MIG-a", "partition")+deviceRow("power_watts", 1, "MIG-a"), "but GPU-1 is held too"),
		one(AloneOnDevice, "a partition", claimRow("power_watts", 1, "part", "MIG-a", "partition")+deviceRow("power_watts", 1, "MIG-a"), ""),
		one(AloneOnDevice, "a partition as a whole", claimRow("power_watts", 1, "part", "MIG-a", "exclusive")+deviceRow("power_watts", 1, "MIG-a"), `but its parent_uuid is "GPU-1"`),

		one(ProcessSplit, "split", bothHold("GPU-0")+claimRow("utilization_ratio", 0.5, "a", "GPU-0", "process")+deviceRow("utilization_ratio", 0.5, "GPU-0")+deviceRow("unattributed_utilization_ratio", 0, "GPU-0"), ""),
		one(ProcessSplit, "power", bothHold("GPU-0")+claimRow("power_watts", 1, "a", "GPU-0", "process")+deviceRow("power_watts", 1, "GPU-0")+deviceRow("unattributed_power_watts", 0, "GPU-0"), "dra_claim_power_watts of GPU-0 for ml/a is attributed by process, but"),
		one(ProcessSplit, "a partition", claimRow("busy_seconds_total", 1, "part", "MIG-a", "process"), "of the partition MIG-a for ml/part is attributed by process"),
		one(ProcessSplit, "without the rest", bothHold("GPU-0")+claimRow("utilization_ratio", 0.5, "a", "GPU-0", "process")+deviceRow("utilization_ratio", 0.5, "GPU-0")+deviceRow("unattributed_utilization_ratio", 0, "GPU-1"), "the device has no dra_device_unattributed_utilization_ratio"),
		one(ProcessSplit, "the rest is filtered out", bothHold("GPU-0")+claimRow("utilization_ratio", 0.5, "a", "GPU-0", "process")+deviceRow("utilization_ratio", 0.5, "GPU-0"), ""),
		one(ProcessSplit, "pods without the rest", pod("memory_used_bytes", 1, "x", "GPU-0")+deviceRow("unattributed_memory_bytes", 0, "GPU-1"), "the device has no dra_device_unattributed_memory_bytes"),
		one(ProcessSplit, "idle", bothHold("GPU-0")+claimRow("idle_since_timestamp_seconds", 1, "a", "GPU-0", "process"), ""),

		one(DeviceValue, "the same", alone("GPU-0")+claimRow("engine_active_ratio", 0.5, "a", "GPU-0", "exclusive", "engine", "sm")+deviceRow("engine_active_ratio", 0.5, "GPU-0", "engine", "sm")+deviceRow("engine_active_ratio", 0.1, "GPU-0", "engine", "copy"), ""),
		one(DeviceValue, "another", bothHold("GPU-0")+claimRow("power_watts", 1, "a", "GPU-0", "shared")+deviceRow("power_watts", 2, "GPU-0"), "dra_claim_power_watts of GPU-0 is 1 for ml/a (shared), but the device's own is 2"),
		one(DeviceValue, "none", alone("GPU-0")+claimRow("engine_active_ratio", 0.5, "a", "GPU-0", "exclusive", "engine", "sm")+deviceRow("engine_active_ratio", 0.1, "GPU-0", "engine", "copy"), "dra_claim_engine_active_ratio (engine=sm) of GPU-0 has a value for ml/a, but the device has no"),
		one(DeviceValue, "capped", alone("GPU-0")+claimRow("power_watts", 1, "a", "GPU-0", "exclusive")+dropped("dra_device_power_watts"), ""),

		one(ClaimsWithinDevice, "a split", bothHold("GPU-0")+claimRow("memory_used_bytes", 1, "a", "GPU-0", "process")+claimRow("memory_used_bytes", 2, "b", "GPU-0", "process")+deviceRow("unattributed_memory_bytes", 1, "GPU-0")+deviceRow("memory_used_bytes", 4, "GPU-0"), ""),
		one(ClaimsWithinDevice, "more than there is", bothHold("GPU-0")+claimRow("memory_used_bytes", 2, "a", "GPU-0", "process")+claimRow("memory_used_bytes", 2, "b", "GPU-0", "process")+deviceRow("unattributed_memory_bytes", 1, "GPU-0")+deviceRow("memory_used_bytes", 4, "GPU-0"), "the claims of GPU-0 have 5 of dra_device_memory_used_bytes, which is 4: ml/a 2 (process), ml/b 2 (process), and 1 is unattributed"),
		one(ClaimsWithinDevice, "shared twice", bothHold("GPU-0")+claimRow("power_watts", 5, "a", "GPU-0", "shared")+claimRow("power_watts", 5, "b", "GPU-0", "shared")+deviceRow("power_watts", 5, "GPU-0"), ""),
		one(ClaimsWithinDevice, "unattributed part beside an exclusive claim", alone("GPU-0")+claimRow("memory_used_bytes", 4, "a", "GPU-0", "exclusive")+deviceRow("unattributed_memory_bytes", 1, "GPU-0")+deviceRow("memory_used_bytes", 4, "GPU-0"), ""),
		one(ClaimsWithinDevice, "unattributed part above the device's value", deviceRow("unattributed_memory_bytes", 5, "GPU-0")+deviceRow("memory_used_bytes", 4, "GPU-0"), "have 5 of dra_device_memory_used_bytes, which is 4: none of it for a claim, and 5 is unattributed"),
		one(ClaimsWithinDevice, "float noise", alone("GPU-0")+claimRow("busy_seconds_total", 0.30000000000000004, "a", "GPU-0", "exclusive")+deviceRow("busy_seconds_total", 0.3, "GPU-0"), ""),
		one(ClaimsWithinDevice, "busy for longer", claimRow("busy_seconds_total", 8, "a", "GPU-0", "exclusive")+claimRow("busy_seconds_total", 3, "a", "GPU-0", "process")+deviceRow("busy_seconds_total", 10, "GPU-0"), "the claims of GPU-0 have 11 of dra_device_busy_seconds_total, which is 10"),
		one(ClaimsWithinDevice, "hardware's counters began elsewhere", claimRow("energy_joules_total", 8, "a", "GPU-0", "exclusive")+deviceRow("energy_joules_total", 1, "GPU-0"), ""),

		one(PodsWithinDevice, "pods", pod("memory_used_bytes", 1, "x", "GPU-0")+pod("memory_used_bytes", 2, "y", "GPU-0")+deviceRow("unattributed_memory_bytes", 1, "GPU-0")+deviceRow("memory_used_bytes", 4, "GPU-0"), ""),
		one(PodsWithinDevice, "more", pod("memory_used_bytes", 2, "x", "GPU-0")+pod("memory_used_bytes", 2, "y", "GPU-0")+deviceRow("unattributed_memory_bytes", 1, "GPU-0")+deviceRow("memory_used_bytes", 4, "GPU-0"), "the pods of GPU-0 have 5 of dra_device_memory_used_bytes, which is 4: ml/x 2, ml/y 2, and 1 is unattributed"),

		one(PartsWithinParent, "one instance's memory, shown twice", deviceRow("memory_used_bytes", 3, "MIG-a")+deviceRow("memory_used_bytes", 3, "MIG-b")+deviceRow("memory_used_bytes", 4, "GPU-1"), ""),
		one(PartsWithinParent, "more", deviceRow("memory_size_bytes", 5, "MIG-a")+deviceRow("memory_size_bytes", 4, "GPU-1"), "the partitions of GPU-1 have 5 of its dra_device_memory_size_bytes, which is 4"),
		one(PartsWithinParent, "shares of time", deviceRow("utilization_ratio", 1, "MIG-a")+deviceRow("utilization_ratio", 0.2, "GPU-1"), ""),
		one(PartsWithinParent, "one instance's memory, given to two claims", held("other", "MIG-b")+claims(1, "MIG-b")+claimRow("memory_used_bytes", 3, "part", "MIG-a", "partition")+claimRow("memory_used_bytes", 3, "other", "MIG-b", "partition")+deviceRow("memory_used_bytes", 3, "MIG-a")+deviceRow("memory_used_bytes", 3, "MIG-b")+deviceRow("memory_used_bytes", 4, "GPU-1"), "the claims of GPU-1 and of its partitions have 6 of its dra_device_memory_used_bytes, which is 4: ml/part 3 (partition), ml/other 3 (partition)"),

		one(ShareOfHold, "a share", seconds("a", "GPU-0", 10, 5), ""),
		one(ShareOfHold, "more than all", seconds("a", "GPU-0", 10, 10.1), "ml/a is charged 10.1 device-seconds of GPU-0, and held it for 10 s"),

		one(ShareOfHold, "a bundle", seconds("a", "n/dra.cpu/claim:ml/a", 10, 640), ""),

		{CountersRise, "risen", seconds("lost", "n/d/p/x", 5, 5), seconds("lost", "n/d/p/x", 15, 15), ""},
		{CountersRise, "fallen", row("dra_namespace_device_seconds_total", 5), row("dra_namespace_device_seconds_total", 4), `dra_namespace_device_seconds_total{node="n"} fell from 5 to 4`},
		{CountersRise, "another process", row("dra_namespace_device_seconds_total", 5), "process_start_time_seconds 8\n" + row("dra_namespace_device_seconds_total", 4), ""},
		{CountersRise, "a claim of the past that came back", seconds("a", "GPU-0", 50, 50), alone("GPU-0") + seconds("a", "GPU-0", 1, 1), ""},
		{CountersRise, "a claim that holds", seconds("lost", "n/d/p/x", 50, 50), seconds("lost", "n/d/p/x", 1, 1), `dra_claim_device_seconds_total{namespace="ml",node="n",resourceclaim="lost",uuid="n/d/p/x"} fell from 50 to 1`},
		{CountersRise, "hardware's own", deviceRow("energy_joules_total", 5, "GPU-0"), deviceRow("energy_joules_total", 1, "GPU-0"), ""},

		{GrowthWithinDevice, "grown", claimRow("energy_joules_total", 5, "a", "GPU-0", "exclusive") + deviceRow("energy_joules_total", 1e6, "GPU-0"), claimRow("energy_joules_total", 15, "a", "GPU-0", "exclusive") + deviceRow("energy_joules_total", 1e6+10, "GPU-0"), ""},
		{GrowthWithinDevice, "counted for two", claimRow("energy_joules_total", 5, "a", "GPU-0", "exclusive") + deviceRow("energy_joules_total", 1e6, "GPU-0"), claimRow("energy_joules_total", 15, "a", "GPU-0", "exclusive") + claimRow("energy_joules_total", 10, "b", "GPU-0", "exclusive") + deviceRow("energy_joules_total", 1e6+10, "GPU-0"), "the claims of GPU-0 accrued 20 of dra_device_energy_joules_total, which grew by 10: ml/a 10 (exclusive), ml/b 10 (exclusive)"},
		{GrowthWithinDevice, "shared twice", claimRow("energy_joules_total", 5, "a", "GPU-0", "shared") + deviceRow("energy_joules_total", 1e6, "GPU-0"), claimRow("energy_joules_total", 15, "a", "GPU-0", "shared") + claimRow("energy_joules_total", 10, "b", "GPU-0", "shared") + deviceRow("energy_joules_total", 1e6+10, "GPU-0"), ""},
		{GrowthWithinDevice, "a reset", resets + "0\n" + claimRow("energy_joules_total", 5, "a", "GPU-0", "exclusive") + deviceRow("energy_joules_total", 10, "GPU-0"), resets + "1\n" + claimRow("energy_joules_total", 25, "a", "GPU-0", "exclusive") + deviceRow("energy_joules_total", 20, "GPU-0"), ""},
		{GrowthWithinDevice, "slowed down, by reason", claimRow("throttled_seconds_total", 1, "a", "GPU-0", "exclusive", "reason", "heat") + deviceRow("throttled_seconds_total", 1, "GPU-0", "reason", "heat"), claimRow("throttled_seconds_total", 3, "a", "GPU-0", "exclusive", "reason", "heat") + deviceRow("throttled_seconds_total", 2, "GPU-0", "reason", "heat"), "dra_device_throttled_seconds_total (reason=heat), which grew by 1"},

		{DeviceTime, "halves", seconds("a", "GPU-0", 5, 5) + seconds("b", "GPU-0", 5, 5), seconds("a", "GPU-0", 15, 10) + seconds("b", "GPU-0", 15, 10), ""},
		{DeviceTime, "twice", seconds("a", "GPU-0", 5, 5) + seconds("b", "GPU-0", 5, 5), seconds("a", "GPU-0", 15, 15) + seconds("b", "GPU-0", 15, 15), "claims are charged 20.000 device-seconds of GPU-0 in 10.000 s: ml/a 10.000, ml/b 10.000"},
		{DeviceTime, "a bundle", bundled(4) + seconds("a", "n/dra.cpu/claim:ml/a", 5, 20), bundled(4) + seconds("a", "n/dra.cpu/claim:ml/a", 15, 60), ""},
		{DeviceTime, "a bundle, charged twice", bundled(2) + seconds("a", "n/dra.cpu/claim:ml/a", 5, 20), bundled(2) + seconds("a", "n/dra.cpu/claim:ml/a", 15, 60), "claims are charged 40.000 device-seconds of n/dra.cpu/claim:ml/a in 10.000 s: ml/a 40.000"},
		{DeviceTime, "a bundle of the past", "", seconds("a", "n/dra.cpu/claim:ml/a", 15, 60), ""},
		{DeviceTime, "one after the other", seconds("a", "GPU-0", 5, 5), seconds("a", "GPU-0", 9, 9) + seconds("b", "GPU-0", 6, 6), ""},
		{DeviceTime, "held for longer", seconds("a", "GPU-0", 5, 5), seconds("a", "GPU-0", 31, 6), "ml/a held GPU-0 for 26.000 s in 10.000 s"},
		{DeviceTime, "by the page's own time", bothHold("GPU-0") + seconds("a", "GPU-0", 5, 5) + seconds("b", "GPU-0", 0, 0), bothHold("GPU-0") + seconds("a", "GPU-0", 9, 9) + seconds("b", "GPU-0", 4, 2), "claims that held GPU-0 for the same 4.000 s are charged 6.000 device-seconds: ml/a 4.000, ml/b 2.000"},
	}
}

func (s sample) violations(t testing.TB) []Violation {
	if s.before == "" {
		return Check(parsed(t, 10, common+s.after))
	}
	start := common
	if strings.Contains(s.after, processStart) {
		start = strings.SplitAfterN(common, "\n", 2)[1]
	}
	return Compare(parsed(t, 0, common+s.before), parsed(t, 10, start+s.after))
}

// TestRules checks that each rule has a page that satisfies it, and one that violates
// only this rule.
func TestRules(t *testing.T) {
	broken, kept := map[string]bool{}, map[string]bool{}
	for _, s := range samples() {
		t.Run(s.rule+"/"+s.name, func(t *testing.T) {
			var of, others []Violation
			for _, v := range s.violations(t) {
				if v.Rule == s.rule {
					of = append(of, v)
				} else {
					others = append(others, v)
				}
			}
			switch {
			case s.want == "" && len(of) > 0:
				t.Errorf("broken: %v", of)
			case s.want != "" && (len(of) == 0 || !strings.Contains(of[0].Text, s.want)):
				t.Errorf("broken: %v\nwant: %s", of, s.want)
			case s.want == "" && len(others) > 0 && !s.breaksOther():
				t.Errorf("other rules: %v", others)
			}
		})
		broken[s.rule] = broken[s.rule] || s.want != ""
		kept[s.rule] = kept[s.rule] || s.want == ""
	}
	for _, rule := range Rules() {
		if !broken[rule.Name] || !kept[rule.Name] {
			t.Errorf("%s has no page that breaks it, or none that fulfils it", rule.Name)
		}
		if delete(broken, rule.Name); strings.HasSuffix(rule.Text, ".") {
			t.Errorf("%s has a full stop", rule.Name)
		}
	}
	if len(broken) > 0 {
		t.Errorf("there are no rules %v", slices.Collect(maps.Keys(broken)))
	}
}

// breaksOther reports whether the page fulfils its rule and breaks another:
// such pages show the boundary between rules.
func (s sample) breaksOther() bool {
	return slices.Contains([]string{
		PartsWithinParent + "/shares of time",
	}, s.rule+"/"+s.name)
}

// TestSlack checks pages that are older than the time of their reading.
func TestSlack(t *testing.T) {
	before := parsed(t, 0, common+seconds("a", "GPU-0", 5, 5))
	after := parsed(t, 10, common+seconds("a", "GPU-0", 36, 36))
	if len(Compare(before, after)) == 0 {
		t.Error("31 seconds in 10")
	}
	before.Slack = 6 * time.Second
	if found := Compare(before, after); len(found) > 0 {
		t.Errorf("with six seconds of slack: %v", found)
	}
}

// TestBounds checks the bounds of violations.
func TestBounds(t *testing.T) {
	var text strings.Builder
	long := strings.Repeat("a", 5000)
	for i := range 3000 {
		text.WriteString(row("dra_claim_power_watts", 1, "namespace", long, "resourceclaim", fmt.Sprint(i), "uuid", "GPU-0", "attribution", "exclusive"))
		text.WriteString(row("dra_claim_held", 1, "namespace", long, "resourceclaim", fmt.Sprint(i), "uuid", "GPU-0"))
		text.WriteString(deviceRow("utilization_ratio", 7, fmt.Sprintf("GPU-%d-%s", i, long)))
	}
	found := Check(parsed(t, 0, common+text.String()))
	of := map[string]int{}
	for _, v := range found {
		of[v.Rule]++
		if size := len(v.String()) + len(strings.Join(v.Claims, "")); size > 5000 || len(v.Claims) > maxNames {
			t.Errorf("%d bytes, %d claims: %.100s", size, len(v.Claims), v)
		}
		if v.More > 0 && !strings.Contains(v.String(), "more of this rule") {
			t.Errorf("the number of omitted violations is missing: %s", v)
		}
	}
	for rule, times := range of {
		if times > maxReturned {
			t.Errorf("%s %d times", rule, times)
		}
	}
	if of[ValueRange] != maxReturned || of[AloneOnDevice] != 1 {
		t.Errorf("found %v", of)
	}
}

// TestOrder checks that the order of violations does not depend on that of a map.
func TestOrder(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		text.WriteString(deviceRow("temperature_celsius", 1, fmt.Sprintf("GPU-%02d", 50-i)))
	}
	page := parsed(t, 0, common+text.String())
	first := Check(page)
	if len(first) != maxReturned || first[0].Device != "GPU-31" || first[maxReturned-1].More != 15 {
		t.Errorf("found %v", first)
	}
	for range 10 {
		if found := Check(page); fmt.Sprint(found) != fmt.Sprint(first) {
			t.Fatalf("another order: %v", found)
		}
	}
}

func TestWatch(t *testing.T) {
	var watch Watch
	for i, text := range []string{"5", "6", "4"} {
		found := watch.Next(parsed(t, i, common+"dra_x_total "+text+"\n"))
		if broken := len(found) > 0; broken != (i == 2) {
			t.Errorf("page %d: %v", i, found)
		}
	}
}

// TestFromRows checks that rows and their exposition are the same page.
func TestFromRows(t *testing.T) {
	info := &metric.Family{Name: "dra_device_info", Labels: []string{"node", "uuid", "parent_uuid", "source"}}
	family := &metric.Family{Name: "dra_device_utilization_ratio", Labels: []string{"node", "uuid", "parent_uuid"}}
	rows := []metric.Row{
		{Family: info, Labels: metric.NewLabels(info.Labels, "n", "GPU-0", "", "nvml"), Value: 1},
		{Family: family, Labels: metric.NewLabels(family.Labels, "n", "GPU-0", ""), Value: 2},
	}
	families, err := metric.NewPage(rows).Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []Page{FromRows(rows, time.Time{}), FromFamilies(families, time.Time{})} {
		if found := Check(page); len(found) != 1 || found[0].Rule != ValueRange || found[0].Device != "GPU-0" || found[0].Node != "n" {
			t.Errorf("found %v", found)
		}
	}
}

// FuzzCheck checks that invalid pages cause no panic and a bounded number of violations.
func FuzzCheck(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.before, s.after)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		pages := make([]Page, 0, 2)
		for i, text := range []string{before, after} {
			parser := expfmt.NewTextParser(model.UTF8Validation)
			families, err := parser.TextToMetricFamilies(strings.NewReader(common + text))
			if err != nil {
				return
			}
			pages = append(pages, FromFamilies(sorted(families), time.Unix(int64(i), 0)))
		}
		found := append(Check(pages...), Compare(pages[0], pages[1])...)
		if len(found) > 3*maxReturned*len(Rules()) {
			t.Errorf("%d violations", len(found))
		}
	})
}
