package node

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// healthLabels are made when something is first said of the unit's health,
// and again where what they say has changed.
type healthLabels struct {
	voices  [voices]*metric.Labels
	signals []*metric.Labels // of the signals that are present
	taints  []*metric.Labels
	taintOf []dra.Taint // what taints were made of
}

// healthRows shows how the devices are and why.
func (b *rowBuilder) healthRows(s *State) {
	f, units, node := b.families, s.devices.all(), s.config.Node
	for _, u := range units {
		u.xids.label(f, s.xidCodes, node, u.uuid, u.device.ParentUUID)
	}
	b.In(f.deviceHealthy)
	for _, u := range units {
		b.wordRows(u, node)
	}
	b.In(f.healthSignal)
	for _, u := range units {
		for _, labels := range s.signalLabels(u) {
			b.Add(labels, 1)
		}
	}
	b.In(f.taintInfo)
	for _, u := range units {
		for _, labels := range u.taintLabels(f, node) {
			b.Add(labels, 1)
		}
	}
	b.xidRows(units)
	b.In(f.violations)
	for _, class := range s.order.classes {
		b.violationRows(class, s.violations[class], node)
	}
}

func (b *rowBuilder) wordRows(u *deviceState, node string) {
	h := &u.health
	for v, said := range h.words {
		if said == silent {
			continue
		}
		if h.labels.voices[v] == nil {
			h.labels.voices[v] = metric.NewLabels(b.Family().Labels, node, u.uuid, u.device.ParentUUID, voice(v).String())
		}
		healthy := 0.0
		if said == well {
			healthy = 1
		}
		b.Add(h.labels.voices[v], healthy)
	}
}

func (s *State) signalLabels(u *deviceState) []*metric.Labels {
	h := &u.health
	if len(h.labels.signals) != len(h.raised) {
		h.labels.signals = nil
		for _, r := range h.raised {
			h.labels.signals = append(h.labels.signals, metric.NewLabels(s.rows.families.healthSignal.Labels,
				s.config.Node, u.uuid, u.device.ParentUUID, s.signals[r.signal].name, severity(r.critical)))
		}
	}
	return h.labels.signals
}

// taintLabels has one entry for each different taint of the slice that has
// the unit now.
func (u *deviceState) taintLabels(f *families, node string) []*metric.Labels {
	if !u.inSlice {
		return nil
	}
	l := &u.health.labels
	if !slices.Equal(l.taintOf, u.published.Taints) {
		l.taintOf, l.taints = u.published.Taints, nil
		for i, t := range u.published.Taints {
			if !slices.Contains(u.published.Taints[:i], t) {
				l.taints = append(l.taints, metric.NewLabels(f.taintInfo.Labels, node, u.uuid, u.device.ParentUUID, t.Key, t.Value, t.Effect))
			}
		}
	}
	return l.taints
}

func (b *rowBuilder) xidRows(units []*deviceState) {
	b.In(b.families.xidErrors)
	for _, u := range units {
		for i := range u.xids.accounts {
			b.addTally(u.xids.accounts[i].labels, u.xids.accounts[i].tally)
		}
	}
	b.In(b.families.xidLast)
	for _, u := range units {
		for i := range u.xids.accounts {
			if a := &u.xids.accounts[i]; !a.last.IsZero() {
				b.Add(a.labels, float64(a.last.UnixMilli())/1000)
			}
		}
	}
}

func (b *rowBuilder) violationRows(class string, v *violations, node string) {
	for c := range v.tallies {
		if v.labels[c] == nil {
			v.labels[c] = metric.NewLabels(b.Family().Labels, node, class, constraint(c).String())
		}
		b.addTally(v.labels[c], v.tallies[c])
	}
}
