package hostile

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestClientsAtScale runs the demo of a program, which DRA_EXPORTER names, and
// reports the times of scrapes and the memory with all kinds of hostile
// clients at the same time; see docs/benchmarks.md.
func TestClientsAtScale(t *testing.T) {
	program := os.Getenv("DRA_EXPORTER")
	if program == "" {
		t.Skip("DRA_EXPORTER names no program to measure")
	}
	server := &clientsServer{log: &clientsLog{}}
	server.config, server.pool = clientsCertificate(t)
	text := strings.NewReplacer("FOLDER", filepath.Dir(server.config), "HASH", clientsHash).Replace(clientsUsers)
	if err := os.WriteFile(server.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server.address = clientsFreeAddress(t)
	command := exec.CommandContext(t.Context(), program, "demo", "--web.config.file="+server.config,
		"--web.listen-address="+server.address, "--cluster.listen-address="+clientsFreeAddress(t), "--training.listen-address=")
	command.Stderr = server.log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	client := server.client(t)
	clientsWait(t, func() bool {
		status, _, err := server.get(client, "/metrics", clientsPassword)
		return err == nil && status == 200
	})
	duration := time.Duration(memoryNumberOf("SECONDS", 60)) * time.Second
	idle, _ := server.watch(t, client, command.Process.Pid, duration/4)

	var (
		waiting atomic.Int64
		answers clientsAnswers
	)
	server.attack(t, 100, server.zeroWindow("/metrics", 8, &waiting))
	server.attack(t, 100, server.neverReads("/metrics", &waiting))
	server.attack(t, 100, server.neverReads("/", &waiting))
	server.attack(t, 100, server.slowHeaders)
	server.attack(t, 100, server.slowBody)
	server.attack(t, 200, server.guesses(t, &answers))
	most, lost := server.watch(t, client, command.Process.Pid, duration)
	t.Logf("%d MiB above idle; %d lines of log; %d passwords checked, %d refused", (most-idle)>>20, len(server.log.lines()), answers.of(401), answers.of(429))
	if lost > 0 {
		t.Errorf("%d scrapes were not answered", lost)
	}
}

func clientsFreeAddress(t *testing.T) string {
	t.Helper()
	probe, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	return probe.Addr().String()
}

// watch scrapes four times a second for a while over one connection, as
// Prometheus does. It returns the largest resident memory of the process
// meanwhile, in bytes, and how many scrapes failed.
func (s *clientsServer) watch(t *testing.T, client *http.Client, pid int, duration time.Duration) (most int64, lost int) {
	t.Helper()
	var times []time.Duration
	for begun := time.Now(); time.Since(begun) < duration; time.Sleep(250 * time.Millisecond) {
		status, took, err := s.get(client, "/metrics", clientsPassword)
		if err != nil || status != 200 {
			lost++
			t.Logf("a scrape gets %d after %s: %v", status, took, err)
		}
		times = append(times, took)
		most = max(most, clientsResident(t, pid))
	}
	slices.Sort(times)
	n := len(times)
	t.Logf("%d scrapes in %s: median %s, 99th percentile %s, longest %s; %d MiB resident at most", n, duration, times[n/2], times[min(n-1, n*99/100)], times[n-1], most>>20)
	return most, lost
}

// clientsResident returns the resident memory of a process, in bytes.
func clientsResident(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("the process has no resident memory")
	return 0
}
