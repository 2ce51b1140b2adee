package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
		{Kind: "orphaned", Title: "Orphaned claims", Meaning: "They hold devices, and the pods that they are reserved for no longer exist.", Items: listOrphaned(c.OrphanedClaims)},
		{Kind: "disagreement", Title: "Driver and kubelet disagree on health", Meaning: "One reports healthy, the other unhealthy.", Items: listDisagreements(c.Disagreements)},
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

func listPools(c *model.Cluster) []Anomaly {
	var anomalies []Anomaly
	for _, pool := range c.Pools {
		var detail string
		switch {
		case pool.Slices == 0:
			detail = "its slices are missing, and claims hold devices of it"
		case !pool.Complete:
			detail = "incomplete with " + words.Count(pool.Slices, "slice", "slices") + ": nothing is allocated from it until the others are published"
		case c.DevicesKnown && *newDeviceStates(pool.Devices).Total() == 0:
			detail = "empty: it has no devices"
		default:
			continue
		}
		if pool.Node != "" && pool.Node != pool.Pool {
			detail += "; of node " + pool.Node
		}
		anomalies = append(anomalies, Anomaly{Name: pool.Driver + "/" + pool.Pool, Detail: detail})
	}
	return anomalies
}

// listDomains returns the ComputeDomains that pods use and that are not ready.
func listDomains(domains []model.ComputeDomain) []Anomaly {
	var anomalies []Anomaly
	for i := range domains {
		domain := &domains[i]
		if domain.Ready || domain.Pods.Value == 0 {
			continue
		}
		ready := len(keep(domain.Nodes, func(node *dra.ComputeDomainNode) bool { return node.Ready }))
		anomaly := Anomaly{Name: domain.Ref.String(), Detail: words.Count(ready, "node", "nodes") + " ready", Since: inSeconds(domain.NotReadySince)}
		if domain.NumNodes > 0 {
			anomaly.Detail = fmt.Sprintf("%d of %s ready", ready, words.Count(domain.NumNodes, "node", "nodes"))
		}
		anomalies = append(anomalies, anomaly)
	}
	return anomalies
}

func listTerminating(claims []model.TerminatingClaim, at time.Time) []Anomaly {
	var anomalies []Anomaly
	for _, claim := range claims {
		deletion := inSeconds(claim.Since)
		if age, _ := since(at, deletion); age >= stuckAfter {
			anomalies = append(anomalies, Anomaly{Name: claim.Ref.String(), Since: deletion})
		}
	}
	return anomalies
}

func listDeleted(pods []model.DeletedPod, at time.Time) []Anomaly {
	var anomalies []Anomaly
	for _, pod := range pods {
		deadline := inSeconds(pod.Due)
		if delay, _ := since(at, deadline); delay >= stuckAfter {
			anomalies = append(anomalies, Anomaly{Name: pod.Pod.String(), Detail: "on node " + pod.Node, Since: deadline})
		}
	}
	return anomalies
}

func listOrphaned(claims []dra.ClaimRef) []Anomaly {
	var anomalies []Anomaly
	for _, claim := range claims {
		anomalies = append(anomalies, Anomaly{Name: claim.String()})
	}
	return anomalies
}

func listDisagreements(devices []dra.DeviceID) []Anomaly {
	var anomalies []Anomaly
	for _, device := range devices {
		anomalies = append(anomalies, Anomaly{Name: device.String()})
	}
	return anomalies
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
	var anomalies []Anomaly
	for _, w := range workloads {
		anomalies = append(anomalies, Anomaly{Name: w.Kind + " " + w.Namespace + "/" + w.Name, Detail: w.Reason, Since: inSeconds(w.Since)})
	}
	return anomalies
}

// listStranded returns the devices that are stranded by their node or by other claims:
// taints and incomplete pools are anomalies of their own.
func listStranded(stranded []dra.StrandedDevices) []Anomaly {
	var anomalies []Anomaly
	for _, s := range stranded {
		if s.Devices <= 0 || s.Reason == dra.StrandedPoolIncomplete || s.Reason == dra.StrandedDriverTaint || s.Reason == dra.StrandedRuleTaint {
			continue
		}
		name := s.Driver
		if s.Node != "" {
			name = s.Node + "/" + name
		}
		anomalies = append(anomalies, Anomaly{Name: name, Detail: string(s.Reason) + ": " + words.Count(math.Round(s.Devices*100)/100, "device", "devices")})
	}
	return anomalies
}

// listKept returns what keeps autoscalers from removing nodes without allocated devices.
func listKept(nodes []dra.KeptNode) []Anomaly {
	var anomalies []Anomaly
	for _, node := range nodes {
		detail := node.Reason.String()
		if node.Reason != dra.RemovalNodeAnnotation {
			detail += ": " + words.Count(node.Pods, "pod", "pods")
		}
		anomalies = append(anomalies, Anomaly{Name: node.Node, Detail: detail})
	}
	return anomalies
}

// listCounters returns the counters that are not zero.
func listCounters(counters []model.Counter, unit string) []Anomaly {
	var anomalies []Anomaly
	for _, counter := range counters {
		if counter.Count > 0 {
			anomalies = append(anomalies, Anomaly{Name: counter.Name, Detail: words.Count(counter.Count, unit, unit+"s")})
		}
	}
	return anomalies
}
