package lint

import (
	"regexp"
	"slices"
	"strings"
)

func targetRefs(b board, say report) {
	for _, p := range b.all() {
		seen := map[string]bool{}
		for _, t := range p.Targets {
			if t.RefID == "" || seen[t.RefID] {
				say(p.Title, "query %q has no name, or another's", t.RefID)
			}
			seen[t.RefID] = true
		}
	}
}

// targetKind: tables are of now, which is cheap with thousands of rows; what is
// drawn over time asks for a range.
func targetKind(b board, say report) {
	overTime := []string{"timeseries", "state-timeline", "status-history", "heatmap"}
	for _, p := range b.all() {
		for _, t := range p.Targets {
			switch {
			case t.Instant == t.Range:
				say(p.Title, "query %s asks for both an instant and a range, or for neither", t.RefID)
			case p.Type == "table" && (!t.Instant || t.Format != "table"):
				say(p.Title, "query %s of a table is not an instant one, as a table", t.RefID)
			case slices.Contains(overTime, p.Type) && !t.Range:
				say(p.Title, "query %s has one point in time to draw", t.RefID)
			case p.Type == "heatmap" && t.Format != "heatmap":
				say(p.Title, "query %s has buckets that add up; a heatmap takes their differences", t.RefID)
			}
		}
	}
}

// targetLegend: a line whose name is the whole series is not read.
func targetLegend(b board, say report) {
	for _, p := range b.all() {
		for _, t := range p.Targets {
			if t.Range && p.Type != "heatmap" && t.Format != "table" && (t.LegendFormat == "" || t.LegendFormat == "__auto") {
				say(p.Title, "query %s has no legend", t.RefID)
			}
		}
	}
}

// eachSelector calls f for the selectors of all panels and variables.
func (b board) eachSelector(f func(about string, s selector)) {
	for _, p := range b.all() {
		for _, s := range p.asked() {
			f(p.Title, s)
		}
	}
	for _, v := range b.variables {
		for _, s := range selectors(v.Selector) {
			if v.Name != "cluster" {
				f("variable "+v.Name, s)
			}
		}
	}
}

// targetCluster: a selector without the cluster adds the others' series.
func targetCluster(b board, say report) {
	b.eachSelector(func(about string, s selector) {
		if !slices.Contains(s.matchers, matcher{"cluster", "=~", "$cluster"}) {
			say(about, `%s is not asked with cluster=~"$cluster"`, s.metric)
		}
	})
}

// hardCoded: what one installation calls its things is in no dashboard; their
// names come from variables. And instance and job are those of a scrape, which
// identify only what a target reports about itself: everything else has a node.
func hardCoded(b board, say report) {
	names := []string{"cluster", "node", "instance", "job", "namespace", "pod", "container", "resourceclaim", "uuid", "parent_uuid"}
	isVariable := regexp.MustCompile(`^\$(\w+|\{\w+\})$`)
	ofTargets := regexp.MustCompile(`^(up|(scrape|process|go|dra_exporter)_\w+|job_instance:.*)$`)
	b.eachSelector(func(about string, s selector) {
		for _, m := range s.matchers {
			switch {
			case (m.label == "instance" || m.label == "job") && !ofTargets.MatchString(s.metric):
				say(about, "%s is selected by %s, which the scrape configuration names", s.metric, m.label)
			case slices.Contains(names, m.label) && m.value != "" && m.value != ".+" && !isVariable.MatchString(m.value):
				say(about, "%s is selected by %s %q", s.metric, m.label, m.value)
			}
		}
	})
}

// variableMatchers: Grafana quotes several values for a regular expression, and
// one for a string; the other way round names with a dot or a bar go wrong.
func variableMatchers(b board, say report) {
	several := map[string]bool{}
	for _, v := range b.Templating.List {
		several[v.Name] = v.several()
	}
	b.eachSelector(func(about string, s selector) {
		for _, m := range s.matchers {
			for _, name := range variablesOf(m.value) {
				if regex := strings.HasSuffix(m.op, "~"); regex != several[name] && !strings.HasPrefix(name, "__") {
					say(about, "%s is selected by %s%s%q", s.metric, m.label, m.op, m.value)
				}
			}
		}
	})
}

// rateInterval: with a fixed window a rate has holes where scrapes are rare, and
// drops what is between two points where a range is long. What is summed up for a
// table or a number is of its whole range.
func rateInterval(b board, say report) {
	overTime := []string{"rate", "irate", "increase", "delta", "sum_over_time", "count_over_time", "resets", "changes"}
	for _, p := range b.all() {
		for _, t := range p.Targets {
			for _, s := range selectors(t.Expr) {
				if s.window == "" || len(s.within) == 0 || !slices.Contains(overTime, s.within[0]) {
					continue
				}
				whole := s.window == "$__range" && t.Instant
				if s.window != "$__rate_interval" && !whole {
					say(p.Title, "query %s: %s(%s[%s]) has neither the window $__rate_interval nor, of now, $__range", t.RefID, s.within[0], s.metric, s.window)
				}
			}
		}
	}
}

// counterAgg: what a counter has reached says when its process started, no more,
// but of those that began with what they count.
func counterAgg(b board, say report) {
	fine := []string{"rate", "irate", "increase", "resets", "changes", "count", "group", "present_over_time", "count_over_time"}
	aggregated := func(name string) bool { return slices.Contains(fine, name) }
	counter := regexp.MustCompile(`^[a-zA-Z_]+_(total|bucket|sum|count)$`)
	for _, p := range b.all() {
		for _, t := range p.Targets {
			for _, s := range selectors(t.Expr) {
				if !counter.MatchString(s.metric) || slices.ContainsFunc(s.within, aggregated) || t.Instant && slices.Contains(lifetimes(), s.metric) {
					continue
				}
				say(p.Title, "query %s: %s is a counter and stands in neither rate nor increase", t.RefID, s.metric)
			}
		}
	}
}

// lifetimes are counters whose value means something: it is the hardware's own
// over its lifetime, or, until the agent restarts, the claim's or the agent's.
func lifetimes() []string {
	return []string{
		"dra_device_ecc_errors_total", "dra_device_xgmi_errors_total", "dra_device_pcie_replays_total",
		"dra_device_xid_errors_total",
		"dra_claim_held_seconds_total",
	}
}

// additive: what is summed up, or what a mean is over, is counted once. The value of
// a device that several claims share unsplit is each of theirs, and what a partition
// does its parent does. Of bounds and of means there are neither sums nor means.
func additive(b board, say report) {
	ofClaims := regexp.MustCompile(`^dra_claim_(utilization_ratio|memory_used_bytes|power_watts|(busy_seconds|energy_joules|(nvlink|pcie|network)_(transmit|receive)_bytes)_total)$`)
	ofDevices := regexp.MustCompile(`^dra_device_(utilization_ratio|busy_seconds_total|memory_(used|size|reserved)_bytes|power_watts|energy_joules_total)$`)
	derived := regexp.MustCompile(`:(upper_bound|avg)$`)
	added := func(name string) bool { return name == "sum" || name == "avg" }
	for _, p := range b.all() {
		for _, s := range p.asked() {
			switch {
			case s.filter || !slices.ContainsFunc(s.within, added):
			case ofClaims.MatchString(s.metric) && !slices.ContainsFunc(s.matchers, ownValue):
				say(p.Title, `%s is summed up without attribution!="shared"`, s.metric)
			case ofDevices.MatchString(s.metric) && !slices.ContainsFunc(s.matchers, oneLevel):
				say(p.Title, `%s is summed up without parent_uuid=""`, s.metric)
			case derived.MatchString(s.metric):
				say(p.Title, "%s cannot be added up", s.metric)
			}
		}
	}
}

// ownValue leaves out what is not the claim's own.
func ownValue(m matcher) bool {
	return m == matcher{"attribution", "!=", "shared"} || m.label == "attribution" && m.op == "=" && m.value != "shared" && m.value != ""
}

// oneLevel selects whole devices alone, or partitions alone, or one device.
func oneLevel(m matcher) bool {
	return m.label == "parent_uuid" && !strings.HasSuffix(m.op, "~") || m.label == "uuid" && m.op != "!="
}

// joins: two sides that are matched on labels keep the cluster, or nothing is
// matched in a store of several, and the wrong things in one.
func joins(b board, say report) {
	for _, p := range b.all() {
		for _, t := range p.Targets {
			all := groupings(t.Expr)
			joined := slices.ContainsFunc(all, func(g grouping) bool { return g.word == "on" })
			for _, g := range all {
				if joined && (g.word == "on" || g.word == "by") && !slices.Contains(g.labels, "cluster") {
					say(p.Title, "query %s matches on labels, and %s (%s) has no cluster", t.RefID, g.word, strings.Join(g.labels, ", "))
				}
				if g.word == "without" || g.word == "ignoring" {
					say(p.Title, "query %s keeps whatever labels there are by %s: name those that it needs", t.RefID, g.word)
				}
			}
		}
	}
}
