package demo

import (
	"context"
	_ "embed" // for the price list
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
	kubelet "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

//go:embed prices.yaml
var pricesYAML string

// AgentNode is a simulated node that an agent runs on: its hardware, its kubelet, and
// what drivers write on it. Its methods may be called from any goroutine.
type AgentNode struct {
	name         string
	folder       string
	source       *simulated.Source
	accelerators *accelerators
	kubelet      *kubelet.Kubelet
	pods         *podList
	activity     *activity
	cdi          cdiFolder
}

// socketLimit is the longest path of a unix socket on all systems.
const socketLimit = 103

// newAgentNode returns a node whose files are in a folder.
func newAgentNode(name, folder string, h hardware, options Options) *AgentNode {
	n := &AgentNode{name: name, folder: folder, source: simulated.New(h.config, options.Clock)}
	n.cdi = cdiFolder{n.CDIDir(), h}
	n.activity = newActivity(n.source, h, n.Procfs())
	n.accelerators = &accelerators{source: n.source, devices: h.accelerators, log: options.Log}
	return n
}

// serve makes the folder and starts the servers: the kubelet's stops with close, the
// others' at the end of closing.
func (n *AgentNode) serve(ctx, closing context.Context) (err error) {
	if longest := filepath.Join(n.folder, "plugins", tpuDriver+".sock"); len(longest) > socketLimit {
		return fmt.Errorf("the path %s is too long for a socket: choose a shorter directory, by TMPDIR for example", longest)
	}
	if err := os.MkdirAll(n.CDIDir(), 0o755); err != nil {
		return err
	}
	if err := n.accelerators.serve(closing, n.folder); err != nil {
		return err
	}
	if err := os.WriteFile(n.PriceList(), []byte(pricesYAML), 0o644); err != nil {
		return err
	}
	if n.kubelet, err = kubelet.Start(ctx, n.KubeletSocket(), kubelet.Options{Faults: kubelet.Always()}); err != nil {
		return err
	}
	n.pods = newPodList(n.kubelet, n.cdi.hardware)
	return n.activity.begin(nil)
}

// close stops what serve started, and removes the node's files.
func (n *AgentNode) close() error {
	n.accelerators.wait()
	if n.kubelet != nil {
		n.kubelet.Close()
	}
	var errs []error
	for _, path := range []string{n.CDIDir(), n.Procfs(), n.PriceList(), n.accelerators.sockets, n.accelerators.exporter} {
		if path != "" {
			errs = append(errs, os.RemoveAll(path))
		}
	}
	return errors.Join(errs...)
}

// NodeName is the name of the node in the API server.
func (n *AgentNode) NodeName() string { return n.name }

// Source returns the source of the node's hardware, always the same, without the
// devices of other vendors.
func (n *AgentNode) Source() device.Source { return localSource{n.source} }

// SocketDir is the directory of the socket on which the TPU driver serves its page.
func (n *AgentNode) SocketDir() string { return n.accelerators.sockets }

// IntelExporter is the URL of the exporter of Intel's GPU, which has the metrics of
// Intel's xpumd.
func (n *AgentNode) IntelExporter() string { return "unix://" + n.accelerators.exporter }

// KubeletSocket is the path of the PodResources socket.
func (n *AgentNode) KubeletSocket() string { return filepath.Join(n.folder, "kubelet.sock") }

// CDIDir is the directory of the driver's CDI specifications.
func (n *AgentNode) CDIDir() string { return filepath.Join(n.folder, "cdi") }

// Procfs is where the node's procfs is mounted.
func (n *AgentNode) Procfs() string { return filepath.Join(n.folder, "proc") }

// PriceList is the path of a price list that has all of the node's devices.
func (n *AgentNode) PriceList() string { return filepath.Join(n.folder, "prices.yaml") }

// ListProcesses sets the condition under which the hardware lists its
// processes; the default is never. Call it before the source is read.
func (n *AgentNode) ListProcesses(while func() bool) { n.source.ListProcesses(while) }
