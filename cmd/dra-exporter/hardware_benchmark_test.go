//go:build cgo && linux

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/nvml"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// BenchmarkHardware reads everything (both tiers, each link, engine activity)
// of several GPUs through the real binding over the scripted library, and scrapes the
// resulting page. The benchmark reads one GPU after the other; the agent reads them
// concurrently.
func BenchmarkHardware(b *testing.B) {
	libraries := stubs.Build(b)
	for _, gpus := range []int{1, 8, 16} {
		b.Run(fmt.Sprintf("gpus=%d", gpus), func(b *testing.B) {
			hardware := stubs.NewNode(b, gpus)
			b.Setenv("DRA_STUB_HARDWARE", hardware.Dir)
			from := nvml.New(nvml.Options{Library: libraries.NVML, Links: true, Profiling: true})
			b.Run("sample", func(b *testing.B) { benchmarkSample(b, from) })
			b.Run("scrape", func(b *testing.B) { benchmarkScrape(b, from) })
		})
	}
}

func benchmarkSample(b *testing.B, from device.Source) {
	readers, err := from.Readers(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, reader := range readers {
			if _, err := reader.Read(b.Context(), device.Slow); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// benchmarkScrape includes the client's reading.
func benchmarkScrape(b *testing.B, from device.Source) {
	address := serve(b, testFlags(), role.NodeOptions{Name: "n", Socket: "/does/not/exist", Sources: []device.Source{from}})
	page := eventually(b, address+"/metrics", "dra_device_engine_active_ratio{")
	for b.Loop() {
		if code, _ := get(b, address+"/metrics"); code != http.StatusOK {
			b.Fatalf("a scrape answers %d", code)
		}
	}
	b.ReportMetric(float64(strings.Count(page, "\ndra_")), "series")
}
