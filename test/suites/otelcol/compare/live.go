package compare

import (
	"maps"
	"slices"
	"strings"
)

// Live returns how the live metrics of a push contradict two pages, of which
// one was scraped before it and one after it. The error is nil if they agree.
//
// Counts must be between both. Of gauges, which may change meanwhile, it
// compares those that are constant for a process.
func Live(before, after *Page, push *Push, naming *Naming) error {
	difference := &Difference{Page: "what lies from " + before.String() + " to " + after.String(), Push: push.String()}
	first, last := liveSeries(before, naming), liveSeries(after, naming)
	for key := range first {
		if _, pushed := push.live[key]; !pushed {
			difference.add(key, "is not pushed")
		}
	}
	for key, got := range push.live {
		want, known := last[key]
		if !known {
			difference.add(key, "is not on the page")
			continue
		}
		if got.kind == exponential {
			want.kind = exponential // the page has both kinds of buckets in one metric
		}
		difference.shape(want, got)
		difference.between(first[key].parts, want, got)
	}
	return difference.err()
}

func liveSeries(page *Page, naming *Naming) map[string]series {
	_, all := scraped(page)
	byKey := map[string]series{}
	for _, s := range all {
		s = naming.expect(s)
		byKey[s.key()] = s
	}
	return byKey
}

// between compares the values. A value that a page before the push does not
// have was zero.
func (d *Difference) between(before parts, after, got series) {
	if names := missing(after, got); len(names) > 0 {
		d.add(got.key(), "%s is not pushed", strings.Join(names, ", "))
	}
	for name, value := range got.parts {
		last, known := after.parts[name]
		switch {
		case !known:
			d.add(got.key(), "%s is not on the page", name)
		case counts(got, name):
			if value < before[name] || value > last {
				d.add(got.key(), "%s grew from %s to %s, pushed as %s", name, number(before[name]), number(last), number(value))
			}
		case constant(got.metric) && !sameNumber(value, last):
			d.add(got.key(), "%s is %s, pushed as %s", name, number(last), number(value))
		}
	}
}

// missing returns the parts that a point must have and lacks. Of the two kinds
// of buckets it must have one, and of native ones those that are not empty.
func missing(after, got series) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(after.parts)) {
		if _, has := got.parts[name]; has {
			continue
		}
		classic := strings.HasPrefix(name, "le ")
		native := strings.Contains(name, "bucket") || name == "zero"
		if got.kind == exponential && classic || native {
			continue
		}
		names = append(names, name)
	}
	return names
}

func counts(s series, part string) bool {
	return s.kind != gauge && !strings.HasPrefix(part, "quantile ")
}

// constant returns the gauges that are constant while a process runs.
func constant(metric string) bool {
	return strings.HasSuffix(metric, "_info") || metric == "process_start_time_seconds" || metric == "process_max_fds"
}
