package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// join lists words as in a sentence: "a, b and c".
func join(words []string, last string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
	}
}

// some lists the first few words and says how many more there are.
func some(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}

// counted is a number with its noun.
func counted[N int | int64](n N, singular, more string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, singular)
	}
	return fmt.Sprintf("%d %s", n, more)
}

func verb[N int | int64](n N, singular, more string) string {
	if n == 1 {
		return singular
	}
	return more
}

// pods names pods: "pod a", "pods a, b".
func pods(names []string) string {
	return verb(len(names), "pod", "pods") + " " + some(names, 4)
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

// span is a time span with one or two units, as short as it is clear.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// since is a time for people, and how long ago it was.
func since(moment, now time.Time) string {
	return fmt.Sprintf("since %s (%s)", moment.UTC().Format("2006-01-02 15:04:05 MST"), span(now.Sub(moment)))
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

// capital begins a sentence.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}
