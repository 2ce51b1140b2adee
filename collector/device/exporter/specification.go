package exporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/exposition"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

const maxProblems = 4 // that an error spells out

// The limits of docs/plugins.md, beside those of every page.
const (
	maxReadings  = 256  // of a device; a health signal has one for each state
	maxSignals   = 32   // of a device
	maxProcesses = 4096 // of a device
	maxName      = 63   // bytes of the name of a driver, a device or a signal
	maxPool      = 253  // bytes
)

// The sentences of docs/plugins.md that a page can violate. A test compares them.
const (
	rulePlace     = "The page is `/metrics` on a socket named `<driver>.sock`, where `<driver>` is `spec.driver` of your ResourceSlices: a DNS subdomain in lower case."
	rulePage      = "A page is Prometheus' text format of at most 4 MiB, 20,000 series and 1,024 devices, and comes within 2 seconds."
	ruleOwn       = "`driver` is the one that the socket is named after: a driver reports no devices of another one."
	ruleDevice    = "`pool` and `device` are those of the ResourceSlice."
	ruleDetails   = "The labels of the table are there, and none is empty."
	ruleInfo      = "The value of `dra_device_info` is 1, and its labels are optional."
	ruleParent    = "Of a partition, `parent` is the name of the whole device."
	ruleText      = "Texts have no control characters; `pool` has at most 253 bytes, `model` 128, others 64, and names 63."
	ruleOnce      = "Each series is there once."
	ruleValue     = "Values are in base units and possible: a ratio is from 0 to 1, and a counter is not negative."
	ruleLeftOut   = "A value that cannot be read is left out: it is neither 0 nor NaN."
	ruleFell      = "A counter does not fall, except when the hardware is reset."
	ruleSignal    = "`signal` is a DNS label, and exactly one of its states is 1."
	rulePID       = "`pid` is a process ID in the PID namespace of the host."
	ruleProcesses = "`dra_device_processes` is how many processes have series."
	ruleExtension = "`<name>` has lower-case letters, digits and single underscores."
	ruleAge       = "A time stamp is at most 90 seconds old."
	ruleReadings  = "A device has at most 256 values, 32 signals and 4,096 processes."
)

// Violation is something on a page that the specification does not allow.
type Violation struct {
	Rule string // the sentence of docs/plugins.md
	Text string // what is on the page
}

// violations are those of one page or of several: the first of each rule.
type violations struct {
	list []Violation
	more int
}

// add adds a violation by a series, which it names; one without a name is of none.
func (v *violations) add(rule string, s exposition.Series, format string, args ...any) {
	if v.has(rule) {
		v.more++
		return
	}
	text := fmt.Sprintf(format, args...)
	if s.Name != "" {
		text = seriesText(s) + ": " + text
	}
	v.list = append(v.list, Violation{rule, text})
}

func (v *violations) has(rule string) bool {
	return slices.ContainsFunc(v.list, func(violation Violation) bool { return violation.Rule == rule })
}

// err says what was left out; nil if nothing was.
func (v *violations) err() error {
	if len(v.list) == 0 {
		return nil
	}
	var errs []error
	for _, violation := range v.list[:min(len(v.list), maxProblems)] {
		errs = append(errs, errors.New(violation.Text))
	}
	if more := v.more + len(v.list) - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return &source.Failure{Reason: source.ReasonInvalid, Err: errors.Join(errs...)}
}

// seriesText is a series as its page has it, shortened.
func seriesText(s exposition.Series) string {
	var labels []string
	for name, value := range s.Labels.Each {
		labels = append(labels, fmt.Sprintf("%s=%q", clip(name), clip(value)))
	}
	return clip(s.Name) + "{" + strings.Join(labels[:min(len(labels), 8)], ",") + "}"
}

// clip shortens a text for a message.
func clip(text string) string {
	if len(text) <= maxName {
		return text
	}
	return strings.ToValidUTF8(text[:maxName], "") + "…"
}

// isDriver reports whether text is a DNS subdomain in lower case of at most maxName
// bytes.
func isDriver(text string) bool {
	if len(text) > maxName {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// isLabel reports whether text is a DNS label in lower case.
func isLabel(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return text != "" && len(text) <= maxName && text[0] != '-' && text[len(text)-1] != '-'
}
