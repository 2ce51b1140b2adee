package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// What a row needs to pass.
const (
	leastSamples = 5    // that can be compared
	leastPassed  = 0.95 // of them
)

// Compare compares each row of each device with nvidia-smi and with the library,
// as far as they can have it, in the order of devices and rows. Before them are
// results about what has not been observed at all, and about calls that have
// failed. Each device that the agent alone has is one more result, which has
// failed.
func Compare(o Observations, w Window, rows []Row) []Result {
	results := append(o.missing(w), o.failedCalls(w)...)
	subjects := o.subjects(w)
	for _, d := range subjects {
		for _, row := range rows {
			if row.Of == AllDevices || (row.Of == Partitions) == (d.parent != "") {
				results = append(results, o.compareRow(w, d, row)...)
			}
		}
	}
	return append(results, o.unknownDevices(w, subjects)...)
}

// missing are the sides that have not been observed in a window. nvidia-smi need
// not be on a machine; the library must have devices.
func (o Observations) missing(w Window) []Result {
	var results []Result
	none := func(against string, status Status, detail string) {
		results = append(results, Result{Row: "observations", Against: against, Status: status, Agent: "none", Other: "none", Detail: detail})
	}
	texts, devices := 0, 0
	for _, l := range o.SMI {
		if w.contains(l.Time) {
			texts++
		}
	}
	for _, s := range o.Library {
		if w.contains(s.Time) {
			devices += len(s.Devices)
		}
	}
	if len(o.pages(w)) == 0 {
		none(Library, Failed, "there is no page of the agent")
	}
	if devices == 0 {
		none(Library, Failed, "the library has reported no device")
	}
	if texts == 0 {
		none(NVIDIASMI, NotReported, "nvidia-smi has printed nothing")
	}
	return results
}

// failedCalls are the functions of the library that have failed, by device. What
// they would have reported is absent.
func (o Observations) failedCalls(w Window) []Result {
	failed := make(map[string][]string) // by device
	for _, s := range o.Library {
		for _, d := range s.Devices {
			for name, code := range d.Errors {
				if call := fmt.Sprintf("%s returns %d", name, code); w.contains(d.Time) && !slices.Contains(failed[d.UUID], call) {
					failed[d.UUID] = append(failed[d.UUID], call)
				}
			}
		}
	}
	var results []Result
	for _, uuid := range slices.Sorted(maps.Keys(failed)) {
		slices.Sort(failed[uuid])
		results = append(results, Result{Row: "calls of the library", Device: uuid, Against: Library, Status: NotReported, Agent: "none", Other: "none",
			Detail: strings.Join(failed[uuid], ", ")})
	}
	return results
}

// unknownDevices are NVIDIA's devices that the agent alone has.
func (o Observations) unknownDevices(w Window, subjects []subject) []Result {
	var results []Result
	var found []string
	for _, page := range o.pages(w) {
		for _, m := range page.Families[deviceInfo].GetMetric() {
			uuid := labelOf(m, "uuid")
			known := slices.ContainsFunc(subjects, func(d subject) bool { return d.uuid == uuid })
			if labelOf(m, "vendor") == "nvidia" && labelOf(m, "source") != "" && !known && !slices.Contains(found, uuid) {
				found = append(found, uuid)
				results = append(results, Result{Row: "device", Device: uuid, Against: Library, Status: Failed, Agent: uuid, Other: "none",
					Detail: "the agent exports a device that the other side does not report"})
			}
		}
	}
	return results
}

// sides are the values of one row and one device.
type sides struct {
	row            Row
	window         Window
	agent          series
	smi, library   series
	derived        bool
	smiReports     bool
	libraryReports bool
}

func (o Observations) compareRow(w Window, d subject, row Row) []Result {
	s := sides{row: row, window: w}
	if row.Metric != "" {
		s.agent = agentSeries(o.pages(w), row.Metric, row.Label, deviceLabels(d.uuid, row.Labels))
		if row.Label == "pci_bus_id" {
			for i, p := range s.agent {
				if p.value.Known {
					s.agent[i].value = address(p.value.Text)
				}
			}
		}
	}
	if row.Library != nil {
		s.library = o.librarySeries(d.uuid, row.Library)
	}
	s.smi = o.smiSeries(d, row)
	s.smiReports, s.libraryReports = s.smi.reported(w), s.library.reported(w)
	if row.Derived != nil {
		derived := o.librarySeries(d.uuid, func(l LibraryDevice) Value { return Value{Known: row.Derived(l)} })
		s.derived = derived.reported(w)
	}
	var results []Result
	for _, other := range []struct {
		against string
		series  series
		read    bool
	}{
		{NVIDIASMI, s.smi, row.SMI != nil && d.parent == "" || row.SMIPartition != nil && d.parent != ""},
		{Library, s.library, row.Library != nil},
	} {
		if other.read {
			r := s.compare(other.series)
			r.Row, r.Device, r.Against = row.Name, d.uuid, other.against
			results = append(results, r)
		}
	}
	return results
}

// compare compares the agent's side with another one.
func (s sides) compare(other series) Result {
	otherReports, agentReports := other.reported(s.window), s.agent.reported(s.window)
	r := Result{Agent: summary(s.agent.known(s.window), s.row), Other: summary(other.known(s.window), s.row)}
	switch {
	case s.row.Metric == "":
		r.Status, r.Agent, r.Detail = NotReported, "not exported", "the agent does not export this quantity"
	case otherReports && agentReports:
		s.apply(other, &r)
	case otherReports:
		r.Status, r.Detail = Failed, "the agent has no value"
	case !agentReports:
		r.Status, r.Detail = NotReported, "neither side has a value"
	case s.derived:
		r.Status, r.Detail = NotReported, "the agent adds up how long it has seen the reason, because the driver does not count it"
	case s.smiReports || s.libraryReports:
		r.Status, r.Detail = NotReported, "this side does not report the quantity, the other one does"
	default:
		r.Status, r.Detail = Failed, "the agent has a value that the driver does not report"
	}
	return r
}

// summary is what a side has reported: the range of its values, or its texts.
func summary(known series, row Row) string {
	if len(known) == 0 {
		return "none"
	}
	if row.Kind == Text {
		return strings.Join(known.texts(), ", ")
	}
	least, most, _ := known.bounds()
	if least == most {
		return with(least, row.Unit)
	}
	return with(least, "") + " to " + with(most, row.Unit)
}

// texts are the different texts, in the order of time.
func (s series) texts() []string {
	var found []string
	for _, p := range s {
		if !slices.Contains(found, p.value.Text) {
			found = append(found, p.value.Text)
		}
	}
	return found
}

// apply applies the rule of the row's kind to two sides that both have values.
func (s sides) apply(other series, r *Result) {
	absent := 0
	for _, p := range s.agent {
		if !p.value.Known {
			absent++
		}
	}
	var problem string
	switch s.row.Kind {
	case Text:
		problem = s.texts(other)
	case Constant:
		problem = s.constant(other)
	case Gauge:
		problem, r.Detail = s.gauge(other)
	case Counter:
		problem, r.Detail = s.counter(other)
	}
	if s.row.Kind != Gauge && problem == "" && float64(absent) > (1-leastPassed)*float64(len(s.agent)) {
		problem = fmt.Sprintf("the agent has no value on %d of %d pages", absent, len(s.agent))
	}
	r.Status = Passed
	if problem != "" {
		r.Status, r.Detail = Failed, problem
	}
}

func (s sides) texts(other series) (problem string) {
	mine, others := s.agent.known(s.window).texts(), other.known(s.window).texts()
	if len(mine) != 1 || len(others) != 1 || mine[0] != others[0] {
		return "the texts differ"
	}
	return ""
}

func (s sides) constant(other series) (problem string) {
	least, most, _ := s.agent.known(s.window).bounds()
	otherLeast, otherMost, resolution := other.known(s.window).bounds()
	allowed := s.row.Tolerance.of(otherMost) + resolution
	if math.Abs(least-otherMost) > allowed || math.Abs(most-otherLeast) > allowed {
		return fmt.Sprintf("the values differ by up to %s; %s are allowed",
			with(max(math.Abs(least-otherMost), math.Abs(most-otherLeast)), s.row.Unit), with(allowed, s.row.Unit))
	}
	return ""
}

func (t Tolerance) of(value float64) float64 { return t.Absolute + t.Relative*math.Abs(value) }

// gauge compares each page with the other side's values around it.
func (s sides) gauge(other series) (problem, detail string) {
	passed, compared, worst := 0, 0, 0.0
	for _, p := range s.agent {
		around := other.known(Window{p.at.Add(-s.row.age()), p.at.Add(ahead)})
		if len(around) == 0 {
			continue
		}
		compared++
		if !p.value.Known {
			continue
		}
		least, most, resolution := around.bounds()
		allowed := s.row.Tolerance.of(most) + resolution
		excess := max(least-allowed-p.value.Number, p.value.Number-most-allowed)
		// Decimal fractions are not exact in binary.
		if excess <= 1e-9*max(1, math.Abs(most)) {
			passed++
		} else {
			worst = max(worst, excess)
		}
	}
	detail = fmt.Sprintf("%d of %d samples", passed, compared)
	switch {
	case compared < leastSamples:
		return fmt.Sprintf("only %d samples can be compared, %d are needed", compared, leastSamples), detail
	case float64(passed) < leastPassed*float64(compared):
		return fmt.Sprintf("%s pass; the largest excess over the tolerance is %s", detail, with(worst, s.row.Unit)), detail
	}
	return "", detail
}

// counter compares how much both sides have grown. The agent's value at a time
// is the other side's at some time between its age and now.
func (s sides) counter(other series) (problem, detail string) {
	agent := s.agent.known(s.window)
	for i := 1; i < len(agent); i++ {
		if agent[i].value.Number < agent[i-1].value.Number {
			return fmt.Sprintf("the agent's counter falls by %s", with(agent[i-1].value.Number-agent[i].value.Number, s.row.Unit)), ""
		}
	}
	all := Window{other[0].at, other[len(other)-1].at}
	others := other.known(all)
	if s.row.Wraps {
		others = others.unwrapped()
	}
	agent = common(agent, others, s.row.age())
	if len(agent) < leastSamples {
		return fmt.Sprintf("only %d samples can be compared, %d are needed", len(agent), leastSamples), ""
	}
	from, to := agent[0], agent[len(agent)-1]
	grown := to.value.Number - from.value.Number
	least := others.value(to.at.Add(-s.row.age())) - others.value(from.at)
	most := others.value(to.at) - others.value(from.at.Add(-s.row.age()))
	_, _, resolution := others.bounds()
	allowed := s.row.Tolerance.of(most) + 2*resolution
	detail = fmt.Sprintf("the agent's counter grows by %s, the other by %s to %s, in %.0f s",
		with(grown, s.row.Unit), with(max(least, 0), ""), with(most, s.row.Unit), to.at.Sub(from.at).Seconds())
	if grown < least-allowed || grown > most+allowed {
		return detail, detail
	}
	if s.row.Origin {
		low, high := others.value(to.at.Add(-s.row.age())), others.value(to.at)
		if to.value.Number < low-allowed || to.value.Number > high+allowed {
			return fmt.Sprintf("the agent's counter is at %s, the other at %s", with(to.value.Number, s.row.Unit), with(high, s.row.Unit)), detail
		}
	}
	return "", detail
}

// common are the agent's points between the first and the last of the other
// side, without those that may be older than the first, unless too few are left.
func common(agent, others series, age time.Duration) series {
	first, last := others[0].at, others[len(others)-1].at
	within := agent.known(Window{first.Add(age), last})
	if len(within) < leastSamples {
		within = agent.known(Window{first, last})
	}
	return within
}
