package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// currentPhases holds, for each pod and each of its allocated claims, the phase
// that is under way. It depends on the servers' timestamps alone, so that a
// restart of the exporter changes nothing.
type currentPhases struct {
	pods        map[*podEntry][]model.Phase // immutable
	all         []*model.Phase              // of all pods, the longest first; valid unless changed
	changed     bool
	nodeChanged bool // a kubelet that reports sandboxes at once has become known
}

func newCurrentPhases() *currentPhases {
	return &currentPhases{pods: make(map[*podEntry][]model.Phase)}
}

// apply determines the phases of the pods that an update of the index concerns.
func (c *currentPhases) apply(u *update, nodes map[string]*dra.Node) {
	switch {
	case u.pod != nil:
		c.updatePod(u.pod, nodes)
	case u.removedPod != nil:
		c.updatePod(u.removedPod, nodes)
	case u.Node != nil && !u.Gone && u.Node.SandboxPrompt && (u.nodeBefore == nil || !u.nodeBefore.SandboxPrompt):
		c.nodeChanged = true // nodes may be observed after their pods
	}
	for _, p := range u.concerned {
		c.updatePod(p, nodes)
	}
}

// update runs after all changes of a step.
func (c *currentPhases) update(nodes map[string]*dra.Node) {
	if !c.nodeChanged {
		return
	}
	c.nodeChanged = false
	for p := range c.pods {
		c.updatePod(p, nodes)
	}
}

func (c *currentPhases) updatePod(p *podEntry, nodes map[string]*dra.Node) {
	previous, now := c.pods[p], listPhases(p, nodes)
	same := slices.EqualFunc(previous, now, func(a, b model.Phase) bool {
		return a.Claim == b.Claim && a.Name == b.Name && a.Since.Equal(b.Since)
	})
	if same {
		return
	}
	c.changed = true
	if len(now) == 0 {
		delete(c.pods, p)
	} else {
		c.pods[p] = now
	}
}

// listPhases lists the phase under way of each claim that is reserved for the
// pod. A pod that has started, or will not start, has none.
func listPhases(p *podEntry, nodes map[string]*dra.Node) []model.Phase {
	if !p.alive() || p.hasStarted() {
		return nil
	}
	var phases []model.Phase
	for i := range p.refs {
		r := &p.refs[i]
		if !r.exists() || !p.has(r.claim.object) || references(p.refs[:i], r.claim) {
			continue
		}
		phase, start := decidePhase(p, r, nodes)
		phases = append(phases, model.Phase{Pod: p.ref, Claim: r.claim.ref.Name, Name: phase, Since: start})
	}
	return phases
}

// decidePhase is the phase under way of a reference whose claim is reserved for the
// pod. A phase does not begin before the pod is pending.
func decidePhase(p *podEntry, r *reference, nodes map[string]*dra.Node) (phase string, start time.Time) {
	claim, waits := r.claim.object, p.pendingSince(r)
	allocated := latest(claim.AllocatedAt, waits) // not written before Kubernetes 1.36
	switch {
	case p.object.Node == "" && claim.Binding != dra.BindingNone && claim.Binding != dra.BindingDone:
		return phaseBinding, allocated
	case p.object.Node == "" && claim.Binding == dra.BindingDone && !claim.BindingSince.IsZero():
		return phaseScheduling, latest(claim.BindingSince, waits)
	case p.object.Node == "":
		return phaseScheduling, allocated
	}
	bound := p.object.Scheduled
	if bound.IsZero() {
		bound = p.object.Created
	}
	switch {
	case claim.NoPreparation:
		return phaseStart, bound
	case !p.progress.hasPromptSandbox(nodes):
		return phasePreparationStart, bound
	case p.object.Sandbox.IsZero():
		return phasePreparation, bound
	default:
		return phaseStart, p.object.Sandbox
	}
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// sorted returns the phases under way, the longest first.
func (c *currentPhases) sorted() []*model.Phase {
	if !c.changed {
		return c.all
	}
	c.changed, c.all = false, make([]*model.Phase, 0, max(len(c.all), len(c.pods)))
	for _, phases := range c.pods {
		for i := range phases {
			c.all = append(c.all, &phases[i])
		}
	}
	slices.SortFunc(c.all, func(a, b *model.Phase) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name), cmp.Compare(a.Claim, b.Claim))
	})
	return c.all
}
