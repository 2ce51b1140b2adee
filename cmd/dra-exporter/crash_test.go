//go:build cgo && linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/nvml"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// TestCrashOfALibrary checks docs/troubleshooting.md: a segmentation fault in a vendor's
// library ends the agent.
func TestCrashOfALibrary(t *testing.T) {
	hardware := stubs.NewNode(t, 1)
	libraries := stubs.Build(t)
	start := func(sources ...string) *crashing {
		return startCrashing(t, hardware, append([]string{"--nvml.library=" + libraries.NVML}, sources...)...)
	}
	agent := start("--device.source=nvml")
	agent.waitFor(t, `dra_device_power_watts\{`)
	hardware.Set(0, "crash.nvmlDeviceGetPowerUsage", "1")
	report := agent.ended(t, 2)
	document, err := os.ReadFile(filepath.Join("..", "..", "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"SIGSEGV: segmentation violation", "signal arrived during cgo execution", "go-nvml/pkg/nvml._Cfunc_nvmlDeviceGetPowerUsage"} {
		if !strings.Contains(report, line) {
			t.Errorf("the log does not have %q:\n%s", line, report)
		}
		if !strings.Contains(string(document), "`"+line+"`") {
			t.Errorf("the document does not have %q", line)
		}
	}

	// After a restart it crashes again; with the flag of the document it runs
	// without the library.
	start("--device.source=nvml").ended(t, 2)
	flags := regexp.MustCompile("--device.source=amdgpu --device.source=rdma").FindString(string(document))
	if flags == "" {
		t.Fatal("the document has no flags")
	}
	start(strings.Fields(flags)...).waitFor(t, `dra_exporter_source_up\{source="rdma"`)
}

// crashing is an agent in a separate process.
type crashing struct {
	command *exec.Cmd
	file    string
	done    chan error
}

func startCrashing(t *testing.T, hardware *stubs.Node, flags ...string) *crashing {
	t.Helper()
	folder := t.TempDir()
	arguments := []string{
		"node", "--node.name=n", "--kubernetes.disable", "--web.listen-address=127.0.0.1:0", "--device.interval=100ms",
		"--kubelet.pod-resources-socket=" + filepath.Join(folder, "none.sock"), "--cdi.dir=" + folder,
	}
	c := &crashing{command: program(t.Context(), append(arguments, flags...)...), file: filepath.Join(folder, "log"), done: make(chan error, 1)}
	log, err := os.Create(c.file)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c.command.Stdout, c.command.Stderr = log, log
	c.command.Env = append(c.command.Env, hardware.Env()...)
	if err := c.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { c.done <- c.command.Wait() }()
	t.Cleanup(func() { _ = c.command.Process.Kill() })
	return c
}

func (c *crashing) text() string {
	text, err := os.ReadFile(c.file)
	return fmt.Sprint(string(text), err)
}

// waitFor waits until the page of metrics contains a text.
func (c *crashing) waitFor(t *testing.T, pattern string) {
	t.Helper()
	address, row := regexp.MustCompile(`address=(127\.0\.0\.1:[0-9]+)`), regexp.MustCompile(pattern)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		found := address.FindStringSubmatch(c.text())
		if found == nil {
			continue
		}
		answer, err := http.Get("http://" + found[1] + "/metrics")
		if err != nil {
			continue
		}
		page, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if row.Match(page) {
			return
		}
	}
	t.Fatalf("the page never has %s:\n%s", pattern, c.text())
}

// ended waits until the process has ended with an exit status, and returns its log.
func (c *crashing) ended(t *testing.T, status int) string {
	t.Helper()
	select {
	case err := <-c.done:
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != status {
			t.Errorf("it ended with %v, want exit status %d:\n%s", err, status, c.text())
		}
		return c.text()
	case <-time.After(time.Minute):
		t.Fatalf("it goes on:\n%s", c.text())
		return ""
	}
}

// The page and the health check while the driver is loaded again, and replaced,
// below the agent.
func TestDriverBelowTheAgent(t *testing.T) {
	node := stubs.NewNode(t, 1)
	t.Setenv("DRA_STUB_HARDWARE", node.Dir)
	flags := testFlags()
	flags.slowInterval = time.Second
	address := serve(t, flags, role.NodeOptions{
		Name: "n", Socket: "/does/not/exist",
		Sources: []device.Source{nvml.New(nvml.Options{Library: stubs.Build(t).NVML, Sysfs: t.TempDir()})},
	})
	received := regexp.MustCompile(`(?m)^dra_device_xid_errors_total\{.*xid="48"\} ([0-9]+)$`)
	eventually(t, address+"/metrics", `xid="48"} 0`)
	node.ReloadDriver()
	page := eventually(t, address+"/metrics", `dra_exporter_source_error_info{reason="events_not_received",source="nvml"} 1`)
	if found := received.FindString(page); found != "" {
		t.Errorf("while no Xids are received: %s", found)
	}
	eventually(t, address+"/metrics", `xid="48"} 0`)
	node.XID(0, 48)
	eventually(t, address+"/metrics", `xid="48"} 1`)

	node.UpgradeDriver("999.1")
	eventually(t, address+"/metrics", `dra_exporter_source_error_info{reason="library_mismatch",source="nvml"} 1`, `dra_exporter_source_up{source="nvml"} 0`)
	eventually(t, address+"/", "restart the agent, which then opens the library of the new one")
	node.SetNode("driver_version", "580.65.06")
	eventually(t, address+"/metrics", `dra_exporter_source_up{source="nvml"} 1`)
}

// A driver that stays replaced ends the process, so that the next one opens the new
// library.
func TestEndAfterTheDriverWasReplaced(t *testing.T) {
	hardware := stubs.NewNode(t, 1)
	c := startCrashing(t, hardware, "--device.source=nvml", "--nvml.library="+stubs.Build(t).NVML, "--path.sysfs="+t.TempDir())
	c.waitFor(t, `dra_device_info\{.*\} 1`)
	hardware.UpgradeDriver("999.1")
	log := c.ended(t, 1)
	want := "end, so that another process opens the library of the new driver: nvml: "
	if !strings.Contains(log, want) || !strings.Contains(log, "driver 580.65.06 was replaced by another while its library was in use") {
		t.Errorf("it ends with:\n%s", log)
	}
}
