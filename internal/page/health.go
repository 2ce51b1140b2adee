package page

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Health is the reports of three sources on a device's health, and why. A nil
// source reports nothing.
type Health struct {
	Hardware *bool `json:"hardware,omitempty"` // healthy, by the signals of the hardware
	Driver   *bool `json:"driver,omitempty"`   // by the taints in the driver's slices
	Kubelet  *bool `json:"kubelet,omitempty"`  // by the statuses of pods

	KubeletMessage string `json:"kubeletMessage,omitempty"` // why the kubelet reports it as unhealthy

	Signals []Signal `json:"signals,omitempty"` // that are present, critical ones first
	Taints  []Taint  `json:"taints,omitempty"`
	XIDs    []XID    `json:"xids,omitempty"` // that were ever reported, the newest first

	// HeldFailures is how often the device became unhealthy while it was held, since the
	// exporter started.
	HeldFailures float64 `json:"heldFailures,omitempty"`

	// Recovering is set while the device is not unhealthy any more, and had a fatal
	// Xid lately.
	Recovering *Recovery `json:"recovering,omitempty"`
}

// Signal is a sign of a failure that the hardware reports.
type Signal struct {
	Name     string `json:"name"`
	Severity string `json:"severity"` // critical or warning
}

// Taint is a taint in the driver's ResourceSlice.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

// XID is an error that NVIDIA's driver reported.
type XID struct {
	Code  string    `json:"code"` // a number, or other
	Count float64   `json:"count,omitempty"`
	Last  time.Time `json:"last,omitzero"`
}

// Severity is how serious the state is. Healthy and unknown devices are sorted
// together.
type Severity int

// The severities, the worst first.
const (
	Unhealthy  Severity = iota // a source reports it
	Recovering                 // no source reports it any more, and it had a fatal Xid lately
	Degraded                   // a failure with which the device continues to work
	Healthy                    // no failure is reported
	Unknown                    // no source reports anything
)

// Rank is the severity's place among those that are sorted by.
func (s Severity) Rank() int { return int(min(s, Healthy)) }

func (s Severity) String() string {
	return [...]string{"unhealthy", "recovering", "degraded", "healthy", "unknown"}[s]
}

// Severity is the worst of what is said.
func (h Health) Severity() Severity {
	reported := func(healthy bool) bool {
		return slices.ContainsFunc([]*bool{h.Hardware, h.Driver, h.Kubelet}, func(source *bool) bool { return source != nil && *source == healthy })
	}
	switch {
	case reported(false):
		return Unhealthy
	case h.Recovering != nil:
		return Recovering
	case len(h.Signals) > 0 || len(h.Taints) > 0:
		return Degraded
	case reported(true):
		return Healthy
	default:
		return Unknown
	}
}

// known returns the health, nil if no source reports anything.
func (h Health) known() *Health {
	if h.Severity() == Unknown && len(h.XIDs) == 0 && h.HeldFailures == 0 {
		return nil
	}
	return &h
}

// By returns the sources that report unhealthy, or else those that report
// healthy.
func (h Health) By() []string {
	var names []string
	for _, source := range []struct {
		name    string
		healthy *bool
	}{{"hardware", h.Hardware}, {"driver", h.Driver}, {"kubelet", h.Kubelet}} {
		if source.healthy != nil && *source.healthy == (h.Severity() != Unhealthy) {
			names = append(names, source.name)
		}
	}
	return names
}

// Reason is why a device is not healthy, or what is worth knowing, as text.
type Reason struct {
	Grade Grade
	Text  string
	Count float64   // of an XID: how often it was reported
	Last  time.Time // of an XID: when last
}

// Grade is how much a reason counts.
type Grade int

// The grades: why a device is unhealthy, why it is degraded, and what is no reason.
const (
	Critical Grade = iota
	Warning
	Note
)

func (g Grade) String() string { return [...]string{"critical", "warning", "note"}[g] }

// shownFor is how long the page shows an XID that is no signal.
const shownFor = time.Hour

// Reasons returns the XIDs, signals and taints to show at a time, the most
// severe first. An XID that is a signal is shown once.
func (h Health) Reasons(at time.Time) []Reason {
	var reasons []Reason
	named := map[string]bool{}
	if h.Recovering != nil && h.Recovering.Whole {
		reasons = append(reasons, Reason{Warning, "its whole device: " + XID{Code: h.Recovering.XID}.title(), 1, h.Recovering.Last})
	}
	for _, xid := range h.XIDs {
		grade := h.signalGrade("xid_" + xid.Code)
		if recovery := h.Recovering; recovery != nil && !recovery.Whole && recovery.XID == xid.Code {
			grade = Warning
		}
		if grade == Note && at.Sub(xid.Last) > shownFor {
			continue
		}
		named["xid_"+xid.Code] = true
		reasons = append(reasons, Reason{grade, xid.title(), xid.Count, xid.Last})
	}
	for _, signal := range h.Signals {
		if !named[signal.Name] {
			named[signal.Name] = true
			reasons = append(reasons, Reason{Grade: h.signalGrade(signal.Name), Text: signal.title()})
		}
	}
	if h.KubeletMessage != "" {
		reasons = append(reasons, Reason{Grade: Critical, Text: "kubelet: " + h.KubeletMessage})
	}
	for _, taint := range h.Taints {
		reasons = append(reasons, Reason{Grade: taint.grade(), Text: taint.title()})
	}
	slices.SortStableFunc(reasons, func(a, b Reason) int { return cmp.Compare(a.Grade, b.Grade) })
	return reasons
}

// signalGrade returns the grade of the signal with this name; critical signals come
// before warnings.
func (h Health) signalGrade(name string) Grade {
	at := slices.IndexFunc(h.Signals, func(s Signal) bool { return s.Name == name })
	switch {
	case at < 0:
		return Note
	case h.Signals[at].Severity == "critical":
		return Critical
	default:
		return Warning
	}
}

// title returns the signal's name in its usual spelling.
func (s Signal) title() string {
	if s.Name == parentSignal {
		return "its whole device is unhealthy"
	}
	if code, ok := strings.CutPrefix(s.Name, "xid_"); ok {
		return XID{Code: code}.title()
	}
	words := strings.Split(s.Name, "_")
	for i, word := range words {
		switch word {
		case "ecc", "dcgm":
			words[i] = strings.ToUpper(word)
		case "nvlink":
			words[i] = "NVLink"
		}
	}
	return strings.Join(words, " ")
}

// parentSignal is the signal of a partition whose whole device is unhealthy.
const parentSignal = "parent"

func (t Taint) title() string {
	text := "taint " + t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	return text + ":" + t.Effect
}

// grade depends on whether the taint keeps pods away, as the driver's health does.
func (t Taint) grade() Grade {
	if t.Effect == "NoSchedule" || t.Effect == "NoExecute" {
		return Critical
	}
	return Warning
}

// title returns "Xid 31", with what it means where it is fatal, or what stands
// for codes that have no name of their own.
func (x XID) title() string {
	if x.Code == "other" {
		return "other Xid"
	}
	if meaning, ok := fatalXids()[x.Code]; ok {
		return "Xid " + x.Code + " (" + meaning + ")"
	}
	return "Xid " + x.Code
}

// sort sorts signals, taints and XIDs.
func (h *Health) sort() {
	slices.SortFunc(h.Signals, func(a, b Signal) int {
		return cmp.Or(first(a.Severity == "critical", b.Severity == "critical"), natural(a.Name, b.Name))
	})
	slices.SortFunc(h.Taints, func(a, b Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	slices.SortFunc(h.XIDs, func(a, b XID) int { return cmp.Or(b.Last.Compare(a.Last), natural(a.Code, b.Code)) })
}

// Recovery is a fatal Xid that no source reports any more, and that happened so lately that the alert DRADeviceXIDFatal still fires.
type Recovery struct {
	XID     string    `json:"xid"`
	Meaning string    `json:"meaning"`
	Last    time.Time `json:"last"`                    // when it was reported last
	Whole   bool      `json:"ofWholeDevice,omitempty"` // of a partition: it befell its whole device
}

// recoveringFor is how long a device is recovering: the half hour in which
// DRADeviceXIDFatal fires, and until the evaluation that ends the alert.
const recoveringFor = 31 * time.Minute

// recovery returns what the device recovers from at a time; nil if it is unhealthy, or
// if it had no fatal Xid lately.
func (h *Health) recovery(at time.Time) *Recovery {
	if h.Severity() == Unhealthy {
		return nil
	}
	fatal := fatalXids()
	for _, xid := range h.XIDs { // the newest first
		meaning, ok := fatal[xid.Code]
		if ok && !xid.Last.IsZero() && at.Sub(xid.Last) < recoveringFor {
			return &Recovery{XID: xid.Code, Meaning: meaning, Last: xid.Last}
		}
	}
	return nil
}

// fatalXids returns the Xids after which a GPU needs a reset or more, and what
// they mean: the critical ones of docs/health.md. The alert DRADeviceXIDFatal
// fires for the same; tests compare the three.
func fatalXids() map[string]string {
	return map[string]string{
		"46":  "GPU stopped processing",
		"48":  "uncorrectable ECC error",
		"54":  "auxiliary power is not connected",
		"62":  "internal microcontroller halted",
		"64":  "remapping a row, or retiring a page, failed",
		"74":  "NVLink error",
		"79":  "GPU fell off the bus",
		"95":  "memory error that was not contained",
		"109": "context switch timed out",
		"110": "security fault",
		"119": "no answer from the GPU's system processor (GSP)",
		"120": "error of the GPU's system processor (GSP)",
		"136": "training of a link failed",
		"140": "ECC error that was not recovered",
		"143": "GPU could not be initialized",
		"149": "NVLink: NETIR, a link went down",
		"150": "NVLink: MSE",
		"151": "key rotation failed (confidential computing)",
		"155": "NVLink taken down by software",
		"156": "a resource of the GPU was retired",
		"158": "fatal timeout",
		"171": "uncorrectable error of DRAM, together with Xid 48",
		"172": "uncorrectable error of SRAM, together with Xid 48",
	}
}
