package diagnosis

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// finding is why a request or a claim cannot be allocated, and how far it came:
// the stage at which it fails, dra.Stages if it passes all counts.
type finding struct {
	reason  dra.PendingReason
	reached dra.Stage
	message string
}

func (f finding) fails() bool { return f.reason != dra.ReasonNone }

// checkRequest applies the counts to one request. The first stage that leaves
// fewer devices than are needed decides.
func checkRequest(r Request, count inventory.Count) finding {
	needed, left := r.Devices(), count.Left
	published, matching, untainted, free := left[dra.StagePublished], left[dra.StageSelectors], left[dra.StageUntainted], left[dra.StageFree]
	fail := func(reason dra.PendingReason, reached dra.Stage, format string, values ...any) finding {
		return finding{reason, reached, fmt.Sprintf(format, values...)}
	}
	if count.NoClass {
		return fail(dra.ReasonNoDeviceClass, dra.StagePublished, "request %s: device class %s does not exist", r.Name, r.Class)
	}
	for stage := dra.StageClass; stage < dra.Stages; stage++ {
		if left[stage] >= needed {
			continue
		}
		switch {
		case stage <= dra.StageSelectors && left[stage] == 0:
			return finding{dra.ReasonNoMatchingDevice, stage, noneMatches(r, count, stage)}
		case stage <= dra.StageSelectors:
			if matching == 0 {
				continue // the class leaves too few, and the selectors leave none
			}
			return fail(dra.ReasonInsufficient, stage, "%s, and only %d of the %d published %s", asking(r), matching, published, match(matching))
		case stage == dra.StageUntainted:
			have := "have taints"
			if matching-untainted == 1 {
				have = "has a taint"
			}
			return fail(dra.ReasonTainted, stage, "%s; %d of %s that %s %s which it does not tolerate",
				asking(r), matching-untainted, devices(matching), match(matching), have)
		case stage == dra.StageFree && free+count.Incomplete >= needed:
			return fail(dra.ReasonPoolIncomplete, stage, "%s; %d can be allocated, and %d more once all slices of their pools are published",
				asking(r), free, count.Incomplete)
		case stage == dra.StageFree:
			return fail(dra.ReasonInsufficient, stage, "%s; of %s that %s and have no untolerated taint, %d can still be allocated",
				asking(r), devices(untainted), match(untainted), free)
		case left[stage] == 0:
			return fail(dra.ReasonFragmented, stage, "%s; %d are free, but no node can reach any of them", asking(r), free)
		default:
			return fail(dra.ReasonFragmented, stage, "%s; %d are free, but no node has more than %d of them", asking(r), free, left[stage])
		}
	}
	return finding{reached: dra.Stages}
}

// noneMatches is the sentence about a request for which no device matches.
func noneMatches(r Request, count inventory.Count, stage dra.Stage) string {
	published := count.Left[dra.StagePublished]
	switch {
	case len(count.Failures) > 0:
		return failure(r, count.Failures[0])
	case published == 0:
		return asking(r) + ", and no device is published"
	case stage == dra.StageClass:
		return fmt.Sprintf("%s, and class %s selects none of %s", asking(r), r.Class, devices(published))
	default:
		return fmt.Sprintf("%s, and its selectors match none of %s of class %s", asking(r), devices(count.Left[dra.StageClass]), r.Class)
	}
}

// checkClaim applies the counts to a claim. A request with alternatives fails
// only if all of them fail, with the finding of the one that came furthest. If
// several requests fail, the one that fails at the earliest stage decides. A
// class that does not exist stops the scheduler even if another alternative
// could be allocated.
func checkClaim(requests []Request, counts []inventory.Count) finding {
	worst := finding{reached: dra.Stages}
	for i := 0; i < len(requests); {
		best := checkRequest(requests[i], counts[i])
		parent := requests[i].Parent
		for ; i < len(requests) && requests[i].Parent == parent; i++ {
			f := checkRequest(requests[i], counts[i])
			if counts[i].NoClass {
				return f
			}
			if best.fails() && (!f.fails() || f.reached > best.reached) {
				best = f
			}
		}
		if best.fails() && best.reached < worst.reached {
			worst = best
		}
	}
	if least := LeastDevices(requests); !worst.fails() && least > resourcev1.AllocationResultsMaxSize {
		return finding{dra.ReasonConstraints, dra.Stages,
			fmt.Sprintf("it requests %d devices, and a claim can have at most %d", least, resourcev1.AllocationResultsMaxSize)}
	}
	return worst
}

// match is the verb for so many devices.
func match(n int) string {
	if n == 1 {
		return "matches"
	}
	return "match"
}

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}

// asking begins a sentence about a request.
func asking(r Request) string {
	if r.Count == 0 {
		return fmt.Sprintf("request %s asks for all matching devices of a node", r.Name)
	}
	return fmt.Sprintf("request %s asks for %s", r.Name, devices(r.Devices()))
}

// failure is the sentence about a selector that cannot be evaluated. Expressions
// can be kilobytes long, so that the sentence names only the place.
func failure(r Request, e dra.SelectorError) string {
	selector := "its selector"
	if ofClass(e) {
		selector = "the selector of " + e.Where
	}
	if e.Device == "" {
		return fmt.Sprintf("request %s: %s does not compile: %s", r.Name, selector, oneLine(e.Message))
	}
	return fmt.Sprintf("request %s: %s fails for device %s: %s", r.Name, selector, e.Device, oneLine(e.Message))
}

func ofClass(failed dra.SelectorError) bool { return strings.HasPrefix(failed.Where, "class ") }

// oneLine makes a message of another program fit into a sentence: compilers
// print several lines.
func oneLine(message string) string {
	return strings.Join(strings.Fields(clean(message)), " ")
}

// Shortage returns the reason for which the counts say that a claim cannot be
// allocated; ReasonNone: they do not say so. The counts are those of its Requests.
func Shortage(requests []Request, counts []inventory.Count) dra.PendingReason {
	return checkClaim(requests, counts).reason
}
