//go:build cgo

package nvml

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// busy is a GPU that is not divided and answers at once: many processes work
// on it, each of which did something lately. With turnover they are others at
// each read.
type busy struct {
	swift
	processes int
	turnover  bool
	reads     int
}

func (*busy) GetMigMode() (int, int, nvml.Return) { return 0, 0, nvml.SUCCESS }

func (d *busy) first() int {
	if d.turnover {
		return 1 + d.reads*d.processes%(1<<22)
	}
	return 1
}

func (d *busy) GetComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return) {
	d.reads++
	list := make([]nvml.ProcessInfo, d.processes)
	for i := range list {
		list[i] = using(uint32(d.first()+i), 1<<20)
	}
	return list, nvml.SUCCESS
}

func (*busy) GetGraphicsRunningProcesses() ([]nvml.ProcessInfo, nvml.Return) {
	return nil, nvml.SUCCESS
}

func (*busy) GetMPSComputeRunningProcesses() ([]nvml.ProcessInfo, nvml.Return) {
	return nil, nvml.SUCCESS
}

func (d *busy) GetProcessUtilization(uint64) ([]nvml.ProcessUtilizationSample, nvml.Return) {
	list := make([]nvml.ProcessUtilizationSample, d.processes)
	for i := range list {
		list[i] = doing(uint32(d.first()+i), 1, uint64(time.Now().UnixMicro()))
	}
	return list, nvml.SUCCESS
}

// shared is a machine of eight GPUs with so many processes each.
func shared(processes int, turnover bool) *server.Server {
	s := withoutSystemEvents(dgxh100.New())
	s.LookupSymbolFunc = func(string) error { return nil }
	for i := range s.Devices {
		s.Devices[i] = &busy{swift: swift{uuid: fmt.Sprintf("GPU-%d", i)}, processes: processes, turnover: turnover}
	}
	return s
}

// BenchmarkProcesses is one fast sample of eight GPUs with so many processes
// each, which change at each read where it says so.
func BenchmarkProcesses(b *testing.B) {
	for _, processes := range []int{0, 32, 250} {
		b.Run(fmt.Sprintf("processes=%d", processes), func(b *testing.B) {
			found := readers(b, NewOver(shared(processes, false), Options{Processes: always}))
			b.ReportAllocs()
			for b.Loop() {
				for _, r := range found {
					if _, err := r.Read(b.Context(), device.Fast); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// Eight hundred thousand processes that came and went leave nothing behind.
func TestProcessesThatEndedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := NewOver(shared(250, true), Options{Processes: always})
		found := readers(t, from)
		for range 400 {
			time.Sleep(time.Second)
			for _, r := range found {
				observations, err := r.Read(t.Context(), device.Fast)
				if err != nil || len(observations[0].Processes) != 250 {
					t.Fatalf("%d processes, %v", len(observations[0].Processes), err)
				}
			}
		}
		for uuid, r := range from.readers {
			if kept := len(r.processes.utilization.samples); kept != 250 {
				t.Errorf("%s: %d samples are kept of 250 processes", uuid, kept)
			}
		}
	})
}
