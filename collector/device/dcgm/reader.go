//go:build cgo

package dcgm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// reader reads everything behind the engine.
type reader struct{ source *Source }

// Key is "host engine": there is one.
func (r *reader) Key() string { return "host engine" }

// Read reads every GPU and MIG device.
func (r *reader) Read(ctx context.Context, tier device.Tier) ([]device.Observation, error) {
	s := r.source
	if !s.acquire(ctx) {
		return nil, &source.Failure{
			Reason: source.ReasonTimeout,
			Err:    errors.New("connect to the DCGM host engine: a call into the library has not returned"),
		}
	}
	defer s.release()
	if s.session == nil {
		return nil, s.connectionErr
	}
	now := s.elapsed()
	if err := s.readValues(tier); err != nil {
		return nil, s.closeConnection(err)
	}
	observations, err := s.observe(tier, now)
	if err == nil || s.driverReplaced(err) == nil {
		return observations, err
	}
	return observations, s.closeConnection(err)
}

// readValues reads the values of all watched fields. A change of the MIG
// configuration renumbers instances, so values may belong to other instances
// than the plan says. So the hierarchy is compared after the values were read;
// if it has changed, the plan is rebuilt and the values are read again.
func (s *Source) readValues(tier device.Tier) error {
	if err := s.readPlan(tier); err != nil {
		return err
	}
	hierarchy, err := s.session.hierarchy()
	if err != nil || slices.Equal(hierarchy, s.hierarchy) {
		return err
	}
	gpus, err := s.session.gpus()
	if err != nil {
		return err
	}
	if err := s.rebuildPlan(gpus, hierarchy); err != nil {
		return err
	}
	return s.readPlan(tier)
}

// readPlan runs the queries of the current plan.
func (s *Source) readPlan(tier device.Tier) error {
	s.converter.grid.begin()
	s.xids = s.xids[:0]
	handle := func(v *value, a *callTime) {
		if v.field == xidError {
			s.xids = append(s.xids, *v)
			return
		}
		s.converter.grid.apply(v, a)
	}
	whole := &s.session.wholeFast
	if tier == device.Slow {
		whole = &s.session.wholeAll
	}
	for _, q := range []*fieldQuery{whole, &s.session.partitionFast, &s.session.instanceXIDs} {
		if err := s.session.queryValues(q, 0, handle); err != nil {
			return err
		}
	}
	s.xidErr = s.readXIDs()
	if s.session.xidsWatched {
		s.xidCounts.receive(s.options.Clock(), s.session.xidEntities, s.xids)
	}
	return nil
}

// readXIDs counts new XIDs. An engine returns only the last XID of an entity;
// if that one is new, readXIDs also fetches those that occurred between two
// reads. It returns an error only if there are too many of them. An engine that
// cannot return them is not impaired for that.
func (s *Source) readXIDs() error {
	var newXIDs []value
	var oldest int64
	for i := range s.xids {
		start, ok := s.xidCounts.isNew(&s.xids[i])
		if !ok {
			continue
		}
		if len(newXIDs) == 0 || start < oldest {
			oldest = start
		}
		newXIDs = append(newXIDs, s.xids[i])
	}
	if len(newXIDs) == 0 {
		return nil
	}
	groups := slices.Concat(s.session.gpuGroups, s.session.instanceGroups)
	all, err := s.session.xidsSince(groups, s.session.xid.handle, oldest)
	s.log.report("the XIDs between two reads", err)
	s.xidCounts.record(append(all, newXIDs...))
	if source.ReasonOf(err) == source.ReasonResourceExhausted {
		return err
	}
	return nil
}

// observe returns the observations of the values that were read. It also reads
// the NVLinks and, in slow reads, checks the health.
func (s *Source) observe(tier device.Tier, now time.Duration) ([]device.Observation, error) {
	errs := []error{s.xidErr, s.readLinks(now)}
	var incidents []incident
	checked, checkTime := false, device.Window{}
	if tier == device.Slow && s.session.healthWatched {
		var err error
		checkTime.From = s.elapsed()
		incidents, err = s.session.checkHealth()
		checked, checkTime.To = err == nil, s.elapsed()
		errs = append(errs, err)
	}
	observations := make([]device.Observation, 0, len(s.converter.plan.targets))
	for i := range s.converter.plan.targets {
		t := &s.converter.plan.targets[i]
		f := s.converter.observe(t, tier, now)
		if t.whole.kind == wholeGPU {
			s.addLost(f, t.whole)
			if f.hasValues {
				f.Readings = append(f.Readings, measuredAt(linkReadings(s.links[t.whole]), s.linksMeasured)...)
			}
			if checked && f.hasValues {
				f.Slow = append(f.Slow, measuredAt(healthReadings(t.whole, incidents), checkTime)...)
			}
		}
		observations = append(observations, f.Observation)
		errs = append(errs, f.err())
	}
	return observations, errors.Join(errs...)
}

// measuredAt sets the time of measurement of readings.
func measuredAt(readings []device.Reading, window device.Window) []device.Reading {
	for i := range readings {
		readings[i].Measured = window
	}
	return readings
}

// addLost adds a reading that says whether a GPU is lost. It queries the GPU's
// status if no value of the GPU was read.
func (s *Source) addLost(f *deviceResult, gpu entity) {
	if !f.hasValues && !f.lost {
		f.lost = s.session.lost(gpu)
	}
	switch {
	case f.lost:
		f.errs = append(f.errs, fmt.Errorf("read %s: %w", f.Device.UUID, statusGPULost))
	case !f.hasValues && !f.stale && len(f.errs) == 0:
		f.errs = append(f.errs, fmt.Errorf("read %s: the host engine reports nothing about it", f.Device.UUID))
	}
	if f.lost || f.hasValues {
		f.Readings = append(f.Readings, device.Reading{Quantity: device.Lost, Value: boolValue(f.lost)})
	}
}
