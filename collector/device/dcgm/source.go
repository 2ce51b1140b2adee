//go:build cgo

package dcgm

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Source reads what one host engine tells.
type Source struct {
	options   Options
	log       *availabilityLog
	xidCounts *xidCounts
	reader    *reader

	// lock holds a token while somebody lock the engine, and with it what
	// follows. It is only ever waited for with an end, because a call that
	// hangs never gives it back.
	lock          chan struct{}
	session       *session // nil: there is no connection
	connectionErr error    // why not
	converter     *converter
	identities    *identityCache
	gpus          []uint
	hierarchy     []instance
	links         map[entity]links
	linksAt       time.Duration // when, in elapsed time, the links were last asked for
	xids          []value       // of the present read
	xidErr        error         // why some XIDs before it are not known

	linksMeasured device.Window // when the links were asked for
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

// XIDs returns what has been heard of each device.
func (s *Source) XIDs() map[string][]device.XID { return s.xidCounts.xids() }

// Changed signals that XIDs has changed.
func (s *Source) Changed() <-chan struct{} { return s.xidCounts.changed }

var errNotConnected = &source.Failure{
	Reason: source.ReasonUnavailable,
	Err:    errors.New("there is no connection to the DCGM host engine"),
}

// lockTimeout is how long a look waits for a read that is under way.
const lockTimeout = 200 * time.Millisecond

// Readers returns the one reader of the engine. It connects where there is no
// connection, and looks which GPUs are there. A GPU of which nobody knows who
// it is cannot be told of, and is an error beside the reader.
func (s *Source) Readers(ctx context.Context) ([]device.Reader, error) {
	patient, end := context.WithTimeout(ctx, lockTimeout)
	defer end()
	if !s.acquire(patient) {
		// A read is under way: it will tell by itself how the engine is.
		return []device.Reader{s.reader}, nil
	}
	defer s.release()
	if err := s.refresh(); err != nil {
		return nil, err
	}
	return []device.Reader{s.reader}, s.converter.plan.err()
}

// acquire waits for the token until ctx ends.
func (s *Source) acquire(ctx context.Context) bool {
	select {
	case s.lock <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *Source) release() { <-s.lock }

// elapsed is the present elapsed time.
func (s *Source) elapsed() time.Duration { return s.options.Clock().Elapsed }

// refresh makes sure that there is a connection, and that what there is is
// watched.
func (s *Source) refresh() error {
	fresh := s.session == nil
	if fresh {
		made, err := open(s.options, s.converter, s.log)
		if err != nil {
			s.connectionErr = err
			return err
		}
		s.session, s.links = made, nil
		s.identities.startConnection()
	}
	if err := s.refreshPlan(fresh); err != nil {
		return s.closeConnection(err)
	}
	return nil
}

// refreshPlan looks what is there now.
func (s *Source) refreshPlan(fresh bool) error {
	gpus, err := s.session.gpus()
	if err != nil {
		return err
	}
	hierarchy, err := s.session.hierarchy()
	if err != nil {
		return err
	}
	other := fresh || !slices.Equal(gpus, s.gpus) || !slices.Equal(hierarchy, s.hierarchy) || s.session.acceptsRefused()
	if !other {
		if other, err = s.identifiesMore(); err != nil {
			return err
		}
	}
	if other {
		return s.rebuildPlan(gpus, hierarchy)
	}
	if s.options.Profiling && !s.session.profilingWatched {
		s.session.watchProfiling()
		s.session.buildQueries()
	}
	return nil
}

// identifiesMore reports whether a nameless GPU now tells who it is.
func (s *Source) identifiesMore() (bool, error) {
	told, err := s.session.readIdentities(s.session.plan.unidentified)
	if err != nil {
		return false, err
	}
	for _, known := range told {
		if isGPU(known.uuid) {
			return true, nil
		}
	}
	return false, nil
}

// rebuildPlan has the engine watch the GPUs and instances that there are now.
func (s *Source) rebuildPlan(gpus []uint, hierarchy []instance) error {
	entities := make([]entity, 0, len(gpus)+len(hierarchy))
	for _, id := range gpus {
		entities = append(entities, entity{wholeGPU, id})
	}
	told, err := s.session.readIdentities(entities)
	if err != nil {
		return err
	}
	parts, err := s.session.readIdentities(computeInstances(hierarchy))
	if err != nil {
		return err
	}
	for of, known := range parts {
		told[of] = known
	}
	p := makePlan(gpus, hierarchy, s.identities.merge(gpus, hierarchy, told))
	if err := s.session.applyPlan(p); err != nil {
		return err
	}
	s.gpus, s.hierarchy = gpus, hierarchy
	s.converter.applyPlan(p)
	if s.session.xidsWatched {
		s.xidCounts.watch(p)
	} else {
		s.xidCounts.unwatch()
	}
	return nil
}

// computeInstances are the entities that are MIG devices.
func computeInstances(hierarchy []instance) (parts []entity) {
	for _, i := range hierarchy {
		if i.entity.kind == computeInstance {
			parts = append(parts, i.entity)
		}
	}
	return parts
}

// closeConnection ends a connection through which something failed that nothing can be
// read without. The next look makes another.
func (s *Source) closeConnection(err error) error {
	s.session.close()
	s.session = nil
	s.connectionErr = &source.Failure{Reason: reasonOf(err), Err: err}
	return s.connectionErr
}

// Close ends the connection, unless a call into the library hangs.
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
	}
	return nil
}
