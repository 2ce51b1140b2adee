//go:build cgo

package dcgm

import "log/slog"

// availabilityLog logs which optional features and fields an engine does not
// provide. It logs each change once.
type availabilityLog struct {
	log           *slog.Logger
	unavailable   map[string]bool // features, by name
	unknownFields map[uint16]bool // fields that were logged
}

func newAvailabilityLog(log *slog.Logger) *availabilityLog {
	return &availabilityLog{log: log.With("component", "dcgm"), unavailable: make(map[string]bool), unknownFields: make(map[uint16]bool)}
}

// report records whether an optional feature is available; a nil error means
// that it is.
func (j *availabilityLog) report(subject string, err error) {
	switch {
	case err != nil && !j.unavailable[subject]:
		j.log.Warn("the host engine does not provide it", "what", subject, "error", err.Error())
	case err == nil && j.unavailable[subject]:
		j.log.Info("the host engine provides it again", "what", subject)
	}
	j.unavailable[subject] = err != nil
}

// reportUnknownField records that the engine or the library does not know a
// field.
func (j *availabilityLog) reportUnknownField(field uint16, version string) {
	if !j.unknownFields[field] {
		j.log.Info("the field is unknown to the host engine", "field", field, "version", version)
	}
	j.unknownFields[field] = true
}
