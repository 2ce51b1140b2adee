//go:build cgo

package stubs_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-dcgm/pkg/dcgm"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// childVariable is set in the process that a test's body runs in: the binding
// finds its library by LD_LIBRARY_PATH, which is read when a process starts,
// and it keeps one connection in package-level state.
const childVariable = "DRA_STUB_DCGM_CHILD"

// inChild runs a test again in a separate process that finds the stub
// libdcgm.so.4, and reports whether this is that process.
func inChild(t *testing.T) (libraries stubs.Libraries, child bool) {
	t.Helper()
	libraries = stubs.Build(t)
	if os.Getenv(childVariable) != "" {
		return libraries, true
	}
	path := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run", path, "-test.v", "-test.timeout=120s")
	command.Env = append(os.Environ(), childVariable+"=1", "LD_LIBRARY_PATH="+libraries.Dir)
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS: "+t.Name()) {
		t.Fatalf("the test's process: %v\n%s", err, output)
	}
	return libraries, false
}

// use makes a node's GPUs those of this process.
func use(t *testing.T, node *stubs.Node) {
	t.Helper()
	for _, variable := range node.Env() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
}

// start connects the binding; the address is empty for an embedded engine.
func start(t *testing.T, address string) {
	t.Helper()
	if err := connect(address); err != nil {
		t.Fatalf("connect to %q: %v", address, err)
	}
	t.Cleanup(func() { _ = dcgm.Shutdown() })
}

func connect(address string) error {
	var err error
	path, unix := strings.CutPrefix(address, "unix://")
	switch {
	case address == "":
		_, err = dcgm.Init(dcgm.Embedded)
	case unix:
		_, err = dcgm.Init(dcgm.Standalone, path, "1")
	default:
		_, err = dcgm.Init(dcgm.Standalone, address, "0")
	}
	return err
}

// eventually waits until a condition holds, however long it takes.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

func gpu(id uint) dcgm.GroupEntityPair {
	return dcgm.GroupEntityPair{EntityGroupId: dcgm.FE_GPU, EntityId: id}
}

// watch watches fields of entities every few milliseconds.
func watch(t *testing.T, name string, entities []dcgm.GroupEntityPair, fields ...dcgm.Short) (dcgm.GroupHandle, dcgm.FieldHandle) {
	t.Helper()
	group, err := dcgm.CreateGroup(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, entity := range entities {
		if err := dcgm.AddEntityToGroup(group, entity.EntityGroupId, entity.EntityId); err != nil {
			t.Fatal(err)
		}
	}
	fieldGroup, err := dcgm.FieldGroupCreate(name, fields)
	if err != nil {
		t.Fatal(err)
	}
	if err := dcgm.WatchFieldsWithGroupEx(fieldGroup, group, 5000, 0, 1); err != nil {
		t.Fatal(err)
	}
	return group, fieldGroup
}

// latest is the last value of one field.
func latest(t *testing.T, entity dcgm.GroupEntityPair, field dcgm.Short) dcgm.FieldValue_v2 {
	t.Helper()
	values, err := dcgm.EntitiesGetLatestValues([]dcgm.GroupEntityPair{entity}, []dcgm.Short{field}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if value := values[0]; value.FieldID != field || value.EntityID != entity.EntityId || value.EntityGroupId != entity.EntityGroupId {
		t.Fatalf("asked for field %d of %+v, got %d of %d/%d", field, entity, value.FieldID, value.EntityGroupId, value.EntityID)
	}
	return values[0]
}

// What DCGM returns if there is no value: these, or a little more.
const (
	integerBlank = dcgm.DCGM_FT_INT64_BLANK
	doubleBlank  = 140737488355328.0
)

// spell is a value as tables have it: its number or text, blank, or its status.
func spell(value dcgm.FieldValue_v2) string {
	switch {
	case value.Status != 0:
		return fmt.Sprintf("status %d", value.Status)
	case value.FieldType == dcgm.DCGM_FT_STRING:
		return value.String()
	case value.FieldType == dcgm.DCGM_FT_DOUBLE && value.Float64() >= doubleBlank:
		return fmt.Sprintf("blank %g", value.Float64()-doubleBlank)
	case value.FieldType == dcgm.DCGM_FT_DOUBLE:
		return fmt.Sprintf("%g", value.Float64())
	case value.Int64() >= integerBlank:
		return fmt.Sprintf("blank %d", value.Int64()-integerBlank)
	default:
		return fmt.Sprint(value.Int64())
	}
}

func expect(t *testing.T, entity dcgm.GroupEntityPair, field dcgm.Short, want string) {
	t.Helper()
	if got := spell(latest(t, entity, field)); got != want {
		t.Errorf("field %d of %v/%d is %s, want %s", field, entity.EntityGroupId, entity.EntityId, got, want)
	}
}

// TestDCGMValues reads the same values from embedded and remote engines, in the
// units of the real library.
func TestDCGMValues(t *testing.T) {
	for name, address := range map[string]string{"embedded": "", "tcp": "127.0.0.1:0", "unix": "unix://"} {
		t.Run(name, func(t *testing.T) {
			libraries, child := inChild(t)
			if !child {
				return
			}
			node := stubs.NewNode(t, 2)
			node.Set(1, "power.draw", "412.5")
			node.Set(1, "energy", "1234.567")
			node.Set(1, "memory.used", "1073741824")
			node.Set(1, "ecc.corrected", "7")
			node.Set(1, "clocks_event_reasons", "0x48")
			node.Set(1, "nvlink.3.errors.crc_flit", "5")
			node.Set(1, "nvlink.4.errors.crc_flit", "6")
			node.Set(1, "uuid", "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")
			node.Set(1, "fabric.status", "17")
			use(t, node)
			if address == "unix://" {
				address += filepath.Join(t.TempDir(), "engine")
			}
			if address != "" {
				address = node.StartHostEngine(t, libraries, address).Address
			}
			start(t, address)

			wants := map[dcgm.Short]string{
				1: "580.65.06", 50: "NVIDIA H100 80GB HBM3", 54: "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee",
				63: "589824", 67: "0", 100: "345", 112: "72", 150: "32", 155: "412.5", 156: "1234567", 160: "700",
				170: "4", 171: "17", 202: "0", 203: "0", 250: "81559", 251: "79912", 252: "1024", 253: "623", 312: "7", 393: "0",
				409: "11", 191: "blank 2", 200: "blank 2", 390: "blank 2", 1201: "blank 2", 1523: "0", 1603: "345000000",
				230: "status -14",
			}
			fields := make([]dcgm.Short, 0, len(wants))
			for field := range wants {
				fields = append(fields, field)
			}
			watch(t, "values", []dcgm.GroupEntityPair{gpu(0), gpu(1)}, fields...)
			for field, want := range wants {
				expect(t, gpu(1), field, want)
			}
			expect(t, gpu(0), 155, "70.5")
			expect(t, gpu(1), 151, "status -16")  // not watched
			expect(t, gpu(1), 9999, "status -13") // there is none
			if value := latest(t, gpu(1), 151); value.FieldType != dcgm.DCGM_FT_INT64 || value.Int64() != 0 || value.TS != 0 {
				t.Errorf("an error is reported as %+v, want an integer of zero without a time", value.FieldType)
			}
			expectLive(t, gpu(1), 151, "95")
			expectLive(t, gpu(5), 155, "status -1")
		})
	}
}

func expectLive(t *testing.T, entity dcgm.GroupEntityPair, field dcgm.Short, want string) {
	t.Helper()
	values, err := dcgm.EntitiesGetLatestValues([]dcgm.GroupEntityPair{entity}, []dcgm.Short{field}, dcgm.DCGM_FV_FLAG_LIVE_DATA)
	if err != nil {
		t.Fatal(err)
	}
	if got := spell(values[0]); got != want {
		t.Errorf("field %d is %s live, want %s", field, got, want)
	}
}

// TestDCGMFollowsTheScript changes values, and how they go wrong, under a
// watch.
func TestDCGMFollowsTheScript(t *testing.T) {
	if _, child := inChild(t); !child {
		return
	}
	node := stubs.NewNode(t, 1)
	use(t, node)
	start(t, "")
	watch(t, "script", []dcgm.GroupEntityPair{gpu(0)}, 150, 155, 54)
	becomes := func(field dcgm.Short, want string) {
		t.Helper()
		eventually(t, fmt.Sprintf("field %d is %s", field, want), func() bool { return spell(latest(t, gpu(0), field)) == want })
	}
	node.Set(0, "temperature.gpu", "66")
	becomes(150, "66")
	before := latest(t, gpu(0), 150).TS
	eventually(t, "a later sample", func() bool { return latest(t, gpu(0), 150).TS > before })

	node.Set(0, "temperature.gpu", "none")
	becomes(150, "blank 2")
	node.Set(0, "dcgm.field.150", "99")
	becomes(150, "99")
	node.Set(0, "dcgm.field.155", "12.25")
	becomes(155, "12.25")
	node.Set(0, "dcgm.field.155", "blank")
	becomes(155, "blank 0")
	node.Set(0, "dcgm.field.54", "blank")
	becomes(54, "<<<NULL>>>")
	node.Set(0, "dcgm.field.150", "status:GPU_IS_LOST")
	becomes(150, "status -18")
	node.Set(0, "dcgm.field.150", "status:-19")
	becomes(150, "status -19")
	node.Unset(0, "dcgm.field.150")
	node.Set(0, "temperature.gpu", "44")
	becomes(150, "44")
}

// TestDCGMRates: values that are averages in the real library are averages
// here, and blank before there are two samples.
func TestDCGMRates(t *testing.T) {
	if _, child := inChild(t); !child {
		return
	}
	node := stubs.NewNode(t, 1)
	node.Set(0, "pcie.tx_bytes", "5000+3000000000/s")
	node.Set(0, "nvlink.tx_bytes", "0+7000000000/s")
	node.Set(0, "nvlink.rx_bytes", "0+2000000000/s")
	node.Set(0, "profiling.sm", "0.75")
	use(t, node)
	start(t, "")
	group, err := dcgm.NewDefaultGroup("rates")
	if err != nil {
		t.Fatal(err)
	}
	fields, err := dcgm.FieldGroupCreate("rates", []dcgm.Short{449, 1002, 1009, 1011, 1012})
	if err != nil {
		t.Fatal(err)
	}
	if err := dcgm.WatchFieldsWithGroupEx(fields, group, 300_000, 0, 1); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[dcgm.Short]string{449: "status -14", 1002: "blank 0", 1009: "blank 0", 1011: "blank 0"} {
		expect(t, gpu(0), field, want)
	}
	eventually(t, "a second sample", func() bool { return spell(latest(t, gpu(0), 1002)) == "0.75" })
	for field, want := range map[dcgm.Short]float64{449: 9000, 1009: 3e9, 1011: 7e9, 1012: 2e9} {
		value := latest(t, gpu(0), field)
		if got := float64(value.Int64()); value.FieldType != dcgm.DCGM_FT_INT64 || math.Abs(got-want) > want/20 {
			t.Errorf("field %d is %g of type %c, want an integer of about %g", field, got, rune(value.FieldType), want)
		}
	}
}

// partitions are the entities of MIG instances, by kind and instances.
func partitions(t *testing.T) map[string]dcgm.MigHierarchyInfo_v2 {
	t.Helper()
	hierarchy, err := dcgm.GetGPUInstanceHierarchy()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]dcgm.MigHierarchyInfo_v2{}
	for _, entry := range hierarchy.EntityList[:hierarchy.Count] {
		found[fmt.Sprintf("%d/%d/%d", entry.Info.NvmlGpuIndex, entry.Info.NvmlInstanceId, int32(uint32(entry.Info.NvmlComputeInstanceId)))] = entry
	}
	return found
}

// TestDCGMPartitions: partitions have memory and activity of their own, and
// their parent's values of the rest.
func TestDCGMPartitions(t *testing.T) {
	libraries, child := inChild(t)
	if !child {
		return
	}
	node := stubs.NewNode(t, 2)
	node.Set(1, "uuid", "GPU-1")
	small, ci := node.CreateMIG(1, "1g.10gb", -1)
	large, _ := node.CreateMIG(1, "3g.40gb", -1)
	node.Set(1, fmt.Sprintf("mig.%d.memory.used", large), "2147483648")
	node.Set(1, fmt.Sprintf("mig.%d.profiling.sm", large), "0.5")
	node.Set(1, fmt.Sprintf("mig.%d.profiling.dram", large), "0.25")
	node.Set(1, "profiling.sm", "0.125")
	node.Set(1, "power.draw", "333")
	engine := node.StartHostEngine(t, libraries, "")
	start(t, engine.Address)

	found := partitions(t)
	if len(found) != 4 {
		t.Fatalf("%d entities of partitions, want 4: %+v", len(found), found)
	}
	instance, compute := found[fmt.Sprintf("1/%d/-1", large)], found[fmt.Sprintf("1/%d/0", large)]
	if instance.Entity.EntityGroupId != dcgm.FE_GPU_I || instance.Parent != gpu(1) || instance.Info.NvmlMigProfileId != 9 ||
		instance.Info.NvmlProfileSlices != 3 || instance.Info.GpuUuid != "GPU-1" {
		t.Errorf("the GPU instance is %+v", instance)
	}
	if compute.Entity.EntityGroupId != dcgm.FE_GPU_CI || compute.Parent != instance.Entity || compute.Info.NvmlProfileSlices != 3 {
		t.Errorf("the compute instance is %+v", compute)
	}

	watch(t, "partitions", []dcgm.GroupEntityPair{gpu(1), instance.Entity, compute.Entity},
		50, 54, 68, 155, 250, 252, 1002, 1005, 1009, 230)
	eventually(t, "two samples", func() bool { return spell(latest(t, compute.Entity, 1002)) == "0.5" })
	for field, want := range map[dcgm.Short]string{
		50: "NVIDIA H100 80GB HBM3 MIG 3g.40gb", 68: fmt.Sprintf("MIG-GPU-1/%d/0", large), 155: "333", 250: "40448", 252: "2048",
		1005: "status -14", 1009: "status -14",
	} {
		expect(t, compute.Entity, field, want)
	}
	expect(t, instance.Entity, 1005, "0.25")
	expect(t, instance.Entity, 155, "333")
	expect(t, gpu(1), 1002, "0.125")
	if uuid := spell(latest(t, compute.Entity, 54)); !strings.HasPrefix(uuid, "MIG-") || uuid != spell(latest(t, instance.Entity, 54)) {
		t.Errorf("the UUID of a MIG device is %q", uuid)
	}

	node.SetNode("dcgm.event_interval_ms", "1")
	node.XIDOn(1, large, 0, 31)
	eventually(t, "the XID of the compute instance", func() bool { return spell(latest(t, compute.Entity, 230)) == "31" })
	expect(t, gpu(1), 230, "status -14")
	expect(t, instance.Entity, 230, "status -14")

	// Ids are places in a list: the first goes, the second takes its id, and no
	// sample of the first is returned for the second.
	if left := found[fmt.Sprintf("1/%d/%d", small, ci)]; left.Entity.EntityId != compute.Entity.EntityId+1 {
		t.Fatalf("the small compute instance is %+v, the large one %+v", left.Entity, compute.Entity)
	}
	node.DestroyMIG(1, large)
	if len(partitions(t)) != 2 {
		t.Fatalf("partitions that are left: %+v", partitions(t))
	}
	if moved := partitions(t)[fmt.Sprintf("1/%d/%d", small, ci)]; moved.Entity != compute.Entity {
		t.Errorf("the compute instance that is left is entity %+v, want %+v", moved.Entity, compute.Entity)
	}
	eventually(t, "the memory of the one that is left", func() bool { return spell(latest(t, compute.Entity, 250)) == "9984" })
	expect(t, compute.Entity, 230, "status -14")
	node.DestroyMIG(1, small)
	eventually(t, "nothing of an entity that is gone", func() bool { return spell(latest(t, compute.Entity, 250)) == "status -14" })
}

// TestDCGMXID: an error is a sample at the time of its report, and only of a
// GPU that is watched.
func TestDCGMXID(t *testing.T) {
	if _, child := inChild(t); !child {
		return
	}
	node := stubs.NewNode(t, 2)
	node.SetNode("dcgm.event_interval_ms", "1")
	node.XID(0, 48) // before the engine
	use(t, node)
	start(t, "")
	watch(t, "xids", []dcgm.GroupEntityPair{gpu(0)}, 230)
	expect(t, gpu(0), 230, "status -14")
	started := time.Now().UnixMicro()
	node.XID(1, 94)
	node.XID(0, 79)
	eventually(t, "XID 79", func() bool { return spell(latest(t, gpu(0), 230)) == "79" })
	first := latest(t, gpu(0), 230).TS
	if first < started {
		t.Errorf("it happened at %d, before %d", first, started)
	}
	node.XID(0, 79)
	eventually(t, "XID 79 again", func() bool { return latest(t, gpu(0), 230).TS > first })
	expect(t, gpu(1), 230, "status -16")
}

// TestDCGMHealth: incidents of the systems that are watched, as long as they
// last.
func TestDCGMHealth(t *testing.T) {
	if _, child := inChild(t); !child {
		return
	}
	node := stubs.NewNode(t, 2)
	use(t, node)
	start(t, "")
	group, err := dcgm.NewDefaultGroup("health")
	if err != nil {
		t.Fatal(err)
	}
	if err := dcgm.HealthSet(group, dcgm.DCGM_HEALTH_WATCH_MEM|dcgm.DCGM_HEALTH_WATCH_THERMAL); err != nil {
		t.Fatal(err)
	}
	if systems, err := dcgm.HealthGet(group); err != nil || systems != dcgm.DCGM_HEALTH_WATCH_MEM|dcgm.DCGM_HEALTH_WATCH_THERMAL {
		t.Errorf("watched systems are %x, %v", systems, err)
	}
	check := func() dcgm.HealthResponse {
		t.Helper()
		response, err := dcgm.HealthCheck(group)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	if response := check(); response.OverallHealth != dcgm.DCGM_HEALTH_RESULT_PASS || len(response.Incidents) != 0 {
		t.Errorf("healthy GPUs are %+v", response)
	}
	node.Set(1, "dcgm.health.mem", "fail too many errors")
	node.Set(1, "dcgm.health.thermal", "warn")
	node.Set(0, "dcgm.health.power", "fail")
	eventually(t, "two incidents", func() bool { return len(check().Incidents) == 2 })
	response := check()
	if response.OverallHealth != dcgm.DCGM_HEALTH_RESULT_FAIL {
		t.Errorf("overall %v", response.OverallHealth)
	}
	if got := response.Incidents[0]; got.System != dcgm.DCGM_HEALTH_WATCH_MEM || got.Health != dcgm.DCGM_HEALTH_RESULT_FAIL ||
		got.Error.Message != "too many errors" || got.EntityInfo != gpu(1) {
		t.Errorf("the first incident is %+v", got)
	}
	node.Unset(1, "dcgm.health.mem")
	eventually(t, "one incident", func() bool { return len(check().Incidents) == 1 })
}

// TestDCGMLostGPU: a GPU that is lost stays in the list of all, and its values
// are blank.
func TestDCGMLostGPU(t *testing.T) {
	if _, child := inChild(t); !child {
		return
	}
	node := stubs.NewNode(t, 3)
	use(t, node)
	start(t, "")
	watch(t, "lost", []dcgm.GroupEntityPair{gpu(1), gpu(2)}, 54, 155)
	node.Set(1, "lost", "1")
	node.Set(2, "absent", "1")
	eventually(t, "one GPU is supported", func() bool {
		supported, err := dcgm.GetSupportedDevices()
		return err == nil && len(supported) == 1
	})
	if all, err := dcgm.GetEntityGroupEntities(dcgm.FE_GPU); err != nil || len(all) != 3 {
		t.Errorf("all GPUs are %v, %v", all, err)
	}
	for _, id := range []uint{1, 2} {
		if status := dcgm.GetGPUStatus(id); status != dcgm.EntityStatusLost {
			t.Errorf("GPU %d is %v", id, status)
		}
		eventually(t, "blank values", func() bool {
			return spell(latest(t, gpu(id), 155)) == "blank 0" && spell(latest(t, gpu(id), 54)) == "<<<NULL>>>"
		})
	}
	node.Unset(1, "lost")
	eventually(t, "it is back", func() bool { return spell(latest(t, gpu(1), 155)) == "70.5" })
}

// TestDCGMDevices: attributes, links and metric groups.
func TestDCGMDevices(t *testing.T) {
	libraries, child := inChild(t)
	if !child {
		return
	}
	node := stubs.NewNode(t, 2)
	node.Set(1, "nvlink.5.state", "0")
	node.Set(1, "uuid", "GPU-1")
	start(t, node.StartHostEngine(t, libraries, "").Address)

	device, err := dcgm.GetDeviceInfo(1)
	if err != nil {
		t.Fatal(err)
	}
	if device.UUID != "GPU-1" || device.Power != 700 || device.PCI.FBTotal != 81559 || device.Identifiers.DriverVersion != "580.65.06" {
		t.Errorf("the device is %+v", device)
	}
	links, err := dcgm.GetNvLinkLinkStatus()
	if err != nil {
		t.Fatal(err)
	}
	states := map[dcgm.Link_State]int{}
	for _, link := range links {
		if link.ParentId == 1 && link.ParentType == dcgm.FE_GPU {
			states[link.State]++
		}
	}
	if states[dcgm.LS_UP] != 17 || states[dcgm.LS_DOWN] != 1 {
		t.Errorf("states of links are %v", states)
	}
	groups, err := dcgm.GetSupportedMetricGroups(1)
	if err != nil || len(groups) != 1 || len(groups[0].FieldIds) != 13 {
		t.Errorf("metric groups are %v, %v", groups, err)
	}
	if version, err := dcgm.GetHostengineVersionInfo(); err != nil || !strings.HasPrefix(version.RawBuildInfoString, "version:4.6.1;") {
		t.Errorf("the version is %+v, %v", version, err)
	}
	if meta, err := dcgm.FieldGetByID(1009); err != nil || meta.EntityLevel != dcgm.FE_GPU || uint(meta.FieldType) != dcgm.DCGM_FT_INT64 {
		t.Errorf("field 1009 is %+v, %v", meta, err)
	}
}

// wants checks an error by the text that the real library gives it.
func wants(t *testing.T, what string, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want %q", what, err, text)
	}
}

// TestDCGMRefusals: what is wrong is refused with the real library's codes.
func TestDCGMRefusals(t *testing.T) {
	if _, child := inChild(t); !child {
		return
	}
	node := stubs.NewNode(t, 1)
	node.SetNode("dcgm.version", "4.4.2")
	use(t, node)
	start(t, "")
	group, _ := watch(t, "first", []dcgm.GroupEntityPair{gpu(0)}, 155)

	_, err := dcgm.FieldGroupCreate("new", []dcgm.Short{155, 1523})
	wants(t, "a field of a newer release", err, "Unknown field")
	_, err = dcgm.FieldGroupCreate("first", []dcgm.Short{155})
	wants(t, "a name that is taken", err, "Duplicate")
	_, err = dcgm.FieldGroupCreate("many", make([]dcgm.Short, 129))
	wants(t, "too many fields", err, "Bad parameter")
	wants(t, "the same entity again", dcgm.AddToGroup(group, 0), "Bad parameter")
	wants(t, "no such GPU", dcgm.AddToGroup(group, 7), "Bad parameter")
	var unknown dcgm.GroupHandle
	unknown.SetHandle(12345)
	wants(t, "no such group", dcgm.DestroyGroup(unknown), "not configured")
	wants(t, "health of no group", dcgm.HealthSet(unknown, dcgm.DCGM_HEALTH_WATCH_ALL), "not configured")
	if meta, err := dcgm.FieldGetByID(1523); err == nil {
		t.Errorf("a field of a newer release is %+v", meta)
	}

	profiling, err := dcgm.FieldGroupCreate("profiling", []dcgm.Short{155, 1002})
	if err != nil {
		t.Fatal(err)
	}
	node.SetNode("dcgm.profiler", "other")
	wants(t, "another profiler holds the counters", dcgm.WatchFieldsWithGroup(profiling, group), "in use")
	for i := 0; ; i++ {
		if _, err := dcgm.CreateGroup(fmt.Sprint(i)); err != nil {
			wants(t, "too many groups", err, "Max limit")
			if i != 63 {
				t.Errorf("%d groups beside the first, want 63", i)
			}
			break
		}
	}
	wants(t, "an entity list too long", func() error {
		_, err := dcgm.EntitiesGetLatestValues(make([]dcgm.GroupEntityPair, 1025), []dcgm.Short{155}, 0)
		return err
	}(), "Max limit")
}

// TestDCGMFaults: functions fail, and hang, as scripted.
func TestDCGMFaults(t *testing.T) {
	libraries, child := inChild(t)
	if !child {
		return
	}
	node := stubs.NewNode(t, 1)
	engine := node.StartHostEngine(t, libraries, "")
	start(t, engine.Address)
	watch(t, "faults", []dcgm.GroupEntityPair{gpu(0)}, 155)

	node.SetNode("dcgm.return.dcgmEntitiesGetLatestValues", "TIMEOUT")
	read := func() error {
		_, err := dcgm.EntitiesGetLatestValues([]dcgm.GroupEntityPair{gpu(0)}, []dcgm.Short{155}, 0)
		return err
	}
	var failure *dcgm.Error
	if err := read(); !errors.As(err, &failure) || failure.Code != -11 {
		t.Errorf("with a fault: %v, want a timeout", err)
	}
	node.UnsetNode("dcgm.return.dcgmEntitiesGetLatestValues")
	if err := read(); err != nil {
		t.Errorf("without a fault: %v", err)
	}

	node.SetNode("dcgm.hang.dcgmEntitiesGetLatestValues", "1")
	answered := make(chan error, 1)
	go func() { answered <- read() }()
	select {
	case err := <-answered:
		t.Fatalf("it does not hang: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	node.UnsetNode("dcgm.hang.dcgmEntitiesGetLatestValues")
	if err := <-answered; err != nil {
		t.Errorf("after the hang: %v", err)
	}

	engine.Pause()
	go func() { answered <- read() }()
	select {
	case err := <-answered:
		t.Fatalf("a paused engine answers: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	engine.Resume()
	if err := <-answered; err != nil {
		t.Errorf("after the pause: %v", err)
	}
}

// TestDCGMEngineGone kills the engine under a client, also one that waits for
// an answer, and connects to its successor.
func TestDCGMEngineGone(t *testing.T) {
	libraries, child := inChild(t)
	if !child {
		return
	}
	node := stubs.NewNode(t, 1)
	engine := node.StartHostEngine(t, libraries, "")
	start(t, engine.Address)
	watch(t, "gone", []dcgm.GroupEntityPair{gpu(0)}, 155)
	const lost = "Host engine connection invalid/disconnected"

	node.SetNode("dcgm.hang.dcgmGetAllSupportedDevices", "1")
	answered := make(chan error, 1)
	go func() {
		_, err := dcgm.GetSupportedDevices()
		answered <- err
	}()
	time.Sleep(50 * time.Millisecond)
	engine.Kill()
	wants(t, "a call under way", <-answered, lost)
	_, err := dcgm.GetSupportedDevices()
	wants(t, "a call after it", err, lost)
	_ = dcgm.Shutdown()
	wants(t, "connecting to an engine that has ended", connect(engine.Address), lost)

	node.UnsetNode("dcgm.hang.dcgmGetAllSupportedDevices")
	address := engine.Address
	engine.Restart()
	if engine.Address != address {
		t.Errorf("it listens at %s, before at %s", engine.Address, address)
	}
	if err := connect(engine.Address); err != nil {
		t.Fatal(err)
	}
	if held := engine.Inspect(); held != (stubs.Inspection{Connections: 1}) {
		t.Errorf("the new engine holds %+v", held)
	}
	expect(t, gpu(0), 155, "status -16")
	watch(t, "gone", []dcgm.GroupEntityPair{gpu(0)}, 155)
	expect(t, gpu(0), 155, "70.5")
}

// descriptors counts the files that this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// TestDCGMLeavesNothing connects a hundred times and leaves everything to the
// engine to clean up.
func TestDCGMLeavesNothing(t *testing.T) {
	libraries, child := inChild(t)
	if !child {
		return
	}
	node := stubs.NewNode(t, 2)
	engine := node.StartHostEngine(t, libraries, "unix://"+filepath.Join(t.TempDir(), "engine"))
	before := 0
	for i := range 101 {
		if err := connect(engine.Address); err != nil {
			t.Fatal(err)
		}
		group, fields := watch(t, "leaves", []dcgm.GroupEntityPair{gpu(0), gpu(1)}, 155, 150, 230)
		if err := dcgm.HealthSet(group, dcgm.DCGM_HEALTH_WATCH_ALL); err != nil {
			t.Fatal(err)
		}
		want := stubs.Inspection{Groups: 1, FieldGroups: 1, Watches: 6, HealthWatches: 1, Connections: 1}
		if held := engine.Inspect(); held != want {
			t.Fatalf("round %d: the engine holds %+v, want %+v", i, held, want)
		}
		if i%2 == 0 {
			if err := dcgm.UnwatchFields(fields, group); err != nil {
				t.Fatal(err)
			}
			if watches := engine.Inspect().Watches; watches != 0 {
				t.Fatalf("%d watches are left", watches)
			}
			expect(t, gpu(0), 155, "70.5")       // what was sampled stays
			expect(t, gpu(0), 230, "status -16") // and nothing was
		}
		if err := dcgm.Shutdown(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "nothing is left", func() bool { return engine.Inspect() == stubs.Inspection{} })
		if i == 0 {
			before = descriptors(t)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d open files, %d after the first round", after, before)
	}
}

// TestDCGMEmbeddedAgain starts and stops an engine in this process again and
// again.
func TestDCGMEmbeddedAgain(t *testing.T) {
	if _, child := inChild(t); !child {
		return
	}
	use(t, stubs.NewNode(t, 1))
	before := 0
	for i := range 50 {
		if err := connect(""); err != nil {
			t.Fatal(err)
		}
		expect(t, gpu(0), 155, "status -16")
		watch(t, "again", []dcgm.GroupEntityPair{gpu(0)}, 155)
		expect(t, gpu(0), 155, "70.5")
		if err := dcgm.Shutdown(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			before = threads(t)
		}
	}
	eventually(t, "no more threads than after the first round", func() bool { return threads(t) <= before+2 })
}

func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(tasks)
}

// TestDCGMNothingIsSet: what would change something is counted, so that a
// client's tests can see that it never happens.
func TestDCGMNothingIsSet(t *testing.T) {
	libraries, child := inChild(t)
	if !child {
		return
	}
	engine := stubs.NewNode(t, 1).StartHostEngine(t, libraries, "")
	start(t, engine.Address)
	group, err := dcgm.NewDefaultGroup("settings")
	if err != nil {
		t.Fatal(err)
	}
	if settings := engine.Inspect().Settings; settings != 0 {
		t.Errorf("%d settings before any", settings)
	}
	if err := dcgm.ClearPolicyForGroup(group); err != nil {
		t.Fatal(err)
	}
	if settings := engine.Inspect().Settings; settings != 1 {
		t.Errorf("%d settings, want 1", settings)
	}
}
