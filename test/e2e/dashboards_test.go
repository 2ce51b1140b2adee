package e2e

import (
	"testing"
	"time"
)

const shippedBoards = "../../dashboards"

// ripe is how long a Prometheus looks before it is asked. The demo's story has
// shown all that it has by then.
const ripe = 100 * time.Second

// TestDashboards asks a real Prometheus all that dashboards, recording rules and
// alerts ask. All servers look for the same time.
func TestDashboards(t *testing.T) {
	d := startDemo(t)
	rules := []string{shippedRules(t), ruleFile(t, alertRules)}
	onDemo := show(t, "demo", d.jobs(inCluster("demo"), nil), rules, shippedBoards)
	exported := showExported(t, d)
	odd := showOdd(t, d, rules)
	onCluster := showCluster(t, rules)

	var answered []question
	t.Run("demo", func(t *testing.T) {
		shows(t)
		answered = onDemo.answeredOrExcused(t, "demo", onDemo.ripened(t))
		onDemo.neverFailed(t)
	})
	t.Run("cluster", func(t *testing.T) {
		shows(t)
		onCluster.answeredOrExcused(t, "cluster", onCluster.ripened(t))
		onCluster.neverFailed(t)
	})
	t.Run("without-honorLabels", func(t *testing.T) {
		shows(t)
		exported.answersLike(t, onDemo, answered)
		exported.neverFailed(t)
	})
	t.Run("odd-values", func(t *testing.T) {
		shows(t)
		odd.selectsItself(t, onDemo)
		odd.neverFailed(t)
	})
}

// inCluster are a target's labels in a store of several clusters.
func inCluster(name string) map[string]string { return map[string]string{"cluster": name} }

// ripened waits until the gallery has looked for long enough, and returns that
// time from when all targets have been scraped: not more, so that an answer does not depend on what a run does besides.
func (g *gallery) ripened(t *testing.T) span {
	t.Helper()
	until := g.began.Add(ripe)
	select {
	case <-time.After(time.Until(until.Add(scraped))):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	return span{g.began.Add(3 * scraped), until}
}

// neverFailed: no rule has ever failed, and no alert's text.
func (g *gallery) neverFailed(t *testing.T) {
	t.Helper()
	failures, err := g.ask(t.Context(), `sum by (rule_group) (prometheus_rule_evaluation_failures_total{job="prometheus"}) > 0`)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range failures {
		t.Errorf("%v rules of %s have failed", row.Value, row.Labels["rule_group"])
	}
	g.answers(t, `sum(prometheus_rule_evaluations_total{job="prometheus"}) > 1000`, one)
	g.rulesAreWell(t)
	var answer struct {
		Data struct{ Alerts []notice }
	}
	if err := g.get(t.Context(), "/api/v1/alerts", &answer); err != nil {
		t.Fatal(err)
	}
	for _, alert := range answer.Data.Alerts {
		for name, text := range alert.Annotations {
			if broken(text) {
				t.Errorf("%s of %s is %q", name, alert.Labels["alertname"], text)
			}
		}
	}
	t.Logf("%d alerts are pending or firing", len(answer.Data.Alerts))
}
