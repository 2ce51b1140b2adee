package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// Options of a Simulation; the zero value is valid.
type Options struct {
	Dir   string       // for the sockets, the folders cdi and proc, the price lists and the second node's folder, which Close removes; empty: a new one, likewise
	Clock clock.Clock  // of the hardware and of objects' timestamps; nil: the system's
	Log   *slog.Logger // nil: no log
	Seed  uint64       // of names, UIDs and all that the hardware shows
	Speed float64      // factor by which the scenario runs faster than real time; 0: 1
}

// Simulation is the simulated cluster, with the methods of its first node. Its methods
// may be called from any goroutine.
type Simulation struct {
	*AgentNode
	training      *AgentNode
	options       Options
	own           string // the directory that Close removes, if there is one
	server        *apiserver.Server
	week          recordedWeek
	lifecycles    *lifecycles
	faultInjector *faultInjector
	rows          []workload
	faults        []deviceFault

	closing context.Context // ends when Close is called
	end     context.CancelFunc

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup // Runs that Close waits for
}

// Start creates the hardware, publishes it, and serves as kubelets and API
// server, until Close or the end of ctx. Nothing runs on the nodes before Run.
func Start(ctx context.Context, options Options) (*Simulation, error) {
	options = options.complete()
	first, err := readHardware(options.Seed)
	if err != nil {
		return nil, err
	}
	second, err := readTrainingHardware(options.Seed)
	if err != nil {
		return nil, err
	}
	rows, befalls := scenario(), deviceFaults()
	if err := check(rows, befalls, hostProcesses(), map[string]hardware{nodeName: first, trainingNode: second}); err != nil {
		return nil, fmt.Errorf("check the scenario: %w", err)
	}
	s := &Simulation{options: options, rows: rows, faults: befalls}
	s.closing, s.end = context.WithCancel(context.Background())
	folder := options.Dir
	if folder == "" {
		if s.own, err = os.MkdirTemp("", "dra-demo-"); err != nil {
			return nil, fmt.Errorf("create a folder for the simulated nodes: %w", err)
		}
		folder = s.own
	}
	s.AgentNode = newAgentNode(nodeName, folder, first, options)
	s.training = newAgentNode(trainingNode, filepath.Join(folder, "2"), second, options)
	if err := s.serve(ctx, first, second); err != nil {
		s.Close()
		return nil, fmt.Errorf("start the simulated nodes: %w", err)
	}
	s.lifecycles = &lifecycles{
		server: s.server, nodes: map[string]*AgentNode{nodeName: s.AgentNode, trainingNode: s.training}, reservations: newReservations(),
		clock: s.options.Clock, seed: s.options.Seed, log: s.options.Log,
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

// serve starts the servers of the nodes and the API server.
func (s *Simulation) serve(ctx context.Context, first, second hardware) (err error) {
	for _, node := range []*AgentNode{s.AgentNode, s.training} {
		if err := node.serve(ctx, s.closing); err != nil {
			return err
		}
	}
	if s.server, err = apiserver.Start(ctx, apiserver.Options{Gangs: true}); err != nil {
		return err
	}
	if err := s.week.serve(s.closing); err != nil {
		return err
	}
	objects := staticObjects(first, s.rows, newRandom(s.options.Seed, "standing"))
	s.faultInjector = newFaultInjector(first, s.source, s.server, objects, s.options.Log)
	objects = append(objects, nodeObjects(trainingNode, second, newRandom(s.options.Seed, trainingNode))...)
	return s.server.Put(append(objects, existingObjects(s.options.Seed, s.options.Clock().Wall)...)...)
}

// TrainingNode is the second node with an agent: a training job with a slow rank, and
// GPUs that are held and not used.
func (s *Simulation) TrainingNode() *AgentNode { return s.training }

// Config is how to connect to the API server.
func (s *Simulation) Config() *rest.Config { return s.server.Config() }

// RecordedWeek is the URL of a Prometheus that has the answers to the queries of advise,
// recorded from a real one.
func (s *Simulation) RecordedWeek() string { return s.week.url }

// Run runs the scenario until ctx ends or Close is called, and leaves the
// objects in their state. It is called once. An error ends it early; the end of
// ctx is none.
func (s *Simulation) Run(ctx context.Context) error {
	if !s.enter() {
		return nil
	}
	defer s.running.Done()
	if err := s.activity.begin(processesOfHost(hostProcesses())); err != nil {
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
			if errs[at] = s.lifecycles.run(ctx, t, row); errs[at] != nil {
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
	s.week.serving.Wait()
	errs := []error{s.training.close(), os.RemoveAll(s.training.folder), s.AgentNode.close()}
	if s.server != nil {
		s.server.Stop()
	}
	if s.own != "" {
		errs = append(errs, os.RemoveAll(s.own))
	}
	if err := errors.Join(errs...); err != nil {
		s.options.Log.Warn("the simulated nodes leave files behind", "error", err)
	}
}
