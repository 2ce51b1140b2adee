package devicemetrics

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of devicemetrics.proto.
const (
	maxMessage        = 4 << 20
	maxDevices        = 1024
	maxExtensions     = 64
	maxDeviceReadings = 256
	maxReadings       = 32768
	maxHealth         = 32
	maxProcesses      = 4096
	maxName           = 63
	maxPool           = 253
	maxIdentity       = 128
	maxDetail         = 64
	maxText           = 256
)

// checkDriver checks the name of a driver.
func checkDriver(name string) error {
	if name == "" || len(name) > maxName {
		return fmt.Errorf("driver %q: not 1 to %d bytes", name, maxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		if !isLabel(label) {
			return fmt.Errorf("driver %q: not a DNS subdomain in lower case", name)
		}
	}
	return nil
}

// isLabel reports whether text is a DNS label in lower case.
func isLabel(text string) bool {
	for i, c := range []byte(text) {
		inside := i > 0 && i < len(text)-1
		if !isLowerOrDigit(c) && (c != '-' || !inside) {
			return false
		}
	}
	return text != "" && len(text) <= maxName
}

func isLowerOrDigit(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// checkExtensions checks the declarations and returns them by name.
func checkExtensions(list []Extension) (map[string]Extension, error) {
	if len(list) > maxExtensions {
		return nil, fmt.Errorf("%d extensions: more than %d", len(list), maxExtensions)
	}
	byName := make(map[string]Extension, len(list))
	for _, extension := range list {
		if !isMetricName(extension.Name) {
			return nil, fmt.Errorf("extension %q: not a name of lower-case letters, digits and single underscores", extension.Name)
		}
		if _, twice := byName[extension.Name]; twice {
			return nil, fmt.Errorf("extension %q is declared twice", extension.Name)
		}
		if err := errors.Join(checkText("unit", extension.Unit, maxText), checkText("help", extension.Help, maxText)); err != nil {
			return nil, fmt.Errorf("extension %q: %w", extension.Name, err)
		}
		byName[extension.Name] = extension
	}
	return byName, nil
}

func isMetricName(name string) bool {
	for _, c := range []byte(name) {
		if !isLowerOrDigit(c) && c != '_' {
			return false
		}
	}
	return name != "" && len(name) <= maxName && name[0] >= 'a' && name[0] <= 'z' &&
		!strings.HasSuffix(name, "_") && !strings.HasSuffix(name, "_total") && !strings.Contains(name, "__")
}

// checkDevices returns the first violation of a limit.
func checkDevices(devices []Device, extensions map[string]Extension) error {
	if len(devices) > maxDevices {
		return fmt.Errorf("%d devices: more than %d", len(devices), maxDevices)
	}
	seen := make(map[[2]string]bool, len(devices))
	readings := 0
	for i := range devices {
		d := &devices[i]
		id := [2]string{d.Pool, d.Name}
		if seen[id] {
			return fmt.Errorf("device %s/%s is listed twice", d.Pool, d.Name)
		}
		seen[id] = true
		readings += len(d.Readings)
		if err := d.check(extensions); err != nil {
			return fmt.Errorf("device %q of pool %q: %w", d.Name, d.Pool, err)
		}
	}
	if readings > maxReadings {
		return fmt.Errorf("%d readings: more than %d", readings, maxReadings)
	}
	return nil
}

func (d *Device) check(extensions map[string]Extension) error {
	switch {
	case d.Pool == "":
		return errors.New("no pool")
	case !isLabel(d.Name):
		return errors.New("the name is not a DNS label")
	case d.Parent != "" && (!isLabel(d.Parent) || d.Parent == d.Name):
		return errors.New("the parent is not the name of another device")
	case len(d.Readings) > maxDeviceReadings:
		return fmt.Errorf("%d readings: more than %d", len(d.Readings), maxDeviceReadings)
	case len(d.Health) > maxHealth:
		return fmt.Errorf("%d health signals: more than %d", len(d.Health), maxHealth)
	case len(d.Processes) > maxProcesses:
		return fmt.Errorf("%d processes: more than %d", len(d.Processes), maxProcesses)
	}
	err := errors.Join(
		checkText("pool", d.Pool, maxPool),
		checkText("UUID", d.UUID, maxIdentity),
		checkText("PCI address", d.PCIAddress, maxDetail),
		checkText("parent", d.Parent, maxIdentity),
		checkText("model", d.Model, maxIdentity),
		checkText("vendor", d.Vendor, maxDetail),
		checkText("driver version", d.DriverVersion, maxDetail))
	if err != nil {
		return err
	}
	seen := make(map[counterID]bool, len(d.Readings))
	for _, r := range d.Readings {
		if err := r.check(extensions); err != nil {
			return fmt.Errorf("%s%s %q: %w", r.Quantity, r.Extension, r.Details, err)
		}
		id := r.id(d)
		if seen[id] {
			return fmt.Errorf("%s%s %q is read twice", r.Quantity, r.Extension, r.Details)
		}
		seen[id] = true
	}
	return errors.Join(checkHealth(d.Health), checkProcesses(d.Processes))
}

func (r Reading) check(extensions map[string]Extension) error {
	s, known := specOf(r.Quantity)
	if r.Extension != "" {
		extension, declared := extensions[r.Extension]
		s, known = spec{counter: extension.Counter, signed: !extension.Counter}, declared && r.Quantity == ""
	}
	switch {
	case !known:
		return errors.New("neither a quantity nor a declared extension")
	case len(r.Details) != s.details:
		return fmt.Errorf("%d details instead of %d", len(r.Details), s.details)
	case math.IsNaN(r.Value) || math.IsInf(r.Value, 0):
		return fmt.Errorf("%v is not finite", r.Value)
	case r.Value < 0 && !s.signed:
		return fmt.Errorf("%v is negative", r.Value)
	case r.Value > 1 && s.ratio:
		return fmt.Errorf("%v is no ratio", r.Value)
	case !r.Start.IsZero() && !s.counter:
		return errors.New("a gauge has no start")
	}
	for _, detail := range r.Details {
		if detail == "" {
			return errors.New("empty detail")
		}
		if err := checkText("detail", detail, maxDetail); err != nil {
			return err
		}
	}
	return nil
}

func checkHealth(signals []HealthSignal) error {
	seen := make(map[string]bool, len(signals))
	for _, signal := range signals {
		switch {
		case !isLabel(signal.Name):
			return fmt.Errorf("health signal %q: not a DNS label", signal.Name)
		case seen[signal.Name]:
			return fmt.Errorf("health signal %q is reported twice", signal.Name)
		case signal.State < Healthy || signal.State > Unhealthy:
			return fmt.Errorf("health signal %q: unknown state %d", signal.Name, signal.State)
		}
		seen[signal.Name] = true
	}
	return nil
}

func checkProcesses(processes []Process) error {
	seen := make(map[uint32]bool, len(processes))
	for _, p := range processes {
		switch {
		case p.PID == 0 || seen[p.PID]:
			return fmt.Errorf("process %d: not unique, or 0", p.PID)
		case p.Utilization != nil && !(*p.Utilization >= 0 && *p.Utilization <= 1):
			return fmt.Errorf("process %d: utilization %v is no ratio", p.PID, *p.Utilization)
		}
		seen[p.PID] = true
	}
	return nil
}

func checkText(what, text string, limit int) error {
	if len(text) > limit {
		return fmt.Errorf("%s: longer than %d bytes", what, limit)
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return fmt.Errorf("%s %q: not valid UTF-8, or with control characters", what, text)
	}
	return nil
}

// clip makes text for people valid: it replaces what checkText refuses and cuts
// the rest.
func clip(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	for len(text) > maxText {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
