package inventory

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Causes says why each stage removed devices, and how many for each cause:
// what removed most comes first. Of the taints no more are told one by one
// than the limit says; of the devices, as many examples. The selectors must
// have been evaluated by Select.
func (inv *Inventory) Causes(request Request, limit, examples int) map[dra.Stage][]Cause {
	s := inv.sieve(request)
	defer inv.mu.Unlock()
	found := causes{examples: examples}
	for _, p := range inv.order {
		for _, published := range p.current {
			for _, b := range published.blocks {
				s.causes(&found, p, b)
			}
		}
	}
	told := make(map[dra.Stage][]Cause)
	for stage := dra.StageClass; stage <= dra.StageFree; stage++ {
		if len(found.all[stage]) > 0 {
			told[stage] = found.told(stage, limit)
		}
	}
	return told
}

// causeKey tells causes of one stage apart.
type causeKey struct {
	taint dra.Taint
	rule  string
	why   Why
}

// causes gathers causes and counts devices for each.
type causes struct {
	examples int
	all      [dra.Stages]map[causeKey]*Cause
	order    [dra.Stages][]causeKey // as they were found
	tainted  [][]causeKey           // of each device that taints removed
}

// causes adds those of one block.
func (s *sieve) causes(found *causes, p *pool, b *block) {
	left := s.stages(p, b)
	for stage := dra.StageClass; stage <= dra.StageFree; stage++ {
		for bit := range each(left[stage-1] &^ left[stage]) {
			d := b.device(bit)
			switch stage {
			case dra.StageUntainted:
				found.taints(p, d, &s.request)
			case dra.StageFree:
				found.add(stage, causeKey{why: s.inv.why(p, d, &s.request)}, p.id(d))
			default:
				found.add(stage, causeKey{}, p.id(d))
			}
		}
	}
}

// taints adds a device to each of its taints that the request does not
// tolerate, once.
func (c *causes) taints(p *pool, d *device, request *Request) {
	var keys []causeKey
	for rule, taint := range p.taintsOf(d) {
		key := causeKey{taint: taintOf(taint), rule: clean(rule)}
		if repels(taint) && !tolerated(taint, request.Tolerations) && !slices.Contains(keys, key) {
			keys = append(keys, key)
			c.add(dra.StageUntainted, key, p.id(d))
		}
	}
	c.tainted = append(c.tainted, keys)
}

func (c *causes) add(stage dra.Stage, key causeKey, device dra.DeviceID) {
	if c.all[stage] == nil {
		c.all[stage] = make(map[causeKey]*Cause)
	}
	cause, known := c.all[stage][key]
	if !known {
		cause = &Cause{Taint: key.taint, Rule: key.rule, Why: key.why}
		c.all[stage][key] = cause
		c.order[stage] = append(c.order[stage], key)
	}
	cause.Count++
	if len(cause.Examples) < c.examples {
		cause.Examples = append(cause.Examples, device)
	}
}

// told are the causes of a stage, those of most devices first. Taints beyond
// the limit become one cause.
func (c *causes) told(stage dra.Stage, limit int) []Cause {
	keys := c.order[stage]
	slices.SortStableFunc(keys, func(x, y causeKey) int {
		return cmp.Compare(c.all[stage][y].Count, c.all[stage][x].Count)
	})
	most := len(keys)
	if stage == dra.StageUntainted {
		most = min(most, limit)
	}
	var told []Cause
	for _, key := range keys[:most] {
		told = append(told, *c.all[stage][key])
	}
	if others := keys[most:]; len(others) > 0 {
		told = append(told, Cause{Count: c.having(others), Others: len(others)})
	}
	return told
}

// having counts the devices with any of the taints.
func (c *causes) having(taints []causeKey) int {
	wanted := make(map[causeKey]bool, len(taints))
	for _, key := range taints {
		wanted[key] = true
	}
	count := 0
	for _, keys := range c.tainted {
		if slices.ContainsFunc(keys, func(key causeKey) bool { return wanted[key] }) {
			count++
		}
	}
	return count
}

// Untainted is how many devices each node reaches of those that are left at
// StageUntainted: how many it could give if nothing were held and all pools
// were complete.
func (inv *Inventory) Untainted(request Request) Spread {
	s := inv.sieve(request)
	defer inv.mu.Unlock()
	t := &tally{inv: inv, reaches: make(map[*reach]int)}
	for _, p := range inv.order {
		for _, published := range p.current {
			for _, b := range published.blocks {
				t.place(b, s.stages(p, b)[dra.StageUntainted])
			}
		}
	}
	return inv.spread(t.reaches)
}
