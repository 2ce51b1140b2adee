package explain

import (
	"fmt"
	"strings"
	"time"
)

// join lists words as a sentence does: "a, b and c".
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
func counted[N int | int64](n N, one, more string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %s", n, more)
}

func verb[N int | int64](n N, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// pods names pods: "pod a", "pods a, b".
func pods(names []string) string {
	return verb(len(names), "pod", "pods") + " " + some(names, 4)
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

// since is a moment for people, and how long ago it was.
func since(moment, now time.Time) string {
	return fmt.Sprintf("since %s (%s)", moment.UTC().Format("2006-01-02 15:04:05 MST"), span(now.Sub(moment)))
}
