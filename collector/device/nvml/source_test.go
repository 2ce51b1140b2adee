//go:build cgo

package nvml

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// readers looks for GPUs, which must succeed.
func readers(t testing.TB, s *Source) []device.Reader {
	t.Helper()
	found, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// read reads the i-th GPU of a source.
func read(t testing.TB, s *Source, i int, tier device.Tier) string {
	t.Helper()
	return written(readers(t, s)[i].Read(t.Context(), tier))
}

// golden compares with a file under testdata, which -update writes.
func golden(t *testing.T, name, got string) {
	t.Helper()
	metrictest.CompareGolden(t, filepath.Join("testdata", name), got)
}

func TestReadsEveryServer(t *testing.T) {
	for name, s := range servers() {
		t.Run(name, func(t *testing.T) {
			slice(t, gpu(s, 1), 4, 0)
			from := NewOver(s, Options{Links: true})
			var text strings.Builder
			for _, r := range readers(t, from)[:2] {
				text.WriteString(written(r.Read(t.Context(), device.Slow)))
			}
			golden(t, name+".txt", text.String())
			if n := len(readers(t, from)); n != 8 {
				t.Errorf("%d readers, want 8", n)
			}
		})
	}
}

func TestReadersStayTheSame(t *testing.T) {
	from := NewOver(fitted(dgxh100.New()), Options{})
	before, after := readers(t, from), readers(t, from)
	for i := range before {
		if before[i] != after[i] || before[i].Key() != fmt.Sprintf("GPU-%d", i) {
			t.Errorf("reader %d was %v and is %v", i, before[i].Key(), after[i].Key())
		}
	}
}

func TestLostGPUIsNotRead(t *testing.T) {
	s := fitted(dgxh100.New())
	d := gpu(s, 3)
	from := NewOver(s, Options{})
	r := readers(t, from)[3]
	before, err := r.Read(t.Context(), device.Slow)
	if err != nil {
		t.Fatal(err)
	}
	d.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.ERROR_GPU_IS_LOST }
	calls := len(d.GetPowerUsageCalls())
	after, err := r.Read(t.Context(), device.Slow)
	if text := written(after, err); !errors.Is(err, nvml.ERROR_GPU_IS_LOST) || len(after) != 1 || len(after[0].Readings) != 1 || !strings.Contains(text, "lost  1 ") {
		t.Errorf("the lost GPU gave\n%s", text)
	}
	if fmt.Sprint(after[0].Device) != fmt.Sprint(before[0].Device) || len(d.GetPowerUsageCalls()) != calls {
		t.Error("the lost GPU is another, or was asked on")
	}

	// Nor can it be identified any more; that hides neither it nor the others.
	d.GetUUIDFunc = func() (string, nvml.Return) { return "", nvml.ERROR_GPU_IS_LOST }
	found, err := from.Readers(t.Context())
	if len(found) != 8 || !errors.Is(err, nvml.ERROR_GPU_IS_LOST) {
		t.Errorf("%d readers and %v, want all 8 and the lost GPU", len(found), err)
	}
	after, err = r.Read(t.Context(), device.Fast)
	if got := linesWith(written(after, err), "lost", "error"); got != "lost  1; error: find GPU-3 again: ERROR_GPU_IS_LOST" {
		t.Errorf("it says %s", got)
	}
}

func TestMIGDevicesComeAndGo(t *testing.T) {
	s := fitted(dgxh100.New())
	d := gpu(s, 0)
	from := NewOver(s, Options{})
	r := readers(t, from)[0]
	uuids := func() string {
		t.Helper()
		observations, err := r.Read(t.Context(), device.Fast)
		var names []string
		for _, o := range observations {
			names = append(names, fmt.Sprintf("%s@%d", o.Device.UUID, o.Device.Placement))
		}
		return fmt.Sprint(names, err)
	}
	expect := func(want string) {
		t.Helper()
		if got := uuids(); got != want {
			t.Errorf("there are %s, want %s", got, want)
		}
	}
	expect("[GPU-0@-1] <nil>")
	slice(t, d, 2, 6)
	expect("[GPU-0@-1 MIG-GPU-0-0@2 MIG-GPU-0-1@6] <nil>")
	well := d.GetMigDeviceHandleByIndexFunc
	d.GetMigDeviceHandleByIndexFunc = func(int) (nvml.Device, nvml.Return) { return nil, nvml.ERROR_UNKNOWN }
	expect("[GPU-0@-1 MIG-GPU-0-0@2 MIG-GPU-0-1@6] get a handle of MIG device 0 of GPU-0: ERROR_UNKNOWN")
	d.GetMigDeviceHandleByIndexFunc = well
	slice(t, d, 5)
	expect("[GPU-0@-1 MIG-GPU-0-0@5] <nil>")
	d.MigMode = nvml.DEVICE_MIG_DISABLE
	expect("[GPU-0@-1] <nil>")
	d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
	expect("[GPU-0@-1] <nil>")
}

func TestProfileByName(t *testing.T) {
	s := fitted(dgxh100.New())
	slice(t, gpu(s, 0), 0)
	part, _ := gpu(s, 0).GetMigDeviceHandleByIndex(0)
	migOf(part).GetNameFunc = func() (string, nvml.Return) { return "NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", nvml.SUCCESS }
	if text := read(t, NewOver(s, Options{}), 0, device.Fast); !strings.Contains(text, `profile="1g.10gb+me"`) {
		t.Errorf("the name's profile is not used:\n%s", text)
	}
}

func TestFailures(t *testing.T) {
	for ret, want := range map[nvml.Return]source.Reason{
		nvml.ERROR_LIBRARY_NOT_FOUND:       source.ReasonLibraryMissing,
		nvml.ERROR_DRIVER_NOT_LOADED:       source.ReasonUnavailable,
		nvml.ERROR_NO_PERMISSION:           source.ReasonPermission,
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: source.ReasonLibraryMismatch,
		nvml.ERROR_UNKNOWN:                 source.ReasonOther,
	} {
		s := fitted(dgxh100.New())
		s.InitFunc = func() nvml.Return { return ret }
		from := NewOver(s, Options{})
		_, err := from.Readers(t.Context())
		if source.ReasonOf(err) != want || !errors.Is(err, ret) {
			t.Errorf("%v is %q: %v, want %q", ret, source.ReasonOf(err), err, want)
		}
		s.InitFunc = func() nvml.Return { return nvml.SUCCESS }
		if _, err := from.Readers(t.Context()); err != nil {
			t.Errorf("after %v there is no recovery: %v", ret, err)
		}
	}
}

func TestMissingLibrary(t *testing.T) {
	s := New(Options{Library: filepath.Join(t.TempDir(), "libnvidia-ml.so.1")})
	_, err := s.Readers(t.Context())
	if source.ReasonOf(err) != source.ReasonLibraryMissing || !strings.Contains(err.Error(), "RuntimeClass nvidia") {
		t.Errorf("without a library: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestTooOldLibrary(t *testing.T) {
	s := fitted(dgxh100.New())
	s.LookupSymbolFunc = func(name string) error { return errors.New("undefined symbol") }
	if _, err := NewOver(s, Options{}).Readers(t.Context()); source.ReasonOf(err) != source.ReasonUnsupported {
		t.Errorf("a library without functions: %v", err)
	}
}

func TestReconnects(t *testing.T) {
	s := fitted(dgxh100.New())
	from := NewOver(s, Options{})
	r := readers(t, from)[0]
	count := s.DeviceGetCountFunc
	s.DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNINITIALIZED }
	if _, err := from.Readers(t.Context()); source.ReasonOf(err) != source.ReasonUnavailable {
		t.Errorf("a lost connection is %v", err)
	}
	s.DeviceGetCountFunc = count

	// Not while a call is under way.
	hang := make(chan struct{})
	gpu(s, 0).GetPowerUsageFunc = func() (uint32, nvml.Return) {
		hang <- struct{}{}
		<-hang
		return 1, nvml.SUCCESS
	}
	came := make(chan struct{})
	go func() {
		defer close(came)
		_, _ = r.Read(t.Context(), device.Fast)
	}()
	<-hang
	if _, err := from.Readers(t.Context()); source.ReasonOf(err) != source.ReasonTimeout || len(s.ShutdownCalls()) != 0 {
		t.Errorf("beside a call that hangs: %v", err)
	}
	if err := from.Close(); err == nil || len(s.ShutdownCalls()) != 0 {
		t.Error("closed beside a call that hangs")
	}
	hang <- struct{}{}
	<-came
	if readers(t, from); len(s.ShutdownCalls()) != 1 || len(s.InitCalls()) != 2 {
		t.Errorf("shut down %d times and initialized %d times", len(s.ShutdownCalls()), len(s.InitCalls()))
	}
	if err := from.Close(); err != nil || len(s.ShutdownCalls()) != 2 {
		t.Errorf("close: %v", err)
	}
}
