//go:build cgo

package dcgm

import "log/slog"

// journal logs what a source does without, once each time that it changes.
type journal struct {
	log     *slog.Logger
	missing map[string]bool // what there is not at present
	fields  map[uint16]bool // that an engine did not know
}

func newJournal(log *slog.Logger) *journal {
	return &journal{log: log.With("component", "dcgm"), missing: make(map[string]bool), fields: make(map[uint16]bool)}
}

// report tells whether something that the source can do without is there.
func (j *journal) report(what string, err error) {
	switch {
	case err != nil && !j.missing[what]:
		j.log.Warn("the host engine does not provide it", "what", what, "error", err.Error())
	case err == nil && j.missing[what]:
		j.log.Info("the host engine provides it again", "what", what)
	}
	j.missing[what] = err != nil
}

// unknown tells that the engine or the library does not know a field.
func (j *journal) unknown(field uint16, version string) {
	if !j.fields[field] {
		j.log.Info("the field is unknown to the host engine", "field", field, "version", version)
	}
	j.fields[field] = true
}
