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
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

const (
	peerGPUs = 8
	peerPods = 120 // of the node; the first peerGPUs hold a GPU each
)

// peer is an exporter of GPU metrics that runs as a process of its own, and what was
// measured of it.
type peer struct {
	name, address string
	pid           int
	bytes, series int
	// took has the time of each scrape, from the request to the end of the page: one
	// that follows the last one after more than a second, and one immediately after it.
	took map[string][]time.Duration
	cost time.Duration // processor time of the process while it was scraped once a second
}

// BenchmarkPeers scrapes dcgm-exporter and dra-exporter in turn. Both read the same GPUs
// of the same simulated DCGM host engine, and the pods that hold them from the same
// simulated kubelet, by device plugin, because dcgm-exporter reads claims only inside
// of a cluster. The program of dcgm-exporter is DCGM_EXPORTER, its list of fields
// DCGM_EXPORTER_FIELDS, and the program of dra-exporter DRA_EXPORTER_BINARY.
// make bench-peers sets them.
func BenchmarkPeers(b *testing.B) {
	theirs, fields, ours := os.Getenv("DCGM_EXPORTER"), os.Getenv("DCGM_EXPORTER_FIELDS"), os.Getenv("DRA_EXPORTER_BINARY")
	if theirs == "" || fields == "" || ours == "" {
		b.Skip("make bench-peers DCGM_EXPORTER_SOURCES=folder")
	}
	libraries, hardware := stubs.Build(b), stubs.NewNode(b, peerGPUs)
	for gpu := range peerGPUs {
		hardware.Set(gpu, "uuid", uuidOfPeers(gpu))
	}
	engine := hardware.StartHostEngine(b, libraries, "")
	folder := b.TempDir()
	socket := filepath.Join(folder, "kubelet.sock")
	kubelet, err := simulated.Start(b.Context(), socket, simulated.Options{Pods: podsOfPeers(), Faults: simulated.Always()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(kubelet.Close)
	environment := append(os.Environ(), "LD_LIBRARY_PATH="+libraries.Dir, hardware.Env()[0])

	all := []*peer{
		startPeer(b, "dcgm-exporter", environment, theirs, "--address=%s", "--remote-hostengine-info="+engine.Address, "--collectors="+fields,
			"--kubernetes=true", "--pod-resources-kubelet-socket="+socket, "--collect-interval=1000", "--disable-startup-validate=true"),
		startPeer(b, "dra-exporter", environment, ours, "node", "--web.listen-address=%s", "--node.name=node-a", "--kubernetes.disable",
			"--device.source=dcgm", "--dcgm.host-engine="+engine.Address, "--dcgm.library="+libraries.DCGM,
			"--kubelet.pod-resources-socket="+socket, "--cdi.dir="+folder),
	}
	for b.Loop() {
		measurePeers(b, all)
	}
	b.Log("\n" + tableOfPeers(all))
}

func uuidOfPeers(gpu int) string { return fmt.Sprintf("GPU-5a0c1c1e-0000-4000-8000-%012d", gpu) }

// podsOfPeers returns one pod for each GPU, and others without.
func podsOfPeers() []simulated.Pod {
	pods := make([]simulated.Pod, peerPods)
	for i := range pods {
		container := simulated.Container{Name: "main"}
		if i < peerGPUs {
			container.Plugins = []simulated.Plugin{{Resource: "nvidia.com/gpu", DeviceIDs: []string{uuidOfPeers(i)}}}
		}
		pods[i] = simulated.Pod{Namespace: fmt.Sprintf("team-%d", i%6), Name: fmt.Sprintf("pod-%03d", i), Containers: []simulated.Container{container}}
	}
	return pods
}

// startPeer starts a program and waits until its page names the pods. The %s of its
// arguments is the address on which it has to listen.
func startPeer(b *testing.B, name string, environment []string, program string, args ...string) *peer {
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
	started := &peer{name: name, address: "http://" + address + "/metrics", pid: command.Process.Pid, took: map[string][]time.Duration{}}
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		page, err := scrapePeer(started)
		if err == nil && bytes.Contains(page, []byte("pod-000")) && bytes.Contains(page, []byte(fmt.Sprintf("pod-%03d", peerGPUs-1))) {
			return started
		}
		if time.Now().After(until) {
			b.Fatalf("%s has no page that names the pods (%v):\n%s", name, err, page)
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

// measurePeers scrapes all peers once a second for a minute, each twice, in turns that
// begin with another one each time.
func measurePeers(b *testing.B, all []*peer) {
	const rounds, period = 60, 1100 * time.Millisecond
	before := make([]time.Duration, len(all))
	for i, one := range all {
		before[i] = processorTime(b, one.pid)
	}
	for round := range rounds {
		time.Sleep(period)
		for i := range all {
			one := all[(round+i)%len(all)]
			for _, kind := range []string{"first", "again"} {
				began := time.Now()
				page, err := scrapePeer(one)
				if err != nil {
					b.Fatalf("scrape %s: %v", one.name, err)
				}
				one.took[kind] = append(one.took[kind], time.Since(began))
				one.bytes, one.series = len(page), countSeries(page)
			}
		}
	}
	for i, one := range all {
		one.cost = (processorTime(b, one.pid) - before[i]) / rounds
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
	fmt.Fprintln(table, "\tseries\tbytes\tfirst scrape, median\tminimum\ta series, minimum\tagain, median\tminimum\tprocessor time a second\t")
	for _, one := range all {
		first, again := one.took["first"], one.took["again"]
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n", one.name, one.series, one.bytes,
			rounded(median(first)), rounded(slices.Min(first)), (slices.Min(first) / time.Duration(one.series)).Round(10*time.Nanosecond),
			rounded(median(again)), rounded(slices.Min(again)), rounded(one.cost))
	}
	_ = table.Flush()
	return text.String()
}

func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

func rounded(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
