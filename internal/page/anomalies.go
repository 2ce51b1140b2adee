package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// stuckAfter is when the deletion of a claim looks wrong: pods have half a
// minute to stop, and their claims go after them. A pod may need it after the end of its
// grace period.
const stuckAfter = time.Minute

// newAnomalies returns the kinds of anomalies that there are, the most important first.
func newAnomalies(c *model.Cluster, at time.Time) []AnomalyKind {
	taints, notes := listTaints(c.Taints)
	kinds := []AnomalyKind{
		{Kind: "pools", Title: "Incomplete and empty pools", Meaning: "Check that the driver's pod on the node runs.", Items: listPools(c)},
		{Kind: "computedomains", Title: "ComputeDomains that are not ready", Meaning: "Pods on nodes that are not ready in them do not start, and exchange over NVLink with these nodes fails.", Items: listDomains(c.ComputeDomains)},
		{Kind: "terminating", Title: "Terminating claims", Meaning: "A finalizer prevents their deletion: a pod still uses them, or their devices are not unprepared.", Items: listTerminating(c.TerminatingClaims, at)},
		{Kind: "deleted_pods", Title: "Pods that do not end", Meaning: "They were deleted, their grace period has ended, and they still hold their claims.", Items: listDeleted(c.DeletedPods, at)},
		{Kind: "orphaned", Title: "Orphaned claims", Meaning: "They hold devices, and the pods that they are reserved for no longer exist.", Items: each(c.OrphanedClaims, func(claim dra.ClaimRef) Anomaly { return Anomaly{Name: claim.String()} })},
		{Kind: "disagreement", Title: "Driver and kubelet disagree on health", Meaning: "One reports healthy, the other unhealthy.", Items: each(c.Disagreements, func(device dra.DeviceID) Anomaly { return Anomaly{Name: device.String()} })},
		{Kind: "taints", Title: "Tainted devices", Meaning: "Allocated only to claims that tolerate the taint.", Items: taints},
		{Kind: "queued", Title: "Workloads in queues of Kueue", Quiet: true, Meaning: "With the reason that Kueue reports; most have no pods before they are admitted.", Items: listQueued(c.QueuedWorkloads)},
		{Kind: "stranded", Title: "Stranded devices", Quiet: true, Meaning: "Not allocated, and no claim can use them: because of their node, or of what other claims use.", Items: listStranded(c.Stranded)},
		{Kind: "idle", Title: "Idle nodes that autoscalers do not remove", Quiet: true, Meaning: "None of their devices is allocated, and an annotation or pods keep them.", Items: listKept(c.KeptNodes)},
		{Kind: "evictions", Title: "Pods evicted by taints of devices", Quiet: true, Meaning: "By namespace, since the exporter started.", Items: listCounters(c.Evictions, "pod")},
		{Kind: "clocks", Title: "Contradicting clocks", Quiet: true, Meaning: "By phase, since the exporter started; most of them are not observed.", Items: listCounters(c.ClockErrors, "duration")},
		{Kind: "dropped", Title: "Dropped series", Quiet: true, Meaning: "By family, summed over all steps: lists on this page may be incomplete. Raise --metrics.max-series.", Items: listCounters(c.DroppedSeries, "row")},
		{Kind: "notes", Title: "Taints without effect on scheduling", Quiet: true, Items: notes},
	}
	kinds = slices.DeleteFunc(kinds, func(k AnomalyKind) bool { return len(k.Items) == 0 })
	for _, kind := range kinds {
		slices.SortFunc(kind.Items, func(a, b Anomaly) int {
			return cmp.Or(a.Since.Compare(b.Since), natural(a.Name, b.Name), natural(a.Detail, b.Detail))
		})
	}
	return kinds
}

// each returns the anomalies of a list; an entry without a name is none.
func each[T any](list []T, anomaly func(T) Anomaly) []Anomaly {
	var anomalies []Anomaly
	for _, entry := range list {
		if a := anomaly(entry); a.Name != "" {
			anomalies = append(anomalies, a)
		}
	}
	return anomalies
}

func listPools(c *model.Cluster) []Anomaly {
	return each(c.Pools, func(pool *dra.PoolSupply) Anomaly {
		var detail string
		switch {
		case pool.Slices == 0:
			detail = "its slices are missing, and claims hold devices of it"
		case !pool.Complete:
			detail = "incomplete with " + words.Count(pool.Slices, "slice", "slices") + ": nothing is allocated from it until the others are published"
		case c.DevicesKnown && *newDeviceStates(pool.Devices).Total() == 0:
			detail = "empty: it has no devices"
		default:
			return Anomaly{}
		}
		if pool.Node != "" && pool.Node != pool.Pool {
			detail += "; of node " + pool.Node
		}
		return Anomaly{Name: pool.Driver + "/" + pool.Pool, Detail: detail}
	})
}

// listDomains returns the ComputeDomains that pods use and that are not ready.
func listDomains(domains []model.ComputeDomain) []Anomaly {
	return each(domains, func(domain model.ComputeDomain) Anomaly {
		if domain.Ready || domain.Pods.Value == 0 {
			return Anomaly{}
		}
		ready := len(keep(domain.Nodes, func(node *dra.ComputeDomainNode) bool { return node.Ready }))
		detail := words.Count(ready, "node", "nodes") + " ready"
		if domain.NumNodes > 0 {
			detail = fmt.Sprintf("%d of %s ready", ready, words.Count(domain.NumNodes, "node", "nodes"))
		}
		return Anomaly{Name: domain.Ref.String(), Detail: detail, Since: inSeconds(domain.NotReadySince)}
	})
}

func listTerminating(claims []model.TerminatingClaim, at time.Time) []Anomaly {
	return each(claims, func(claim model.TerminatingClaim) Anomaly {
		return overdue(Anomaly{Name: claim.Ref.String(), Since: inSeconds(claim.Since)}, at)
	})
}

// overdue returns the anomaly if it has lasted for long, or none.
func overdue(anomaly Anomaly, at time.Time) Anomaly {
	if age, _ := since(at, anomaly.Since); age < stuckAfter {
		return Anomaly{}
	}
	return anomaly
}

func listDeleted(pods []model.DeletedPod, at time.Time) []Anomaly {
	return each(pods, func(pod model.DeletedPod) Anomaly {
		return overdue(Anomaly{Name: pod.Pod.String(), Detail: "on node " + pod.Node, Since: inSeconds(pod.Due)}, at)
	})
}

// listTaints returns the taints of devices, those without effect on pods separately.
func listTaints(counts []dra.TaintCount) (taints, notes []Anomaly) {
	for _, count := range counts {
		if count.Devices == 0 {
			continue
		}
		taint := Taint{Key: count.Taint.Key, Effect: count.Taint.Effect}
		anomaly := Anomaly{Name: count.Driver + "/" + count.Pool, Detail: taint.Key + ":" + taint.Effect + " on " + words.Count(count.Devices, "device", "devices")}
		if taint.grade() == Critical {
			taints = append(taints, anomaly)
		} else {
			notes = append(notes, anomaly)
		}
	}
	return taints, notes
}

func listQueued(workloads []model.QueuedWorkload) []Anomaly {
	return each(workloads, func(w model.QueuedWorkload) Anomaly {
		return Anomaly{Name: w.Kind + " " + w.Namespace + "/" + w.Name, Detail: w.Reason, Since: inSeconds(w.Since)}
	})
}

// listStranded returns the devices that are stranded by their node or by other claims:
// taints and incomplete pools are anomalies of their own.
func listStranded(stranded []dra.StrandedDevices) []Anomaly {
	return each(stranded, func(s dra.StrandedDevices) Anomaly {
		if s.Devices <= 0 || s.Reason == dra.StrandedPoolIncomplete || s.Reason == dra.StrandedDriverTaint || s.Reason == dra.StrandedRuleTaint {
			return Anomaly{}
		}
		name := strings.TrimPrefix(s.Node+"/"+s.Driver, "/")
		return Anomaly{Name: name, Detail: string(s.Reason) + ": " + words.Count(math.Round(s.Devices*100)/100, "device", "devices")}
	})
}

// listKept returns what keeps autoscalers from removing nodes without allocated devices.
func listKept(nodes []dra.KeptNode) []Anomaly {
	return each(nodes, func(node dra.KeptNode) Anomaly {
		detail := node.Reason.String()
		if node.Reason != dra.RemovalNodeAnnotation {
			detail += ": " + words.Count(node.Pods, "pod", "pods")
		}
		return Anomaly{Name: node.Node, Detail: detail}
	})
}

// listCounters returns the counters that are not zero.
func listCounters(counters []model.Counter, unit string) []Anomaly {
	counted := keep(counters, func(counter *model.Counter) bool { return counter.Count > 0 })
	return each(counted, func(counter model.Counter) Anomaly {
		return Anomaly{Name: counter.Name, Detail: words.Count(counter.Count, unit, unit+"s")}
	})
}
