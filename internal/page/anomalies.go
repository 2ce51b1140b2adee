package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// anomalyReader collects what looks wrong, by kind.
type anomalyReader struct {
	at                                                                                                                   time.Time
	stuck, ending, reservedForNone, disagreeing, tainted, noted, pools, evicted, clocks, dropped, queued, stranded, idle []Anomaly

	domains map[string]*domainRecord // ComputeDomains, by namespace/name
}

// domainRecord is what is read of a ComputeDomain.
type domainRecord struct {
	notReady    bool
	pods, nodes float64 // nodes that are ready
	requested   *float64
	since       time.Time
}

// stuckAfter is when the deletion of a claim looks wrong: pods have half a
// minute to stop, and their claims go after them. A pod may need it after the end of its
// grace period.
const stuckAfter = time.Minute

func (o *anomalyReader) terminating(row metric.Row) {
	if age, ok := since(o.at, moment(row)); ok && age < stuckAfter {
		return
	}
	o.stuck = append(o.stuck, Anomaly{Name: joinNames(row, "namespace", "resourceclaim"), Since: moment(row)})
}

func (o *anomalyReader) deletedPod(row metric.Row) {
	if late, ok := since(o.at, moment(row)); ok && late >= stuckAfter {
		o.ending = append(o.ending, Anomaly{Name: joinNames(row, "namespace", "pod"), Detail: "on node " + row.Labels.Get("node"), Since: moment(row)})
	}
}

func (o *anomalyReader) orphaned(row metric.Row) {
	if row.Value == 1 {
		o.reservedForNone = append(o.reservedForNone, Anomaly{Name: joinNames(row, "namespace", "resourceclaim")})
	}
}

func (o *anomalyReader) disagreement(row metric.Row) {
	if row.Value == 1 {
		o.disagreeing = append(o.disagreeing, Anomaly{Name: joinNames(row, "driver", "pool", "device")})
	}
}

// taint adds a taint. Taints without effect on pods are listed separately.
func (o *anomalyReader) taint(row metric.Row) {
	count, get := known(row.Value), row.Labels.Get
	if count == nil || *count == 0 {
		return
	}
	taint := Taint{Key: get("key"), Effect: get("effect")}
	anomaly := Anomaly{Name: joinNames(row, "driver", "pool"), Detail: taint.Key + ":" + taint.Effect + " on " + words.Count(*count, "device", "devices")}
	if taint.grade() == Critical {
		o.tainted = append(o.tainted, anomaly)
		return
	}
	o.noted = append(o.noted, anomaly)
}

// ofDomain reads a row of a ComputeDomain.
func ofDomain(read func(*domainRecord, metric.Row)) readClusterRow {
	return func(r *clusterReader, row metric.Row) {
		if r.anomalies.domains == nil {
			r.anomalies.domains = make(map[string]*domainRecord)
		}
		read(find(r.anomalies.domains, joinNames(row, "namespace", "compute_domain"), domainRecord{}), row)
	}
}

// domainNodes reads how many nodes of a ComputeDomain are in a state.
func domainNodes(r *clusterReader, row metric.Row) {
	if row.Labels.Get("state") == "ready" {
		ofDomain(func(d *domainRecord, row metric.Row) { d.nodes += row.Value })(r, row)
	}
}

// notReady returns the ComputeDomains that pods use and that are not ready.
func (o *anomalyReader) notReady() []Anomaly {
	var all []Anomaly
	for name, domain := range o.domains {
		if !domain.notReady || domain.pods == 0 {
			continue
		}
		anomaly := Anomaly{Name: name, Detail: words.Count(domain.nodes, "node", "nodes") + " ready", Since: domain.since}
		if domain.requested != nil {
			anomaly.Detail = fmt.Sprintf("%g of %s ready", domain.nodes, words.Count(*domain.requested, "node", "nodes"))
		}
		all = append(all, anomaly)
	}
	return all
}

func (o *anomalyReader) waitsInQueue(row metric.Row) {
	name := row.Labels.Get("workload_kind") + " " + joinNames(row, "namespace", "workload")
	o.queued = append(o.queued, Anomaly{Name: name, Detail: row.Labels.Get("reason"), Since: moment(row)})
}

// strandedDevices adds devices that are stranded by their node or by other claims: taints
// and incomplete pools are anomalies of their own.
func (o *anomalyReader) strandedDevices(row metric.Row) {
	count, reason := known(row.Value), dra.StrandedReason(row.Labels.Get("reason"))
	switch {
	case count == nil || *count <= 0:
		return
	case reason == dra.StrandedPoolIncomplete, reason == dra.StrandedDriverTaint, reason == dra.StrandedRuleTaint:
		return
	}
	name := row.Labels.Get("driver")
	if node := row.Labels.Get("node"); node != "" {
		name = node + "/" + name
	}
	o.stranded = append(o.stranded, Anomaly{Name: name, Detail: string(reason) + ": " + words.Count(math.Round(*count*100)/100, "device", "devices")})
}

// idleNode adds what keeps an autoscaler from removing a node without allocated devices.
func (o *anomalyReader) idleNode(row metric.Row) {
	detail := row.Labels.Get("reason")
	if count := known(row.Value); count != nil && detail != dra.RemovalNodeAnnotation.String() {
		detail += ": " + words.Count(*count, "pod", "pods")
	}
	o.idle = append(o.idle, Anomaly{Name: row.Labels.Get("node"), Detail: detail})
}

func (o *anomalyReader) evictions(row metric.Row) {
	o.evicted = withCount(o.evicted, row, "namespace", "pod")
}

func (o *anomalyReader) clockAnomalies(row metric.Row) {
	o.clocks = withCount(o.clocks, row, "phase", "duration")
}

func (o *anomalyReader) droppedRows(row metric.Row) {
	o.dropped = withCount(o.dropped, row, "family", "row")
}

// withCount adds a counter that is not zero.
func withCount(list []Anomaly, row metric.Row, label, unit string) []Anomaly {
	if count := known(row.Value); count != nil && *count > 0 {
		return append(list, Anomaly{Name: row.Labels.Get(label), Detail: words.Count(*count, unit, unit+"s")})
	}
	return list
}

// pool adds a pool that is incomplete or empty.
func (o *anomalyReader) pool(p *poolRecord) {
	total := p.devices.Total()
	gone := p.slices != nil && *p.slices == 0
	var detail string
	switch {
	case gone:
		detail = "its slices are missing, and claims hold devices of it"
	case p.complete != nil && !*p.complete:
		detail = "incomplete: nothing is allocated from it until its other slices are published"
		if p.slices != nil {
			detail = "incomplete with " + words.Count(*p.slices, "slice", "slices") + ": nothing is allocated from it until the others are published"
		}
	case p.complete != nil && total != nil && *total == 0:
		detail = "empty: it has no devices"
	default:
		return
	}
	if p.node != "" && p.node != p.pool {
		detail += "; of node " + p.node
	}
	o.pools = append(o.pools, Anomaly{Name: p.driver + "/" + p.pool, Detail: detail})
}

// byKind returns the kinds that have any, the most important first.
func (o *anomalyReader) byKind() []AnomalyKind {
	kinds := []AnomalyKind{
		{Kind: "pools", Title: "Incomplete and empty pools", Meaning: "Check that the driver's pod on the node runs.", Items: o.pools},
		{Kind: "computedomains", Title: "ComputeDomains that are not ready", Meaning: "Pods on nodes that are not ready in them do not start, and exchange over NVLink with these nodes fails.", Items: o.notReady()},
		{Kind: "terminating", Title: "Terminating claims", Meaning: "A finalizer prevents their deletion: a pod still uses them, or their devices are not unprepared.", Items: o.stuck},
		{Kind: "deleted_pods", Title: "Pods that do not end", Meaning: "They were deleted, their grace period has ended, and they still hold their claims.", Items: o.ending},
		{Kind: "orphaned", Title: "Orphaned claims", Meaning: "They hold devices, and the pods that they are reserved for no longer exist.", Items: o.reservedForNone},
		{Kind: "disagreement", Title: "Driver and kubelet disagree on health", Meaning: "One reports healthy, the other unhealthy.", Items: o.disagreeing},
		{Kind: "taints", Title: "Tainted devices", Meaning: "Allocated only to claims that tolerate the taint.", Items: o.tainted},
		{Kind: "queued", Title: "Workloads in queues of Kueue", Quiet: true, Meaning: "With the reason that Kueue reports; most have no pods before they are admitted.", Items: o.queued},
		{Kind: "stranded", Title: "Stranded devices", Quiet: true, Meaning: "Not allocated, and no claim can use them: because of their node, or of what other claims use.", Items: o.stranded},
		{Kind: "idle", Title: "Idle nodes that autoscalers do not remove", Quiet: true, Meaning: "None of their devices is allocated, and an annotation or pods keep them.", Items: o.idle},
		{Kind: "evictions", Title: "Pods evicted by taints of devices", Quiet: true, Meaning: "By namespace, since the exporter started.", Items: o.evicted},
		{Kind: "clocks", Title: "Contradicting clocks", Quiet: true, Meaning: "By phase, since the exporter started; most of them are not observed.", Items: o.clocks},
		{Kind: "dropped", Title: "Dropped series", Quiet: true, Meaning: "By family, summed over all steps: this page may be incomplete. Raise --metrics.max-series.", Items: o.dropped},
		{Kind: "notes", Title: "Taints without effect on scheduling", Quiet: true, Items: o.noted},
	}
	kinds = slices.DeleteFunc(kinds, func(k AnomalyKind) bool { return len(k.Items) == 0 })
	for _, kind := range kinds {
		slices.SortFunc(kind.Items, func(a, b Anomaly) int {
			return cmp.Or(a.Since.Compare(b.Since), natural(a.Name, b.Name), natural(a.Detail, b.Detail))
		})
	}
	return kinds
}

// joinNames joins the values of labels by slashes.
func joinNames(row metric.Row, labels ...string) string {
	names := make([]string, len(labels))
	for i, label := range labels {
		names[i] = row.Labels.Get(label)
	}
	return strings.Join(names, "/")
}
