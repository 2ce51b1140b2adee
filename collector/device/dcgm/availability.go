//go:build cgo

package dcgm

import "log/slog"

// availabilityLog logs what a source does without, once each time that it changes.
type availabilityLog struct {
	log           *slog.Logger
	unavailable   map[string]bool // what there is not at present
	unknownFields map[uint16]bool // that an engine did not know
}

func newAvailabilityLog(log *slog.Logger) *availabilityLog {
	return &availabilityLog{log: log.With("component", "dcgm"), unavailable: make(map[string]bool), unknownFields: make(map[uint16]bool)}
}

// report tells whether something that the source can do without is there.
func (j *availabilityLog) report(what string, err error) {
	switch {
	case err != nil && !j.unavailable[what]:
		j.log.Warn("the host engine does not provide it", "what", what, "error", err.Error())
	case err == nil && j.unavailable[what]:
		j.log.Info("the host engine provides it again", "what", what)
	}
	j.unavailable[what] = err != nil
}

// reportUnknownField tells that the engine or the library does not know a field.
func (j *availabilityLog) reportUnknownField(field uint16, version string) {
	if !j.unknownFields[field] {
		j.log.Info("the field is unknown to the host engine", "field", field, "version", version)
	}
	j.unknownFields[field] = true
}
