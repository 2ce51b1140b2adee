//go:build cgo && linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// The scrapes of peers are peerInterval apart, the default of many clusters.
const (
	peerScrapes  = 8
	peerInterval = 15 * time.Second
	quietLoad    = 0.5
	quietWait    = 5 * time.Minute
)

// peer is an exporter of GPU metrics that runs as a process of its own, and what was
// measured of it.
type peer struct {
	name, address string
	pid           int
	bytes, series int
	took          []time.Duration // of each scrape, from the request to the end of the page
	cost          time.Duration   // processor time of a minute

	anonymous, resident float64 // memory, MiB
}

// BenchmarkPeers scrapes dcgm-exporter and dra-exporter every 15 s, on a quiet machine
// only. All read GPUs of the same simulated hardware: both one DCGM host engine, and
// dra-exporter also NVML, its default. All GPUs are free, or a pod holds each: the
// pods of dcgm-exporter have device plugins, because it reads claims only inside of a
// cluster, and those of dra-exporter claims. The program of dcgm-exporter is DCGM_EXPORTER,
// its list of fields DCGM_EXPORTER_FIELDS, and the program of dra-exporter
// DRA_EXPORTER_BINARY. make bench-peers sets them.
func BenchmarkPeers(b *testing.B) {
	theirs, fields, ours := os.Getenv("DCGM_EXPORTER"), os.Getenv("DCGM_EXPORTER_FIELDS"), os.Getenv("DRA_EXPORTER_BINARY")
	if theirs == "" || fields == "" || ours == "" {
		b.Skip("make bench-peers DCGM_EXPORTER_SOURCES=folder")
	}
	load := waitUntilQuiet(b)
	libraries := stubs.Build(b)
	for name, held := range map[string]int{"free": 0, "held": denseGPUs} {
		b.Run(name, func(b *testing.B) {
			hardware := stubs.NewNode(b, denseGPUs)
			environment := []string{"LD_LIBRARY_PATH=" + libraries.Dir, hardware.Env()[0]}
			start := func(name string, flags ...string) *peer {
				agent, address := startRestingAgent(b, hardware, held, environment, flags...)
				return &peer{name: name, address: address + "/metrics", pid: agent.Process.Pid}
			}
			byNVML := start("dra-exporter, NVML", "--device.source=nvml", "--nvml.library="+libraries.NVML)
			engine := hardware.StartHostEngine(b, libraries, "")
			byDCGM := start("dra-exporter, DCGM", "--device.source=dcgm", "--dcgm.host-engine="+engine.Address, "--dcgm.library="+libraries.DCGM)
			socket := filepath.Join(b.TempDir(), "kubelet.sock")
			kubelet, err := simulated.Start(b.Context(), socket, simulated.Options{Pods: podsOfPeers(held), Faults: simulated.Always()})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(kubelet.Close)
			other := startPeer(b, held, "dcgm-exporter", append(os.Environ(), environment...), theirs, "--address=%s", "--remote-hostengine-info="+engine.Address, "--collectors="+fields,
				"--kubernetes=true", "--pod-resources-kubelet-socket="+socket, "--disable-startup-validate=true")
			all := []*peer{other, byDCGM, byNVML}
			for b.Loop() {
				measurePeers(b, all)
			}
			b.Logf("load %.2f at the start\n%s", load, tableOfPeers(all))
		})
	}
}

// waitUntilQuiet returns the load of the machine once it is quiet, and fails if that takes
// too long.
func waitUntilQuiet(b *testing.B) float64 {
	b.Helper()
	for until := time.Now().Add(quietWait); ; time.Sleep(5 * time.Second) {
		text, err := os.ReadFile("/proc/loadavg")
		if err != nil {
			b.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), " ")
		load, err := strconv.ParseFloat(first, 64)
		if err != nil {
			b.Fatal(err)
		}
		if load <= quietLoad {
			return load
		}
		if time.Now().After(until) {
			b.Fatalf("the load of the machine is %.2f: what is measured above %.1f is not comparable", load, quietLoad)
		}
	}
}

func uuidOfPeers(gpu int) string { return fmt.Sprintf("GPU-5a0c1c1e-0000-4000-8000-%012d", gpu) }

// podsOfPeers returns a pod for each of so many GPUs.
func podsOfPeers(gpus int) []simulated.Pod {
	pods := make([]simulated.Pod, gpus)
	for i := range pods {
		container := simulated.Container{Name: "main", Plugins: []simulated.Plugin{{Resource: "nvidia.com/gpu", DeviceIDs: []string{uuidOfPeers(i)}}}}
		pods[i] = simulated.Pod{Namespace: fmt.Sprintf("team-%d", i%6), Name: fmt.Sprintf("pod-%03d", i), Containers: []simulated.Container{container}}
	}
	return pods
}

// startPeer starts a program and waits until its page has the GPUs, and names the pods
// that hold them. The %s of its arguments is the address on which it has to listen.
func startPeer(b *testing.B, held int, name string, environment []string, program string, args ...string) *peer {
	b.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	for i := range args {
		args[i] = strings.Replace(args[i], "=%s", "="+address, 1)
	}
	var output bytes.Buffer
	command := exec.CommandContext(b.Context(), program, args...)
	command.Env, command.Stdout, command.Stderr = environment, &output, &output
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if b.Failed() {
			b.Logf("%s printed:\n%s", name, output.String())
		}
	})
	started := &peer{name: name, address: "http://" + address + "/metrics", pid: command.Process.Pid}
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		page, err := scrapePeer(started)
		if err == nil && bytes.Contains(page, []byte(uuidOfPeers(denseGPUs-1))) && (held == 0 || bytes.Contains(page, []byte(fmt.Sprintf("pod-%03d", held-1)))) {
			return started
		}
		if time.Now().After(until) {
			b.Fatalf("%s has no page with the GPUs and the pods (%v):\n%s", name, err, page)
		}
	}
}

func scrapePeer(p *peer) ([]byte, error) {
	response, err := http.Get(p.address)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", response.Status)
	}
	return page, err
}

// measurePeers scrapes all peers in turns, which begin with another one each time. The first
// turns are not measured: after them, an agent knows how often it is scraped.
func measurePeers(b *testing.B, all []*peer) {
	costs, began := make([]time.Duration, len(all)), time.Now()
	for round := range restingScrapes + peerScrapes {
		if round == restingScrapes {
			for i, one := range all {
				one.took, costs[i] = nil, processorTime(b, one.pid)
			}
			began = time.Now()
		}
		time.Sleep(peerInterval)
		for i := range all {
			one := all[(round+i)%len(all)]
			start := time.Now()
			page, err := scrapePeer(one)
			if err != nil {
				b.Fatalf("scrape %s: %v", one.name, err)
			}
			one.took = append(one.took, time.Since(start))
			one.bytes, one.series = len(page), countSeries(page)
		}
	}
	minutes := time.Since(began).Minutes()
	for i, one := range all {
		one.cost = time.Duration(float64(processorTime(b, one.pid)-costs[i]) / minutes)
		one.anonymous, one.resident = memory(b, one.pid, "RssAnon"), memory(b, one.pid, "VmRSS")
	}
}

func countSeries(page []byte) int {
	count := 0
	for line := range bytes.Lines(page) {
		if line[0] != '#' && line[0] != '\n' {
			count++
		}
	}
	return count
}

func tableOfPeers(all []*peer) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(table, "\tseries\tbytes\tscrape, median\tminimum\ta series, minimum\tprocessor, a minute\tmemory, anonymous\tresident\t")
	for _, one := range all {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%.1f MiB\t%.1f MiB\t\n", one.name, one.series, one.bytes,
			rounded(median(one.took)), rounded(slices.Min(one.took)), (slices.Min(one.took) / time.Duration(one.series)).Round(10*time.Nanosecond),
			rounded(one.cost), one.anonymous, one.resident)
	}
	_ = table.Flush()
	return text.String()
}

func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
