//go:build cgo && linux

package main

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/nvml"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
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

// BenchmarkRest runs the whole program as a process of its own over NVML's binding and the
// scripted library: 8 GPUs, of which claims hold none or all, scraped every 15 s. It
// reports the processor time of a minute and the memory of the process.
func BenchmarkRest(b *testing.B) {
	const minute, scrapeEvery = 60, 15
	libraries := stubs.Build(b)
	for _, claims := range []int{0, denseGPUs} {
		b.Run(fmt.Sprintf("claims=%d", claims), func(b *testing.B) {
			hardware := stubs.NewNode(b, denseGPUs)
			agent, address := startRestingAgent(b, hardware, claims, hardware.Env(), "--device.source=nvml", "--nvml.library="+libraries.NVML, "--web.enable-pprof")
			for range restingScrapes {
				time.Sleep(scrapeEvery * time.Second)
				scrape(b, address, openMetrics)
			}
			series := 0
			var spent time.Duration
			for b.Loop() {
				before := processorTime(b, agent.Process.Pid)
				for range minute / scrapeEvery {
					time.Sleep(scrapeEvery * time.Second)
					series = scrape(b, address, openMetrics)
				}
				spent += processorTime(b, agent.Process.Pid) - before
			}
			b.ReportMetric(float64(series), "series")
			b.ReportMetric(spent.Seconds()/float64(b.N), "s/minute")
			b.ReportMetric(memory(b, agent.Process.Pid, "RssAnon"), "anonymous-MiB")
			b.ReportMetric(memory(b, agent.Process.Pid, "VmRSS"), "resident-MiB")
		})
	}
}

// restingScrapes are the scrapes after which an agent knows how often it is scraped.
const restingScrapes = 4

// startRestingAgent starts an agent beside a kubelet and an API server. Claims hold the
// first GPUs of the hardware. It waits until the page has them.
func startRestingAgent(b *testing.B, hardware *stubs.Node, claims int, environment []string, flags ...string) (*exec.Cmd, string) {
	b.Helper()
	directory := b.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	b.Cleanup(stop)
	server, err := apiserver.Start(ctx, apiserver.Options{})
	if err != nil {
		b.Fatal(err)
	}
	node := "node-a"
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice"},
		Spec:       resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}},
	}
	var pods []simulated.Pod
	for gpu := range denseGPUs {
		uuid, name := uuidOfPeers(gpu), fmt.Sprintf("gpu-%d", gpu)
		hardware.Set(gpu, "uuid", uuid)
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}}})
		if gpu >= claims {
			continue
		}
		claim, pod := denseClaim(gpu), densePods(gpu + 1)[gpu]
		claim.Status.Allocation.Devices.Results[0].Device, pod.Claims[0].Devices[0].Name = name, name
		put(b, server, claim, densePod(gpu))
		pods = append(pods, pod)
	}
	put(b, server, slice)
	kubelet, err := simulated.Start(ctx, filepath.Join(directory, "kubelet.sock"), simulated.Options{Pods: pods, Faults: simulated.Always()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(kubelet.Close)
	agent, address := startNode(ctx, b, directory, server.Config().Host, environment, flags...)
	b.Cleanup(func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		if err := agent.Wait(); err != nil {
			b.Errorf("the agent did not end well: %v", err)
		}
	})
	for !isReady(address) || heldClaims(b, address) < claims {
		time.Sleep(100 * time.Millisecond)
	}
	return agent, address
}
