package hostile

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
)

// TestMemoryAtScale runs a program, which DRA_EXPORTER names, against many
// large claims, and reports the memory used; see docs/benchmarks.md.
func TestMemoryAtScale(t *testing.T) {
	program := os.Getenv("DRA_EXPORTER")
	if program == "" {
		t.Skip("DRA_EXPORTER names no program to measure")
	}
	count, size := memoryNumberOf("CLAIMS", 500), memoryNumberOf("CLAIM_BYTES", 900_000)
	for _, streams := range []bool{true, false}[:memoryNumberOf("WAYS", 2)] {
		t.Run(fmt.Sprintf("streams=%t", streams), func(t *testing.T) {
			server := startMemoryServer(t, streams)
			memoryFill(t, server, os.Getenv("KIND"), count, size)
			for start := range memoryNumberOf("STARTS", 2) {
				memoryRun(t, program, server, count, start)
			}
		})
	}
}

// memoryFill adds the objects to be measured.
func memoryFill(t *testing.T, server *memoryServer, kind string, count, size int) {
	t.Helper()
	claim, pod := memoryClaim(size), memoryPod()
	switch kind {
	case "templates":
		server.add(t, memoryTemplates, memoryTemplate(size), count)
	case "metadata":
		claim.Spec.Devices.Requests = memoryRequests(3200)[:1]
		memoryMetadata(&claim.ObjectMeta, size)
	case "pods":
		claim.Spec.Devices.Requests = memoryRequests(3200)[:1]
		pod = memoryPodOfManyClaims(size)
	case "limits": // the largest total size of CEL, with the most expensive expressions, that is kept for any number of claims
		expression := strings.TrimSuffix(strings.Repeat(`device.driver!="a"&&`, (size-250)/20), "&&") + `&&device.driver!="` + memoryMark + `"`
		claim.Spec.Devices.Requests = memoryRequests(32)[:1]
		claim.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
		server.addSupply(t)
	}
	server.add(t, memoryClaims, claim, count)
	server.add(t, memoryPods, pod, count)
}

func memoryNumberOf(name string, or int) int {
	if number, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return number
	}
	return or
}

func memoryRun(t *testing.T, program string, server *memoryServer, count, start int) {
	t.Helper()
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\nclusters: [{name: a, cluster: {server: '" + server.url() + "'}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	probe, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := probe.Addr().String()
	_ = probe.Close()
	command := exec.CommandContext(t.Context(), program, "cluster", "--kubeconfig="+kubeconfig, "--web.listen-address="+address, "--web.enable-pprof", "--metrics.include=process")
	command.Stderr = os.Stderr
	began := time.Now()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	synced := time.Duration(0)
	for deadline := time.Now().Add(8 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		page, err := memoryGet(t.Context(), "http://"+address+"/metrics")
		if err == nil && memoryReady(page, count) {
			synced = time.Since(began)
			break
		}
	}
	time.Sleep(time.Duration(memoryNumberOf("SETTLE", 10)) * time.Second)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "VmHWM") || strings.HasPrefix(line, "VmRSS") {
			t.Logf("start %d: synced after %v: %s", start, synced, strings.TrimSpace(line))
		}
	}
	if folder := os.Getenv("PROFILES"); folder != "" {
		profile, _ := memoryGet(t.Context(), "http://"+address+"/debug/pprof/heap?gc=1")
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("heap-%d", start)), []byte(profile), 0o600); err != nil {
			t.Error(err)
		}
	}
	page, _ := memoryGet(t.Context(), "http://"+address+"/metrics")
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "go_memstats_heap_inuse_bytes") || strings.HasPrefix(line, "go_memstats_alloc_bytes ") || strings.HasPrefix(line, "dra_claims{") ||
			strings.HasPrefix(line, "process_cpu_seconds_total") || strings.HasPrefix(line, "dra_exporter_oversized") || strings.HasPrefix(line, "dra_exporter_source_error{") || strings.HasPrefix(line, "dra_exporter_series_dropped") {
			t.Logf("start %d: %s", start, strings.TrimSpace(line))
		}
	}
}

func memoryReady(page string, count int) bool {
	if !strings.Contains(page, `dra_exporter_source_up{source="resourceclaimtemplates"} 1`) {
		return false
	}
	sum := 0.0
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "dra_claims{") {
			fields := strings.Fields(line)
			value, _ := strconv.ParseFloat(fields[len(fields)-1], 64)
			sum += value
		}
	}
	return int(sum) >= count
}
