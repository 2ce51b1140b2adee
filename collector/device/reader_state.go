package device

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// readerState is the state of one reader: its devices, and the read that is
// under way. A reader whose hardware is gone while a read of it hangs stays
// until the read returns, so that it is never read twice at a time.
type readerState struct {
	specs   *[Quantities]Spec
	key     string
	reader  Reader
	removed bool
	secret  bool          // serial numbers are not kept
	round   uint64        // the round of the read that is under way; 0: none is
	tick    int           // the tick of the loop at which the last read began
	began   clock.Instant // when that was; zero: never
	retry   backoff       // of slow reads that fail
	again   time.Duration // when, in elapsed time, the next slow read is due

	// The result of the last read that returned.
	answered bool  // one ever has
	failed   bool  // it found nothing, or was overdue
	err      error // what it failed with, wholly or in part
	slowErr  error // the error of the last slow read: fast reads do not read the same

	devices []sampleRecord
	refused []refusal // since they were taken last
}

// refusal is a refused reading of a device.
type refusal struct {
	Refusal
	device string
	again  bool // one of the quantity was refused before
}

// sampleRecord is what is known of one device.
type sampleRecord struct {
	device  Device
	filter  *PlausibilityFilter
	doubted quantitySet   // of which readings were refused
	at      clock.Instant // of the newest read that found something
	fast    []Reading
	slow    []Reading
	slowAt  clock.Instant
	answers quantitySet
	made    []Reading // of the present sample; nil: to be built again

	processes   []Process     // of the last list
	processesAt clock.Instant // when it was read; zero: never
}

// readResult is the result of a read, and the round that it was meant for.
type readResult struct {
	state        *readerState
	round        uint64
	tier         Tier
	at           clock.Instant
	observations []Observation
	err          error
}

// busy reports whether a read has not returned.
func (s *readerState) busy() bool { return s.round != 0 }

// start records that a read begins, and returns the tier that is due.
func (s *readerState) start(round uint64, now clock.Instant, slow time.Duration) Tier {
	s.round, s.began = round, now
	if now.Elapsed < s.again {
		return Fast
	}
	// Until the read has come back it is not known to have failed.
	s.again = now.Elapsed + slow
	return Slow
}

// errNothingSeen is the error of a read that returned neither a device nor an
// error.
var errNothingSeen = errors.New("no device was seen")

// apply applies what a read has found.
func (s *readerState) apply(a readResult) {
	s.answered, s.failed, s.err = true, !useful(a.observations, a.err), a.err
	if s.failed && a.err == nil {
		s.err = errNothingSeen
	}
	if a.tier == Slow {
		s.slowErr = s.err
		if s.failed {
			s.retrySlow(a.at)
		} else {
			s.retry.reset()
		}
	}
	if len(a.observations) == 0 {
		if errors.Is(a.err, source.ErrRefused) {
			s.devices = nil // others need the memory
		}
		return
	}
	devices := make([]sampleRecord, len(a.observations))
	during := Window{From: s.began.Elapsed, To: a.at.Elapsed}
	for i, observation := range a.observations {
		observation.Device.Hardware = s.hardware(observation.Device)
		devices[i] = s.known(observation.Device, i)
		s.refuse(&devices[i], devices[i].apply(observation, a, during))
	}
	s.devices = devices
}

// hardware returns what is kept of a device's hardware.
func (s *readerState) hardware(d Device) Hardware {
	switch {
	case d.IsPartition():
		return Hardware{}
	case s.secret:
		return d.Hardware.clean().withoutSerials()
	default:
		return d.Hardware.clean()
	}
}

// refuse records the readings of a device that were refused.
func (s *readerState) refuse(r *sampleRecord, refused []Refusal) {
	for _, entry := range refused {
		s.refused = append(s.refused, refusal{entry, identity(r.device), r.doubted.has(entry.Reading.Quantity)})
		r.doubted |= 1 << entry.Reading.Quantity
	}
}

// takeRefused returns what was refused since it was called last.
func (s *readerState) takeRefused() []refusal {
	refused := s.refused
	s.refused = nil
	return refused
}

// drop records that a read failed, and applies nothing else of it.
func (s *readerState) drop(a readResult, err error) {
	s.fail(a.tier, err)
	if a.tier == Slow {
		s.retrySlow(a.at)
	}
}

// fail records that a read counts as failed, whatever it found.
func (s *readerState) fail(tier Tier, err error) {
	s.answered, s.failed, s.err = true, true, err
	if tier == Slow {
		s.slowErr = err
	}
}

// retrySlow repeats a slow read without a result earlier than usual, but not so
// often that fast reads starve.
func (s *readerState) retrySlow(now clock.Instant) {
	s.again = now.Elapsed + s.retry.grow()
}

// useful reports whether a read returned anything. A device may well have no
// readings, but then nothing went wrong either.
func useful(observations []Observation, err error) bool {
	return slices.ContainsFunc(observations, func(o Observation) bool {
		return err == nil || len(o.Readings)+len(o.Slow) > 0
	})
}

// known returns the record of a device. It looks first at the previous position
// of the device.
func (s *readerState) known(d Device, at int) sampleRecord {
	same := func(r sampleRecord) bool {
		return r.device.UUID == d.UUID && r.device.PCIBusID == d.PCIBusID && r.device.Published == d.Published
	}
	if at < len(s.devices) && same(s.devices[at]) {
		return s.devices[at]
	}
	if at = slices.IndexFunc(s.devices, same); at >= 0 {
		return s.devices[at]
	}
	return sampleRecord{filter: newPlausibilityFilter(s.specs)}
}

// apply applies the readings of one read of the device. Readings without a time
// of measurement get the time of the read. If the read failed and has nothing for
// a tier, the earlier readings stay with their own times. It returns the readings
// that cannot be true.
func (r *sampleRecord) apply(o Observation, a readResult, during Window) (refused []Refusal) {
	r.device, r.made = o.Device, nil
	filter := func(tier Tier, readings []Reading) []Reading {
		plausible, others := r.filter.Apply(tier, timed(normalize(readings), during))
		r.answers, refused = r.answers.with(plausible), append(refused, others...)
		return plausible
	}
	if len(o.Readings) > 0 || a.err == nil {
		r.at, r.fast = a.at, filter(Fast, o.Readings)
	}
	if a.tier == Slow && (len(o.Slow) > 0 || a.err == nil) {
		r.slowAt, r.slow = a.at, filter(Slow, o.Slow)
	}
	if o.Processes != nil {
		processes, others := r.filter.ApplyProcesses(mergeProcesses(o.Processes))
		r.processes, r.processesAt, refused = processes, a.at, append(refused, others...)
	}
	return refused
}

// normalize sorts readings and drops those that are no number or come twice.
func normalize(readings []Reading) []Reading {
	readings = slices.DeleteFunc(readings, func(r Reading) bool { return math.IsNaN(r.Value) })
	if !slices.IsSortedFunc(readings, Reading.compare) {
		slices.SortStableFunc(readings, Reading.compare)
	}
	return slices.CompactFunc(readings, func(a, b Reading) bool { return a.compare(b) == 0 })
}

// timed gives the readings that have no time of measurement that of their read.
func timed(readings []Reading, during Window) []Reading {
	for i := range readings {
		if readings[i].Measured.IsZero() {
			readings[i].Measured = during
		}
	}
	return readings
}

// appendSamples appends the sample of each device. Slow readings are left out
// once they are older than keep.
func (s *readerState) appendSamples(samples []Sample, name string, now clock.Instant, keep time.Duration) []Sample {
	for i := range s.devices {
		r := &s.devices[i]
		if len(r.slow) > 0 && now.Since(r.slowAt) > keep {
			r.slow, r.made = nil, nil
		}
		if r.made == nil {
			r.made = both(r.fast, r.slow)
		}
		samples = append(samples, Sample{
			Device: r.device, Source: name, At: r.at, Readings: r.made,
			Processes: r.processes, ProcessesAt: r.processesAt, answers: r.answers,
		})
	}
	return samples
}

// both merges the readings of both tiers, each with its own time of
// measurement. Where a reading is in both, the fast one is newer.
func both(fast, slow []Reading) []Reading {
	merged := make([]Reading, 0, len(fast)+len(slow))
	for len(fast) > 0 && len(slow) > 0 {
		switch order := fast[0].compare(slow[0]); {
		case order <= 0:
			merged, fast = append(merged, fast[0]), fast[1:]
			if order == 0 {
				slow = slow[1:]
			}
		default:
			merged, slow = append(merged, slow[0]), slow[1:]
		}
	}
	return append(append(merged, fast...), slow...)
}

// backoff determines how long to wait after each of several failures in a row:
// first, then twice as long each time, up to most.
type backoff struct {
	first, most, last time.Duration
}

func (b *backoff) grow() time.Duration {
	b.last = min(max(b.first, 2*b.last), b.most)
	return b.last
}

func (b *backoff) reset() { b.last = 0 }
