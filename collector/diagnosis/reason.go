package diagnosis

import (
	"fmt"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// finding is what speaks against one ask, and how far it came: the stage at
// which it fails, dra.Stages where counts let it pass.
type finding struct {
	reason  dra.PendingReason
	reached dra.Stage
	message string
}

func (f finding) fails() bool { return f.reason != dra.ReasonNone }

// judge applies the counts to one ask. It is the first stage that leaves less
// than is needed which decides.
func (t tally) judge(a ask) finding {
	needs := a.needs()
	if t.noClass {
		return finding{dra.ReasonNoDeviceClass, dra.StagePublished, fmt.Sprintf("request %s: device class %s does not exist", a.name, a.Class)}
	}
	for stage := dra.StageClass; stage < dra.Stages; stage++ {
		if t.Left[stage] >= needs {
			continue
		}
		switch {
		case stage <= dra.StageSelectors && t.Left[stage] == 0:
			return finding{dra.ReasonNoMatchingDevice, stage, t.sayUnmatched(a, stage)}
		case stage <= dra.StageSelectors:
			if t.Left[dra.StageSelectors] == 0 {
				continue // the class leaves too few, and the selectors leave none
			}
			return finding{dra.ReasonInsufficient, stage, t.sayFew(a)}
		case stage == dra.StageUntainted:
			return finding{dra.ReasonTainted, stage, t.sayTainted(a)}
		case stage == dra.StageFree && t.Left[stage]+t.Incomplete >= needs:
			return finding{dra.ReasonPoolIncomplete, stage, t.sayIncomplete(a)}
		case stage == dra.StageFree:
			return finding{dra.ReasonInsufficient, stage, t.sayHeld(a)}
		default:
			return finding{dra.ReasonFragmented, stage, t.sayScattered(a)}
		}
	}
	return finding{reached: dra.Stages}
}

// judgeClaim applies the counts to a claim: a request with alternatives fails
// only if all of them do, and is then as far as the one that came furthest; of
// several requests that fail the one that fails first decides. A class that
// does not exist stops the scheduler even where another alternative would do.
func judgeClaim(asks []ask, tallies []tally) finding {
	worst := finding{reached: dra.Stages}
	for i := 0; i < len(asks); {
		best := tallies[i].judge(asks[i])
		parent := asks[i].parent
		for ; i < len(asks) && asks[i].parent == parent; i++ {
			f := tallies[i].judge(asks[i])
			if tallies[i].noClass {
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
	return worst
}
