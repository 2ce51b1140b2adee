package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// nvidiaNode is what a node with NVIDIA's GPUs has in addition to Kubernetes:
// the GPUs, which are scripted, NVIDIA's own DRA driver, a DCGM host engine,
// and an agent for each source. All read the same GPUs, each through the
// vendor's library.
type nvidiaNode struct {
	*stubs.Node
	engine      *stubs.HostEngine
	engineIsOld bool // it reports no UUIDs of MIG devices
	nvml, dcgm  *hostAgent
	xids        *xidAlerts // of the agent that reads NVML, if a test checks alerts
}

// startNVIDIA replaces the imitation of NVIDIA's driver by the driver itself
// until the test ends.
func startNVIDIA(t *testing.T, gpus *stubs.Node, count int, gates string) *nvidiaNode {
	t.Helper()
	libraries := stubs.Build(t)
	replaceDriver(t, shared.Process("driver-"+cluster.NVIDIADriver), func() (*cluster.Process, error) {
		return shared.StartNVIDIADriver(t.Context(), nvidiaOptions(t, gpus, count, gates))
	})
	n := &nvidiaNode{Node: gpus, engine: gpus.StartHostEngine(t, libraries, "")}
	n.nvml = n.agent(t, "nvml", "--nvml.library="+libraries.NVML)
	n.dcgm = n.agent(t, "dcgm", "--dcgm.host-engine="+n.engine.Address, "--dcgm.library="+libraries.DCGM)
	return n
}

// nvidiaOptions are the options of NVIDIA's driver over scripted GPUs.
func nvidiaOptions(t *testing.T, gpus *stubs.Node, count int, gates string) cluster.NVIDIAOptions {
	t.Helper()
	return cluster.NVIDIAOptions{FeatureGates: gates, Library: stubs.Build(t).NVML, Hardware: gpus.Env(), GPUs: count}
}

// replaceDriver retires a driver of gpu.nvidia.com, starts another, and
// restores the first at the end of the test.
func replaceDriver(t *testing.T, first *cluster.Process, start func() (*cluster.Process, error)) {
	t.Helper()
	var second *cluster.Process
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if second != nil {
			if t.Failed() {
				t.Logf("the log of NVIDIA's driver:\n%s", second.LogTail(80))
			}
			if err := shared.Retire(ctx, cluster.NVIDIADriver, second); err != nil {
				t.Error(err)
			}
		}
		if err := first.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := shared.Retire(t.Context(), cluster.NVIDIADriver, first); err != nil {
		t.Fatal(err)
	}
	var err error
	if second, err = start(); err != nil {
		t.Fatal(err)
	}
}

// agent starts an agent with vendor libraries that reads the scripted GPUs. It
// has short intervals for recovery and for new devices, so that tests end
// soon.
func (n *nvidiaNode) agent(t *testing.T, source string, args ...string) *hostAgent {
	t.Helper()
	return startVendorAgent(t, n.Node, source, args...)
}

// startVendorAgent starts an agent with vendor libraries on the host, until the test
// ends.
func startVendorAgent(t *testing.T, gpus *stubs.Node, source string, args ...string) *hostAgent {
	t.Helper()
	agent := exec.Command(filepath.Join(os.Getenv("DRA_E2E_BIN"), "agent-cgo", "dra-exporter"), "node",
		"--kubelet.pod-resources-socket="+shared.KubeletSocket(),
		"--device.source="+source, "--metrics.level=full", "--device.slow-interval=2s", "--health.hold=5s", "--ledger.grace=30s")
	agent.Args = append(agent.Args, args...)
	agent.Env = append(os.Environ(), gpus.Env()...)
	a := &hostAgent{name: source}
	a.launch(t, agent)
	return a
}

// agents returns both agents.
func (n *nvidiaNode) agents() []*hostAgent { return []*hostAgent{n.nvml, n.dcgm} }
