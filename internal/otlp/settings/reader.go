package settings

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reader reads flags and variables and keeps the first error. Callers need not
// check for errors between two calls: a value that is refused reads as zero or
// as its default.
type reader struct {
	lookup func(string) (string, bool)
	err    error
}

// input is the value of a flag or a variable.
type input struct {
	name  string // of the flag, with dashes, or of the variable
	value string // without surrounding white space; empty: not set
}

func (setting input) isSet() bool { return setting.value != "" }

// refuse records an error that names the flag or the variable and its value.
func (r *reader) refuse(setting input, format string, arguments ...any) {
	r.fail("%s=%q: %s", setting.name, setting.value, fmt.Sprintf(format, arguments...))
}

// refuseSecret is refuse without the value.
func (r *reader) refuseSecret(setting input, format string, arguments ...any) {
	r.fail("%s: %s", setting.name, fmt.Sprintf(format, arguments...))
}

func (r *reader) fail(format string, arguments ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, arguments...)
	}
}

// variable reads a variable; an empty one counts as not set.
func (r *reader) variable(name string) input {
	value, _ := r.lookup(name)
	return input{name: name, value: strings.TrimSpace(value)}
}

// choice returns the value in lower case if it is a known one, and the first
// known one if it is not set.
func (r *reader) choice(setting input, known ...string) string {
	if !setting.isSet() {
		return known[0]
	}
	value := strings.ToLower(setting.value)
	if !slices.Contains(known, value) {
		r.refuse(setting, "unknown; use %s", alternatives(known))
		return known[0]
	}
	return value
}

// alternatives lists values for a sentence.
func alternatives(known []string) string {
	last := len(known) - 1
	return strings.Join(known[:last], ", ") + " or " + known[last]
}

// boolean reads true or false; not set, it is false.
func (r *reader) boolean(setting input) bool { return r.choice(setting, "false", "true") == "true" }

// longestDuration bounds every duration: a longer one is a wrong unit.
const longestDuration = 24 * time.Hour

// milliseconds reads a duration as OpenTelemetry writes it: a whole number of
// milliseconds, no less than shortest.
func (r *reader) milliseconds(setting input, shortest, fallback time.Duration) time.Duration {
	if !setting.isSet() {
		return fallback
	}
	number, err := strconv.ParseInt(setting.value, 10, 64)
	if err != nil {
		r.refuse(setting, "not a whole number of milliseconds; %d would be %s", fallback.Milliseconds(), fallback)
		return fallback
	}
	if number < shortest.Milliseconds() || number > longestDuration.Milliseconds() {
		r.refuse(setting, "out of range: use %d to %d milliseconds", shortest.Milliseconds(), longestDuration.Milliseconds())
		return fallback
	}
	return time.Duration(number) * time.Millisecond
}

// count reads a whole number from 1 to the limit.
func (r *reader) count(setting input, limit, fallback int) int {
	if !setting.isSet() {
		return fallback
	}
	number, err := strconv.Atoi(setting.value)
	if err != nil || number < 1 || number > limit {
		r.refuse(setting, "use a whole number from 1 to %d", limit)
		return fallback
	}
	return number
}

// listEntry is one key=value of a list.
type listEntry struct {
	key, value string
	position   int // in the list, from 1
}

// list reads key=value,key=value in W3C Baggage syntax, with percent-encoded
// values. Lists may contain secrets: errors name entries by their position.
func (r *reader) list(setting input) []listEntry {
	if !setting.isSet() {
		return nil
	}
	var list []listEntry
	for i, entry := range strings.Split(setting.value, ",") {
		key, encoded, found := strings.Cut(entry, "=")
		key = strings.TrimSpace(key)
		if !found || key == "" {
			r.refuseSecret(setting, "entry %d is not key=value (a comma within a value is written %%2C)", i+1)
			return nil
		}
		value, err := url.PathUnescape(strings.TrimSpace(encoded))
		if err != nil {
			r.refuseSecret(setting, "the value of entry %d is not percent-encoded (a percent sign is written %%25)", i+1)
			return nil
		}
		list = append(list, listEntry{key: key, value: strings.TrimSpace(value), position: i + 1})
	}
	return list
}
