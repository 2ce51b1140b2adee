//go:build cgo && linux

package nvml

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// stubbed is a source over the real binding and the stub library, which reports
// a node's H100s.
func stubbed(t *testing.T, gpus int, o Options) (*stubs.Node, *Source) {
	t.Helper()
	o.Library = stubs.Build(t).NVML
	node := stubs.NewNode(t, gpus)
	t.Setenv("DRA_STUB_HARDWARE", node.Dir)
	from := New(o)
	t.Cleanup(func() {
		if err := from.Close(); err != nil {
			t.Error(err)
		}
		if live := node.Live(); live != (stubs.Live{}) {
			t.Errorf("in the end there are %+v", live)
		}
		if settings := node.Settings(); len(settings) > 0 {
			t.Errorf("the source has set %q", settings)
		}
	})
	return node, from
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 3000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s did not come about", what)
}

// scripted sets values of a GPU.
func scripted(node *stubs.Node, gpu int, values map[string]string) {
	for key, value := range values {
		node.Set(gpu, key, value)
	}
}

// The real binding reads every quantity of a whole GPU and of MIG devices.
func TestStubReportsEverything(t *testing.T) {
	node, from := stubbed(t, 2, Options{Links: true, Profiling: true})
	scripted(node, 0, map[string]string{
		"utilization.gpu": "87", "utilization.memory": "41", "memory.used": "1073741824", "power.draw": "412.5", "energy": "123456.5",
		"pcie.tx_bytes": "1000", "pcie.rx_bytes": "2000", "pcie.replays": "3", "clocks_event_reasons": "0x44",
		"nvlink.0.tx_bytes": "1048576", "nvlink.1.rx_bytes": "2097152", "nvlink.2.state": "0", "nvlink.3.remote.gpu": "1",
		"nvlink.4.errors.crc_flit": "4", "nvlink.5.errors.replay": "5", "nvlink.6.errors.recovery": "6", "nvlink.7.errors.crc_data": "7",
		"ecc.corrected": "11", "ecc.uncorrected": "2", "remapped_rows.corrected": "8", "remapped_rows.uncorrected": "9",
		"remapped_rows.pending": "1", "remapped_rows.failure": "1", "recovery_action": "3", "fabric.status": "999",
		"throttle.power_cap": "1500000000", "throttle.sw_thermal": "2500000000", "throttle.hw_power_brake": "500000000",
		"profiling.graphics": "0.9", "profiling.sm": "0.8", "profiling.sm_occupancy": "0.35", "profiling.tensor": "0.6",
		"profiling.dram": "0.5", "profiling.fp64": "0.1", "profiling.decoder": "0.25",
	})
	gi, _ := node.CreateMIG(1, "3g.40gb", 4)
	scripted(node, 1, map[string]string{"mig.2.memory.used": "5368709120", "mig.2.profiling.sm": "0.7"})
	if gi != 2 {
		t.Fatalf("the GPU instance is %d", gi)
	}
	found := readers(t, from)
	whole, parted := found[0], found[1]
	if text := written(whole.Read(t.Context(), device.Fast)); !strings.Contains(text, "minor=0") {
		whole, parted = parted, whole
	}
	_, _ = parted.Read(t.Context(), device.Fast)
	time.Sleep(2 * gpmPause)
	golden(t, "stub.txt", written(whole.Read(t.Context(), device.Slow))+written(parted.Read(t.Context(), device.Slow)))
}

// An XID comes through the real event set, for the GPU and for a MIG device.
func TestStubRaisesXIDs(t *testing.T) {
	node, from := stubbed(t, 2, Options{})
	gi, ci := node.CreateMIG(1, "1g.10gb", -1)
	var parent, part string
	for _, r := range readers(t, from) {
		observations, _ := r.Read(t.Context(), device.Fast)
		if len(observations) == 2 {
			parent, part = observations[0].Device.UUID, observations[1].Device.UUID
		}
	}
	node.XIDOn(1, gi, ci, 43)
	node.XID(1, 63)
	eventually(t, "two XIDs", func() bool {
		all := from.XIDs()
		return len(all[parent]) == 1 && all[parent][0].Code == 63 && len(all[part]) == 1 && all[part][0].Code == 43
	})
	if all := from.XIDs(); len(all) != 3 {
		t.Errorf("received %v", all)
	}
}

// After the driver was loaded again, the event set has no events: XIDs are absent
// until another one has them, and their counts go on.
func TestStubReloadsDriver(t *testing.T) {
	node, from := stubbed(t, 2, Options{})
	readers(t, from)
	count := func() (count uint64) {
		for _, xids := range from.XIDs() {
			for _, xid := range xids {
				count += xid.Count
			}
		}
		return count
	}
	for round := range uint64(2) {
		node.XID(0, 48)
		eventually(t, "an XID", func() bool { return count() == round+1 && len(from.XIDs()) == 2 })
		node.ReloadDriver()
		eventually(t, "that none are received", func() bool {
			_, err := from.Received()
			return err != nil && len(from.XIDs()) == 1 // the GPU has just reported one
		})
		eventually(t, "that XIDs are received again", func() bool {
			_, err := from.Received()
			return err == nil && len(from.XIDs()) == 2
		})
	}
}

// The library of a driver that was replaced stays in the process: the source says
// so, whatever is read, and works again once they belong together.
func TestStubUpgradesDriver(t *testing.T) {
	sysfs := t.TempDir()
	version := filepath.Join(sysfs, "module/nvidia/version")
	if err := errors.Join(os.MkdirAll(filepath.Dir(version), 0o755), os.WriteFile(version, []byte("999.1\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	node, from := stubbed(t, 2, Options{Sysfs: sysfs})
	r := readers(t, from)[0]
	const cause = "driver 580.65.06 was replaced by 999.1 while its library was in use: restart the agent"
	expect := func(when string, err error) {
		t.Helper()
		if source.ReasonOf(err) != source.ReasonLibraryMismatch || !errors.Is(err, nvml.ERROR_LIB_RM_VERSION_MISMATCH) || !strings.Contains(err.Error(), cause) {
			t.Errorf("%s: %v", when, err)
		}
	}
	node.UpgradeDriver("999.1")
	for range 3 {
		_, err := from.Readers(t.Context())
		expect("the GPUs", err)
		_, _ = from.Readers(t.Context())
		expect("a reading", errorOf(r.Read(t.Context(), device.Fast)))
	}
	if len(from.XIDs()) != 0 {
		t.Errorf("received %v", from.XIDs())
	}
	node.SetNode("driver_version", "580.65.06")
	if _, err := readers(t, from)[0].Read(t.Context(), device.Fast); err != nil || len(from.XIDs()) != 2 {
		t.Errorf("with the driver of the library: %v, received %v", err, from.XIDs())
	}
}

// One GPU whose call hangs, and one of which calls fail, leave the others as
// they are, through the real binding.
func TestStubHangsAndFails(t *testing.T) {
	node, from := stubbed(t, 3, Options{})
	found := readers(t, from)
	byMinor := make(map[int]device.Reader)
	for _, r := range found {
		observations, err := r.Read(t.Context(), device.Slow)
		if err != nil {
			t.Fatal(err)
		}
		byMinor[observations[0].Device.Minor] = r
	}
	node.Set(0, "hang.nvmlDeviceGetPowerUsage", "1")
	node.Set(1, "return.nvmlDeviceGetPowerUsage", "NVML_ERROR_UNKNOWN")
	node.Set(1, "return.field.230", "NVML_ERROR_NOT_SUPPORTED")
	came := make(chan struct{})
	go func() {
		defer close(came)
		_, _ = byMinor[0].Read(t.Context(), device.Fast)
	}()
	text := written(byMinor[1].Read(t.Context(), device.Fast))
	if !errors.Is(errorOf(byMinor[1].Read(t.Context(), device.Fast)), nvml.ERROR_UNKNOWN) || strings.Contains(text, "recovery") || !strings.Contains(text, "utilization") {
		t.Errorf("the GPU that fails says\n%s", text)
	}
	if text := written(byMinor[2].Read(t.Context(), device.Fast)); strings.Contains(text, "error:") {
		t.Errorf("the GPU that is well says\n%s", text)
	}
	select {
	case <-came:
		t.Error("the call that hangs came back")
	default:
	}
	node.Unset(0, "hang.nvmlDeviceGetPowerUsage")
	<-came
}

// An error can be reported while the library, which has the texts, is being
// initialized again.
func TestStubErrorsAreReported(t *testing.T) {
	node, from := stubbed(t, 2, Options{Sysfs: t.TempDir()})
	r := readers(t, from)[0]
	node.Set(0, "return.nvmlDeviceGetPowerUsage", "NVML_ERROR_UNKNOWN")
	node.Set(1, "return.nvmlDeviceGetPowerUsage", "NVML_ERROR_UNKNOWN")
	failed := []error{errorOf(r.Read(t.Context(), device.Fast))}
	node.Set(1, "return.nvmlDeviceGetUUID", "NVML_ERROR_IRQ_ISSUE")
	_, err := from.Readers(t.Context())
	failed = append(failed, err)
	node.SetNode("return.nvmlDeviceGetCount_v2", "NVML_ERROR_NO_PERMISSION")
	_, err = from.Readers(t.Context())
	failed = append(failed, err)
	node.UnsetNode("return.nvmlDeviceGetCount_v2")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			for _, err := range failed {
				if err == nil || err.Error() == "" {
					t.Errorf("the error is %v", err)
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	for range 20 {
		from.connection.connected = false
		_, _ = from.Readers(t.Context())
	}
	close(stop)
	<-stopped
}

func errorOf(_ []device.Observation, err error) error { return err }

// A GPU that falls off the bus is lost, and is found again once it is back.
func TestStubLosesGPU(t *testing.T) {
	node, from := stubbed(t, 2, Options{Sysfs: t.TempDir()})
	if got := lostOf(t, from); got != "0 0" {
		t.Errorf("at first they are %s", got)
	}
	node.Set(1, "lost", "1")
	for range 2 {
		if got := lostOf(t, from); got != "0 1" && got != "1 0" {
			t.Errorf("when one fell they are %s", got)
		}
	}
	node.Unset(1, "lost")
	from.connection.connected = false
	if got := lostOf(t, from); got != "0 0" {
		t.Errorf("when it is back they are %s", got)
	}
}

// lostOf is whether each GPU reports itself lost; a GPU that cannot be identified
// any more is read by the reader that it had.
func lostOf(t *testing.T, from *Source) string {
	t.Helper()
	_, _ = from.Readers(t.Context())
	var all []string
	for _, r := range from.readers {
		text := written(r.Read(t.Context(), device.Fast))
		all = append(all, strings.TrimPrefix(linesWith(text, "lost"), "lost  "))
	}
	return strings.Join(all, " ")
}

// A hundred connections and a thousand samples leave no file, goroutine,
// event set or sample behind.
func TestStubLeaksNothing(t *testing.T) {
	node, from := stubbed(t, 2, Options{Profiling: true, Links: true, Processes: always})
	node.CreateMIG(1, "1g.10gb", -1)
	node.SetProcesses(0, stubs.Process{PID: os.Getpid(), Memory: 1 << 30, Utilization: 30})
	files := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	sample := func() {
		for _, r := range readers(t, from) {
			if _, err := r.Read(t.Context(), device.Slow); err != nil {
				t.Fatal(err)
			}
		}
	}
	sample()
	before, live, goroutines := files(), node.Live(), runtime.NumGoroutine()
	for range 100 {
		for range 9 {
			sample()
		}
		from.connection.connected = false
		sample()
	}
	if now := node.Live(); now != live || live.EventSets != 1 || live.Sessions != 1 || live.GPMSamples != 6 {
		t.Errorf("there are %+v, and were %+v", now, live)
	}
	eventually(t, "as few files and goroutines as before", func() bool {
		return files() <= before && runtime.NumGoroutine() <= goroutines
	})
}
