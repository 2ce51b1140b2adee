package node

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// CheckPodLabels reports whether each label of pods can be told by a metric
// label of its own.
func CheckPodLabels(keys []string) error {
	by := make(map[string]string, len(keys))
	for _, key := range keys {
		name := podLabelName(key)
		switch other, taken := by[name]; {
		case strings.TrimSpace(key) == "":
			return fmt.Errorf("show labels of pods: a label without a name")
		case taken && other == key:
			return fmt.Errorf("show labels of pods: %s is named twice", key)
		case taken:
			return fmt.Errorf("show labels of pods: %s and %s would both be the metric label %s", other, key, name)
		}
		by[name] = key
	}
	return nil
}

// podLabelName is the metric label for a label of pods, as kube-state-metrics
// names it (--metric-labels-allowlist), so that rows can be joined by it:
// everything but letters, digits and underscores becomes an underscore, and
// camel case becomes snake case.
func podLabelName(key string) string {
	name := regexp.MustCompile(`[^a-zA-Z0-9_]`).ReplaceAllString(key, "_")
	return "label_" + strings.ToLower(regexp.MustCompile(`([a-z0-9])([A-Z])`).ReplaceAllString(name, "${1}_${2}"))
}

// podLabels are values of a pod's labels, in one string so that facts that have
// them can be compared. No label value has a zero byte.
type podLabels string

func podLabelsOf(pod dra.Pod) podLabels { return podLabels(strings.Join(pod.Labels, "\x00")) }

// values are as many as were asked for. Those of a pod that the kubelet alone
// knows are empty.
func (l podLabels) values(count int) []string {
	values := make([]string, count)
	copy(values, strings.Split(string(l), "\x00"))
	return values
}
