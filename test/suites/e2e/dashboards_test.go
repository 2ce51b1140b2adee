package e2e

import (
	"testing"
	"time"
)

const shippedBoards = "../../../dashboards"

// scrapeTime is how long a Prometheus scrapes before its data is evaluated.
// The demo has shown all its events by then.
const scrapeTime = 100 * time.Second

// TestDashboards evaluates the queries of all dashboards, recording rules and
// alerts on real Prometheus servers, over ranges of the same length.
func TestDashboards(t *testing.T) {
	d := startDemo(t)
	rules := []string{shippedRules(t), ruleFile(t, alertRules)}
	onDemo := startDashboards(t, "demo", d.jobs(inCluster("demo"), nil), rules, shippedBoards)
	exported := startExportedDashboards(t, d)
	odd := startSpecialDashboards(t, d, rules)
	onCluster := startClusterDashboards(t, rules)

	var answered []namedQuery
	t.Run("demo", func(t *testing.T) {
		covers(t)
		answered = onDemo.checkData(t, "demo", onDemo.waitScraped(t))
		onDemo.checkRules(t)
	})
	t.Run("cluster", func(t *testing.T) {
		covers(t)
		onCluster.checkData(t, "cluster", onCluster.waitScraped(t))
		onCluster.checkRules(t)
	})
	t.Run("without-honorLabels", func(t *testing.T) {
		covers(t)
		exported.checkSameData(t, onDemo, answered)
		exported.checkRules(t)
	})
	t.Run("odd-values", func(t *testing.T) {
		covers(t)
		odd.checkSelection(t, onDemo)
		odd.checkRules(t)
	})
}

// inCluster returns a target's labels in a store of several clusters.
func inCluster(name string) map[string]string { return map[string]string{"cluster": name} }

// waitScraped waits until the server has scraped for scrapeTime, and returns
// the range from when all targets have been scraped. The range does not
// include later data, so that a result does not depend on the duration of
// other tests.
func (g *dashboardServer) waitScraped(t *testing.T) span {
	t.Helper()
	until := g.began.Add(scrapeTime)
	select {
	case <-time.After(time.Until(until.Add(scraped))):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	return span{g.began.Add(3 * scraped), until}
}

// checkRules fails the test if the evaluation of a rule or the template of an
// alert has ever failed.
func (g *dashboardServer) checkRules(t *testing.T) {
	t.Helper()
	failures, err := g.query(t.Context(), `sum by (rule_group) (prometheus_rule_evaluation_failures_total{job="prometheus"}) > 0`)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range failures {
		t.Errorf("%v rules of %s have failed", row.Value, row.Labels["rule_group"])
	}
	g.waitRows(t, `sum(prometheus_rule_evaluations_total{job="prometheus"}) > 1000`, oneRow)
	g.checkRulesHealthy(t)
	var answer struct {
		Data struct{ Alerts []notification }
	}
	if err := g.get(t.Context(), "/api/v1/alerts", &answer); err != nil {
		t.Fatal(err)
	}
	for _, alert := range answer.Data.Alerts {
		for name, text := range alert.Annotations {
			if templateFailed(text) {
				t.Errorf("%s of %s is %q", name, alert.Labels["alertname"], text)
			}
		}
	}
	t.Logf("%d alerts are pending or firing", len(answer.Data.Alerts))
}
