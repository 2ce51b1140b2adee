package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// The dense node: 8 GPUs of 7 partitions, 64 claims, 128 containers, every
// quantity. The last eight claims share partitions with earlier ones.
const (
	denseGPUs       = 8
	densePartitions = 7
	denseClaims     = 64
)

// BenchmarkAgent runs the whole program as a process of its own on the dense
// node, scraped every ten seconds, and reports what the process costs: its
// anonymous and total memory, and its share of one core at 1 s sampling. The
// simulated hardware is part of that process.
func BenchmarkAgent(b *testing.B) {
	agent, address := startDenseAgent(b)
	series := 0
	const window, scrapeEvery = 30, 10
	var spent time.Duration
	for b.Loop() {
		before := processorTime(b, agent.Process.Pid)
		for range window / scrapeEvery {
			time.Sleep(scrapeEvery * time.Second)
			series = scrape(b, address, "")
		}
		spent += processorTime(b, agent.Process.Pid) - before
	}
	b.ReportMetric(float64(series), "series")
	b.ReportMetric(float64(scrape(b, address, openMetrics)), "openmetrics-series")
	b.ReportMetric(spent.Seconds()/float64(b.N)/window*100, "%core")
	b.ReportMetric(memory(b, agent.Process.Pid, "RssAnon"), "anonymous-MiB")
	b.ReportMetric(memory(b, agent.Process.Pid, "VmRSS"), "resident-MiB")
}

// BenchmarkAgentScrapers is the same while 50 clients scrape it 200 times a second in
// all, with gzip, as many Prometheus servers would. It reports how many scrapes a second
// were served and how many were refused, the largest anonymous memory, and the process's
// share of a core.
func BenchmarkAgentScrapers(b *testing.B) {
	const scrapers, interval, window = 50, 250 * time.Millisecond, 20 * time.Second
	agent, address := startDenseAgent(b)
	var served, refused, sent atomic.Int64
	var spent time.Duration
	largest := 0.0
	for b.Loop() {
		ctx, stop := context.WithTimeout(b.Context(), window)
		var running sync.WaitGroup
		before := processorTime(b, agent.Process.Pid)
		for i := range scrapers {
			running.Go(func() {
				time.Sleep(interval * time.Duration(i) / scrapers)
				client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
				defer client.CloseIdleConnections()
				for every := time.NewTicker(interval); ctx.Err() == nil; <-every.C {
					switch status, size := scrapePacked(b, client, address); status {
					case http.StatusOK:
						served.Add(1)
						sent.Add(size)
					case http.StatusServiceUnavailable:
						refused.Add(1)
					default:
						b.Errorf("status %d", status)
						return
					}
				}
			})
		}
		for ctx.Err() == nil {
			largest = max(largest, memory(b, agent.Process.Pid, "RssAnon"))
			time.Sleep(200 * time.Millisecond)
		}
		running.Wait()
		stop()
		spent += processorTime(b, agent.Process.Pid) - before
	}
	seconds := b.Elapsed().Seconds()
	b.ReportMetric(float64(served.Load())/seconds, "scrapes/s")
	b.ReportMetric(float64(refused.Load()), "refused")
	b.ReportMetric(float64(sent.Load())/float64(max(served.Load(), 1)), "sent-B")
	b.ReportMetric(spent.Seconds()/seconds*100, "%core")
	b.ReportMetric(largest, "anonymous-MiB")
}

// scrapePacked reads the page as it is sent with gzip, and returns its size.
func scrapePacked(b *testing.B, client *http.Client, address string) (status int, size int64) {
	request, err := http.NewRequest(http.MethodGet, address+"/metrics", nil)
	if err != nil {
		b.Error(err)
		return 0, 0
	}
	request.Header.Set("Accept", openMetrics)
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := client.Do(request)
	if err != nil {
		b.Error(err)
		return 0, 0
	}
	defer response.Body.Close()
	if size, err = io.Copy(io.Discard, response.Body); err != nil {
		b.Error(err)
	}
	return response.StatusCode, size
}

// startDenseAgent starts the agent on the dense node, and waits for its first page. It
// ends with the benchmark.
func startDenseAgent(b *testing.B) (*exec.Cmd, string) {
	b.Helper()
	directory := b.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	b.Cleanup(stop)
	server := denseCluster(ctx, b, denseClaims)
	kubelet, err := simulated.Start(ctx, filepath.Join(directory, "kubelet.sock"), simulated.Options{Pods: densePods(denseClaims), Faults: simulated.Always()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(kubelet.Close)
	agent, address := startAgent(ctx, b, directory, server.Config().Host)
	b.Cleanup(func() {
		if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
			b.Error(err)
		}
		if err := agent.Wait(); err != nil {
			b.Errorf("the agent did not end well: %v", err)
		}
	})
	for scrape(b, address, "") < 4000 {
		time.Sleep(time.Second)
	}
	return agent, address
}

// BenchmarkStart runs the whole program as a process of its own on the dense node
// with more and fewer claims, and reports the times from its start until it is
// ready, and until its page has every claim, and how many claims the page lacked
// when it became ready.
func BenchmarkStart(b *testing.B) {
	for _, claims := range []int{8, 64, 128} {
		b.Run(fmt.Sprintf("claims=%d", claims), func(b *testing.B) {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			server := denseCluster(ctx, b, claims)
			directory := b.TempDir()
			kubelet, err := simulated.Start(ctx, filepath.Join(directory, "kubelet.sock"), simulated.Options{Pods: densePods(claims), Faults: simulated.Always()})
			if err != nil {
				b.Fatal(err)
			}
			defer kubelet.Close()
			var ready, complete time.Duration
			missing := 0
			for b.Loop() {
				began := time.Now()
				agent, address := startAgent(ctx, b, directory, server.Config().Host)
				for !isReady(address) {
					time.Sleep(5 * time.Millisecond)
				}
				ready += time.Since(began)
				lacking := claims - heldClaims(b, address)
				for missing += lacking; lacking > 0; lacking = claims - heldClaims(b, address) {
					time.Sleep(20 * time.Millisecond)
				}
				complete += time.Since(began)
				if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
					b.Fatal(err)
				}
				if err := agent.Wait(); err != nil {
					b.Errorf("the agent did not end well: %v", err)
				}
			}
			b.ReportMetric(ready.Seconds()/float64(b.N), "s-to-ready")
			b.ReportMetric(complete.Seconds()/float64(b.N), "s-to-complete")
			b.ReportMetric(float64(missing)/float64(b.N), "claims-missing-when-ready")
		})
	}
}

func isReady(address string) bool {
	response, err := http.Get(address + "/-/ready")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// heldClaims is how many holds of devices the page has: each claim has one.
func heldClaims(b *testing.B, address string) int {
	_, page := get(b, address+"/metrics")
	return strings.Count(page, "\ndra_claim_held{")
}

// startAgent starts the binary of DRA_EXPORTER_BINARY, or this test as a
// program: the latter also links the test's packages.
func startAgent(ctx context.Context, b *testing.B, directory, host string) (*exec.Cmd, string) {
	b.Helper()
	config := filepath.Join(directory, "simulated.yaml")
	write(b, config, denseHardware())
	return startNode(ctx, b, directory, host, nil, "--metrics.level=full", "--device.source=simulated", "--simulated.config="+config)
}

// startNode starts the node role beside the kubelet of the directory and the API server
// of the host.
func startNode(ctx context.Context, b *testing.B, directory, host string, environment []string, flags ...string) (*exec.Cmd, string) {
	b.Helper()
	kubeconfig := filepath.Join(directory, "kubeconfig")
	write(b, kubeconfig, fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}`, host))
	args := append([]string{"node", "--node.name=node-a", "--kubeconfig=" + kubeconfig, "--kubelet.pod-resources-socket=" + filepath.Join(directory, "kubelet.sock"),
		"--cdi.dir=" + directory, "--web.listen-address=127.0.0.1:0"}, flags...)
	command := program(ctx, args...)
	if binary := os.Getenv("DRA_EXPORTER_BINARY"); binary != "" {
		command = exec.CommandContext(ctx, binary, args...)
	}
	command.Env = append(command.Environ(), environment...)
	output, err := command.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	lines, log := bufio.NewScanner(output), ""
	for lines.Scan() {
		log += lines.Text() + "\n"
		if _, after, found := strings.Cut(lines.Text(), "address=127.0.0.1:"); found {
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return command, "http://127.0.0.1:" + strings.Fields(after)[0]
		}
	}
	b.Fatalf("the agent does not say where it listens:\n%s", log)
	return nil, ""
}

func write(b *testing.B, path, text string) {
	b.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// openMetrics is the format that Prometheus requests by default.
const openMetrics = "application/openmetrics-text;version=1.0.0"

// scrape reads the page in a format, the text format if it is empty, and counts
// its series.
func scrape(b *testing.B, address, format string) int {
	b.Helper()
	request, err := http.NewRequest(http.MethodGet, address+"/metrics", nil)
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Accept", format)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	count := 0
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "dra_") {
			count++
		}
	}
	return count
}

// processorTime returns the CPU time of /proc/<pid>/stat, in ticks of 10 ms.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("the processor time of a process is read from /proc")
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

func memory(b *testing.B, pid int, name string) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, name+":"); found {
			kibibytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				b.Fatal(err)
			}
			return kibibytes / 1024
		}
	}
	b.Fatalf("no %s in /proc/%d/status", name, pid)
	return 0
}

// denseHardware is the configuration of the simulated source.
func denseHardware() string {
	details := map[string][]string{
		"engine": {"graphics", "sm", "tensor", "fp64", "fp32", "fp16", "dram", "encoder", "decoder", "copy"},
		"sensor": {"gpu", "memory"}, "clock": {"sm", "memory"}, "severity": {"corrected", "uncorrected"}, "link": {"0", "1"}, "peer": {"switch"},
		"reason": {"power", "thermal", "sync_boost", "hardware_slowdown", "software_power"}, "kind": {"crc", "replay", "recovery"},
		"action": {"none", "gpu_reset", "node_reboot", "drain_p2p", "drain_and_reset"},
	}
	var file strings.Builder
	file.WriteString("templates:\n  all:\n    model: NVIDIA H100 80GB HBM3\n    quantities:\n")
	for _, spec := range device.Specs() {
		value := "0.5"
		if spec.Kind == device.Counter {
			value = "{rate: 1000}"
		}
		for i := len(spec.Details) - 1; i >= 0; i-- {
			var nested []string
			for _, name := range details[spec.Details[i]] {
				nested = append(nested, strconv.Quote(name)+": "+value)
			}
			value = "{" + strings.Join(nested, ", ") + "}"
		}
		fmt.Fprintf(&file, "      %s: %s\n", spec.Name, value)
	}
	file.WriteString("devices:\n")
	for g := range denseGPUs {
		fmt.Fprintf(&file, "- template: all\n  vendor: nvidia\n  driverVersion: 580.65.06\n  uuid: GPU-%d\n  pciBusID: \"0000:%02x:00.0\"\n  minor: %d\n  load: 1\n  partitions:\n", g, 16+g, g)
		for p := range densePartitions {
			fmt.Fprintf(&file, "  - {template: all, uuid: MIG-%d-%d, profile: 1g.10gb, placement: %d}\n", g, p, p)
		}
	}
	return file.String()
}

func densePartition(claim int) (gpu, partition int) {
	return claim / densePartitions % denseGPUs, claim % densePartitions
}

func denseName(gpu, partition int) string {
	return fmt.Sprintf("gpu-%d-mig-1g10gb-19-%d", gpu, partition)
}

// denseCluster is an API server with the slices, claims and pods.
func denseCluster(ctx context.Context, b *testing.B, claims int) *apiserver.Server {
	b.Helper()
	server, err := apiserver.Start(ctx, apiserver.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for g := range denseGPUs {
		put(b, server, denseSlice(g))
	}
	for c := range claims {
		put(b, server, denseClaim(c), densePod(c))
	}
	return server
}

func put(b *testing.B, server *apiserver.Server, objects ...apiserver.Object) {
	b.Helper()
	if err := server.Put(objects...); err != nil {
		b.Fatal(err)
	}
}

func denseSlice(g int) *resourcev1.ResourceSlice {
	node := "node-a"
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("slice-%d", g)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.nvidia.com", NodeName: &node,
			Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: denseGPUs},
		},
	}
	for p := range densePartitions {
		uuid, parent, profile := fmt.Sprintf("MIG-%d-%d", g, p), fmt.Sprintf("GPU-%d", g), "1g.10gb"
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name: denseName(g, p),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"uuid": {StringValue: &uuid}, "parentUUID": {StringValue: &parent}, "profile": {StringValue: &profile},
			},
		})
	}
	return slice
}

func denseMeta(c int, kind string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: fmt.Sprintf("team-%d", c%6), Name: fmt.Sprintf("%s-%02d", kind, c), UID: types.UID(fmt.Sprintf("uid-%s-%d", kind, c)),
	}
}

func denseClaim(c int) *resourcev1.ResourceClaim {
	g, p := densePartition(c)
	pod := denseMeta(c, "pod")
	return &resourcev1.ResourceClaim{
		ObjectMeta: denseMeta(c, "claim"),
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Name: "mig", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "mig.nvidia.com"}},
		}}},
		Status: resourcev1.ResourceClaimStatus{
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "mig", Driver: "gpu.nvidia.com", Pool: "node-a", Device: denseName(g, p)},
			}}, NodeSelector: nodeSelector("node-a")},
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}},
		},
	}
}

// nodeSelector selects one node, as the scheduler does for devices of a node.
func nodeSelector(node string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}
}

func densePod(c int) *corev1.Pod {
	claim := denseMeta(c, "claim").Name
	uses := corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "mig"}}}
	return &corev1.Pod{
		ObjectMeta: denseMeta(c, "pod"),
		Spec: corev1.PodSpec{
			NodeName:       "node-a",
			ResourceClaims: []corev1.PodResourceClaim{{Name: "mig", ResourceClaimName: &claim}},
			Containers:     []corev1.Container{{Name: "server", Resources: uses}, {Name: "sidecar", Resources: uses}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// densePods returns the same pods for the kubelet.
func densePods(claims int) []simulated.Pod {
	pods := make([]simulated.Pod, claims)
	for c := range pods {
		g, p := densePartition(c)
		meta, claim := denseMeta(c, "pod"), denseMeta(c, "claim").Name
		uses := []simulated.Use{{Claim: claim}}
		pods[c] = simulated.Pod{
			Namespace: meta.Namespace, Name: meta.Name,
			Claims:     []simulated.Claim{{Name: claim, Devices: []simulated.Device{{Request: "mig", Driver: "gpu.nvidia.com", Pool: "node-a", Name: denseName(g, p)}}}},
			Containers: []simulated.Container{{Name: "server", Uses: uses}, {Name: "sidecar", Uses: uses}},
		}
	}
	return pods
}
