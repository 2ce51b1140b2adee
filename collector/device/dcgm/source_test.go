//go:build cgo && linux

package dcgm

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// modes returns the HostEngine options for the ways to connect to an engine, by
// name.
func modes(t *testing.T, node *stubs.Node) map[string]string {
	libraries := stubs.Build(t)
	return map[string]string{
		"embedded": "",
		"tcp":      node.StartHostEngine(t, libraries, "").Address,
		"unix":     startEngine(t, node).Address,
	}
}

// script sets values of a node's two GPUs that identify their quantities: one
// GPU is whole, the other has two MIG devices.
func script(t *testing.T, node *stubs.Node) {
	t.Helper()
	for key, value := range map[string]string{
		"utilization.gpu": "61", "utilization.memory": "23", "utilization.encoder": "7", "power.draw": "412.5", "memory.used": "21474836480",
		"energy": "1234567.5", "temperature.gpu": "58", "throttle.sw_thermal": "1500000000", "ecc.uncorrected": "2",
		"remapped_rows.uncorrected": "1", "pcie.replays": "3", "nvlink.4.errors.crc_flit": "9", "nvlink.7.state": "0",
		"profiling.sm": "0.5", "profiling.dram": "0.25", "recovery_action": "1",
	} {
		node.Set(0, key, value)
	}
	for i, profile := range []string{"1g.10gb", "3g.40gb"} {
		gi, _ := node.CreateMIG(1, profile, -1)
		node.Set(1, fmt.Sprintf("mig.%d.memory.used", gi), fmt.Sprint((i+1)<<30))
		node.Set(1, fmt.Sprintf("mig.%d.profiling.graphics", gi), fmt.Sprintf("0.%d", i+1))
	}
}

func TestGolden(t *testing.T) {
	node := stubs.NewNode(t, 2)
	script(t, node)
	use(t, node)
	for mode, address := range modes(t, node) {
		t.Run(mode, func(t *testing.T) {
			s := newSource(t, Options{HostEngine: address, Profiling: true})
			r := connected(t, s)
			var text string
			eventually(t, "profiling reports both GPUs and all partitions", func() bool {
				observations := read(t, r, device.Slow)
				text = written(observations, nil)
				return strings.Count(text, "engine_active(dram)") == len(observations) && strings.Count(text, "pcie_transmit") == 2
			})
			metrictest.CompareGolden(t, filepath.Join("testdata", "node.txt"), text)
		})
	}
}

func TestWithoutProfiling(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.CreateMIG(0, "7g.80gb", -1)
	use(t, node)
	r := connected(t, newSource(t, Options{}))
	for range 5 {
		time.Sleep(pace)
		for _, o := range read(t, r, device.Fast) {
			for _, q := range []device.Quantity{device.SMOccupancy, device.PCIeTransmit} {
				if v, is := reading(o, q); is {
					t.Fatalf("%s has %s = %v", o.Device.UUID, device.Specs()[q].Name, v)
				}
			}
			if v, is := reading(o, device.Utilization); is && o.Device.IsPartition() {
				t.Fatalf("the partition's utilization is %v", v)
			}
		}
	}
}

// If another profiler uses the counters, only profiling quantities are missing.
// They return when the counters are released.
func TestProfilingRefused(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.SetNode("dcgm.profiler", "other")
	use(t, node)
	var log logged
	s := newSource(t, Options{Profiling: true, Log: log.logger()})
	for range 3 {
		o := read(t, connected(t, s), device.Slow)[0]
		if _, is := reading(o, device.SMOccupancy); is {
			t.Error("there is profiling")
		}
		if v, _ := reading(o, device.Power); v != 70.5 {
			t.Errorf("the power is %v", v)
		}
	}
	if n := log.lines("what=profiling"); n != 1 {
		t.Errorf("%d lines of it in the log:\n%s", n, log.String())
	}
	node.SetNode("dcgm.profiler", "none")
	eventually(t, "profiling is there", func() bool {
		_, is := reading(read(t, connected(t, s), device.Fast)[0], device.SMOccupancy)
		return is
	})
	if n := log.lines("what=profiling"); n != 2 {
		t.Errorf("%d lines of it in the log:\n%s", n, log.String())
	}
}

func TestOlderEngineKnowsFewerFields(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.SetNode("dcgm.version", "4.0.3")
	node.Set(0, "throttle.power_cap", "4000000000")
	var log logged
	engine := startEngine(t, node)
	s := newSource(t, Options{HostEngine: engine.Address, Log: log.logger()})
	for range 2 {
		o := read(t, connected(t, s), device.Slow)[0]
		if _, is := reading(o, device.RecoveryAction, "none"); is {
			t.Error("there is a recovery action")
		}
		if held := engine.Inspect(); held.FieldGroups != 4 {
			t.Errorf("finding out which fields there are left %d field groups", held.FieldGroups)
		}
		if v, _ := reading(o, device.Throttled, "power_cap"); v != 4 {
			t.Errorf("throttled for %v s, want what the older field says", v)
		}
		engine.Restart()
		eventually(t, "the connection is known to be lost", func() bool {
			_, err := s.reader.Read(t.Context(), device.Fast)
			return err != nil
		})
	}
	if n := log.lines("field=1523 version=4.0.3"); n != 1 {
		t.Errorf("%d lines of the field in the log:\n%s", n, log.String())
	}
}

func TestBlanksAndFailures(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.Set(0, "dcgm.field.155", "blank")
	node.Set(0, "dcgm.field.203", "status:NVML_ERROR")
	use(t, node)
	r := connected(t, newSource(t, Options{}))
	var text string
	eventually(t, "the field fails", func() bool {
		observations, err := r.Read(t.Context(), device.Fast)
		text = written(observations, err)
		return err != nil
	})
	if !strings.Contains(text, "read field 203 of GPU-") || strings.Contains(text, "field 155") || strings.Count(text, "\nerror: ") != 1 {
		t.Errorf("read\n%s", text)
	}
	if n := strings.Count(text, "fast power ="); n != 1 {
		t.Errorf("%d GPUs have a power:\n%s", n, text)
	}
	if n := strings.Count(text, "fast energy ="); n != 2 {
		t.Errorf("%d GPUs have an energy:\n%s", n, text)
	}
}

// A GPU for which an engine returns no values is an error, although it is not
// lost.
func TestGPUWithoutValues(t *testing.T) {
	node := stubs.NewNode(t, 2)
	use(t, node)
	r := connected(t, newSource(t, Options{}))
	before := read(t, r, device.Fast)
	for _, field := range newRowTable(wholeRows()).fields(anyRow) {
		node.Set(0, fmt.Sprintf("dcgm.field.%d", field), "blank")
	}
	eventually(t, "nothing is reported", func() bool {
		after, err := r.Read(t.Context(), device.Fast)
		if len(after[0].Readings) > 0 {
			return false
		}
		if err == nil || !strings.Contains(err.Error(), "reports nothing about it") || after[0].Device.UUID != before[0].Device.UUID || len(after[1].Readings) == 0 {
			t.Errorf("a GPU without values is\n%s", written(after, err))
		}
		return true
	})
}

func TestLostGPU(t *testing.T) {
	node := stubs.NewNode(t, 2)
	use(t, node)
	r := connected(t, newSource(t, Options{}))
	before := read(t, r, device.Slow)
	node.Set(0, "lost", "1")
	eventually(t, "the GPU is lost", func() bool {
		after, err := r.Read(t.Context(), device.Fast)
		v, _ := reading(after[0], device.Lost)
		if v == 1 && (len(after[0].Readings) != 1 || err == nil || after[0].Device.UUID != before[0].Device.UUID) {
			t.Errorf("the lost GPU says\n%s", written(after[:1], err))
		}
		if v, is := reading(after[1], device.Lost); v != 0 || !is {
			t.Error("the other one is lost as well")
		}
		return v == 1
	})
	node.Unset(0, "lost")
	eventually(t, "the GPU is back", func() bool {
		after, _ := r.Read(t.Context(), device.Fast)
		v, is := reading(after[0], device.Lost)
		return is && v == 0
	})
}

func TestHealthCheck(t *testing.T) {
	node := stubs.NewNode(t, 2)
	use(t, node)
	r := connected(t, newSource(t, Options{}))
	state := func(o device.Observation, system string) (states string) {
		for _, result := range []string{"pass", "warn", "fail"} {
			if v, _ := reading(o, device.HealthCheck, system, result); v == 1 {
				states += result
			}
		}
		return states
	}
	expect := func(what, first, second string) {
		t.Helper()
		observations := read(t, r, device.Slow)
		if got := state(observations[0], "memory"); got != first {
			t.Errorf("%s: memory of the first GPU is %q, want %q", what, got, first)
		}
		if at, _ := measured(observations[0], device.HealthCheck, "memory", "pass"); at.IsZero() || at.From > at.To {
			t.Errorf("%s: it was checked at %v", what, at)
		}
		if got := state(observations[1], "memory") + state(observations[1], "thermal"); got != second {
			t.Errorf("%s: the second GPU is %q, want %q", what, got, second)
		}
	}
	expect("healthy", "pass", "passpass")
	node.Set(0, "dcgm.health.mem", "fail a page could not be retired")
	node.Set(1, "dcgm.health.thermal", "warn")
	expect("unhealthy", "fail", "passwarn")
	node.Unset(0, "dcgm.health.mem")
	expect("recovered", "pass", "passwarn")
	node.SetNode("dcgm.return.dcgmHealthCheck", "GENERIC_ERROR")
	observations, err := r.Read(t.Context(), device.Slow)
	if _, is := reading(observations[0], device.HealthCheck, "memory", "pass"); is || err == nil {
		t.Errorf("a check that failed says %v", err)
	}
	if _, is := reading(observations[0], device.Power); !is {
		t.Error("a check that failed takes the power with it")
	}
}

func TestXIDsOfAnEngine(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.SetNode("dcgm.event_interval_ms", "1")
	gi, ci := node.CreateMIG(1, "1g.10gb", -1)
	use(t, node)
	s := newSource(t, Options{})
	r := connected(t, s)
	observations := read(t, r, device.Fast)
	whole, partition := observations[0].Device.UUID, observations[2].Device.UUID
	if all := s.XIDs(); len(all) != 3 || all[whole] == nil || len(all[whole]) != 0 {
		t.Errorf("before there is any: %v", all)
	}
	<-s.Changed()

	before := time.Now()
	for _, code := range []int{74, 154, 74} { // faster than they are read
		node.XID(0, code)
	}
	node.XIDOn(1, gi, ci, 43)
	eventually(t, "all are counted", func() bool {
		read(t, r, device.Fast)
		all := s.XIDs()
		return len(all[whole]) == 2 && all[whole][0].Count == 2 && len(all[partition]) == 1
	})
	list := s.XIDs()[whole]
	if list[0].Code != 74 || list[1].Code != 154 || list[1].Count != 1 || list[0].Last.Before(before.Add(-time.Second)) || !list[0].Last.After(list[1].Last) {
		t.Errorf("counted %v", list)
	}
	if other := s.XIDs()[observations[1].Device.UUID]; len(other) != 0 {
		t.Errorf("the partition's parent has %v", other)
	}
	select {
	case <-s.Changed():
	default:
		t.Error("no change was signalled")
	}

	// The same where there has been one before.
	for _, code := range []int{48, 63, 64} {
		node.XID(0, code)
	}
	eventually(t, "all are counted again", func() bool {
		read(t, r, device.Fast)
		return len(s.XIDs()[whole]) == 5
	})
}

func TestMIGReconfiguration(t *testing.T) {
	node := stubs.NewNode(t, 1)
	node.SetMIGMode(0, true)
	node.SetNode("dcgm.profiler", "other") // what is refused must not be counted twice either
	engine := startEngine(t, node)
	r := connected(t, newSource(t, Options{HostEngine: engine.Address, Profiling: true}))
	profiles := func() (text string) {
		observations, err := r.Read(t.Context(), device.Fast)
		for _, o := range observations[1:] {
			used, _ := reading(o, device.MemoryUsed)
			text += strings.TrimSpace(o.Device.Profile+" "+time.Duration(used).String()) + "; "
		}
		if err != nil {
			text += err.Error()
		}
		return text
	}
	expect := func(want string) {
		t.Helper()
		eventually(t, "there are "+want+", not "+profiles(), func() bool { return profiles() == want })
	}
	expect("")
	idle := engine.Inspect()
	first, _ := node.CreateMIG(0, "1g.10gb", 0)
	node.Set(0, "mig.7.memory.used", "1048576")
	expect("1g.10gb 1.048576ms; ")
	// Another one before it in the engine's numbering takes its entity's id.
	second, _ := node.CreateMIG(0, "3g.40gb", 4)
	expect("3g.40gb 0s; 1g.10gb 1.048576ms; ")
	node.DestroyMIG(0, first)
	expect("3g.40gb 0s; ")
	node.DestroyMIG(0, second)
	expect("")
	if now := engine.Inspect(); now != idle {
		t.Errorf("the engine holds %+v, before it was %+v", now, idle)
	}
}

// A GPU that a restarted engine does not see is removed, and keeps its counters
// when it returns.
func TestGPUComesAndGoes(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.Set(1, "pcie.rx_bytes", "0+1000000000/s")
	engine := startEngine(t, node)
	s := newSource(t, Options{HostEngine: engine.Address, Profiling: true})
	received := func() float64 {
		_, _ = s.Readers(t.Context())
		observations, _ := s.reader.Read(t.Context(), device.Fast)
		for _, o := range observations {
			if v, is := reading(o, device.PCIeReceive); is && o.Device.Minor == 1 {
				return v
			}
		}
		return -float64(len(observations))
	}
	eventually(t, "it receives", func() bool { return received() > 0 })
	before := received()
	node.Set(1, "absent", "1")
	engine.Restart()
	eventually(t, "it is gone", func() bool { return received() == -1 && len(s.XIDs()) == 1 })
	node.Unset(1, "absent")
	engine.Restart()
	eventually(t, "it is back", func() bool { return received() >= before && len(s.XIDs()) == 2 })
}

func TestFailures(t *testing.T) {
	node := stubs.NewNode(t, 1)
	engine := startEngine(t, node)
	node.SetNode("dcgm.version", "3.3.5")
	for name, test := range map[string]struct {
		options Options
		reason  source.Reason
		says    string
	}{
		"no library":               {Options{Library: "/nowhere/libdcgm.so.4"}, source.ReasonLibraryMissing, "datacenter-gpu-manager"},
		"another library":          {Options{Library: "libm.so.6"}, source.ReasonUnsupported, "has no function dcgmInit"},
		"no engine at the address": {Options{HostEngine: "127.0.0.1:1"}, source.ReasonUnavailable, "start nv-hostengine"},
		"no such socket":           {Options{HostEngine: "unix:///nowhere/dcgm"}, source.ReasonUnavailable, "unix:///nowhere/dcgm"},
		"no port":                  {Options{HostEngine: "127.0.0.1"}, source.ReasonUnavailable, ""},
		"an old engine":            {Options{HostEngine: engine.Address}, source.ReasonUnsupported, "3.3.5"},
		"embedded, without GPUs":   {Options{}, source.ReasonUnavailable, "RuntimeClass nvidia"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSource(t, test.options)
			for range 2 { // it stays what it is
				readers, err := s.Readers(t.Context())
				if len(readers) != 0 || source.ReasonOf(err) != test.reason || !strings.Contains(err.Error(), test.says) {
					t.Errorf("%q: %v, want %q and %q", source.ReasonOf(err), err, test.reason, test.says)
				}
			}
			if _, err := s.reader.Read(t.Context(), device.Fast); source.ReasonOf(err) != test.reason {
				t.Errorf("a read without a connection is %q: %v", source.ReasonOf(err), err)
			}
		})
	}
}

// The binding has one connection for the whole process.
func TestTwoSources(t *testing.T) {
	node := stubs.NewNode(t, 1)
	use(t, node)
	one, two := newSource(t, Options{}), newSource(t, Options{})
	r := connected(t, one)
	if _, err := two.Readers(t.Context()); err == nil || !strings.Contains(err.Error(), "only one") {
		t.Errorf("a second source says %v", err)
	}
	read(t, r, device.Slow)
	if err := one.Close(); err != nil {
		t.Error(err)
	}
	read(t, connected(t, two), device.Slow)
	if _, err := r.Read(t.Context(), device.Fast); source.ReasonOf(err) != source.ReasonUnavailable {
		t.Errorf("a read of a closed source is %v", err)
	}
}

// A function that a library lacks, or an engine refuses, affects only its own
// readings.
func TestRefusedCalls(t *testing.T) {
	for function, lacks := range map[string]struct {
		quantity device.Quantity
		details  []string
	}{
		"dcgmGetNvLinkLinkStatus": {device.NVLinks, []string{"active"}},
		"dcgmHealthSet":           {device.HealthCheck, []string{"memory", "pass"}},
	} {
		t.Run(function, func(t *testing.T) {
			node := stubs.NewNode(t, 1)
			use(t, node)
			node.SetNode("dcgm.return."+function, "VER_MISMATCH")
			var log logged
			s := newSource(t, Options{Log: log.logger()})
			for range 2 {
				o := read(t, connected(t, s), device.Slow)[0]
				if _, is := reading(o, lacks.quantity, lacks.details...); is {
					t.Error("it is reported nevertheless")
				}
				if _, is := reading(o, device.Power); !is {
					t.Error("the power is not")
				}
			}
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("%d lines in the log:\n%s", n, log.String())
			}
		})
	}
}

// While the field of the last XID fails, or there is no connection, no XIDs are
// received. They are watched again, and their counts go on.
func TestXIDsThatFail(t *testing.T) {
	node := stubs.NewNode(t, 2)
	node.SetNode("dcgm.event_interval_ms", "1")
	engine := startEngine(t, node)
	s := newSource(t, Options{HostEngine: engine.Address})
	r := connected(t, s)
	if at, err := s.Received(); !at.IsZero() || err != nil {
		t.Errorf("received before a read: %v, %v", at, err)
	}
	read(t, r, device.Fast)
	count := func() (count uint64) {
		read(t, r, device.Fast)
		for _, xids := range s.XIDs() {
			for _, x := range xids {
				count += x.Count
			}
		}
		return count
	}
	node.XID(1, 48)
	eventually(t, "an XID", func() bool { return count() == 1 && len(s.XIDs()) == 2 })
	for _, value := range []string{"status:NOT_WATCHED", "status:GENERIC_ERROR"} {
		node.Set(0, "dcgm.field.230", value)
		eventually(t, "a failure", func() bool {
			read(t, r, device.Fast)
			_, err := s.Received()
			return len(s.XIDs()) == 1 && err != nil
		})
		for range 3 {
			connected(t, s)
		}
		watches := len(s.session.watches)
		connected(t, s)
		if now := len(s.session.watches); now != watches {
			t.Errorf("there are %d watches and were %d", now, watches)
		}
		node.Unset(0, "dcgm.field.230")
		eventually(t, "no failure", func() bool {
			read(t, r, device.Fast)
			_, err := s.Received()
			return len(s.XIDs()) == 2 && err == nil
		})
	}
	engine.Kill()
	_, _ = r.Read(t.Context(), device.Fast)
	if at, _ := s.Received(); !at.IsZero() {
		t.Errorf("received without an engine: %v", at)
	}
	engine.Restart()
	connected(t, s)
	node.XID(1, 48)
	eventually(t, "another XID", func() bool { return count() == 2 && len(s.XIDs()) == 2 })
}

// If an essential call fails, the connection is closed; the next refresh makes
// another.
func TestFailingCalls(t *testing.T) {
	for _, function := range []string{
		"dcgmGetEntityGroupEntities", "dcgmGetGpuInstanceHierarchy", "dcgmGroupCreate", "dcgmGroupAddEntity",
		"dcgmFieldGroupCreate", "dcgmWatchFields", "dcgmUpdateAllFields", "dcgmEntitiesGetLatestValues",
	} {
		t.Run(function, func(t *testing.T) {
			node := stubs.NewNode(t, 1)
			engine := startEngine(t, node)
			s := newSource(t, Options{HostEngine: engine.Address})
			node.SetNode("dcgm.return."+function, "GENERIC_ERROR")
			if readers, err := s.Readers(t.Context()); err == nil || len(readers) != 0 {
				t.Errorf("it has not failed")
			}
			eventually(t, "all is given back", func() bool { return engine.Inspect() == stubs.Inspection{} })
			node.UnsetNode("dcgm.return." + function)
			read(t, connected(t, s), device.Slow)
		})
	}
}

func TestHang(t *testing.T) {
	node := stubs.NewNode(t, 1)
	use(t, node)
	s := newSource(t, Options{})
	r := connected(t, s)
	before := read(t, r, device.Slow)
	node.SetNode("dcgm.hang.dcgmEntitiesGetLatestValues", "1")
	came := make(chan []device.Observation, 1)
	go func() {
		observations, _ := r.Read(t.Context(), device.Fast)
		came <- observations
	}()
	eventually(t, "the read hangs", func() bool { return len(s.lock) == 1 })

	// Meanwhile Readers returns, and Close does not wait.
	if readers, err := s.Readers(t.Context()); err != nil || len(readers) != 1 || readers[0] != r {
		t.Errorf("beside a read that hangs there are %v, %v", readers, err)
	}
	if err := s.Close(); err == nil {
		t.Error("it was closed")
	}
	short, end := context.WithTimeout(t.Context(), pace)
	defer end()
	if _, err := r.Read(short, device.Fast); source.ReasonOf(err) != source.ReasonTimeout {
		t.Errorf("a second read is %v", err)
	}
	node.UnsetNode("dcgm.hang.dcgmEntitiesGetLatestValues")
	if after := <-came; len(after) != 1 || after[0].Device.UUID != before[0].Device.UUID {
		t.Errorf("it came back with %v", after)
	}
	read(t, r, device.Slow)
}

// Older engines accept only this number of entities in a group or a request.
func TestQueriesAreSplit(t *testing.T) {
	q := newFieldQuery(make([]entity, 130), []uint16{gpuUtilization})
	if len(q.parts) != 3 || len(q.parts[0].entities) != 64 || len(q.parts[2].entities) != 2 {
		t.Errorf("%d parts, the last of %d", len(q.parts), len(q.parts[len(q.parts)-1].entities))
	}
}

// Other clients of an engine, and earlier ones, may have groups that still
// exist.
func TestNamesAreUnique(t *testing.T) {
	node := stubs.NewNode(t, 1)
	use(t, node)
	s := newSource(t, Options{})
	names := make(map[string]bool)
	for range 3 {
		connected(t, s)
		names[s.session.uniqueName()], names[s.session.uniqueName()] = true, true
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 6 {
		t.Errorf("of six names there are %d", len(names))
	}
}
