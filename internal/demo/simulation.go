package demo

import (
	"context"
	_ "embed" // for the price list
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	kubelet "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

//go:embed prices.yaml
var pricesYAML string

// Options of a Simulation; the zero value is valid.
type Options struct {
	Dir   string       // for the socket, the folders cdi and proc and a price list, which Close removes; empty: a new one, likewise
	Clock clock.Clock  // of the hardware and of objects' timestamps; nil: the system's
	Log   *slog.Logger // nil: no log
	Seed  uint64       // of names, UIDs and all that the hardware shows
	Speed float64      // factor by which the scenario runs faster than real time; 0: 1
}

// Simulation is the simulated node. Its methods may be called from any
// goroutine.
type Simulation struct {
	options       Options
	own           string // the directory that Close removes, if there is one
	source        *simulated.Source
	socket        string
	cdi           string
	procfs        string
	prices        string
	kubelet       *kubelet.Kubelet
	accelerators  *accelerators
	server        *apiserver.Server
	node          *node
	faultInjector *faultInjector
	rows          []workload
	faults        []deviceFault

	closing context.Context // ends when Close is called
	end     context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // Runs that Close waits for
}

// socketLimit is the longest path of a unix socket on all systems.
const socketLimit = 103

// Start creates the hardware, publishes it, and serves as kubelet and API
// server, until Close or the end of ctx. Nothing runs on the node before Run.
func Start(ctx context.Context, options Options) (*Simulation, error) {
	options = options.complete()
	h, err := readHardware(options.Seed)
	if err != nil {
		return nil, err
	}
	rows, befalls := scenario(), deviceFaults()
	if err := check(rows, befalls, hostProcesses(), h); err != nil {
		return nil, fmt.Errorf("check the scenario: %w", err)
	}
	s := &Simulation{options: options, rows: rows, faults: befalls}
	s.closing, s.end = context.WithCancel(context.Background())
	s.source = simulated.New(h.config, s.options.Clock)
	if err := s.serve(ctx, h); err != nil {
		s.Close()
		return nil, fmt.Errorf("start the simulated node: %w", err)
	}
	s.node = &node{
		server: s.server, pods: newPodList(s.kubelet, h), cdi: cdiFolder{s.cdi, h},
		activity: newActivity(s.source, h, s.procfs), reservations: newReservations(),
		clock: s.options.Clock, seed: s.options.Seed, log: s.options.Log,
	}
	if err := s.node.activity.begin(nil); err != nil {
		s.Close()
		return nil, fmt.Errorf("start the simulated node: %w", err)
	}
	return s, nil
}

func (o Options) complete() Options {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Speed <= 0 {
		o.Speed = 1
	}
	return o
}

// serve makes the directories and starts the servers.
func (s *Simulation) serve(ctx context.Context, h hardware) (err error) {
	dir := s.options.Dir
	if dir == "" {
		if s.own, err = os.MkdirTemp("", "dra-demo-"); err != nil {
			return err
		}
		dir = s.own
	}
	s.socket, s.cdi = filepath.Join(dir, "kubelet.sock"), filepath.Join(dir, "cdi")
	s.procfs, s.prices = filepath.Join(dir, "proc"), filepath.Join(dir, "prices.yaml")
	if longest := filepath.Join(dir, "plugins", tpuDriver+".sock"); len(longest) > socketLimit {
		return fmt.Errorf("the path %s is too long for a socket: choose a shorter directory, by TMPDIR for example", longest)
	}
	if err := os.MkdirAll(s.cdi, 0o755); err != nil {
		return err
	}
	s.accelerators = &accelerators{source: s.source, devices: h.accelerators, log: s.options.Log}
	if err := s.accelerators.serve(s.closing, dir); err != nil {
		return err
	}
	if err := os.WriteFile(s.prices, []byte(pricesYAML), 0o644); err != nil {
		return err
	}
	if s.kubelet, err = kubelet.Start(ctx, s.socket, kubelet.Options{Faults: kubelet.Always()}); err != nil {
		return err
	}
	if s.server, err = apiserver.Start(ctx, apiserver.Options{Gangs: true}); err != nil {
		return err
	}
	objects := staticObjects(h, s.rows, newRandom(s.options.Seed, "standing"))
	s.faultInjector = newFaultInjector(h, s.source, s.server, objects, s.options.Log)
	return s.server.Put(append(objects, existingObjects(s.options.Seed, s.options.Clock().Wall)...)...)
}

// NodeName is the name of the node in the API server.
func (s *Simulation) NodeName() string { return nodeName }

// Source returns the source of the node's hardware, always the same, without the
// devices of other vendors.
func (s *Simulation) Source() device.Source { return localSource{s.source} }

// SocketDir is the directory of the socket on which the TPU driver serves its page.
func (s *Simulation) SocketDir() string { return s.accelerators.sockets }

// IntelExporter is the URL of the exporter of Intel's GPU, which has the metrics of
// Intel's xpumd.
func (s *Simulation) IntelExporter() string { return "unix://" + s.accelerators.exporter }

// KubeletSocket is the path of the PodResources socket.
func (s *Simulation) KubeletSocket() string { return s.socket }

// CDIDir is the directory of the driver's CDI specifications.
func (s *Simulation) CDIDir() string { return s.cdi }

// Procfs is where the node's procfs is mounted.
func (s *Simulation) Procfs() string { return s.procfs }

// PriceList is the path of a price list that has all of the node's devices.
func (s *Simulation) PriceList() string { return s.prices }

// ListProcesses sets the condition under which the hardware lists its
// processes; the default is never. Call it before the source is read.
func (s *Simulation) ListProcesses(while func() bool) { s.source.ListProcesses(while) }

// Config is how to connect to the API server.
func (s *Simulation) Config() *rest.Config { return s.server.Config() }

// Run runs the scenario until ctx ends or Close is called, and leaves the
// objects in their state. It is called once. An error ends it early; the end of
// ctx is none.
func (s *Simulation) Run(ctx context.Context) error {
	if !s.enter() {
		return nil
	}
	defer s.running.Done()
	if err := s.node.activity.begin(processesOfHost(hostProcesses())); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.closing, stop)()
	var (
		playing sync.WaitGroup
		errs    = make([]error, len(s.rows)+len(s.faults))
		t       = scenarioClock{began: time.Now(), speed: s.options.Speed}
	)
	for at, row := range s.rows {
		playing.Go(func() {
			if errs[at] = s.node.run(ctx, t, row); errs[at] != nil {
				stop()
			}
		})
	}
	for at, a := range s.faults {
		playing.Go(func() {
			if errs[len(s.rows)+at] = s.faultInjector.play(ctx, t, a); errs[len(s.rows)+at] != nil {
				stop()
			}
		})
	}
	playing.Wait()
	return errors.Join(errs...)
}

// enter makes Close wait for a Run, unless it was called before.
func (s *Simulation) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Add(1)
	return true
}

// Close ends Run, stops the servers and removes the files. It may be called
// again.
func (s *Simulation) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.running.Wait()
	if s.accelerators != nil {
		s.accelerators.wait()
	}
	if s.kubelet != nil {
		s.kubelet.Close()
	}
	if s.server != nil {
		s.server.Stop()
	}
	paths := []string{s.cdi, s.procfs, s.prices, s.own}
	if s.accelerators != nil {
		paths = append(paths, s.accelerators.sockets, s.accelerators.exporter)
	}
	for _, path := range paths {
		if path == "" {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			s.options.Log.Warn("the simulated node leaves files behind", "error", err)
		}
	}
}
