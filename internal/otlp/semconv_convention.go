package otlp

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// instrument is how a metric is to be understood.
type instrument uint8

const (
	gaugeInstrument instrument = iota
	counterInstrument
	upDownCounterInstrument
)

func (i instrument) String() string {
	return [...]string{"gauge", "counter", "updowncounter"}[i]
}

func (i instrument) data(points []metricdata.DataPoint[float64]) metricdata.Aggregation {
	if i == gaugeInstrument {
		return metricdata.Gauge[float64]{DataPoints: points}
	}
	return metricdata.Sum[float64]{
		DataPoints:  points,
		Temporality: metricdata.CumulativeTemporality,
		IsMonotonic: i == counterInstrument,
	}
}

// target is one metric by semantic conventions. Several families may become
// one target, told apart by an attribute.
type target struct {
	name  string
	kind  instrument
	unit  string // UCUM
	facts []attribute.Key
	help  string
}

// convention says how the rows of a family are spelled.
type convention struct {
	family, metric string
	about          about
	words          []word // beside those that all of its kind have
	madeOf         string // of a derived metric, for the document

	to  int    // index of the target
	all []word // with those that all of its kind have
}

// word is one attribute of a point: prefix and value of a label, or where no
// label is named a constant. A word without a key says that the label is not
// sent.
type word struct {
	key           attribute.Key
	label, prefix string
	constant      string
	mangle        func(string) string
}

// value is empty where the attribute is left out.
func (w word) value(label string) string {
	switch {
	case w.mangle != nil:
		return w.mangle(label)
	case w.prefix != "" && label == "":
		return strings.TrimSuffix(w.prefix, "_")
	default:
		return w.prefix + label
	}
}

// about is what a row is about, which gives it labels to be spelled the same
// in all families.
type about uint8

const (
	aboutDevice about = iota
	aboutClaim
	aboutPod
)

// prefix is how the families about the like begin.
func (a about) prefix() string {
	return [...]string{aboutDevice: "dra_device_", aboutClaim: "dra_claim_", aboutPod: "dra_pod_"}[a]
}

// words are those of every row about the like. The node is the resource's.
func (a about) words() []word {
	node, device, namespace := word{label: "node"}, word{key: hwID, label: "uuid"}, word{key: k8sNamespaceName, label: "namespace"}
	switch a {
	case aboutDevice:
		return []word{node, device, {key: hwParent, label: "parent_uuid"}}
	case aboutClaim:
		return []word{node, namespace, {key: claimName, label: "resourceclaim"}, device}
	default:
		return []word{node, namespace, {key: k8sPodName, label: "pod"}, device}
	}
}

// attributes spells labels. A label without a word keeps its name, so that
// two rows never become one point; an empty one is left out, as Prometheus
// does. Of what is known of the subject the target gets the wanted facts.
func (c *convention) attributes(labels *metric.Labels, wanted []attribute.Key, of *subject) attribute.Set {
	var room [16]attribute.KeyValue // beyond that, append allocates
	spelled := room[:0]
	add := func(key attribute.Key, value string) {
		if key != "" && value != "" {
			spelled = append(spelled, key.String(value))
		}
	}
	for name, value := range labels.Each {
		w, known := wordOf(c.all, name)
		if !known {
			w = word{key: attribute.Key(name)}
		}
		add(w.key, w.value(value))
	}
	for _, w := range c.all {
		if w.label == "" {
			add(w.key, w.constant)
		}
	}
	for _, key := range wanted {
		add(key, of.facts[key])
	}
	return attribute.NewSet(spelled...)
}

func wordOf(words []word, label string) (word, bool) {
	for _, w := range words {
		if w.label == label {
			return w, true
		}
	}
	return word{}, false
}
