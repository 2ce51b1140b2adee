package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// How much of everything a person is told.
const (
	examplesTold = 3
	taintsTold   = 8
	holdersTold  = 10
	nodesTold    = 5
)

// describe adds to each answer what a person wants to know beyond it.
func (q *inquiry) describe() {
	for i, p := range q.order.parts {
		detail := &dra.Detail{Fits: clean(q.answers[i].fits), OnOneNode: make(map[string]int, len(p.asks))}
		for n, a := range p.asks {
			if n >= len(q.tallies[i]) {
				break // the context has ended before it was counted
			}
			t := q.tallies[i][n]
			detail.Selectors = appendTroubles(detail.Selectors, a, t)
			if t.noClass {
				continue
			}
			found := q.judge.inventory.Explain(a.Request, inventory.Limits{Taints: taintsTold, Examples: examplesTold, Holders: holdersTold})
			detail.Removed = append(detail.Removed, removals(a, found.Causes)...)
			for _, holder := range found.Holders {
				holder.Request = clean(a.name)
				detail.Holders = append(detail.Holders, holder)
			}
			detail.HoldersInAll += found.HoldersInAll
			for _, best := range found.Untainted.Best(1) {
				detail.OnOneNode[clean(a.name)] = best.Devices
			}
		}
		detail.Nodes = q.nodeVerdicts(i)
		q.answers[i].detail = detail
	}
}

// appendTroubles adds the selectors of an ask that cannot be evaluated, each
// once: several requests may have the same class.
func appendTroubles(told []dra.SelectorTrouble, a ask, t tally) []dra.SelectorTrouble {
	for _, trouble := range t.Troubles {
		if !ofClass(trouble) {
			trouble.Where = "request " + clean(a.name)
		}
		if !slices.Contains(told, trouble) {
			told = append(told, trouble)
		}
	}
	return told
}

// removals says what each stage took from an ask, cause by cause.
func removals(a ask, causes map[dra.Stage][]inventory.Cause) []dra.Removal {
	var removals []dra.Removal
	for stage := dra.StageClass; stage <= dra.StageFree; stage++ {
		for _, cause := range causes[stage] {
			removal := dra.Removal{
				Request: clean(a.name), Stage: stage, Count: cause.Count, Because: because(a, stage, cause),
				Rule: cause.Rule, Examples: cause.Examples,
			}
			if stage == dra.StageUntainted && cause.Others == 0 {
				removal.Taint = &cause.Taint
			}
			removals = append(removals, removal)
		}
	}
	return removals
}

// because says why a stage removes devices: by what the request says, else by
// what is true of the devices.
func because(a ask, stage dra.Stage, cause inventory.Cause) string {
	switch stage {
	case dra.StageClass:
		return "class " + clean(a.Class)
	case dra.StageSelectors:
		var reasons []string
		for _, expression := range expressions(a.Selectors) {
			reasons = append(reasons, oneLine(expression))
		}
		return strings.Join(reasons, " and ")
	case dra.StageUntainted:
		return sayTaint(cause)
	default:
		return string(cause.NotFree)
	}
}

// sayTaint writes a taint as Kubernetes' own tools do, and where it comes from.
func sayTaint(cause inventory.Cause) string {
	if cause.Others == 1 {
		return "another taint"
	}
	if cause.Others > 1 {
		return fmt.Sprintf("one of %d other taints", cause.Others)
	}
	taint := cause.Taint.Key
	if cause.Taint.Value != "" {
		taint += "=" + cause.Taint.Value
	}
	taint += ":" + cause.Taint.Effect
	if cause.Rule == "" {
		return fmt.Sprintf("taint %s of the driver", taint)
	}
	return fmt.Sprintf("taint %s of the rule %s", taint, cause.Rule)
}

func expressions(selectors []resourcev1.DeviceSelector) []string {
	var all []string
	for _, selector := range selectors {
		if selector.CEL != nil {
			all = append(all, selector.CEL.Expression)
		}
	}
	return all
}

// nodeVerdicts are the nodes that come closest, and what is missing there.
func (q *inquiry) nodeVerdicts(part int) []dra.NodeVerdict {
	asks, tallies := q.order.parts[part].asks, q.tallies[part]
	if len(tallies) < len(asks) || len(asks) == 0 {
		return nil
	}
	sum := make(inventory.NodeCounts)
	for _, t := range tallies {
		for node, free := range t.Free {
			sum[node] += free
		}
	}
	var nodes []dra.NodeVerdict
	for _, node := range sum.Best(nodesTold) {
		v := dra.NodeVerdict{Node: clean(node.Node), Free: make(map[string]int), Message: q.sayNode(part, node.Node)}
		for i, a := range asks {
			v.Free[clean(a.name)] = tallies[i].Free[node.Node]
		}
		nodes = append(nodes, v)
	}
	return nodes
}

// sayNode says what is missing on a node, empty where nothing is.
func (q *inquiry) sayNode(part int, node string) string {
	if q.answers[part].fits == node {
		return ""
	}
	for _, pinned := range q.order.pinned {
		if pinned.Node != "" && pinned.Node != node {
			return "another claim of the pod is allocated on node " + clean(pinned.Node)
		}
	}
	var missing []string
	asks, tallies := q.order.parts[part].asks, q.tallies[part]
	for i := 0; i < len(asks); {
		parent, enough := asks[i].parent, false
		for ; i < len(asks) && asks[i].parent == parent; i++ {
			enough = enough || tallies[i].Free[node] >= asks[i].needs()
		}
		if !enough {
			missing = append(missing, parent)
		}
	}
	switch {
	case len(missing) > 0:
		return "too few free devices for request " + clean(strings.Join(missing, ", "))
	case q.answers[part].reason == dra.ReasonConstraints && slices.Contains(q.answers[part].tried, node):
		return "enough free devices for each request, but none that satisfy the constraints"
	case slices.Contains(q.answers[part].tried, node):
		return "enough free devices for each request, but not for all of them at once"
	default:
		return ""
	}
}
