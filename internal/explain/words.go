package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/clusterread"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// pods names pods: "pod a", "pods a, b".
func pods(names []string) string {
	return words.Plural(len(names), "pod", "pods") + " " + words.List(names, 4)
}

// suffix returns the text behind its prefix; empty without a text.
func suffix(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// gapName names a collection that could not be read, or not everywhere.
func gapName(gap clusterread.Gap) string {
	return gap.Source + suffix(" outside of namespace ", gap.Only)
}

func podNames(pods []*dra.PodLifecycle) []string {
	return words.Names(pods, func(pod *dra.PodLifecycle) string { return pod.Ref.Name })
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

// taintText writes a taint as kubectl does.
func taintText(taint dra.Taint) string {
	return taint.Key + suffix("=", taint.Value) + ":" + taint.Effect
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
	return words.Names(slices.Sorted(maps.Keys(values)), func(key K) string { return fmt.Sprintf("%v: %v", key, values[key]) })
}
