// Package node runs the agent on a simulated node with the machine's real GPUs:
// a kubelet and an API server of this project's simulation on real sockets,
// ResourceSlices as NVIDIA's DRA driver publishes them, and claims, pods and
// containers that come and go. The agent is a child process.
package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	kubelet "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// Name is the node's name, Namespace that of its claims and pods.
const (
	Name      = "gpukit"
	Namespace = "gpukit"
)

// Device is a GPU, or a MIG device, as it is published.
type Device struct {
	UUID            string
	ParentUUID      string // of a MIG device: its GPU's
	ProductName     string
	PCIBusID        string // 00000000:53:00.0; "" of a MIG device
	DriverVersion   string
	MemoryBytes     uint64
	GPUInstance     int // of a MIG device, with the next
	ComputeInstance int
}

// Options are those of a node. The first five are required.
type Options struct {
	Agent     string   // path of the agent, built with cgo
	Recorder  string   // path of libnvidia-ml-recorder.so, which the agent opens
	Library   string   // path or soname of the management library that the recorder opens
	Recording string   // file for the library's calls and answers
	Log       string   // file for the agent's output
	Devices   []Device // GPUs, each followed by its MIG devices

	Environment  []string      // of the agent, added to that of this process
	SlowInterval time.Duration // of the agent; 0: 5 s
	Profiling    bool          // read the GPUs' profiling counters
	Simulated    bool          // simulate a procfs even if cgroups can be made
	Timeout      time.Duration // until the agent is ready; 0: a minute
}

// Node is a simulated node with a running agent. Its methods are safe for
// concurrent use.
type Node struct {
	folder    string
	published []published
	placement placement
	server    *apiserver.Server
	kubelet   *kubelet.Kubelet
	agent     *agent
	end       context.CancelFunc

	mu     sync.Mutex
	claims []*claim
	serial int // of UIDs
	closed bool
}

// Start starts a node, and returns when its agent is ready. The node ends with
// ctx or Close: its processes, sockets, files and cgroups are gone when Close
// returns.
func Start(ctx context.Context, o Options) (*Node, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "gpukit-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for sockets: %w", err)
	}
	ctx, end := context.WithCancel(ctx)
	n := &Node{folder: folder, published: publish(o.Devices), end: end}
	if err := n.start(ctx, o); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// check names what is missing.
func (o Options) check() error {
	var missing []error
	for _, file := range []struct{ flag, path string }{{"--agent", o.Agent}, {"--recorder", o.Recorder}} {
		info, err := os.Stat(file.path)
		switch {
		case err != nil:
			missing = append(missing, fmt.Errorf("%s=%s: %w", file.flag, file.path, err))
		case info.IsDir():
			missing = append(missing, fmt.Errorf("%s=%s: is a folder", file.flag, file.path))
		}
	}
	if len(o.Devices) == 0 {
		missing = append(missing, errors.New("the management library lists no GPU"))
	}
	return errors.Join(missing...)
}

func (n *Node) start(ctx context.Context, o Options) error {
	var err error
	if n.placement, err = newPlacement(filepath.Join(n.folder, "proc"), filepath.Base(n.folder), o.Simulated); err != nil {
		return err
	}
	if n.server, err = apiserver.Start(ctx, apiserver.Options{}); err != nil {
		return err
	}
	if err := n.server.Put(nodeObject()); err != nil {
		return err
	}
	if err := n.server.Put(slice(n.published)); err != nil {
		return err
	}
	socket := filepath.Join(n.folder, "kubelet.sock")
	if n.kubelet, err = kubelet.Start(ctx, socket, kubelet.Options{Faults: kubelet.Always()}); err != nil {
		return err
	}
	config := filepath.Join(n.folder, "kubeconfig")
	if err := os.WriteFile(config, kubeconfig(n.server.Config().Host), 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	n.agent, err = startAgent(ctx, o, agentFiles{
		kubeconfig: config, socket: socket, cdi: filepath.Join(n.folder, "cdi"), procfs: n.placement.procfs(),
	})
	return err
}

// URL is the address of the agent's pages, without a path.
func (n *Node) URL() string { return "http://" + n.agent.address }

// AgentPID is the agent's pid.
func (n *Node) AgentPID() int { return n.agent.process.PID }

// AgentDone is closed when the agent has ended, which it does not by itself.
func (n *Node) AgentDone() <-chan struct{} { return n.agent.process.Done() }

// Placement says how the agent finds the container of a process: by real
// cgroups, or in a simulated procfs, and why not by cgroups.
func (n *Node) Placement() string { return n.placement.describe() }

// Claim creates a claim with devices, by their UUIDs, and a pod that holds it,
// with one container. Several claims may have the same device.
func (n *Node) Claim(name string, uuids ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if slices.ContainsFunc(n.claims, func(c *claim) bool { return c.name == name }) {
		return fmt.Errorf("create claim %s: it exists", name)
	}
	made := &claim{name: name, uid: n.newUID(), podUID: n.newUID(), container: n.newContainerID()}
	for _, uuid := range uuids {
		at := slices.IndexFunc(n.published, func(p published) bool { return p.UUID == uuid })
		if at < 0 {
			return fmt.Errorf("create claim %s: no device %s is published", name, uuid)
		}
		made.devices = append(made.devices, n.published[at])
		made.shares = append(made.shares, n.newUID())
	}
	if err := n.server.Put(made.claimObject(time.Now())); err != nil {
		return err
	}
	if err := n.server.Put(made.podObject(time.Now())); err != nil {
		return err
	}
	n.claims = append(n.claims, made)
	n.listPods()
	return nil
}

// EndClaim deletes a claim and its pod. Processes in its container go on, and
// belong to no claim.
func (n *Node) EndClaim(name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := slices.IndexFunc(n.claims, func(c *claim) bool { return c.name == name })
	if at < 0 {
		return fmt.Errorf("end claim %s: there is none", name)
	}
	ended := n.claims[at]
	n.claims = slices.Delete(n.claims, at, at+1)
	n.listPods()
	if err := n.server.Delete(ended.podObject(time.Now())); err != nil {
		return err
	}
	return n.server.Delete(ended.claimObject(time.Now()))
}

// Place makes a process one of the container of a claim's pod, or with an empty
// name a process of the host. It must be called before the process uses a
// device, because the agent looks a process up only now and then.
func (n *Node) Place(pid int, name string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name == "" {
		return n.placement.place(pid, "", "")
	}
	at := slices.IndexFunc(n.claims, func(c *claim) bool { return c.name == name })
	if at < 0 {
		return fmt.Errorf("place process %d: there is no claim %s", pid, name)
	}
	return n.placement.place(pid, n.claims[at].podUID, n.claims[at].container)
}

// Remove removes a process that has ended from a simulated procfs.
func (n *Node) Remove(pid int) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.placement.remove(pid)
}

// Close ends the agent and removes everything that the node has made. It may be
// called again. Processes that were placed have to have ended.
func (n *Node) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	if n.agent != nil {
		n.agent.process.Stop()
	}
	if n.kubelet != nil {
		n.kubelet.Close()
	}
	if n.server != nil {
		n.server.Stop()
	}
	n.end()
	var err error
	if n.placement != nil {
		err = n.placement.close()
	}
	if removed := os.RemoveAll(n.folder); removed != nil {
		err = errors.Join(err, fmt.Errorf("remove the node's folder: %w", removed))
	}
	return err
}

// listPods makes the kubelet list the pods of all claims.
func (n *Node) listPods() {
	var pods []kubelet.Pod
	for _, c := range n.claims {
		pods = append(pods, c.listed())
	}
	n.kubelet.Set(pods)
}

// newUID returns a UID that no other object of the node has.
func (n *Node) newUID() string {
	n.serial++
	return fmt.Sprintf("6b1d0000-0000-4000-8000-%012x", n.serial)
}

// newContainerID returns the id of a container, as runtimes write it.
func (n *Node) newContainerID() string {
	n.serial++
	return fmt.Sprintf("6b1d%060x", n.serial)
}
