package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/demo"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// startedProgram is the program as a separate process, until the test ends.
type startedProgram struct {
	address string
	log     *logBuffer
	hangUp  func()
}

func startProgram(t *testing.T, args ...string) startedProgram {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	command, log := program(ctx, append(args, "--web.listen-address=127.0.0.1:0")...), &logBuffer{}
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := command.Wait(); err != nil && !strings.Contains(err.Error(), context.Canceled.Error()) {
			t.Errorf("it did not end well: %v\n%s", err, log)
		}
	})
	listens := log.wait(t, "address=127.0.0.1:")
	return startedProgram{
		address: "http://127.0.0.1:" + listens[:strings.IndexAny(listens, " \n")], log: log,
		hangUp: func() {
			if err := command.Process.Signal(syscall.SIGHUP); err != nil {
				t.Error(err)
			}
		},
	}
}

// wait returns what follows the text in the log, up to the end of the line.
func (l *logBuffer) wait(t *testing.T, text string) string {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, after, found := strings.Cut(l.String(), text); found && strings.Contains(after, "\n") {
			return after
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log never has %q:\n%s", text, l)
		}
	}
}

// SIGHUP reloads the price list. If the new list is invalid, or in another
// currency, the previous one stays in force, an error is logged, and the
// process continues.
func TestSIGHUPReloadsPrices(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	prices := write("prices.yaml", "currency: EUR\nprices: [{model: A, perHour: 1}]\n")
	devices := write("devices.yaml", "devices: [{uuid: GPU-0, vendor: nvidia, model: A}]")
	node := startProgram(t, "node", "--node.name=n", "--kubernetes.disable", "--device.source=simulated", "--simulated.config="+devices, "--cost.prices="+prices)
	const one, two, succeeded, failed = `currency="EUR",deviceclass="",node="n",uuid="GPU-0"} 1` + "\n", `currency="EUR",deviceclass="",node="n",uuid="GPU-0"} 2` + "\n",
		"\ndra_exporter_config_last_reload_successful 1\n", "\ndra_exporter_config_last_reload_successful 0\n"
	eventually(t, node.address+"/metrics", one, succeeded, "\ndra_exporter_config_last_reload_success_timestamp_seconds 1.")
	for text, reason := range map[string]string{
		"currency: EUR\nprices: [{model: A, perHour: two}]\n": "perHour",
		"currency: USD\nprices: [{model: A, perHour: 2}]\n":   "the currency changed to USD from EUR",
	} {
		write("prices.yaml", text)
		node.hangUp()
		node.log.wait(t, reason)
		eventually(t, node.address+"/metrics", one, failed)
	}
	if err := errors.Join(os.Remove(prices), syscall.Mkfifo(prices, 0o600)); err != nil {
		t.Fatal(err)
	}
	node.hangUp()
	node.log.wait(t, prices+": it is not a regular file")
	eventually(t, node.address+"/metrics", one, failed)
	if err := os.Remove(prices); err != nil {
		t.Fatal(err)
	}
	write("prices.yaml", "currency: EUR\nprices: [{model: A, perHour: 2}]\n")
	node.hangUp()
	eventually(t, node.address+"/metrics", two, succeeded)
}

// Without metrics of the process, a page has those of the role alone.
func TestDisableExporterMetrics(t *testing.T) {
	for flag, want := range map[string]bool{"--web.disable-exporter-metrics": false, "--no-web.disable-exporter-metrics": true} {
		node := startProgram(t, "node", "--node.name=n", "--kubernetes.disable", "--metrics.level=full", flag)
		eventually(t, node.address+"/metrics", "\ndra_exporter_build_info{", "\ndra_exporter_steps_total ")
		for range 2 {
			_, page := get(t, node.address+"/metrics")
			for _, prefix := range []string{"\ngo_", "\nprocess_", "\npromhttp_"} {
				if strings.Contains(page, prefix) != want {
					t.Errorf("%s: %q is on the page: %t", flag, prefix, !want)
				}
			}
		}
	}
}

// Without anything to reload, SIGHUP is logged and ignored.
func TestSIGHUPIsIgnored(t *testing.T) {
	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := demo.WriteKubeconfig(kubeconfig, server.Config()); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"node", "--node.name=n", "--kubernetes.disable"},
		{"cluster", "--kubeconfig=" + kubeconfig},
	} {
		t.Run(args[0], func(t *testing.T) {
			role := startProgram(t, args...)
			for range 3 {
				role.hangUp()
			}
			role.log.wait(t, "SIGHUP is ignored")
			if code, page := get(t, role.address+"/metrics"); code != 200 || strings.Contains(page, "config_last_reload") {
				t.Errorf("afterwards a scrape gets %d:\n%.500s", code, page)
			}
		})
	}
}

// Links to files without an end, and pipes, among the CDI files impair their source, and
// the program ends at SIGTERM.
func TestCDIFilesWithoutEnd(t *testing.T) {
	folder := t.TempDir()
	for name, target := range map[string]string{"kmsg.json": "/proc/kmsg", "terminal.json": "/dev/tty", "zero.yaml": "/dev/zero"} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := startProgram(t, "node", "--node.name=n", "--kubernetes.disable", "--cdi.dir="+folder)
	eventually(t, node.address+"/metrics", `dra_exporter_source_error_info{reason="invalid",source="cdi"} 1`, `dra_exporter_source_up{source="cdi"} 1`)
}
