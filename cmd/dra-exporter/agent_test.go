package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/nvml"
	"github.com/dra-exporter/dra-exporter/internal/role"
)

// blockedSource is a source whose calls never return. It counts them.
type blockedSource struct{ calls atomic.Int64 }

func (*blockedSource) Name() string { return "blocked" }
func (*blockedSource) Close() error { return nil }
func (b *blockedSource) Readers(context.Context) ([]device.Reader, error) {
	b.calls.Add(1)
	select {}
}

func testFlags() *agentFlags {
	return &agentFlags{interval: 100 * time.Millisecond, slowInterval: 30 * time.Second, grace: time.Minute, idle: 0.01, restartAfter: time.Minute, maxSeries: 1000}
}

// serve runs an agent and returns its address.
func serve(t testing.TB, flags *agentFlags, around role.NodeOptions) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	around.Clock = clock.System()
	a, err := newNode(flags, around, log)
	if err != nil {
		t.Fatal(err)
	}
	addresses, systemd, config := []string{"127.0.0.1:0"}, false, ""
	web := &webFlags{toolkit: &toolkit.FlagConfig{WebListenAddresses: &addresses, WebSystemdSocket: &systemd, WebConfigFile: &config}, path: "/metrics", log: &promslog.Config{}}
	server, err := web.server(around.API, a.Server, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, server) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the agent did not end well: %v", err)
		}
	})
	return "http://" + server.Addresses()[0].String()
}

func get(t testing.TB, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// eventually requests the page until it contains all wanted texts.
func eventually(t testing.TB, url string, want ...string) string {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, page := get(t, url)
		missing := ""
		for _, line := range want {
			if !strings.Contains(page, line) {
				missing = line
			}
		}
		if missing == "" {
			return page
		}
		if time.Now().After(deadline) {
			t.Fatalf("the page never says %q:\n%s", missing, page)
		}
	}
}

// TestScrapesNeverReadASource checks that a scrape reads no source, with a source that
// blocks forever.
func TestScrapesNeverReadASource(t *testing.T) {
	source := &blockedSource{}
	address := serve(t, testFlags(), role.NodeOptions{Name: "n", Socket: "/does/not/exist", Sources: []device.Source{source}})
	eventually(t, address+"/metrics", `dra_exporter_source_up{source="blocked"} 0`)
	before := source.calls.Load()
	for range 200 {
		if code, _ := get(t, address+"/metrics"); code != http.StatusOK {
			t.Fatalf("a scrape answers %d", code)
		}
	}
	for _, path := range []string{"/", "/api/v1/claims", "/api/v1/namespaces", "/-/ready", "/-/healthy"} {
		if code, _ := get(t, address+path); code != http.StatusOK {
			t.Errorf("%s answers %d while a source hangs", path, code)
		}
	}
	if after := source.calls.Load(); after != before || before != 1 {
		t.Errorf("the source was read %d times before 200 scrapes and %d times after, want once", before, after)
	}
}

// Without any source the agent serves, and reports what is missing.
func TestNodeWithoutSources(t *testing.T) {
	address := serve(t, testFlags(), role.NodeOptions{
		Name: "n", Socket: filepath.Join(t.TempDir(), "kubelet.sock"), CDIDirs: []string{t.TempDir()},
		API: &rest.Config{Host: "http://127.0.0.1:1"}, Sources: []device.Source{nvml.New(nvml.Options{Library: "/does/not/exist.so"})},
	})
	eventually(t, address+"/metrics",
		`dra_exporter_source_up{source="nvml"} 0`, `dra_exporter_source_error_info{reason="library_not_found",source="nvml"} 1`,
		`dra_exporter_source_up{source="podresources"} 0`, `dra_exporter_source_error_info{reason="not_found",source="podresources"} 1`,
		`dra_exporter_source_up{source="pods"} 0`, `dra_exporter_source_error_info{reason="unavailable",source="pods"} 1`,
		`dra_exporter_source_up{source="resourceslices"} 0`, `dra_exporter_source_up{source="cdi"} 1`,
	)
	if code, _ := get(t, address+"/-/ready"); code != http.StatusOK {
		t.Errorf("not ready: %d", code)
	}
	for _, remedy := range []string{"--kubelet.pod-resources-socket", "NVIDIA_DRIVER_CAPABILITIES"} {
		if _, page := get(t, address+"/"); !strings.Contains(page, remedy) {
			t.Errorf("the page does not say what to do: no %s", remedy)
		}
	}
}

// --device.source=auto logs nothing about a library that is not on the node.
func TestAutoWithoutLibraryLogsNothing(t *testing.T) {
	address := serve(t, testFlags(), role.NodeOptions{
		Name: "n", Socket: "/does/not/exist", Sources: []device.Source{nvml.New(nvml.Options{Library: "/does/not/exist.so"})}, Optional: map[string]bool{"nvml": true},
	})
	page := eventually(t, address+"/metrics", `dra_exporter_source_up{source="podresources"} 0`)
	if strings.Contains(page, `source_up{source="nvml"}`) {
		t.Error("a source whose library is missing is shown, although it is not selected")
	}
}

// A call that hangs for longer than --source.restart-after makes the health
// check fail, so that the container restarts.
func TestHealthyFailsWhenSourceHangs(t *testing.T) {
	flags := testFlags()
	flags.restartAfter = time.Second
	address := serve(t, flags, role.NodeOptions{Name: "n", Socket: "/does/not/exist", Sources: []device.Source{&blockedSource{}}})
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		code, body := get(t, address+"/-/healthy")
		if code == http.StatusServiceUnavailable {
			if !strings.Contains(body, "blocked") {
				t.Errorf("the reason does not name the source: %s", body)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(fmt.Sprint("still healthy: ", code, body))
		}
	}
}
