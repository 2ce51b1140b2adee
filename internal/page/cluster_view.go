package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// ClusterView is a cluster at one time. What is unknown is nil, empty or the
// zero time, never a number.
type ClusterView struct {
	Version string    // of the exporter
	At      time.Time // time of the view
	Sources []Source  // by name

	Pending []PendingRef  // pending claims, those that are pending longest first
	Gated   []PendingRef  // likewise: references of pods with scheduling gatedItems, which are not pending
	Phases  []ActivePhase // likewise: allocated, and not running yet

	Claims    map[string]float64 // by state
	Classes   []ClassSupply      // by name
	Drivers   []DriverSupply     // by name
	Anomalies []AnomalyKind      // what looks wrong, or did, by kind
}

// PendingRef is a pod's claim reference, or its request of an extended resource,
// that is not satisfied. The JSON names are those of docs/api.md.
type PendingRef struct {
	Namespace string          `json:"namespace"`
	Pod       string          `json:"pod"`
	PodClaim  string          `json:"podClaim"`
	Claim     string          `json:"claim,omitempty"`
	Class     string          `json:"deviceClass,omitempty"`
	Since     time.Time       `json:"since,omitzero"`
	Reason    string          `json:"reason,omitempty"`
	Requests  []RequestCounts `json:"requests,omitempty"` // by request
}

// ActivePhase is a phase that a pod with an allocated claim is in.
type ActivePhase struct {
	Namespace, Pod, Claim string
	Phase                 string
	Since                 time.Time
}

// DeviceStates counts devices by what can be done with them.
type DeviceStates struct {
	Allocated, Free, Unavailable *float64
}

// Total returns the number of devices; nil if it is unknown.
func (s DeviceStates) Total() *float64 {
	var total *float64
	for _, count := range []*float64{s.Allocated, s.Free, s.Unavailable} {
		total = orPlus(total, count)
	}
	return total
}

// add adds the counts of other devices.
func (s *DeviceStates) add(other DeviceStates) {
	s.Allocated, s.Free = orPlus(s.Allocated, other.Allocated), orPlus(s.Free, other.Free)
	s.Unavailable = orPlus(s.Unavailable, other.Unavailable)
}

// ClassSupply is a device class and the devices that it selects, which other
// classes may select, too.
type ClassSupply struct {
	Name             string
	ExtendedResource string
	Devices          DeviceStates
	Fitting          []FittingClaims // by number of devices
	Down             []DownDevices
}

// DownDevices are devices of a class that are down for one reason.
type DownDevices struct {
	Reason  string
	Devices float64
}

// FittingClaims is how many more claims for so many devices of a class, each on one
// node, could be allocated.
type FittingClaims struct {
	Devices int
	Claims  *float64
	AtLeast bool // there may be more
}

// DriverSupply is what a driver publishes in all its pools.
type DriverSupply struct {
	Name       string
	Pools      int
	Devices    DeviceStates
	Capacities []CapacityUse // by name; of devices that several claims may share
}

// CapacityUse is how much of a capacity is allocated to claims, over all
// devices of a driver that claims may share. Its unit is the capacity's own.
type CapacityUse struct {
	Name            string
	Devices         int
	Total, Consumed float64
}

// Ratio returns the allocated share; nil if the capacity is 0.
func (c CapacityUse) Ratio() *float64 { return share(&c.Consumed, &c.Total) }

// AnomalyKind is the anomalies of one kind.
type AnomalyKind struct {
	Kind    string // for programs that read the page
	Title   string
	Meaning string // what it means, or what to do
	Quiet   bool   // informational: nothing is wrong now
	Items   []Anomaly
}

// Anomaly is one anomaly.
type Anomaly struct {
	Name   string
	Detail string
	Since  time.Time
}

// Devices are those of all drivers.
func (v ClusterView) Devices() DeviceStates {
	var all DeviceStates
	for _, driver := range v.Drivers {
		all.add(driver.Devices)
	}
	return all
}

// ClaimCount is how many claims are in any state; nil: unknown, since some states
// depend on the pods.
func (v ClusterView) ClaimCount() *float64 {
	if len(v.Unread("pods", "resourceclaims")) > 0 {
		return nil
	}
	var sum float64
	for _, count := range v.Claims {
		sum += count
	}
	return &sum
}

// Wrong are the kinds of what looks wrong now.
func (v ClusterView) Wrong() []AnomalyKind { return v.anomalies(false) }

// Noted returns the kinds of informational entries.
func (v ClusterView) Noted() []AnomalyKind { return v.anomalies(true) }

func (v ClusterView) anomalies(quiet bool) []AnomalyKind {
	return slices.DeleteFunc(slices.Clone(v.Anomalies), func(kind AnomalyKind) bool { return kind.Quiet != quiet })
}

// WrongCount counts what looks wrong now.
func (v ClusterView) WrongCount() int {
	count := 0
	for _, kind := range v.Wrong() {
		count += len(kind.Items)
	}
	return count
}

// Overlooked returns the sources that were never read and without which
// anomalies are not seen. An API server without taint rules has no such source.
func (v ClusterView) Overlooked() []Source {
	needed := []string{"pods", "resourceclaims", "resourceslices"}
	if slices.ContainsFunc(v.Sources, func(s Source) bool { return s.Name == "devicetaintrules" }) {
		needed = append(needed, "devicetaintrules")
	}
	return v.Unread(needed...)
}

// Unread returns those of the sources that have never been read. If there are none,
// objects that are not in the view do not exist.
func (v ClusterView) Unread(needed ...string) []Source {
	var unread []Source
	for _, name := range needed {
		i := slices.IndexFunc(v.Sources, func(s Source) bool { return s.Name == name })
		switch {
		case i < 0:
			unread = append(unread, Source{Name: name})
		case v.Sources[i].LastSuccess.IsZero() && !v.Sources[i].Up:
			unread = append(unread, v.Sources[i])
		}
	}
	return unread
}

// Long returns the phases under way that have taken long.
func (v ClusterView) Long() []ActivePhase {
	return slices.DeleteFunc(slices.Clone(v.Phases), func(u ActivePhase) bool {
		age, ok := since(v.At, u.Since)
		return ok && age < longAfter
	})
}

// longAfter is the duration after which a phase under way has taken long.
const longAfter = 10 * time.Second

// Count is how many claims are pending in the cluster.
func (v ClusterView) Count() PendingCount { return CountPending(v.Pending, v.Gated) }

// gated reports whether the pod has scheduling gatedItems. Such a reference is not
// pending: the scheduler must not look at the pod yet.
func (w *PendingRef) gated() bool { return dra.PendingReason(w.Reason).Gated() }

// because returns a sentence with the reason of the pending reference. Reasons
// that depend on devices are unknown without their sources.
func (w PendingRef) because(unread []Source) string {
	switch {
	case w.Reason == "unknown" && len(unread) > 0:
		return "Not diagnosed: " + namesOnly(unread) + " could not be read."
	default:
		return reasonText(w.Reason)
	}
}

// claimText returns which claim the reference needs.
func (w PendingRef) claimText() string {
	switch {
	case w.Claim != "":
		return "claim " + w.Claim
	case w.Reason == "claim_missing":
		return "its claim does not exist"
	default:
		return "no claim yet"
	}
}

// PendingCount is how many claims are pending, as docs/glossary.md defines it:
// references of pods to claims, and requests of extended resources, that are
// not satisfied. Those of pods with scheduling gatedItems are counted apart. The
// page, the JSON's reader and top have their numbers from here.
type PendingCount struct {
	Pending int
	Gated   int
	Oldest  time.Time     // since when the oldest has been pending; zero where none is
	Reasons []ReasonCount // of those that are pending, the most frequent first
}

// ReasonCount is how many claims are pending for a reason; the reason is empty
// until it is known.
type ReasonCount struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
}

// CountPending counts the references of all lists, each by its own reason.
func CountPending(lists ...[]PendingRef) PendingCount {
	var count PendingCount
	for _, list := range lists {
		for i := range list {
			count.add(&list[i])
		}
	}
	slices.SortFunc(count.Reasons, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return count
}

func (c *PendingCount) add(w *PendingRef) {
	if w.gated() {
		c.Gated++
		return
	}
	c.Pending++
	if !w.Since.IsZero() && (c.Oldest.IsZero() || w.Since.Before(c.Oldest)) {
		c.Oldest = w.Since
	}
	i := slices.IndexFunc(c.Reasons, func(r ReasonCount) bool { return r.Reason == w.Reason })
	if i < 0 {
		i = len(c.Reasons)
		c.Reasons = append(c.Reasons, ReasonCount{Reason: w.Reason})
	}
	c.Reasons[i].Count++
}

// reasonText describes the reason in a sentence; it is the reason itself if that is
// none of the closed set.
func reasonText(reason string) string {
	if reason == "" {
		reason = string(dra.ReasonPendingDiagnosis)
	}
	meaning := dra.PendingReason(reason).Info().Meaning
	if meaning == "" {
		return reason
	}
	return words.Sentence(meaning)
}

// namesOnly returns the names of sources.
func namesOnly(sources []Source) string {
	names := make([]string, len(sources))
	for i, source := range sources {
		names[i] = source.Name
	}
	return strings.Join(names, ", ")
}

// listed returns the names of sources, each with its reason.
func listed(sources []Source) string {
	names := make([]string, len(sources))
	for i, source := range sources {
		names[i] = strings.TrimSuffix(source.Name+": "+source.Reason, ": ")
	}
	return strings.Join(names, ", ")
}
