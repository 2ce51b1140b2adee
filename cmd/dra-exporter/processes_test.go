package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	procfs "github.com/dra-exporter/dra-exporter/collector/cgroup/simulated"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// lister is a source of one device, used by process 10 at most, that lists its
// processes when requested.
type lister struct {
	wanted func() bool
	listed atomic.Int64
	idle   atomic.Bool // no process uses it
}

func (*lister) Name() string                                       { return "lister" }
func (*lister) Close() error                                       { return nil }
func (*lister) Key() string                                        { return "GPU-0" }
func (l *lister) Readers(context.Context) ([]device.Reader, error) { return []device.Reader{l}, nil }
func (l *lister) Read(context.Context, device.Tier) ([]device.Observation, error) {
	o := device.Observation{Device: device.Device{UUID: "GPU-0"}, Readings: []device.Reading{
		{Quantity: device.Utilization, Value: 0.5}, {Quantity: device.MemoryUsed, Value: 100},
	}}
	if l.wanted() {
		l.listed.Add(1)
		o.Processes = []device.Process{}
		if !l.idle.Load() {
			o.Processes = append(o.Processes, device.Process{PID: 10, Memory: 40, Utilization: 0.25})
		}
	}
	return []device.Observation{o}, nil
}

// splittable returns all that splitting by processes needs, including a source
// that lists processes.
func splittable(t *testing.T) (*lister, *agentFlags, role.NodeOptions) {
	t.Helper()
	dir := t.TempDir()
	around := role.NodeOptions{Name: "n", Socket: filepath.Join(dir, "kubelet.sock"), CDIDirs: []string{dir}, Procfs: filepath.Join(dir, "proc"), Gate: &role.Gate{}}
	kubelet, err := simulated.Start(t.Context(), around.Socket, simulated.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelet.Close)
	if err := procfs.Write(around.Procfs, []procfs.Process{{PID: 10, Cgroup: "/system.slice/x.service"}}); err != nil {
		t.Fatal(err)
	}
	cluster, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	around.API = cluster.Config()
	source := &lister{wanted: around.Gate.Open}
	around.Sources = []device.Source{source}
	flags := testFlags()
	flags.processes = true
	return source, flags, around
}

// Missing prerequisites of splitting are reported, and sources list processes
// only if none is missing.
func TestSplittingPrerequisites(t *testing.T) {
	forbidding := func(r apiserver.Request) int {
		if r.Resource == "pods" {
			return http.StatusForbidden
		}
		return 0
	}
	for reason, take := range map[string]func(*agentFlags, *role.NodeOptions){
		"ok":            func(*agentFlags, *role.NodeOptions) {},
		"disabled":      func(f *agentFlags, _ *role.NodeOptions) { f.processes = false },
		"no_pods":       func(_ *agentFlags, s *role.NodeOptions) { s.API = nil },
		"pid_namespace": func(_ *agentFlags, s *role.NodeOptions) { s.Socket += ".not" },
		"no_procfs":     func(_ *agentFlags, s *role.NodeOptions) { s.Procfs += ".not" },
		"no_pods, which the API server does not let be read": func(_ *agentFlags, s *role.NodeOptions) {
			cluster, err := apiserver.Start(t.Context(), apiserver.Options{Intercept: forbidding})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(cluster.Stop)
			s.API = cluster.Config()
		},
		"no_pods, because no API server answers": func(_ *agentFlags, s *role.NodeOptions) { s.API = &rest.Config{Host: "http://127.0.0.1:1"} },
	} {
		t.Run(reason, func(t *testing.T) {
			reason, _, _ := strings.Cut(reason, ",")
			source, flags, around := splittable(t)
			take(flags, &around)
			page := eventually(t, serve(t, flags, around)+"/metrics",
				`dra_exporter_process_attribution{reason="`+reason+`"} 1`, `dra_device_utilization_ratio{`)
			unattributed := strings.Contains(page, `dra_device_unattributed_memory_bytes{node="n",parent_uuid="",uuid="GPU-0"} 40`)
			if listed := source.listed.Load(); unattributed != (reason == "ok") || (listed > 0) != unattributed {
				t.Errorf("listed %d times:\n%s", listed, page)
			}
		})
	}
}

// A procfs that hangs is reported, blocks nothing else, and is used again once
// it answers.
func TestProcfsHangs(t *testing.T) {
	source, flags, around := splittable(t)
	source.idle.Store(true)
	stat := filepath.Join(around.Procfs, "10", "stat")
	if err := errors.Join(os.Remove(stat), syscall.Mkfifo(stat, 0o644)); err != nil { // opening it blocks until there is a writer
		t.Fatal(err)
	}
	page := serve(t, flags, around) + "/metrics"
	eventually(t, page, `dra_exporter_process_attribution{reason="ok"} 1`)
	source.idle.Store(false)
	eventually(t, page, `dra_exporter_process_attribution{reason="no_procfs"} 1`, `dra_exporter_source_up{source="procfs"} 0`)
	sampled := func() string {
		_, text := get(t, page)
		_, after, _ := strings.Cut(text, "\ndra_exporter_sample_timestamp_seconds ")
		return strings.SplitN(after, "\n", 2)[0]
	}
	for before, deadline := sampled(), time.Now().Add(3*time.Minute); sampled() == before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no readings come through while procfs hangs")
		}
	}
	pipe, err := os.OpenFile(stat, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Dir(stat)), pipe.Close()); err != nil {
		t.Fatal(err)
	}
	if err := procfs.Write(around.Procfs, []procfs.Process{{PID: 10, Cgroup: "/system.slice/x.service"}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, page, `dra_exporter_process_attribution{reason="ok"} 1`, `dra_device_unattributed_memory_bytes{node="n",parent_uuid="",uuid="GPU-0"} 40`)
}
