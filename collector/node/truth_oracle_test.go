package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// An oracle follows a truth step by step and knows what may be shown of it.
// A claim has what a GPU does between two steps if it had the GPU in both.
type oracle struct {
	accounts map[accountKey]*truthAccount
	vendor   [3]bool            // the vendor's name of the GPU is known to be the GPU
	twin     bool               // and so is the other name of GPU 1
	alias    bool               // and that of GPU 0
	turns    [3][]time.Duration // when claims took or left each GPU while the watch was stale
	unsure   [3]time.Duration   // until when a claim that ended while the watch was stale may be missed
	holders  [3]int
	before   map[string]float64
	seconds  map[accountKey]float64 // device-seconds of the page before
	alone    map[accountKey]bool    // who had a GPU alone then, monitors aside
}

type accountKey struct {
	claim string
	gpu   int
}

// claimMark is what the oracle notes on a claim that is there.
type claimMark struct {
	seen    bool // the facts have shown it
	known   bool // the API server has reported it
	holds   bool // it holds its GPU as far as facts can show
	visible bool // and the facts of this step show it
}

// truthAccount is what a claim may have and must have of a GPU.
type truthAccount struct {
	kind    truthKind
	held    float64 // seconds that it truly had it
	shown   float64 // those in which the facts showed it from end to end
	weighed float64
	truly   []truthSpan
	spans   [2][]truthSpan // under one attribution: exclusive, shared
	there   int            // the last step in which it was there
	last    time.Duration  // when it was visible last; zero: not since it came
	shared  bool
	changes int
	doubts  int // changes while the watch was stale
}

type truthSpan struct{ from, to time.Duration }

func extend(spans []truthSpan, from, to time.Duration) []truthSpan {
	if n := len(spans); n > 0 && spans[n-1].to == from {
		spans[n-1].to = to
		return spans
	}
	return append(spans, truthSpan{from, to})
}

// within is how many seconds of the spans lie between two times.
func within(spans []truthSpan, from, to time.Duration) float64 {
	sum := time.Duration(0)
	for _, s := range spans {
		sum += max(0, min(to, s.to)-max(from, s.from))
	}
	return sum.Seconds()
}

func covered(spans []truthSpan, from, to time.Duration) bool {
	for _, s := range spans {
		if s.from <= from && to <= s.to {
			return true
		}
	}
	return false
}

func (w *truth) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s, %v, step %d: %s", w.t.Name(), w.mode, w.steps, fmt.Sprintf(format, args...))
}

// observe brings the oracle to this step and looks at its page.
func (w *truth) observe() {
	w.t.Helper()
	fresh, listed := w.facts.Cluster.Fresh, !w.partial()
	for _, c := range w.claims {
		m := &c.mark
		m.known = m.known || fresh
		m.visible = (fresh || listed) && !c.isUnread()
		m.seen = m.seen || m.visible
	}
	w.identify()
	w.countTruth()
	for _, c := range w.claims {
		w.account(c)
	}
	w.check()
}

// markChanged notes that a claim takes or leaves a GPU. While the watch is stale
// that is not known for certain before some seconds have passed.
func (w *truth) markChanged(gpu int) {
	if w.stale <= 0 {
		return
	}
	w.oracle.unsure[gpu] = w.now.Elapsed + 8*time.Second
	w.oracle.turns[gpu] = append(w.oracle.turns[gpu], w.now.Elapsed)
	for key, a := range w.oracle.accounts {
		if key.gpu == gpu && a.there > w.steps-12 {
			a.doubts++
		}
	}
}

// named reports whether the facts of this step name a device for a claim.
func (w *truth) named(id dra.DeviceID) bool {
	for _, c := range w.facts.Cluster.Claims {
		if c.Results[0].Device == id {
			return true
		}
	}
	for _, a := range w.facts.Listing.Assignments {
		if a.Device == id {
			return true
		}
	}
	return false
}

// identify determines which names are known to be GPUs. A name that a slice reported
// stays known for as long as claims hold it; without a slice gpu-N is GPU N. Of two names that slices have for a GPU,
// one is known only while the facts name it for a claim: a List that is not
// complete does not, of claims that no watch has reported.
func (w *truth) identify() {
	o := &w.oracle
	has := func(gpu int, kind truthKind) bool {
		for _, c := range w.claims {
			if c.gpu == gpu && c.kind == kind && c.mark.seen {
				return true
			}
		}
		return false
	}
	hasTwin, hasAlias := has(1, kindTwin), has(0, kindAlias)
	if published := len(w.facts.Cluster.Published) > 0; published {
		o.twin = hasTwin && w.named(sceneID("gpu-1-twin"))
		o.alias = hasAlias && w.named(sceneID("gpu-0")) && w.named(dra.DeviceID{Driver: "gpu.acme.com", Pool: sceneNode, Name: "card0"})
		if o.alias {
			w.saw("both drivers")
		}
	} else {
		o.twin, o.alias = o.twin && hasTwin, o.alias && hasAlias
	}
	if w.mode == truthKubelet {
		o.alias = hasAlias // by its device node
	}
	for i := range w.gpus {
		if len(w.facts.Cluster.Published) > 0 {
			o.vendor[i] = has(i, kindVendor) && (i != 1 || w.twin != "plain" || w.named(sceneID("gpu-1")))
		} else {
			o.vendor[i] = has(i, kindVendor)
		}
	}
	for _, c := range w.claims {
		m := &c.mark
		switch c.kind {
		case kindVendor:
			m.holds = o.vendor[c.gpu]
		case kindTwin:
			m.holds = o.twin
		case kindAlias:
			m.holds = o.alias
		default:
			m.holds = false
		}
		m.holds = m.holds && m.seen && (!c.admin || !m.known)
	}
}

// countTruth counts who holds each GPU, as far as facts can show.
func (w *truth) countTruth() {
	w.oracle.holders = [3]int{}
	for _, c := range w.claims {
		if c.mark.holds {
			w.oracle.holders[c.gpu]++
		}
	}
	for i, name := range w.plugin {
		if w.listed[name] && w.resolves(name) {
			w.oracle.holders[i]++
		}
	}
	w.findForeign()
}

// account notes what the claim may have, and what it must have, of the time
// since the step before.
func (w *truth) account(c *truthClaim) {
	key, now := accountKey{c.name, c.gpu}, w.now.Elapsed
	a := w.oracle.accounts[key]
	if a == nil {
		a = &truthAccount{kind: c.kind, there: -1}
		for _, turn := range w.oracle.turns[c.gpu] {
			if w.now.Elapsed-turn < 8*time.Second {
				a.doubts++
			}
		}
		w.oracle.accounts[key] = a
	}
	m := &c.mark
	if c.admin && m.known {
		a.last = 0
		return
	}
	if a.there == w.steps-1 {
		a.held++
		a.truly = extend(a.truly, now-time.Second, now)
	} else {
		a.last = 0
		a.changes++
	}
	a.there = w.steps
	if !m.holds {
		a.last = 0
		return
	}
	if !m.visible {
		w.saw("doubt")
		return
	}
	shared := w.oracle.holders[c.gpu] > 1 || w.evidence.shared[c.gpu]
	which := 0
	if shared {
		which = 1
	}
	if a.last > 0 {
		span := (now - a.last).Seconds()
		a.shown += span
		a.weighed += span / float64(w.oracle.holders[c.gpu])
		if a.shared == shared {
			a.spans[which] = extend(a.spans[which], a.last, now)
		}
	}
	if a.last == 0 || a.shared != shared {
		a.changes++
		if a.last == 0 {
			a.spans[which] = append(a.spans[which], truthSpan{now, now})
		}
	}
	a.last, a.shared = now, shared
}

// gpuOf is the GPU that a row is about; -1 if it is about none.
func gpuOf(row metric.Row) int {
	number, ok := strings.CutPrefix(row.Labels.Get("uuid"), "GPU-")
	if !ok {
		return -1
	}
	return int(number[0] - '0')
}

// check holds the page against the truth.
func (w *truth) check() {
	w.t.Helper()
	page := truthPage{energy: map[string]map[accountKey]*[2]float64{}, seconds: map[accountKey]float64{}, held: map[accountKey]bool{}}
	counters := make(map[string]float64, len(w.oracle.before))
	for i := range w.last.Rows() {
		w.checkRow(w.last.Rows()[i], &page, counters)
	}
	for name, before := range w.oracle.before {
		if value, there := counters[name]; there && value < before {
			w.fail("%s fell from %v to %v", name, before, value)
		}
	}
	w.checkHeld(&page)
	w.checkPossible()
	w.checkEnergy(&page)
	w.checkSeconds(&page)
	w.oracle.before, w.oracle.seconds = counters, page.seconds
}

// truthPage is what a page shows of claims.
type truthPage struct {
	energy  map[string]map[accountKey]*[2]float64 // by family: exclusive, shared
	seconds map[accountKey]float64
	held    map[accountKey]bool
}

func (w *truth) checkRow(row metric.Row, page *truthPage, counters map[string]float64) {
	w.t.Helper()
	name := row.Family.Name
	if strings.HasPrefix(name, "dra_claim_") || strings.HasPrefix(name, "dra_namespace_") || strings.HasPrefix(name, "dra_device_busy") {
		series := seriesName(row)
		if _, twice := counters[series]; twice {
			w.fail("%s is there twice", series)
		}
		counters[series] = row.Value
		if row.Family.Type != metric.Counter {
			counters[series] = 1 // it may fall
		}
	}
	key := accountKey{row.Labels.Get("resourceclaim"), gpuOf(row)}
	if key.claim == "" {
		return
	}
	a, attribution := w.oracle.accounts[key], row.Labels.Get("attribution")
	if key.gpu >= 0 && a == nil && name != "dra_claim_info" {
		w.fail("%s is shown on GPU %d, which it never had", key.claim, key.gpu)
	}
	switch name {
	case "dra_claim_held":
		page.held[key] = true
		w.checkName(key.claim, row.Labels.Get("uuid"))
	case "dra_claim_held_seconds_total":
		if a != nil && row.Value > a.held+1e-9 {
			w.fail("%v held %v s, shown are %v", key, a.held, row.Value)
		}
	case "dra_claim_device_seconds_total":
		if key.gpu >= 0 {
			page.seconds[key] = row.Value
		}
	case "dra_claim_utilization_ratio", "dra_claim_power_watts":
		w.checkGauge(key, attribution, row)
	case "dra_claim_energy_joules_total", "dra_claim_nvlink_transmit_bytes_total", "dra_claim_pcie_transmit_bytes_total":
		page.add(name, key, attribution, row.Value)
	}
}

func (p *truthPage) add(family string, key accountKey, attribution string, value float64) {
	if p.energy[family] == nil {
		p.energy[family] = map[accountKey]*[2]float64{}
	}
	if p.energy[family][key] == nil {
		p.energy[family][key] = &[2]float64{}
	}
	which := 1
	if attribution == "exclusive" {
		which = 0
	}
	p.energy[family][key][which] += value
}

// checkName is for a claim that is shown under a name instead of a UUID.
func (w *truth) checkName(claim, uuid string) {
	w.t.Helper()
	if !strings.HasPrefix(uuid, sceneNode+"/gpu.nvidia.com/") {
		return
	}
	for _, c := range w.claims {
		if c.name == claim && c.mark.holds {
			w.fail("%s is shown under %s", claim, uuid)
		}
	}
}

func (w *truth) checkGauge(key accountKey, attribution string, row metric.Row) {
	w.t.Helper()
	if key.gpu < 0 {
		return
	}
	switch attribution {
	case "exclusive":
		if w.mode == truthAPI && w.evidence.shared[key.gpu] {
			w.fail("%v has %s as its own, though another pod uses it", key, row.Family.Name)
		}
		if w.oracle.holders[key.gpu] > 1 {
			w.fail("%v has %s as its own, though %d hold it", key, row.Family.Name, w.oracle.holders[key.gpu])
		}
	case "process":
		w.saw("by process")
		for _, c := range w.claims {
			if c.name == key.claim && row.Value > c.work()+1e-9 {
				w.fail("processes of %v do %v, shown is %v", key, c.work(), row.Value)
			}
		}
	}
}

// checkHeld: whoever can be seen to hold a GPU is shown to.
func (w *truth) checkHeld(page *truthPage) {
	w.t.Helper()
	for _, c := range w.claims {
		if key := (accountKey{c.name, c.gpu}); c.mark.holds && c.mark.visible && !page.held[key] {
			w.fail("%v (%v) is not shown to hold it", key, c.device)
		}
	}
}

// checkEnergy: no claim has more of a counter than it counted while it held
// the GPU, and all who had it alone have not more together than it counted.
func (w *truth) checkEnergy(page *truthPage) {
	w.t.Helper()
	for i, g := range w.gpus {
		for _, c := range g.counters {
			if len(c.measures) == 0 {
				continue
			}
			first, last := c.measures[0].point, c.measures[len(c.measures)-1].point
			alone := 0.0
			for key, got := range page.energy[c.family] {
				if key.gpu != i {
					continue
				}
				a := w.oracle.accounts[key]
				alone += got[0]
				if most := c.rate*within(a.truly, first, last) + c.tolerance(a); got[0]+got[1] > most {
					w.fail("%v has %v of %s, at most %v is its", key, *got, c.family, most)
				}
			}
			if most := c.rate*(last-first).Seconds() + 1; alone > most {
				w.fail("all who were alone on GPU %d have %v of %s, which counted %v", i, alone, c.family, most)
			}
		}
	}
}

// tolerance is for the jitter of the counter, wherever it may be cut.
func (c *truthCounter) tolerance(a *truthAccount) float64 {
	if c.family == "dra_claim_energy_joules_total" {
		return 2 * float64(1+a.changes)
	}
	return 1e-3
}

// checkSeconds: a GPU is there once a second. Where monitors cannot be reported
// from others, a claim's device-seconds are right or not shown.
func (w *truth) checkSeconds(page *truthPage) {
	w.t.Helper()
	sums := [3]float64{}
	for key, value := range page.seconds {
		sums[key.gpu] += value
	}
	for i, sum := range sums {
		if most := (w.now.Elapsed - w.began).Seconds(); sum > most+1e-6 {
			w.fail("%v device-seconds of GPU %d in %v s", sum, i, most)
		}
	}
	if w.mode != truthKubelet {
		return
	}
	alone := map[accountKey]bool{}
	for _, c := range w.claims {
		key := accountKey{c.name, c.gpu}
		if c.admin || !c.mark.holds || !c.mark.visible || w.plugin[c.gpu] != "" {
			continue
		}
		others, monitors := 0, 0
		for _, other := range w.claims {
			if other != c && other.gpu == c.gpu {
				if monitors++; !other.admin {
					others++
				}
			}
		}
		now, shown := page.seconds[key]
		if monitors > 0 && !shown {
			w.saw("uncounted")
		}
		if others > 0 {
			continue
		}
		alone[key] = true
		if before, was := w.oracle.seconds[key]; shown && was && w.oracle.alone[key] && now < before+1-1e-9 {
			w.fail("%v has %v device-seconds more in a second, with %d monitors beside it", key, now-before, monitors)
		}
	}
	w.oracle.alone = alone
}

// conclude is for the end of a history: everybody has what could be known to
// be his.
func (w *truth) conclude() {
	w.t.Helper()
	shown := map[string]map[accountKey]float64{}
	energy := truthPage{energy: map[string]map[accountKey]*[2]float64{}}
	for _, row := range w.last.Rows() {
		key := accountKey{row.Labels.Get("resourceclaim"), gpuOf(row)}
		if key.claim == "" || key.gpu < 0 {
			continue
		}
		if shown[row.Family.Name] == nil {
			shown[row.Family.Name] = map[accountKey]float64{}
		}
		shown[row.Family.Name][key] = row.Value
		if row.Labels.Get("attribution") != "" {
			energy.add(row.Family.Name, key, row.Labels.Get("attribution"), row.Value)
		}
	}
	for key, a := range w.oracle.accounts {
		w.concludeHeld(key, a, shown)
		for _, c := range w.gpus[key.gpu].counters {
			got := energy.energy[c.family][key]
			if got == nil {
				got = &[2]float64{}
			}
			w.concludeEnergy(key, a, c, *got)
		}
	}
}

// lenience is the time that may be lost to each change while the watch was stale.
func (w *truth) lenience(a *truthAccount) float64 {
	if w.mode != truthStale {
		return 0
	}
	return 7 * float64(a.doubts)
}

func (w *truth) concludeHeld(key accountKey, a *truthAccount, shown map[string]map[accountKey]float64) {
	w.t.Helper()
	if w.mode == truthStale && a.kind == kindAlias {
		return
	}
	least := a.shown - w.lenience(a)
	if got := shown["dra_claim_held_seconds_total"][key]; got < least-1e-6 {
		w.fail("%v (kind %d) held for %v s, of which %v could be seen; shown are %v", key, a.kind, a.held, least, got)
	}
	w.saw("held is equal")
	if got := shown["dra_claim_device_seconds_total"][key]; w.mode == truthAPI && (got < a.weighed-1e-6 || got > a.weighed+1e-6) {
		w.fail("%v has %v device-seconds, shown are %v", key, a.weighed, got)
	}
}

func (w *truth) concludeEnergy(key accountKey, a *truthAccount, c *truthCounter, got [2]float64) {
	w.t.Helper()
	if w.mode == truthStale && a.kind == kindAlias {
		return
	}
	least := [2]float64{}
	for which := range least {
		least[which] = c.least(a.spans[which], which == 0) - c.tolerance(a)
		if which == 1 && w.seen["release"] > 0 {
			least[which] = 0 // while lists of processes are missing, shares may change unseen
		}
		if w.mode != truthStale && got[which] < least[which] {
			w.fail("%v (kind %d) has %v of %s, at least %v (exclusive, shared) is its", key, a.kind, got, c.family, least)
		}
	}
	if got[0]+got[1] < least[0]+least[1]-c.rate*w.lenience(a)-c.tolerance(a) {
		w.fail("%v has %v of %s in all, at least %v is its", key, got, c.family, least)
	}
	switch {
	case least[0]+least[1] <= 0:
	case c.family == "dra_claim_energy_joules_total":
		w.saw("energy is equal")
	default:
		w.saw("bytes are equal")
	}
}

// least is what the counter certainly counted in the spans, by what was reported
// of it: of two measurements at points it is a matter of proportion; of others
// it can be known where they are both in one span.
// What it counted while the GPU was released belongs to who had it alone.
func (c *truthCounter) least(spans []truthSpan, alone bool) float64 {
	sum := 0.0
	var before *truthMeasure
	rough, across := false, false
	for i := range c.measures {
		m := &c.measures[i]
		across = across || m.across // when the counter grew is not known
		if m.doubt {                // it was taken or not
			rough = rough || m.window.From < m.window.To
			continue
		}
		switch {
		case before == nil || m.begins || c.resetWithin(before.window.From, m.window.To):
		case !across && before.window.From == before.window.To && m.window.From == m.window.To && !rough:
			sum += c.rate * within(spans, before.point, m.point)
		case across && !alone:
		case covered(spans, before.window.From, m.window.To):
			sum += c.rate * (m.point - before.point).Seconds()
		}
		before, rough, across = m, false, false
	}
	return sum
}
