package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// How much of everything is in a detail.
const (
	maxExamples = 3
	maxTaints   = 8
	maxHolders  = 10
	maxNodes    = 5
)

// describe returns what a person wants to know of a claim beyond its finding.
// There are fewer counts than requests if the context ended.
func describe(inv *inventory.Inventory, pod podClaims, claim int, counts []inventory.Count, found claimDiagnosis) *dra.Detail {
	requests := pod.claims[claim].requests
	detail := &dra.Detail{Fits: clean(found.fits), OnOneNode: make(map[string]int, len(requests))}
	for i, count := range counts {
		r := requests[i]
		for _, failed := range count.Failures {
			if !ofClass(failed) {
				failed.Where = "request " + clean(r.Name)
			}
			if !slices.Contains(detail.Selectors, failed) { // several requests may have the same class
				detail.Selectors = append(detail.Selectors, failed)
			}
		}
		if count.NoClass {
			continue
		}
		explained := inv.Explain(r.Request, inventory.ExplanationLimits{Taints: maxTaints, Examples: maxExamples, Holders: maxHolders})
		detail.Removed = append(detail.Removed, removals(r, explained.Causes)...)
		for _, holder := range explained.Holders {
			holder.Request = clean(r.Name)
			detail.Holders = append(detail.Holders, holder)
		}
		detail.HoldersInAll += explained.HoldersInAll
		for _, best := range explained.Untainted.Best(1) {
			detail.OnOneNode[clean(r.Name)] = best.Devices
		}
	}
	if len(counts) == len(requests) {
		detail.Nodes = bestNodes(pod, requests, counts, found)
	}
	return detail
}

// removals lists what each stage removed, by cause.
func removals(r Request, causes map[dra.Stage][]inventory.Cause) []dra.Removal {
	var all []dra.Removal
	for stage := dra.StageClass; stage <= dra.StageFree; stage++ {
		for _, cause := range causes[stage] {
			removal := dra.Removal{
				Request: clean(r.Name), Stage: stage, Count: cause.Count, Because: because(r, stage, cause),
				Rule: cause.Rule, Examples: cause.Examples,
			}
			if stage == dra.StageUntainted && cause.Others == 0 {
				removal.Taint = &cause.Taint
			}
			all = append(all, removal)
		}
	}
	return all
}

// because returns why a stage removes devices: by the request, else by
// properties of the devices.
func because(r Request, stage dra.Stage, cause inventory.Cause) string {
	switch stage {
	case dra.StageClass:
		return "class " + clean(r.Class)
	case dra.StageSelectors:
		var expressions []string
		for _, selector := range r.Selectors {
			if selector.CEL != nil {
				expressions = append(expressions, oneLine(selector.CEL.Expression))
			}
		}
		return strings.Join(expressions, " and ")
	case dra.StageUntainted:
		return taint(cause)
	default:
		return string(cause.NotFree)
	}
}

// taint writes a taint as kubectl does, and where it comes from.
func taint(cause inventory.Cause) string {
	if cause.Others == 1 {
		return "another taint"
	}
	if cause.Others > 1 {
		return fmt.Sprintf("one of %d other taints", cause.Others)
	}
	text := cause.Taint.Key
	if cause.Taint.Value != "" {
		text += "=" + cause.Taint.Value
	}
	text += ":" + cause.Taint.Effect
	if cause.Rule == "" {
		return fmt.Sprintf("taint %s of the driver", text)
	}
	return fmt.Sprintf("taint %s of the rule %s", text, cause.Rule)
}

// bestNodes returns the nodes with most free devices, and what is missing there.
func bestNodes(pod podClaims, requests []Request, counts []inventory.Count, found claimDiagnosis) []dra.NodeDiagnosis {
	var free inventory.NodeCounts
	for _, count := range counts {
		free = free.Merge(count.Free, sum)
	}
	var nodes []dra.NodeDiagnosis
	for _, best := range free.Best(maxNodes) {
		v := dra.NodeDiagnosis{Node: clean(best.Node), Free: make(map[string]int), Message: missing(pod, requests, counts, found, best.Node)}
		for i, r := range requests {
			v.Free[clean(r.Name)] = counts[i].Free.Devices(best.Node)
		}
		nodes = append(nodes, v)
	}
	return nodes
}

// missing returns what is missing on a node, "" if nothing is.
func missing(pod podClaims, requests []Request, counts []inventory.Count, found claimDiagnosis, node string) string {
	if found.fits == node {
		return ""
	}
	for _, allocation := range pod.allocated {
		if allocation.Node != "" && allocation.Node != node {
			return "another claim of the pod is allocated on node " + clean(allocation.Node)
		}
	}
	var short []string
	for i := 0; i < len(requests); {
		parent, enough := requests[i].Parent, false
		for ; i < len(requests) && requests[i].Parent == parent; i++ {
			enough = enough || counts[i].Free.Devices(node) >= requests[i].Devices()
		}
		if !enough {
			short = append(short, parent)
		}
	}
	switch {
	case len(short) > 0:
		return "too few free devices for request " + clean(strings.Join(short, ", "))
	case !slices.Contains(found.tried, node):
		return ""
	case found.reason == dra.ReasonConstraints:
		return "enough free devices for each request, but none that satisfy the constraints"
	default:
		return "enough free devices for each request, but not for all of them at once"
	}
}
