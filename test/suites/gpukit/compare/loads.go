package compare

import (
	"math"
	"slices"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
)

// progress is how much of a quantity a load has done, with 0 at its start.
func (l Load) progress(of func(load.Totals) float64) series {
	all := series{{l.Ready.Time, Value{Known: true}}}
	for _, p := range l.Progress {
		all = append(all, point{p.Time, Value{Known: true, Number: of(p.Totals)}})
	}
	return all
}

// rate is how much a load has done in each second of a window; not known if its
// events do not span the window, but for one interval at each end.
func (l Load) rate(w Window, of func(load.Totals) float64) Value {
	done := l.progress(of)
	first, last := done[0].at, done[len(done)-1].at
	if first.After(w.From.Add(fastAge)) || last.Before(w.To.Add(-fastAge)) || len(done.known(w)) < 2 {
		return Value{}
	}
	return Value{Known: true, Number: (done.value(w.To) - done.value(w.From)) / w.To.Sub(w.From).Seconds()}
}

func busySeconds(t load.Totals) float64 { return t.Busy }

// claim names a claim.
type claim struct{ namespace, name string }

func (c claim) String() string { return c.namespace + "/" + c.name }

func (c claim) labels(uuid string) map[string]string {
	return map[string]string{"uuid": uuid, "namespace": c.namespace, "resourceclaim": c.name}
}

// claimsOf are the claims of loads, in their order, with the device of each. The
// claim without a name has the loads that belong to none.
func claimsOf(loads []Load) (claims []claimLoads) {
	for _, l := range loads {
		of := claim{l.Namespace, l.Claim}
		if l.Claim == "" {
			of = claim{}
		}
		at := slices.IndexFunc(claims, func(c claimLoads) bool { return c.claim == of && c.device == l.Device })
		if at < 0 {
			claims = append(claims, claimLoads{claim: of, device: l.Device})
			at = len(claims) - 1
		}
		claims[at].loads = append(claims[at].loads, l)
	}
	return claims
}

// claimLoads are the loads of one claim on one device.
type claimLoads struct {
	claim  claim
	device string
	loads  []Load
}

func (c claimLoads) subject() string {
	if c.claim == (claim{}) {
		return c.device + " (no claim)"
	}
	return c.device + " (" + c.claim.String() + ")"
}

// busy is the sum of the loads' busy shares.
func (c claimLoads) busy(w Window) Value {
	sum := Value{Known: true}
	for _, l := range c.loads {
		share := l.rate(w, busySeconds)
		sum.Known = sum.Known && share.Known
		sum.Number += share.Number
	}
	return sum
}

func (c claimLoads) held() float64 {
	sum := 0.0
	for _, l := range c.loads {
		sum += float64(l.Ready.HeldBytes)
	}
	return sum
}

// processMemory is the memory that the library reports of some processes of a
// device. It is not known where one of them is not listed with its memory.
func (o Observations) processMemory(uuid string, pids []int) series {
	return o.librarySeries(uuid, func(d LibraryDevice) Value {
		sum, found := Value{}, 0
		for _, p := range d.Processes {
			if p.Memory != nil && slices.Contains(pids, p.PID) {
				sum.Number += *p.Memory
				found++
			}
		}
		sum.Known = found > 0 && found >= len(pids)
		return sum
	})
}

func (c claimLoads) pids() []int {
	var pids []int
	for _, l := range c.loads {
		pids = append(pids, l.Ready.PID)
	}
	return pids
}

// mean is the mean of what is known in a window.
func (s series) meanOf(w Window) Value {
	known := s.known(w)
	if len(known) == 0 {
		return Value{}
	}
	return Value{Known: true, Number: known.mean()}
}

// near reports whether two numbers differ by at most so much, but for rounding.
func near(one, two, allowed float64) bool {
	return math.Abs(one-two) <= allowed+1e-9*max(1, math.Abs(two))
}
