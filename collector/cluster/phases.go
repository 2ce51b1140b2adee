package cluster

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// currentPhases holds, for each pod and each of its allocated claims, the phase
// that is under way. It depends on the servers' timestamps alone, so that a
// restart of the exporter changes nothing.
type currentPhases struct {
	lifecycle *lifecycle

	pods        map[*podEntry][]currentPhase
	all         []currentPhase // of all pods, the longest first; valid unless changed
	models      []*model.Phase // as all
	changed     bool
	nodeChanged bool // a kubelet that reports sandboxes at once has become known
}

// currentPhase is a phase of one claim of a pod, and since when it is under
// way.
type currentPhase struct {
	pod    *podEntry
	claim  string
	phase  string
	since  time.Time
	labels *metric.Labels // nil until first shown
	model  *model.Phase   // likewise
}

func newCurrentPhases(l *lifecycle) *currentPhases {
	return &currentPhases{lifecycle: l, pods: make(map[*podEntry][]currentPhase)}
}

// apply determines the phases of the pods that an update of the index concerns.
func (c *currentPhases) apply(u *update) {
	switch {
	case u.pod != nil:
		c.updatePod(u.pod)
	case u.removedPod != nil:
		c.updatePod(u.removedPod)
	case u.Node != nil && !u.Gone && u.Node.SandboxPrompt && (u.nodeBefore == nil || !u.nodeBefore.SandboxPrompt):
		c.nodeChanged = true // nodes may be observed after their pods
	}
	for _, p := range u.concerned {
		c.updatePod(p)
	}
}

// update runs after all changes of a step.
func (c *currentPhases) update() {
	if !c.nodeChanged {
		return
	}
	c.nodeChanged = false
	for p := range c.pods {
		c.updatePod(p)
	}
}

func (c *currentPhases) updatePod(p *podEntry) {
	previous, now := c.pods[p], c.listPhases(p)
	same := slices.EqualFunc(previous, now, func(a, b currentPhase) bool {
		return a.claim == b.claim && a.phase == b.phase && a.since.Equal(b.since)
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
func (c *currentPhases) listPhases(p *podEntry) []currentPhase {
	if !p.alive() || c.lifecycle.hasStarted(p) {
		return nil
	}
	var phases []currentPhase
	for i := range p.refs {
		r := &p.refs[i]
		if !r.exists() || !p.has(r.claim.object) || references(p.refs[:i], r.claim) {
			continue
		}
		phase, start := c.decidePhase(p, r)
		phases = append(phases, currentPhase{pod: p, claim: r.claim.ref.Name, phase: phase, since: start})
	}
	return phases
}

// decidePhase is the phase under way of a reference whose claim is reserved for the
// pod. A phase does not begin before the pod is pending.
func (c *currentPhases) decidePhase(p *podEntry, r *reference) (phase string, start time.Time) {
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
	case !c.lifecycle.podReportsSandbox(p):
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

// rows adds the phases under way, the longest first, and returns them.
func (c *currentPhases) rows(b *metric.Builder, f *families) []*model.Phase {
	if c.changed {
		c.sort(f)
		c.changed = false
	}
	b.In(f.phaseSince)
	for i := range c.all {
		b.Add(c.all[i].labels, float64(c.all[i].since.Unix()))
	}
	return c.models
}

func (c *currentPhases) sort(f *families) {
	c.all = c.all[:0]
	for _, phases := range c.pods {
		for i := range phases {
			phase := &phases[i]
			if phase.labels == nil {
				phase.labels = metric.NewLabels(f.phaseSince.Labels, phase.pod.ref.Namespace, phase.pod.ref.Name, phase.claim, phase.phase)
				phase.model = &model.Phase{Pod: phase.pod.ref, Claim: phase.claim, Name: phase.phase, Since: phase.since}
			}
			c.all = append(c.all, *phase)
		}
	}
	slices.SortFunc(c.all, func(a, b currentPhase) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.pod.ref.Namespace, b.pod.ref.Namespace), cmp.Compare(a.pod.ref.Name, b.pod.ref.Name), cmp.Compare(a.claim, b.claim))
	})
	c.models = make([]*model.Phase, len(c.all))
	for i := range c.all {
		c.models[i] = c.all[i].model
	}
}
