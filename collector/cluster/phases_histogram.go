package cluster

import (
	"encoding/hex"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/prometheus/client_golang/prometheus"
)

// durations holds the histograms of the families that observations name.
type durations map[*metric.Family]*prometheus.HistogramVec

func newDurations(f *families) durations {
	d := make(durations)
	for _, family := range []*metric.Family{f.duration, f.ready} {
		d[family] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                            family.Name,
			Help:                            family.Help,
			Buckets:                         []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  160,
			NativeHistogramMinResetDuration: time.Hour,
		}, family.Labels)
	}
	return d
}

// enter drops histograms, has others exist from 0, and then enters durations,
// those with the spans of sampled traces as exemplars.
func (d durations) enter(snapshot *Snapshot, sampled func(trace.ID) bool) {
	for _, class := range snapshot.Closed {
		for _, histograms := range d {
			histograms.DeletePartialMatch(prometheus.Labels{"deviceclass": metric.Bounded(class)})
		}
	}
	for i := range snapshot.Opened {
		d.of(&snapshot.Opened[i])
	}
	for i := range snapshot.Observations {
		o := &snapshot.Observations[i]
		histogram := d.of(o)
		if histogram == nil {
			continue
		}
		if exemplar := exemplarOf(o.Trace, sampled); exemplar != nil {
			if observer, able := histogram.(prometheus.ExemplarObserver); able {
				observer.ObserveWithExemplar(o.Took.Seconds(), exemplar)
				continue
			}
		}
		histogram.Observe(o.Took.Seconds())
	}
}

// exemplarOf are the labels of an exemplar as OpenMetrics and OpenTelemetry
// have them; nil where there is no trace that anybody can find.
func exemplarOf(point trace.Point, sampled func(trace.ID) bool) prometheus.Labels {
	if point == (trace.Point{}) || sampled == nil || !sampled(point.Trace) {
		return nil
	}
	return prometheus.Labels{"trace_id": hex.EncodeToString(point.Trace[:]), "span_id": hex.EncodeToString(point.Span[:])}
}

// of returns the histogram of an observation; nil where its family has other
// labels.
func (d durations) of(o *Observation) prometheus.Observer {
	values := []string{metric.Bounded(o.DeviceClass)}
	if o.Phase != "" {
		values = append(values, o.Phase)
	}
	histogram, err := d[o.Family].GetMetricWithLabelValues(values...)
	if err != nil {
		return nil
	}
	return histogram
}

// openings says for which classes, and of which phases, histograms exist from
// 0: increase() does not see the first value of a series that begins with it.
type openings struct {
	prompt, tardy bool // kubelets of the kind exist
	classes       int  // how many were open
	changed       bool // a kind of kubelets is new
}

// hear notes what kind of kubelet a node has.
func (o *openings) hear(prompt bool) {
	o.changed = o.changed || (prompt && !o.prompt) || (!prompt && !o.tardy)
	o.prompt, o.tardy = o.prompt || prompt, o.tardy || !prompt
}

// openHistograms lists the histograms that ought to exist, where some are new.
// Binding has one only where it has been observed: few claims have conditions.
// Where nodes cannot be read, each kubelet is taken for one of the tardy kind.
func (s *State) openHistograms(synced Synced) []Observation {
	o := &s.phases.open
	if synced.Pods && !synced.Nodes {
		o.hear(false)
	}
	if !o.changed && o.classes == len(s.failures.classes) {
		return nil
	}
	o.changed, o.classes = false, len(s.failures.classes)
	phases := []string{phaseAllocation, phaseScheduling}
	if o.prompt {
		phases = append(phases, phasePreparation, phaseStart)
	}
	if o.tardy {
		phases = append(phases, phasePreparationStart)
	}
	var opened []Observation
	for class := range s.failures.classes {
		if class == "" {
			continue
		}
		opened = append(opened, Observation{Family: s.families.ready, DeviceClass: class})
		for _, phase := range phases {
			opened = append(opened, Observation{Family: s.families.duration, DeviceClass: class, Phase: phase})
		}
	}
	return opened
}
