package page

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// busyNode is the rows of a node of eight GPUs, each in eight partitions, each of which a
// claim holds. The readings are random.
func busyNode(random *rand.Rand) []metric.Row {
	var rows []metric.Row
	for gpu := range 8 {
		parent := fmt.Sprintf("GPU-6f1b2a90-0b2d-4a57-9d3e-%012d", gpu)
		device := func(uuid, parent, profile, name string) {
			rows = append(rows,
				row("dra_device_info", 1, "node", "node-a", "uuid", uuid, "parent_uuid", parent, "vendor", "nvidia", "model", "NVIDIA H100 80GB HBM3", "partition_profile", profile),
				row("dra_device_published_info", 1, "uuid", uuid, "parent_uuid", parent, "driver", "gpu.nvidia.com", "pool", "node-a", "device", name),
				row("dra_device_utilization_ratio", random.Float64(), "uuid", uuid, "parent_uuid", parent),
				row("dra_device_memory_used_bytes", random.Float64()*10e9, "uuid", uuid, "parent_uuid", parent),
				row("dra_device_memory_size_bytes", 10e9, "uuid", uuid, "parent_uuid", parent))
		}
		device(parent, "", "", fmt.Sprintf("gpu-%d", gpu))
		rows = append(rows, row("dra_device_power_watts", 300+300*random.Float64(), "uuid", parent), row("dra_device_power_limit_watts", 700, "uuid", parent))
		for i := range 8 {
			uuid, name, claim := fmt.Sprintf("MIG-2c9d4f10-77aa-5e0b-%04d-%012d", gpu, i), fmt.Sprintf("gpu-%d-mig-1g10gb-9-%d", gpu, i), fmt.Sprintf("worker-%d-%d-gpu-x7k2p", gpu, i)
			device(uuid, parent, "1g.10gb", name)
			of := []string{"node", "node-a", "namespace", "team-ml", "resourceclaim", claim}
			on := append(of[:len(of):len(of)], "uuid", uuid)
			rows = append(rows,
				row("dra_claim_info", 1, append(of[:len(of):len(of)], "uid", claim, "deviceclass", "mig.nvidia.com", "template", "mig")...),
				row("dra_claim_held", 1, on...),
				row("dra_claim_device_info", 1, append(on[:len(on):len(on)], "driver", "gpu.nvidia.com", "pool", "node-a", "device", name, "request", "mig")...),
				row("dra_claim_consumer_info", 1, append(on[:len(on):len(on)], "pod", fmt.Sprintf("worker-%d-%d", gpu, i), "container", "main", "owner_kind", "Job", "owner_name", "train")...),
				row("dra_claim_utilization_ratio", random.Float64(), append(on[:len(on):len(on)], "attribution", "partition")...),
				row("dra_claim_memory_used_bytes", random.Float64()*10e9, append(on[:len(on):len(on)], "attribution", "partition")...),
				row("dra_claim_device_seconds_total", 3600*random.Float64(), on...))
		}
	}
	return rows
}

// BenchmarkPageInChromium is the processor time of the main thread that the overview of 64 claims takes in
// Chromium: until it is loaded and painted, and for each update, with other readings for all
// devices. Each iteration is one load and five updates.
func BenchmarkPageInChromium(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	handler := configured(b, Config{History: hourOf(busyNode(random))}, func() []metric.Row { return busyNode(random) })
	requests := make(chan struct{}, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		handler.ServeHTTP(w, r)
		if r.URL.Path == "/" {
			requests <- struct{}{}
		}
	}))
	defer server.Close()
	status, body := get(b, handler, "/")
	if status != http.StatusOK {
		b.Fatal(status)
	}
	tab := openChromium(b)
	tab.size(1280, "light")
	tab.call("Performance.enable", map[string]any{"timeDomain": "threadTicks"})
	busy := func() float64 { // processor time of the main thread so far, seconds
		var answer struct {
			Metrics []struct {
				Name  string
				Value float64
			}
		}
		tab.decode(tab.call("Performance.getMetrics", nil), &answer)
		for _, m := range answer.Metrics {
			if m.Name == "TaskDuration" {
				return m.Value
			}
		}
		b.Fatal("Chromium does not report TaskDuration")
		return 0
	}
	const updates = 5
	var painted, loading, updating float64
	n := 0
	for b.Loop() {
		n++
		tab.call("Page.navigate", map[string]any{"url": "about:blank"})
		tab.wait("the page is empty", `location.href === "about:blank"`)
		before := busy()
		tab.open(server.URL)
		tab.wait("the page is painted", `performance.getEntriesByName("first-contentful-paint").length`)
		var paint float64
		tab.evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime - performance.getEntriesByType("navigation")[0].responseStart`, &paint)
		painted += paint
		loading += busy() - before
		for len(requests) > 0 {
			<-requests
		}
		tab.is("there are 64 claims", `document.querySelectorAll('details[data-key="claims"] tbody').length === 64`)
		before = busy()
		for range updates {
			<-requests
		}
		time.Sleep(500 * time.Millisecond) // the last one is shown
		updating += busy() - before
	}
	b.ReportMetric(painted/float64(n), "ms-until-painted")
	b.ReportMetric(loading/float64(n)*1000, "ms/load")
	b.ReportMetric(updating/float64(n)/updates*1000, "ms/update")
	b.ReportMetric(float64(len(body)), "B")
	b.ReportMetric(float64(compressed(b, body)), "B-compressed")
	b.ReportMetric(0, "ns/op")
}

// compressed returns the size of the page, its style and its script by gzip.
func compressed(b *testing.B, page string) int {
	b.Helper()
	var size int
	for _, text := range []string{page, pageCSS, pageJS} {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		_, _ = w.Write([]byte(text)) // writing to a buffer cannot fail
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		size += out.Len()
	}
	return size
}
