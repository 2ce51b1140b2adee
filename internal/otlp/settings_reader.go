package otlp

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reader reads settings and keeps the first thing that is wrong: its methods
// return zero values after that, so that nobody has to look at errors between.
type reader struct {
	lookup func(string) (string, bool)
	err    error
}

// given is what a flag or a variable says.
type given struct {
	name  string // of the flag, with dashes, or of the variable
	value string // without white space around; empty: not given
}

func (g given) is() bool { return g.value != "" }

// refuse keeps an error that names the flag or the variable and its value.
func (r *reader) refuse(g given, format string, arguments ...any) {
	r.fail("%s=%q: %s", g.name, g.value, fmt.Sprintf(format, arguments...))
}

// refuseSecret is refuse for a value that nobody may read in a log.
func (r *reader) refuseSecret(g given, format string, arguments ...any) {
	r.fail("%s: %s", g.name, fmt.Sprintf(format, arguments...))
}

func (r *reader) fail(format string, arguments ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, arguments...)
	}
}

// variable reads a variable; one that is empty counts as not given.
func (r *reader) variable(name string) given {
	value, _ := r.lookup(name)
	return given{name: name, value: strings.TrimSpace(value)}
}

// option reads a signal's own OTEL_EXPORTER_OTLP_<SIGNAL>_<NAME>, or else the
// one for all signals.
func (r *reader) option(kind signalKind, name string) given {
	if own := r.variable(exporterPrefix + string(kind) + "_" + name); own.is() {
		return own
	}
	return r.variable(exporterPrefix + name)
}

// choice returns the value in lower case if it is one of those, the first of
// them if none is given.
func (r *reader) choice(g given, known ...string) string {
	if !g.is() {
		return known[0]
	}
	value := strings.ToLower(g.value)
	if !slices.Contains(known, value) {
		r.refuse(g, "unknown; use %s", anyOf(known))
		return known[0]
	}
	return value
}

// anyOf lists alternatives for a sentence.
func anyOf(known []string) string {
	last := len(known) - 1
	if last == 0 {
		return known[0]
	}
	return strings.Join(known[:last], ", ") + " or " + known[last]
}

// truth reads what is true or false; not given, it is false.
func (r *reader) truth(g given) bool { return r.choice(g, "false", "true") == "true" }

// longest is beyond what anybody waits for; longer is a mistake of units.
const longest = 24 * time.Hour

// milliseconds reads a duration as OpenTelemetry writes it: a whole number of
// milliseconds, no less than shortest.
func (r *reader) milliseconds(g given, shortest, otherwise time.Duration) time.Duration {
	if !g.is() {
		return otherwise
	}
	number, err := strconv.ParseInt(g.value, 10, 64)
	if err != nil {
		r.refuse(g, "not a whole number of milliseconds; %d would be %s", otherwise.Milliseconds(), otherwise)
		return otherwise
	}
	if number < shortest.Milliseconds() || number > longest.Milliseconds() {
		r.refuse(g, "out of range: use %d to %d milliseconds", shortest.Milliseconds(), longest.Milliseconds())
		return otherwise
	}
	return time.Duration(number) * time.Millisecond
}

// count reads a whole number from 1 to the limit.
func (r *reader) count(g given, limit, otherwise int) int {
	if !g.is() {
		return otherwise
	}
	number, err := strconv.Atoi(g.value)
	if err != nil || number < 1 || number > limit {
		r.refuse(g, "use a whole number from 1 to %d", limit)
		return otherwise
	}
	return number
}
