package cluster

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// histograms collects the observations of a step, and determines for which
// classes, and of which phases, histograms exist from 0: increase() does not
// see the first value of a series that begins with it.
type histograms struct {
	observations []Observation // of this step
	evicted      []string      // classes, in this step
	observed     map[string]struct{}

	prompt, late bool // nodes exist whose kubelets report sandboxes at once, and others
	classes      int  // that have histograms
	changed      bool // a kind of kubelets is new, or a class was evicted
}

func newHistograms() *histograms {
	return &histograms{observed: make(map[string]struct{})}
}

// begin begins a step.
func (h *histograms) begin() {
	h.observations, h.evicted = make([]Observation, 0, len(h.observations)), nil
}

// observe adds the duration of a phase that ended, with the span that shows it.
func (h *histograms) observe(e *event, point trace.Point) {
	h.observed[e.class] = struct{}{}
	h.observations = append(h.observations, Observation{DeviceClass: e.class, Phase: e.phase, Took: e.took, Trace: point})
}

// evictClass removes the histograms of a class, unless anything was observed.
func (h *histograms) evictClass(class string) {
	h.changed = true // open compares the number of classes
	if _, ok := h.observed[class]; !ok {
		h.evicted = append(h.evicted, class)
	}
}

// addKubelet records whether a kubelet reports sandboxes at once.
func (h *histograms) addKubelet(prompt bool) {
	h.changed = h.changed || (prompt && !h.prompt) || (!prompt && !h.late)
	h.prompt, h.late = h.prompt || prompt, h.late || !prompt
}

// open lists the histograms of these classes that must exist, if some are new.
// Those of phase binding exist only once one was observed: few claims have
// binding conditions. Where nodes cannot be read, kubelets count as those that
// report late.
func (h *histograms) open(classes map[string]*model.FailureCount, synced Synced) []Observation {
	if synced.Pods && !synced.Nodes {
		h.addKubelet(false)
	}
	if !h.changed && h.classes == len(classes) {
		return nil
	}
	h.changed, h.classes = false, len(classes)
	phases := []string{phaseReady, phaseAllocation, phaseScheduling}
	if h.prompt {
		phases = append(phases, phasePreparation, phaseStart)
	}
	if h.late {
		phases = append(phases, phasePreparationStart)
	}
	var opened []Observation
	for class := range classes {
		if class == "" {
			continue
		}
		for _, phase := range phases {
			opened = append(opened, Observation{DeviceClass: class, Phase: phase})
		}
	}
	return opened
}

// durations holds the client_golang histograms.
type durations struct{ phase, ready, start *prometheus.HistogramVec }

func newDurations(families []*metric.Family) durations {
	histogram := func(name string) *prometheus.HistogramVec {
		family := families[slices.IndexFunc(families, func(f *metric.Family) bool { return f.Name == name })]
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                            family.Name,
			Help:                            family.Help,
			Buckets:                         []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  160,
			NativeHistogramMinResetDuration: time.Hour,
		}, family.Labels)
	}
	return durations{
		phase: histogram(metric.AllocationDurationSeconds), ready: histogram(metric.ClaimReadyDurationSeconds),
		start: histogram(metric.WorkloadStartDurationSeconds),
	}
}

func (d durations) all() []*prometheus.HistogramVec {
	return []*prometheus.HistogramVec{d.phase, d.ready, d.start}
}

// apply removes and creates the histograms that a snapshot lists, and then
// observes its durations, with the spans of sampled traces as exemplars.
func (d durations) apply(snapshot *Snapshot, sampled func(trace.ID) bool) {
	for _, class := range snapshot.Closed {
		for _, histograms := range d.all() {
			histograms.DeletePartialMatch(prometheus.Labels{"deviceclass": metric.Bounded(class)})
		}
	}
	for i := range snapshot.Opened {
		d.histogram(&snapshot.Opened[i])
	}
	for i := range snapshot.Observations {
		o := &snapshot.Observations[i]
		histogram := d.histogram(o)
		if exemplar := newExemplar(o.Trace, sampled); exemplar != nil {
			if observer, ok := histogram.(prometheus.ExemplarObserver); ok {
				observer.ObserveWithExemplar(o.Took.Seconds(), exemplar)
				continue
			}
		}
		histogram.Observe(o.Took.Seconds())
	}
}

// histogram returns the histogram of an observation.
func (d durations) histogram(o *Observation) prometheus.Observer {
	switch o.Phase {
	case "":
		return d.start.WithLabelValues(metric.Bounded(o.WorkloadKind), metric.Bounded(o.Queue))
	case phaseReady:
		return d.ready.WithLabelValues(metric.Bounded(o.DeviceClass))
	default:
		return d.phase.WithLabelValues(metric.Bounded(o.DeviceClass), o.Phase)
	}
}

// newExemplar returns the labels of an exemplar as OpenMetrics and OpenTelemetry
// define them; nil if no trace is exported.
func newExemplar(point trace.Point, sampled func(trace.ID) bool) prometheus.Labels {
	if point == (trace.Point{}) || sampled == nil || !sampled(point.Trace) {
		return nil
	}
	return prometheus.Labels{"trace_id": hex.EncodeToString(point.Trace[:]), "span_id": hex.EncodeToString(point.Span[:])}
}
