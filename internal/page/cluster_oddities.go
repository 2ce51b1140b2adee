package page

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// oddities gathers what looks wrong, by kind.
type oddities struct {
	terminating, orphaned, disagreeing, tainted, noted, pools, evicted, clocks, dropped []Oddity
}

// stuckAfter is when the deletion of a claim looks wrong: pods have half a
// minute to stop, and their claims go after them.
const stuckAfter = time.Minute

func (r *clusterReader) terminating(row metric.Row) {
	if age, known := since(r.at, moment(row)); known && age < stuckAfter {
		return
	}
	r.odd.terminating = append(r.odd.terminating, Oddity{Name: namesOf(row, "namespace", "resourceclaim"), Since: moment(row)})
}

func (r *clusterReader) orphaned(row metric.Row) {
	if row.Value == 1 {
		r.odd.orphaned = append(r.odd.orphaned, Oddity{Name: namesOf(row, "namespace", "resourceclaim")})
	}
}

func (r *clusterReader) disagreement(row metric.Row) {
	if row.Value == 1 {
		r.odd.disagreeing = append(r.odd.disagreeing, Oddity{Name: namesOf(row, "driver", "pool", "device")})
	}
}

// tainted notes a taint; those that keep nothing away stand apart.
func (r *clusterReader) tainted(row metric.Row) {
	count, get := known(row.Value), row.Labels.Get
	if count == nil || *count == 0 {
		return
	}
	taint := Taint{Key: get("key"), Effect: get("effect")}
	odd := Oddity{Name: namesOf(row, "driver", "pool"), Detail: taint.Key + ":" + taint.Effect + " on " + counted(*count, "device")}
	if taint.grade() == Critical {
		r.odd.tainted = append(r.odd.tainted, odd)
		return
	}
	r.odd.noted = append(r.odd.noted, odd)
}

func (r *clusterReader) evictions(row metric.Row) {
	r.odd.evicted = tallied(r.odd.evicted, row, "namespace", "pod")
}

func (r *clusterReader) clockAnomalies(row metric.Row) {
	r.odd.clocks = tallied(r.odd.clocks, row, "phase", "duration")
}

func (r *clusterReader) dropped(row metric.Row) {
	r.odd.dropped = tallied(r.odd.dropped, row, "family", "row")
}

// tallied adds a counter that is not zero.
func tallied(to []Oddity, row metric.Row, label, unit string) []Oddity {
	if count := known(row.Value); count != nil && *count > 0 {
		return append(to, Oddity{Name: row.Labels.Get(label), Detail: counted(*count, unit)})
	}
	return to
}

// notice looks whether a pool is as it should be.
func (o *oddities) notice(p *pool) {
	total := p.devices.Total()
	gone := p.slices != nil && *p.slices == 0
	var detail string
	switch {
	case gone:
		detail = "its slices are gone, and claims hold devices of it"
	case p.complete != nil && !*p.complete:
		detail = "incomplete: nothing is allocated from it until its other slices are published"
		if p.slices != nil {
			detail = "incomplete with " + counted(*p.slices, "slice") + ": nothing is allocated from it until the others are published"
		}
	case p.complete != nil && total != nil && *total == 0:
		detail = "empty: it has no devices"
	default:
		return
	}
	if p.node != "" && p.node != p.pool {
		detail += "; of node " + p.node
	}
	o.pools = append(o.pools, Oddity{Name: p.driver + "/" + p.pool, Detail: detail})
}

// byKind are those of each kind that has any, in the order in which to look at
// them.
func (o *oddities) byKind() []Oddities {
	kinds := []Oddities{
		{Kind: "pools", Title: "Incomplete and empty pools", Meaning: "Is the driver's pod on that node running?", Items: o.pools},
		{Kind: "terminating", Title: "Claims that do not go away", Meaning: "They are being deleted, and a finalizer holds them: somebody uses them still, or did not take back what was prepared.", Items: o.terminating},
		{Kind: "orphaned", Title: "Claims reserved for pods that are gone", Meaning: "They hold devices for nobody.", Items: o.orphaned},
		{Kind: "disagreement", Title: "Driver and kubelet differ on health", Meaning: "One of them says well, the other sick.", Items: o.disagreeing},
		{Kind: "taints", Title: "Tainted devices", Meaning: "Allocated only to claims that tolerate the taint.", Items: o.tainted},
		{Kind: "evictions", Title: "Pods evicted by taints of devices", Quiet: true, Meaning: "By namespace, since the exporter started.", Items: o.evicted},
		{Kind: "clocks", Title: "Durations whose clocks contradict each other", Quiet: true, Meaning: "By phase, since the exporter started; most of them are not observed.", Items: o.clocks},
		{Kind: "dropped", Title: "Rows that a cap has dropped", Quiet: true, Meaning: "By family, over all steps so far: this page may not show all. Raise --metrics.max-series.", Items: o.dropped},
		{Kind: "notes", Title: "Taints that keep nothing away", Quiet: true, Items: o.noted},
	}
	kinds = slices.DeleteFunc(kinds, func(k Oddities) bool { return len(k.Items) == 0 })
	for _, kind := range kinds {
		slices.SortFunc(kind.Items, func(a, b Oddity) int {
			return cmp.Or(a.Since.Compare(b.Since), natural(a.Name, b.Name), natural(a.Detail, b.Detail))
		})
	}
	return kinds
}

// namesOf joins the values of labels as people write them.
func namesOf(row metric.Row, labels ...string) string {
	names := make([]string, len(labels))
	for i, label := range labels {
		names[i] = row.Labels.Get(label)
	}
	return strings.Join(names, "/")
}

// counted is "1 device" or "2 devices".
func counted(count float64, unit string) string {
	text := strconv.FormatFloat(count, 'f', -1, 64)
	if count == 1 {
		return text + " " + unit
	}
	return fmt.Sprintf("%s %ss", text, unit)
}
