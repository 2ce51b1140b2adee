package diagnosis

import (
	"fmt"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// match is the verb for so many devices.
func match(n int) string {
	if n == 1 {
		return "matches"
	}
	return "match"
}

// devices says how many.
func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}

// asking begins a sentence about a request.
func asking(a ask) string {
	if a.count == 0 {
		return fmt.Sprintf("request %s asks for all matching devices of a node", a.name)
	}
	return fmt.Sprintf("request %s asks for %s", a.name, devices(a.needs()))
}

func (t tally) sayUnmatched(a ask, stage dra.Stage) string {
	if len(t.Troubles) > 0 {
		return sayTrouble(a, t.Troubles[0])
	}
	published, inClass := t.Left[dra.StagePublished], t.Left[dra.StageClass]
	switch {
	case published == 0:
		return asking(a) + ", and no device is published"
	case stage == dra.StageClass:
		return fmt.Sprintf("%s, and class %s selects none of %s", asking(a), a.Class, devices(published))
	default:
		return fmt.Sprintf("%s, and its selectors match none of %s of class %s", asking(a), devices(inClass), a.Class)
	}
}

// sayTrouble tells of a selector that cannot be asked. Expressions can be
// kilobytes long, so the sentence names only where it stands.
func sayTrouble(a ask, trouble dra.SelectorTrouble) string {
	whose := "its selector"
	if ofClass(trouble) {
		whose = "the selector of " + trouble.Where
	}
	if trouble.Device == "" {
		return fmt.Sprintf("request %s: %s does not compile: %s", a.name, whose, oneLine(trouble.Message))
	}
	return fmt.Sprintf("request %s: %s fails for device %s: %s", a.name, whose, trouble.Device, oneLine(trouble.Message))
}

func ofClass(trouble dra.SelectorTrouble) bool { return strings.HasPrefix(trouble.Where, "class ") }

func (t tally) sayFew(a ask) string {
	matching := t.Left[dra.StageSelectors]
	return fmt.Sprintf("%s, and only %d of the %d published %s", asking(a), matching, t.Left[dra.StagePublished], match(matching))
}

func (t tally) sayTainted(a ask) string {
	matching, untainted := t.Left[dra.StageSelectors], t.Left[dra.StageUntainted]
	have := "have taints"
	if matching-untainted == 1 {
		have = "has a taint"
	}
	return fmt.Sprintf("%s; %d of %s that %s %s which it does not tolerate", asking(a), matching-untainted, devices(matching), match(matching), have)
}

func (t tally) sayHeld(a ask) string {
	untainted := t.Left[dra.StageUntainted]
	return fmt.Sprintf("%s; of %s that %s and that no taint forbids, %d can still be allocated",
		asking(a), devices(untainted), match(untainted), t.Left[dra.StageFree])
}

func (t tally) sayIncomplete(a ask) string {
	return fmt.Sprintf("%s; %d can be allocated, and %d more once all slices of their pools are published",
		asking(a), t.Left[dra.StageFree], t.Incomplete)
}

func (t tally) sayScattered(a ask) string {
	if t.Left[dra.StageBestNode] == 0 {
		return fmt.Sprintf("%s; %d are free, but no node can reach any of them", asking(a), t.Left[dra.StageFree])
	}
	return fmt.Sprintf("%s; %d are free, but no node has more than %d of them", asking(a), t.Left[dra.StageFree], t.Left[dra.StageBestNode])
}

// oneLine makes a message of another program fit into a sentence: compilers
// draw pictures of several lines.
func oneLine(message string) string {
	return strings.Join(strings.Fields(clean(message)), " ")
}

// clean makes foreign bytes valid UTF-8.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func sayTooMany(n int64) string {
	return fmt.Sprintf("it asks for %d devices, and a claim cannot be given more than %d", n, resourcev1.AllocationResultsMaxSize)
}

func sayOther() string {
	return "its devices could be allocated, but not those of another claim of the pod"
}

// onNodes begins a sentence about the nodes on which the allocator was asked
// in vain, as far as its verb.
func (t trial) onNodes() string {
	switch {
	case t.left > 0:
		return fmt.Sprintf("none of the %d most promising of %d nodes can", len(t.tried), len(t.tried)+t.left)
	case len(t.tried) == 0:
		return "no node that the pod's other claims allow can"
	case len(t.tried) == 1:
		return fmt.Sprintf("node %s, the only one with enough free devices, cannot", t.tried[0])
	default:
		return fmt.Sprintf("none of the %d nodes with enough free devices can", len(t.tried))
	}
}

// subject says whose requests a finding is about.
func subject(parts []int) string {
	if len(parts) == 1 {
		return "the claim"
	}
	return "the claims of the pod together"
}

func sayConstraints(parts []int, node string, failed trial) string {
	if len(failed.tried) != 1 || failed.tried[0] != node {
		node = "node " + node
	} else {
		node = "it"
	}
	return fmt.Sprintf("%s satisfy the constraints of %s; without them %s would do", failed.onNodes(), subject(parts), node)
}

func sayNoRoom(parts []int, failed trial) string {
	return fmt.Sprintf("%s serve all requests of %s at once", failed.onNodes(), subject(parts))
}

func saySlow(failed trial) string {
	return fmt.Sprintf("the diagnosis needs more than %s for a search for devices on one node: that was so on %d of the %d nodes that were tried",
		failed.limit, failed.slow, len(failed.tried))
}

func saySlowTogether(limit time.Duration) string {
	return fmt.Sprintf("the diagnosis needs more than %s for a search for devices on all nodes taken as one", limit)
}

func saySlowEvaluation(err error) string {
	where, _, _ := strings.Cut(err.Error(), ":")
	return fmt.Sprintf("the diagnosis needs more than %s for one evaluation of a selector of %s", inventory.EvaluationLimit, clean(where))
}

func sayFatal(t trial) string {
	text := fmt.Sprintf("the scheduler gives up at node %s: %s", t.on, oneLine(t.fatal.Error()))
	if t.fits != "" {
		text += fmt.Sprintf(" (node %s would do)", t.fits)
	}
	return text
}

func sayNoNode(pinned bool) string {
	if pinned {
		return "the pod's other claims are allocated where there are not enough free devices for this one"
	}
	return "no node has enough free devices for all requests, though for each of them some node has"
}

func sayCompeting(parts []int) string {
	return fmt.Sprintf("the requests of %s compete for the same devices: there is enough for each of them, and not for all at once", subject(parts))
}

func sayAllMixed(a ask) string {
	return asking(a) + ", and no node can give all of them together with what else is asked for"
}

func sayAllHeld(a ask) string {
	return asking(a) + ", and on every node something holds one of them"
}

func sayAllTainted(a ask) string {
	return asking(a) + ", and on every node one of them has a taint that it does not tolerate"
}
