package node

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

const (
	// MaxPodLabels is how many labels of pods can be shown: with the other labels of the
	// series, the 30 that Mimir accepts by default.
	MaxPodLabels = 15
	// maxLabelName limits the name of a label, in bytes: VictoriaMetrics' default.
	maxLabelName = 256
)

// CheckPodLabels returns an error unless each label of pods has a metric label of
// its own.
func CheckPodLabels(keys []string) error {
	if len(keys) > MaxPodLabels {
		return fmt.Errorf("show labels of pods: %d labels are more than %d", len(keys), MaxPodLabels)
	}
	owners := make(map[string]string, len(keys))
	for _, key := range keys {
		name := podLabelName(key)
		switch other, ok := owners[name]; {
		case strings.TrimSpace(key) == "":
			return fmt.Errorf("show labels of pods: a label without a name")
		case len(name) > maxLabelName:
			return fmt.Errorf("show labels of pods: the metric label of %s would have %d bytes, and the limit is %d", key, len(name), maxLabelName)
		case ok && other == key:
			return fmt.Errorf("show labels of pods: %s is named twice", key)
		case ok:
			return fmt.Errorf("show labels of pods: %s and %s would both be the metric label %s", other, key, name)
		}
		owners[name] = key
	}
	return nil
}

// podLabelName returns the metric label for a label of pods, with the name that
// kube-state-metrics gives it (--metric-labels-allowlist), so that queries can join
// by it: everything but letters, digits and underscores becomes an underscore, and
// camel case becomes snake case.
func podLabelName(key string) string {
	name := regexp.MustCompile(`[^a-zA-Z0-9_]`).ReplaceAllString(key, "_")
	return "label_" + strings.ToLower(regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(name, "${1}_${2}"))
}

// podLabelValues are values of a pod's labels, in one string so that facts that have
// them can be compared. No label value has a zero byte.
type podLabelValues string

func joinPodLabels(pod dra.Pod) podLabelValues {
	return podLabelValues(strings.Join(pod.Labels, "\x00"))
}

// list returns the labels that are set, by their names in rows without label_. names
// are those of all labels.
func (l podLabelValues) list(names []string) []model.Label {
	var list []model.Label
	for i, value := range l.values(len(names)) {
		if value != "" {
			list = append(list, model.Label{Name: strings.TrimPrefix(names[i], "label_"), Value: value})
		}
	}
	return list
}

// values returns count values. Those of a pod that only the kubelet reports are
// empty.
func (l podLabelValues) values(count int) []string {
	values := make([]string, count)
	copy(values, strings.Split(string(l), "\x00"))
	return values
}

// podLabelValue returns the value of a label by its name in rows; empty: it is not set.
func podLabelValue(labels []model.Label, name string) string {
	for _, label := range labels {
		if label.Name == strings.TrimPrefix(name, "label_") {
			return label.Value
		}
	}
	return ""
}
