package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// hostAgent is another agent of the node, a process of one test. A test can
// change its devices and end it. It has the permissions of the first agent.
type hostAgent struct {
	name    string // for messages of failures
	url     string // of its HTML page
	process *exec.Cmd
	config  string // path of the simulated devices, if it has any
	log     string // path
}

// runHostAgent starts an agent with these devices and flags that reads this kubelet.
func runHostAgent(t *testing.T, devices *hardware, kubeletSocket string, flags ...string) *hostAgent {
	t.Helper()
	a := &hostAgent{name: "simulated", config: filepath.Join(t.TempDir(), "devices.yaml")}
	a.change(t, devices)
	a.launch(t, exec.Command(agentBinary(), append([]string{
		"node", "--kubelet.pod-resources-socket=" + kubeletSocket,
		"--device.source=simulated", "--simulated.config=" + a.config,
	}, flags...)...))
	return a
}

// launch starts the agent with these arguments, and with those of every agent
// on the host.
func (a *hostAgent) launch(t *testing.T, agent *exec.Cmd) {
	t.Helper()
	folder := t.TempDir()
	address := porttest.OneAddress(t)
	a.url, a.log = "http://"+address+"/", filepath.Join(folder, "log")
	log, err := os.Create(a.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	agent.Args = append(agent.Args,
		"--node.name="+shared.NodeName(), "--kubeconfig="+agentKubeconfig(t, folder),
		"--cdi.dir="+shared.CDIDir(), "--web.listen-address="+address,
	)
	agent.Stdout, agent.Stderr = log, log
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	a.process = agent
	t.Cleanup(func() { a.cleanUp(t) })
}

func (a *hostAgent) cleanUp(t *testing.T) {
	a.process.Process.Kill()
	a.process.Wait() // the test may have waited for it already
	if t.Failed() {
		text, _ := os.ReadFile(a.log)
		t.Logf("the log of the agent %s:\n%s", a.name, text)
	}
}

// change replaces the agent's devices. The agent reads them within a second or
// two.
func (a *hostAgent) change(t *testing.T, devices *hardware) {
	t.Helper()
	draft := a.config + ".draft"
	if err := os.WriteFile(draft, []byte(devices.yaml()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, a.config); err != nil {
		t.Fatal(err)
	}
}

// metrics returns the URL of the agent's metrics.
func (a *hostAgent) metrics(context.Context) (string, error) { return a.url + "metrics", nil }

// eventually waits until check accepts a page of this agent, and returns that
// page.
func (a *hostAgent) eventually(t *testing.T, what string, check func(*scrape.Page) error) (found *scrape.Page) {
	t.Helper()
	err := cluster.Eventually(t.Context(), what, func(ctx context.Context) (err error) {
		if found, err = scrape.Fetch(ctx, a.url+"metrics"); err != nil {
			return err
		}
		return check(found)
	})
	if err != nil {
		t.Fatalf("the agent %s: %v", a.name, err)
	}
	return found
}

// page scrapes the agent's page now.
func (a *hostAgent) page(t *testing.T) *scrape.Page {
	t.Helper()
	return a.eventually(t, "a page", func(*scrape.Page) error { return nil })
}

// agentKubeconfig writes a kubeconfig of the agent's account.
func agentKubeconfig(t *testing.T, folder string) string {
	t.Helper()
	path, err := accountKubeconfig(t.Context(), folder, agentAccount)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// steadyHardware is the hardware of the node with constant values, so that
// reads at different times agree.
func steadyHardware(utilization float64) *hardware {
	h := &hardware{Seed: devices.Seed}
	for _, gpu := range devices.Devices {
		constant := *gpu
		constant.Quantities = map[string]any{"utilization": utilization, "memory_used": 1e9, "memory_size": 80e9, "power": 300}
		constant.Partitions = nil
		for _, part := range gpu.Partitions {
			own := *part
			own.Quantities = map[string]any{"utilization": utilization / 2, "memory_used": 1e8}
			constant.Partitions = append(constant.Partitions, &own)
		}
		h.Devices = append(h.Devices, &constant)
	}
	return h
}

// unresponsiveKubelet returns the path of a socket that accepts no connection.
func unresponsiveKubelet(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return socket
}

// TestSIGTERM: the agent ends within two seconds, whatever hangs.
func TestSIGTERM(t *testing.T) {
	covers(t)
	hung, oneHung := steadyHardware(0.5), steadyHardware(0.5)
	hung.Faults = []fault{{Kind: "hang", After: "3s"}}
	oneHung.Devices[0].Faults = []fault{{Kind: "hang", After: "3s"}}
	for name, agent := range map[string]struct {
		devices *hardware
		kubelet string
		hangs   string // the source that must be reported as hanging
	}{
		"no fault":          {steadyHardware(0.5), shared.KubeletSocket(), ""},
		"the source hangs":  {hung, shared.KubeletSocket(), "simulated"},
		"a device hangs":    {oneHung, shared.KubeletSocket(), "simulated"},
		"the kubelet hangs": {steadyHardware(0.5), unresponsiveKubelet(t), "podresources"},
	} {
		t.Run(name, func(t *testing.T) {
			a := runHostAgent(t, agent.devices, agent.kubelet)
			a.eventually(t, "the first page", func(*scrape.Page) error { return nil })
			if agent.hangs != "" {
				a.eventually(t, agent.hangs+" to hang", func(p *scrape.Page) error { return sourceTimedOut(p, agent.hangs) })
			}
			began := time.Now()
			if err := a.process.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := a.process.Wait(); err != nil {
				t.Errorf("the agent did not end well: %v", err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// sourceTimedOut returns an error unless the page reports a timeout of the
// source.
func sourceTimedOut(p *scrape.Page, source string) error {
	for _, row := range p.Rows("dra_exporter_source_error_info", scrape.Labels{"source": source}) {
		if strings.HasSuffix(row.Labels["reason"], "timeout") {
			return nil
		}
	}
	return fmt.Errorf("%v", p.Rows("dra_exporter_source_error_info", nil))
}
