package role

import (
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

// processFamilies are the families of every level, with the names, units and meanings
// of the library's collector. That one also reads the files of the network, of limits
// and of the boot at each scrape, which is most of a scrape's time on a small node.
type processFamilies struct {
	process              procfs.Proc
	started              float64 // Unix time, seconds
	cpu, memory, startAt *prometheus.Desc
}

// newProcessFamilies returns nil if the process cannot be read by /proc.
func newProcessFamilies() prometheus.Collector {
	process, err := procfs.NewProc(os.Getpid())
	if err != nil {
		return nil
	}
	stat, err := process.Stat()
	if err != nil {
		return nil
	}
	started, err := stat.StartTime()
	if err != nil {
		return nil
	}
	describe := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }
	return &processFamilies{
		process: process, started: started,
		cpu:     describe("process_cpu_seconds_total", "Total user and system CPU time spent in seconds."),
		memory:  describe("process_resident_memory_bytes", "Resident memory size in bytes."),
		startAt: describe("process_start_time_seconds", "Start time of the process since unix epoch in seconds."),
	}
}

// Describe implements prometheus.Collector.
func (p *processFamilies) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- p.cpu
	descriptions <- p.memory
	descriptions <- p.startAt
}

// Collect implements prometheus.Collector. What cannot be read is absent.
func (p *processFamilies) Collect(metrics chan<- prometheus.Metric) {
	send := func(description *prometheus.Desc, kind prometheus.ValueType, value float64) {
		if metric, err := prometheus.NewConstMetric(description, kind, value); err == nil {
			metrics <- metric
		}
	}
	send(p.startAt, prometheus.GaugeValue, p.started)
	stat, err := p.process.Stat()
	if err != nil {
		return
	}
	send(p.cpu, prometheus.CounterValue, stat.CPUTime())
	send(p.memory, prometheus.GaugeValue, float64(stat.ResidentMemory()))
}
