package e2e

import (
	"maps"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// startExportedDashboards starts a Prometheus that scrapes the demo without
// honorLabels, as a pod, with the variant of dashboards and rules for this
// case.
func startExportedDashboards(t *testing.T, d demo) *dashboardServer {
	t.Helper()
	folder := t.TempDir()
	alerts, err := filepath.Abs(filepath.Dir(alertRules))
	if err != nil {
		t.Fatal(err)
	}
	generate := exec.CommandContext(t.Context(), "go", "run", ".", "-exported", alerts, "-out", folder)
	generate.Dir = filepath.Join(shippedBoards, "gen")
	if output, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	rules := []string{
		ruleFile(t, filepath.Join(folder, filepath.Base(recordingRules)), anyPace()...),
		ruleFile(t, filepath.Join(folder, filepath.Base(alertRules))),
	}
	labels := merged(inCluster("demo"), map[string]string{"namespace": "monitoring", "pod": "dra-exporter-x7k2p", "container": "dra-exporter"})
	return startDashboards(t, "exported", d.jobs(labels, object{"honor_labels": false}), rules, folder)
}

// checkSameData fails the test unless queries that have data on the other
// server have data on this one, with the same labels, and many of them have
// the same values. The others change from scrape to scrape.
func (g *dashboardServer) checkSameData(t *testing.T, other *dashboardServer, answered []namedQuery) {
	t.Helper()
	when := g.waitScraped(t)
	all, _ := g.queries(t, when)
	byName := map[string]namedQuery{}
	for _, q := range all {
		byName[q.String()] = q
	}
	same := 0
	for _, q := range answered {
		own, there := byName[q.String()]
		if !there {
			t.Errorf("%s is not asked here", q)
			continue
		}
		if g.sameData(t, own, other, q, when) {
			same++
		}
	}
	t.Logf("%d of %d questions have the same answer", same, len(answered))
	if same < len(answered)/4 {
		t.Error("these are too few")
	}
}

// sameData fails the test unless both queries have data with the same labels.
// It reports whether they have the same newest values.
func (g *dashboardServer) sameData(t *testing.T, own namedQuery, other *dashboardServer, theirs namedQuery, when span) bool {
	t.Helper()
	for i, expr := range theirs.exprs {
		same := own.exprs[0]
		if i < len(theirs.choices) {
			same = own.with(theirs.choices[i])
		}
		if same == "" {
			continue // a claim that existed for a short time
		}
		there, err := other.queryRange(t.Context(), expr, when)
		if err != nil {
			t.Errorf("%s: %v", theirs, err)
		}
		here, err := g.queryRange(t.Context(), same, when)
		if err != nil {
			t.Errorf("%s: %v", own, err)
		}
		if len(there) == 0 || len(here) == 0 {
			continue
		}
		// The two may not have the same rows: a row without a queue has no such label.
		names, want := labelNames(here), labelNames(there)
		if own.board != "recording" && !haveAll(names, want) && !haveAll(want, names) {
			t.Errorf("%s has the labels %q, not %q:\n\t%s", own, names, want, same)
		}
		return sameValues(rowsByLabels(here), rowsByLabels(there))
	}
	t.Errorf("%s has no data:\n\t%s", own, own.exprs[0])
	return false
}

// labelNames returns the names of all labels of the rows.
func labelNames(rows []line) (names []string) {
	for _, row := range rows {
		names = append(names, slices.Collect(maps.Keys(row.labels))...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func sameValues(a, b map[string]line) bool {
	if len(a) != len(b) {
		return false
	}
	for labels, row := range a {
		other, there := b[labels]
		if !there || math.Abs(other.last()-row.last()) > 1e-9 {
			return false
		}
	}
	return true
}

// haveAll reports whether the names have all of some.
func haveAll(names, some []string) bool {
	return !slices.ContainsFunc(some, func(name string) bool { return !slices.Contains(names, name) })
}
