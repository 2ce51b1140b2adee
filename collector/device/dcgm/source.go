//go:build cgo

package dcgm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Source reads one host engine. Its exported methods are safe for concurrent
// use.
type Source struct {
	options   Options
	log       *availabilityLog
	xidCounts *xidCounts
	reader    *reader

	// lock holds a token while a goroutine calls the engine; it also guards the
	// fields below. Always wait for it with a timeout, because a call that hangs
	// never releases it.
	lock          chan struct{}
	session       *engineSession // nil: not connected
	connectionErr error          // why session is nil
	converter     *converter
	identities    *identityCache
	gpus          []uint
	hierarchy     []instance
	driver        string // version of the driver that an embedded engine has worked with; empty: none
	links         map[entity]links
	linksAt       time.Duration // elapsed time of the last read of links
	xids          []value       // of the current read
	xidErr        error         // why XIDs before the current read are missing

	linksMeasured device.Window // when links were read
}

// New returns a source over the engine that the options name.
func New(o Options) *Source {
	o = o.complete()
	s := &Source{
		options: o, log: newAvailabilityLog(o.Log), xidCounts: newXIDCounts(), converter: newConverter(o), identities: newIdentityCache(),
		lock: make(chan struct{}, 1), connectionErr: errNotConnected,
	}
	s.reader = &reader{s}
	return s
}

// Name is "dcgm".
func (s *Source) Name() string { return "dcgm" }

// XIDs returns the XIDs of each watched device, by UUID. The map is shared; do
// not modify it.
func (s *Source) XIDs() map[string][]device.XID { return s.xidCounts.xids() }

// Received returns when XIDs were last read, and why those of some devices were
// not.
func (s *Source) Received() (clock.Instant, error) {
	latest := s.xidCounts.published.Load()
	return latest.received, latest.failure
}

// Changed signals that XIDs has changed.
func (s *Source) Changed() <-chan struct{} { return s.xidCounts.changed }

var errNotConnected = &source.Failure{
	Reason: source.ReasonUnavailable,
	Err:    errors.New("there is no connection to the DCGM host engine"),
}

// lockTimeout is how long Readers and Close wait for a call that is in
// progress.
const lockTimeout = 200 * time.Millisecond

// KeepsOpen reports whether the engine is in this process, which then keeps every GPU open.
func (s *Source) KeepsOpen() bool { return s.options.HostEngine == "" }

// Readers returns the one reader of the engine. It connects if there is no
// connection, and updates the list of GPUs. A GPU without a known UUID cannot
// be observed; it causes an error, returned together with the reader.
func (s *Source) Readers(ctx context.Context) ([]device.Reader, error) {
	patient, end := context.WithTimeout(ctx, lockTimeout)
	defer end()
	if !s.acquire(patient) {
		// A read is in progress and reports the state of the engine itself.
		return []device.Reader{s.reader}, nil
	}
	defer s.release()
	if err := s.refresh(); err != nil {
		return nil, err
	}
	return []device.Reader{s.reader}, s.converter.plan.err()
}

// acquire waits for the lock until ctx ends, and reports whether it got it.
func (s *Source) acquire(ctx context.Context) bool {
	select {
	case s.lock <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Source) release() { <-s.lock }

// elapsed returns the current elapsed time.
func (s *Source) elapsed() time.Duration { return s.options.Clock().Elapsed }

// refresh connects if there is no connection, and updates the plan.
func (s *Source) refresh() error {
	connected := s.session == nil
	if connected {
		made, err := open(s.options, s.converter, s.log)
		if err != nil {
			s.connectionErr = cmp.Or(s.driverReplaced(err), err)
			return s.connectionErr
		}
		s.session, s.links = made, nil
		s.identities.startConnection()
	}
	if err := s.refreshPlan(connected); err != nil {
		return s.closeConnection(err)
	}
	return nil
}

// refreshPlan lists GPUs and instances, and rebuilds the plan if they have
// changed or the connection is new.
func (s *Source) refreshPlan(connected bool) error {
	gpus, err := s.session.gpus()
	if err != nil {
		return err
	}
	hierarchy, err := s.session.hierarchy()
	if err != nil {
		return err
	}
	changed := connected || !slices.Equal(gpus, s.gpus) || !slices.Equal(hierarchy, s.hierarchy) || s.session.acceptsRefused()
	if !changed {
		if changed, err = s.identifiesMore(); err != nil {
			return err
		}
	}
	if changed {
		return s.rebuildPlan(gpus, hierarchy)
	}
	if s.options.Profiling && !s.session.profilingWatched {
		s.session.watchProfiling()
		s.session.buildQueries()
	}
	if s.session.xidFailure != nil || s.xidCounts.fails() {
		s.session.watchXIDs()
		s.session.buildQueries()
		s.countXIDs()
	}
	return nil
}

// countXIDs counts the XIDs of the devices of the plan, if they are watched.
func (s *Source) countXIDs() {
	if s.session.xidsWatched {
		s.xidCounts.watch(s.session.plan)
	} else {
		s.xidCounts.unwatch(s.session.xidFailure)
	}
}

// identifiesMore reports whether the engine now returns a UUID of an
// unidentified GPU.
func (s *Source) identifiesMore() (bool, error) {
	reported, err := s.session.readIdentities(s.session.plan.unidentified)
	if err != nil {
		return false, err
	}
	for _, known := range reported {
		if isGPU(known.uuid) {
			return true, nil
		}
	}
	return false, nil
}

// rebuildPlan makes the engine watch the GPUs and instances that are present
// now.
func (s *Source) rebuildPlan(gpus []uint, hierarchy []instance) error {
	entities := make([]entity, 0, len(gpus)+len(hierarchy))
	for _, id := range gpus {
		entities = append(entities, entity{wholeGPU, id})
	}
	reported, err := s.session.readIdentities(entities)
	if err != nil {
		return err
	}
	parts, err := s.session.readIdentities(computeInstances(hierarchy))
	if err != nil {
		return err
	}
	maps.Copy(reported, parts)
	p := makePlan(gpus, hierarchy, s.identities.merge(gpus, hierarchy, reported))
	if err := s.session.applyPlan(p); err != nil {
		return err
	}
	s.gpus, s.hierarchy = gpus, hierarchy
	for i := range p.targets {
		s.driver = cmp.Or(p.targets[i].device.DriverVersion, s.driver)
	}
	s.converter.applyPlan(p)
	s.countXIDs()
	return nil
}

// computeInstances returns the entities that are MIG devices.
func computeInstances(hierarchy []instance) (parts []entity) {
	for _, i := range hierarchy {
		if i.entity.kind == computeInstance {
			parts = append(parts, i.entity)
		}
	}
	return parts
}

// driverReplaced returns why an embedded engine fails after the driver was replaced
// below it, or nil. Its library of the driver may be mapped until this process ends,
// see package nvml. A host engine belongs to another process, which has to see to
// that.
func (s *Source) driverReplaced(err error) error {
	if s.options.HostEngine != "" || s.options.Sysfs == "" || s.driver == "" {
		return nil
	}
	text, _ := os.ReadFile(filepath.Join(s.options.Sysfs, "module/nvidia/version"))
	loaded := strings.TrimSpace(string(text))
	if loaded == "" || loaded == s.driver {
		return nil
	}
	return &source.Failure{Reason: source.ReasonLibraryMismatch, Err: fmt.Errorf(
		"driver %s was replaced by %s below the embedded DCGM engine: restart the agent, which then opens the library of the new one: %w", s.driver, loaded, err)}
}

// closeConnection closes the connection after an error without which nothing
// can be read, and returns that error with its reason. The next refresh
// connects again.
func (s *Source) closeConnection(err error) error {
	s.session.close()
	s.session = nil
	s.xidCounts.disconnect()
	s.connectionErr = cmp.Or(s.driverReplaced(err), error(&source.Failure{Reason: classifyError(err), Err: err}))
	return s.connectionErr
}

// Close closes the connection. It fails if a call into the library has not
// returned.
func (s *Source) Close() error {
	patient, end := context.WithTimeout(context.Background(), lockTimeout)
	defer end()
	if !s.acquire(patient) {
		return errors.New("close: a call into the library has not returned")
	}
	defer s.release()
	if s.session != nil {
		s.session.close()
		s.session, s.connectionErr = nil, errNotConnected
		s.xidCounts.disconnect()
	}
	return nil
}
