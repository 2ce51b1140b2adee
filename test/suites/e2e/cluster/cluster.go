// Package cluster runs a real one-node Kubernetes cluster for tests: etcd, the
// control plane, containerd, a kubelet and DRA drivers, each a process on this
// machine that a test can kill and start again. All files are under one
// temporary folder, all ports are free ones, and pods reach the API server and
// the host over a bridge of their own.
//
// It needs root on Linux and the binaries and packages of test/Makefile.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// PauseImage is the image of every sandbox and, with imagePullPolicy: Never, of
// test pods; its commands are described in test/suites/e2e/pause.
const PauseImage = "localhost/pause:1"

// Options select the cluster to start.
type Options struct {
	KubernetesVersion string // with the leading v; the one built into BinDir
	BinDir            string // where test/Makefile puts its programs
	Dir               string // parent of the cluster's folder; default the system's temporary folder
	LogDir            string // folder of the processes' logs, which is not removed; default in the cluster's folder
	NodeName          string // default node-a
	Logf              func(format string, args ...any)
}

// Cluster is a running cluster. Its methods may be called concurrently, but
// only one test at a time may start and stop a process.
type Cluster struct {
	options Options
	layout  layout
	ports   ports
	network *network
	config  *rest.Config
	client  kubernetes.Interface

	mu        sync.Mutex
	processes []*Process // in the order in which they started
}

// Start starts a cluster and returns when its node is ready and the default
// service account exists. It removes leftovers of earlier runs first. If it
// fails, it removes everything that it started.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	c, err := prepare(ctx, withDefaults(options))
	if err != nil {
		return nil, err
	}
	if err := c.startAll(ctx); err != nil {
		c.options.Logf("%s", c.Logs(30))
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func withDefaults(o Options) Options {
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	if o.NodeName == "" {
		o.NodeName = "node-a"
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	return o
}

// prepare creates the folder, the bridge and every file that must exist before
// the first process starts.
func prepare(ctx context.Context, options Options) (*Cluster, error) {
	removeLeftovers(options.Dir, options.Logf)
	layout, err := newLayout(options.Dir, options.LogDir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, layout: layout}
	if err := c.prepareFiles(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) prepareFiles(ctx context.Context) (err error) {
	if err := recordOwner(c.layout); err != nil {
		return err
	}
	if c.ports, err = freePorts(); err != nil {
		return err
	}
	if c.network, err = newNetwork(ctx, c.layout, c.ports.apiserver); err != nil {
		return err
	}
	if err := writeCredentials(c.layout, c.server(), c.network.gateway, c.NodeName()); err != nil {
		return err
	}
	if err := makeCgroupRoot(c.layout.cgroupRoot()); err != nil {
		return err
	}
	return c.connect()
}

// startAll starts the processes in the order of their dependencies.
func (c *Cluster) startAll(ctx context.Context) error {
	steps := []func(context.Context) error{
		c.startContainerd, c.importPause,
		c.startEtcd, c.startAPIServer, c.startControllerManager, c.startScheduler,
		c.startKubelet, c.waitReady,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close ends every process, newest first, and removes everything that the
// cluster created: containers, mounts, the bridge, the firewall rule, cgroups,
// the folder.
func (c *Cluster) Close() error {
	c.mu.Lock()
	processes := c.processes
	c.mu.Unlock()
	var errs []error
	for i := len(processes) - 1; i >= 0; i-- {
		errs = append(errs, processes[i].Kill())
	}
	return errors.Join(append(errs, removeRun(c.layout))...)
}

// Client returns the administrator's client.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// RESTConfig returns a copy of the administrator's client configuration.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig returns the path of the administrator's kubeconfig.
func (c *Cluster) Kubeconfig() string { return c.layout.kubeconfig("admin") }

// NodeName returns the name of the only node.
func (c *Cluster) NodeName() string { return c.options.NodeName }

// Dir returns the folder that contains all of the cluster's files.
func (c *Cluster) Dir() string { return c.layout.dir }

// KubeletDir returns the kubelet's root folder, /var/lib/kubelet on other
// nodes.
func (c *Cluster) KubeletDir() string { return c.layout.kubelet() }

// KubeletSocket returns the path of the PodResources socket.
func (c *Cluster) KubeletSocket() string {
	return filepath.Join(c.layout.kubelet(), "pod-resources", "kubelet.sock")
}

// PluginRegistry returns the folder in which the kubelet finds plugins'
// sockets.
func (c *Cluster) PluginRegistry() string { return c.registrarDir() }

// CDIDir returns the folder to which the DRA drivers write their CDI specs.
func (c *Cluster) CDIDir() string { return c.layout.cdi() }

// GatewayIP returns the host's address on the pods' bridge.
func (c *Cluster) GatewayIP() string { return c.network.gateway }

// Process returns a process of the cluster: etcd, apiserver,
// controller-manager, scheduler, containerd, kubelet, driver-<driver name>, or
// driver-nvidia; nil if there is none of that name.
func (c *Cluster) Process(name string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Logs returns the last lines of every process's log, for the report of a
// failure.
func (c *Cluster) Logs(lines int) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text string
	for _, p := range c.processes {
		text += fmt.Sprintf("=== %s\n%s\n", p.name, p.LogTail(lines))
	}
	return text
}

// forget allows another process to be launched under the name of one that has
// ended.
func (c *Cluster) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes = slices.DeleteFunc(c.processes, func(p *Process) bool { return p.name == name && p.PID() == 0 })
}

// launch starts a process and adds it to those of Close and Process. It
// replaces an ended one of the same name, so that two tests can use the same
// driver one after the other.
func (c *Cluster) launch(ctx context.Context, p *Process) error {
	if earlier := c.Process(p.name); earlier != nil {
		if earlier.running() {
			return fmt.Errorf("start %s: it runs already", p.name)
		}
		c.mu.Lock()
		c.processes = slices.DeleteFunc(c.processes, func(known *Process) bool { return known == earlier })
		c.mu.Unlock()
	}
	p.pidFile = c.layout.pid(p.name)
	p.logFile = c.layout.log(p.name)
	c.mu.Lock()
	c.processes = append(c.processes, p)
	c.mu.Unlock()
	if err := p.Start(ctx); err != nil {
		return err
	}
	c.options.Logf("%s is up", p.name)
	return nil
}
