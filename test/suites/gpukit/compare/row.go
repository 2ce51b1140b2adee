package compare

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/smi"
)

// Kind says by which rule values are compared.
type Kind int

// The kinds.
const (
	Text     Kind = iota // all texts are equal
	Constant             // all numbers are equal, within the tolerance
	Gauge                // each value of the agent lies between the other side's around it
	Counter              // the agent's never falls, and grows as much as the other side's
)

// Scope says of which devices a row is.
type Scope int

// The scopes.
const (
	GPUs       Scope = iota // whole GPUs
	Partitions              // MIG devices
	AllDevices
)

// Tolerance is by how much two numbers may differ: the sum of both.
type Tolerance struct {
	Absolute float64 // in the row's unit
	Relative float64 // of the other side's value, or of its growth
}

// SMIGPU is a GPU with what nvidia-smi prints once for all.
type SMIGPU struct {
	smi.GPU
	DriverVersion string
}

// LibraryDevice is a device with what the library reports once for all.
type LibraryDevice struct {
	direct.Device
	DriverVersion string
}

// Row is one quantity: where the agent, nvidia-smi and the library have it.
type Row struct {
	Name string
	Unit string // base unit; empty: a count or a text
	Kind Kind
	Of   Scope

	Metric string            // the agent's family; empty: the agent does not export the quantity
	Labels map[string]string // besides uuid
	Label  string            // of Text: the label that has the text

	// The readers are nil where that side never has the quantity.
	SMI          func(SMIGPU) Value
	SMIPartition func(smi.MIGDevice) Value // for MIG devices
	Library      func(LibraryDevice) Value

	Tolerance Tolerance
	// Age is how old the agent's value may be; 0 is 2 s: one interval between
	// reads, and one more until the page has it.
	Age time.Duration
	// Wraps says that the other side's counter has 32 bits and starts again at 0.
	Wraps bool
	// Origin says that the agent's counter has the other side's origin, so that
	// not only the growth is the same.
	Origin bool
	// Derived reports whether the agent computes the quantity from others of the
	// device, so that it has a value where the others have none.
	Derived func(LibraryDevice) bool
}

const (
	fastAge = 2 * time.Second
	// slowAge is that of what the agent reads each half minute.
	slowAge = 35 * time.Second
	// ahead is how much later than the agent's page the other side may have been
	// read.
	ahead = 2 * time.Second
)

func (r Row) age() time.Duration {
	if r.Age == 0 {
		return fastAge
	}
	return r.Age
}

// Value is a number or a text of one side. The zero value is not reported.
type Value struct {
	Known      bool
	Number     float64
	Text       string
	Resolution float64 // by which a printed number is rounded
}

// number is a number of the library, nil if it is not reported.
func number(n *float64) Value {
	if n == nil || math.IsNaN(*n) || math.IsInf(*n, 0) {
		return Value{}
	}
	return Value{Known: true, Number: *n}
}

// printed is a number of nvidia-smi.
func printed(n smi.Number) Value {
	return Value{Known: n.Known, Number: n.Value, Resolution: n.Resolution}
}

func flag(f smi.Flag) Value {
	v := Value{Known: f.Known}
	if f.Value {
		v.Number = 1
	}
	return v
}

// words is a text whose spaces are single ones.
func words(text string) Value {
	text = strings.Join(strings.Fields(text), " ")
	return Value{Known: text != "", Text: text}
}

// address is a PCI address as sysfs writes it, such as 0000:53:00.0: in lower
// case, with a domain of at least four digits. NVML's domains have eight.
func address(text string) Value {
	text = strings.ToLower(strings.TrimSpace(text))
	domain, rest, found := strings.Cut(text, ":")
	if !found {
		return words(text)
	}
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return Value{Known: true, Text: domain + ":" + rest}
}

// add returns a sum, if any part is known.
func add(parts ...Value) Value {
	var sum Value
	for _, p := range parts {
		if p.Known {
			sum.Known, sum.Number, sum.Resolution = true, sum.Number+p.Number, sum.Resolution+p.Resolution
		}
	}
	return sum
}

// either returns the first value that is known.
func either(values ...Value) Value {
	for _, v := range values {
		if v.Known {
			return v
		}
	}
	return Value{}
}

// with writes a number with its unit.
func with(value float64, unit string) string {
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if value != math.Trunc(value) || math.Abs(value) >= 1e15 {
		text = strconv.FormatFloat(value, 'g', 6, 64)
	}
	return strings.TrimSpace(text + " " + unit)
}
