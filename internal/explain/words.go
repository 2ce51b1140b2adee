package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// pods names pods: "pod a", "pods a, b".
func pods(names []string) string {
	return words.Plural(len(names), "pod", "pods") + " " + words.List(names, 4)
}

func podNames(pods []*dra.PodLifecycle) []string {
	names := make([]string, 0, len(pods))
	for _, pod := range pods {
		names = append(names, pod.Ref.Name)
	}
	return names
}

// consumerText names a consumer as kubectl does: "pod train-0".
func consumerText(consumer dra.Consumer) string {
	switch consumer.Resource {
	case "pods":
		return "pod " + consumer.Name
	case "podgroups":
		return "PodGroup " + consumer.Name
	default:
		return strings.TrimSpace(consumer.Resource + " " + consumer.Name)
	}
}

func deviceNames(devices []dra.DeviceID) []string {
	names := make([]string, 0, len(devices))
	for _, device := range devices {
		names = append(names, device.String())
	}
	return names
}

// taintText writes a taint as kubectl does.
func taintText(taint dra.Taint) string {
	text := taint.Key
	if taint.Value != "" {
		text += "=" + taint.Value
	}
	return text + ":" + taint.Effect
}

// since is a time for people, and how long ago it was.
func since(moment, now time.Time) string {
	return fmt.Sprintf("since %s (%s)", moment.UTC().Format("2006-01-02 15:04:05 MST"), words.Age(now.Sub(moment)))
}

// moment returns nil for a time that is unknown.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// sortedPairs writes a map as "key: value", sorted by key.
func sortedPairs[K cmp.Ordered, V any](values map[K]V) []string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, fmt.Sprintf("%v: %v", key, values[key]))
	}
	return pairs
}
