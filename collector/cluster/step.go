package cluster

import (
	"maps"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Step moves the state to now: it applies the changes in their order, and
// looks again at what they touched. It is pure but for consuming the state:
// the same state, facts and now give the same result.
func Step(s State, facts Facts, now clock.Instant) (State, Snapshot, []Event) {
	s.clear(now)
	s.failures.supply = facts.Supply
	for i := range facts.Changes {
		s.apply(&facts.Changes[i])
	}
	s.followPrompted()
	waiting, questions, events := s.settleWaits(facts, now)
	s.settleOwed(now)
	s.settleTraces(now)
	snapshot := Snapshot{
		At:           now,
		Rows:         s.allRows(facts),
		Questions:    questions,
		Waiting:      waiting,
		Observations: s.phases.observed,
		Closed:       s.phases.closed,
		Opened:       s.openHistograms(facts.Synced),
		Traces:       s.tracing.told,
	}
	return s, snapshot, events
}

// clear forgets what belonged to the step before alone.
func (s *State) clear(now clock.Instant) {
	if s.opened.IsZero() {
		s.opened = now.Wall
	}
	s.touched.clear()
	s.phases.observed, s.phases.closed = nil, nil
	s.tracing.now, s.tracing.told = now, nil
	s.failures.open("", now.Wall) // of what fails before its class is known
}

func (s *State) apply(change *Change) {
	switch {
	case change.Claim != nil:
		s.applyClaim(change)
	case change.Pod != nil:
		s.applyPod(change)
	case change.Group != nil:
		s.applyGroup(change)
	case change.Node != nil:
		s.applyNode(change)
	case change.Trouble != nil:
		s.applyTrouble(change)
	}
}

// applyClaim notes what a claim is now. One that was made again under its name
// is another claim; who names it stays.
func (s *State) applyClaim(change *Change) {
	life := change.Claim
	c := s.books.claim(life.Ref)
	if c.life != nil && c.life.UID != life.UID {
		if change.Gone {
			return // the one before; the name has been taken since
		}
		s.loseClaimStories(c, &Change{At: change.At}) // nobody told when it went
		s.loseClaim(c)
	}
	s.touched.claims[c] = struct{}{}
	if change.Gone {
		s.loseClaimStories(c, change)
		s.loseClaim(c)
	} else {
		before := c.life
		c.life = life
		s.followClaim(c, before, change)
		s.tellOwner(life)
	}
	for _, p := range c.users {
		s.touched.pods[p] = struct{}{}
		s.followPhases(p)
		s.followUnder(p)
	}
	s.books.release(c)
}

func (s *State) loseClaim(c *claimEntry) {
	if c.life == nil {
		return
	}
	if owner := c.life.MadeFor.UID; owner != "" {
		if key := (madeKey{owner, c.life.PodClaim}); s.books.made[key] == c.ref {
			delete(s.books.made, key)
		}
	}
	c.life, c.course = nil, course{}
}

// tellOwner notes for whom a claim was made, and tells them.
func (s *State) tellOwner(life *dra.ClaimLife) {
	if life.MadeFor.UID == "" || (life.PodClaim == "" && !life.ExtendedResource) {
		return
	}
	key := madeKey{life.MadeFor.UID, life.PodClaim}
	if s.books.made[key] == life.Ref {
		return
	}
	s.books.made[key] = life.Ref
	owner := dra.PodRef{Namespace: life.Ref.Namespace, Name: life.MadeFor.Name}
	if life.MadeFor.Resource == "podgroups" {
		s.resolveGroup(owner)
		return
	}
	if p, known := s.books.pods[owner]; known && p.life.UID == life.MadeFor.UID {
		s.touchPod(p)
		s.resolve(p)
	}
}

// applyPod notes what a pod is now. One that was made again under its name is
// another pod.
func (s *State) applyPod(change *Change) {
	life := change.Pod
	p, known := s.books.pods[life.Ref]
	if known && p.life.UID != life.UID {
		if change.Gone {
			return
		}
		s.loseStory(p, &Change{At: change.At}) // nobody told when it went
		s.losePod(p)
		known = false
	}
	if change.Gone {
		if known {
			s.loseStory(p, change)
			s.losePod(p)
		}
		return
	}
	if !known {
		p = &podEntry{ref: life.Ref}
		s.books.pods[life.Ref] = p
	}
	before := p.life
	if p.life = life; namesOthers(before, life) {
		s.books.regroup(p, before)
		s.resolve(p)
	}
	s.touchPod(p)
	s.followPod(p, before, change)
	s.waits.evictions.notice(before, life, change.At.Wall)
}

// namesOthers reports whether a pod names others than before.
func namesOthers(before, now *dra.PodLife) bool {
	return before == nil || before.Group != now.Group || !slices.Equal(before.Claims, now.Claims) || !maps.Equal(before.Extended, now.Extended)
}

// touchPod touches a pod and the claims that it names.
func (s *State) touchPod(p *podEntry) {
	s.touched.pods[p] = struct{}{}
	for i := range p.refs {
		if c := p.refs[i].claim; c != nil {
			s.touched.claims[c] = struct{}{}
		}
	}
}

func (s *State) losePod(p *podEntry) {
	s.touchPod(p)
	delete(s.books.pods, p.ref)
	before := p.life
	p.life = nil
	s.books.regroup(p, before)
	s.resolve(p)
	s.followUnder(p)
}

func (s *State) applyGroup(change *Change) {
	ref := change.Group.Ref
	before, known := s.books.groups[ref]
	switch {
	case !change.Gone:
		s.books.groups[ref] = change.Group
	case known && before.UID == change.Group.UID:
		delete(s.books.groups, ref)
	}
	s.resolveGroup(ref)
}

func (s *State) resolveGroup(ref dra.PodRef) {
	for _, p := range s.books.members[ref] {
		s.touchPod(p)
		s.resolve(p)
		s.followPhases(p)
		s.followUnder(p)
	}
}

func (s *State) applyNode(change *Change) {
	if change.Gone {
		delete(s.books.nodes, change.Node.Name)
		s.clocks.forget(change.Node.Name)
		return
	}
	before, known := s.books.nodes[change.Node.Name]
	s.books.nodes[change.Node.Name] = change.Node
	s.phases.open.hear(change.Node.SandboxPrompt)
	if change.Node.SandboxPrompt && (!known || !before.SandboxPrompt) {
		s.phases.prompted = true
	}
}
