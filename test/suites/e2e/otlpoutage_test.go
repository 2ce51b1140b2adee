package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
	"github.com/dra-exporter/dra-exporter/test/suites/otelcol/compare"
)

const (
	// outage is for how long the collector is down.
	outage = 60 * time.Second
	// maxPushRetry is for how long a push is retried: the first push that the
	// collector receives may be as old.
	maxPushRetry = 12 * time.Second
	// maxMemoryGrowth is by how much the private memory of a role may grow
	// while the collector is down, in bytes. The heap varies with garbage
	// collections.
	maxMemoryGrowth = 8 << 20
)

// outageRole is a role whose collector is down for a time, and its state
// before that.
type outageRole struct {
	*sender
	endpoint  string   // HOST:PORT of the collector
	signals   []string // that it pushes
	rules     []scrape.Rule
	watcher   *scrape.Watcher
	pages     *recentPages // from shortly before the collector is started again
	ruleCheck *scrape.RuleCheck

	memory, maxMemory int // private memory in bytes: before the outage, and the maximum during it
}

const outagePod = `
apiVersion: v1
kind: Namespace
metadata: {name: outage}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: outage}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: meanwhile, namespace: outage}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
`

// testOutage: a collector that is killed and restarted a minute later has
// received all counters and traces afterwards, and nothing else in the
// exporter is affected.
func testOutage(t *testing.T) {
	covers(t)
	c := startCollector(t, "otelcol-outage")
	roles := startPushing(t, c)
	deployText(t, "outage", outagePod) // one trace, so that both signals work before the outage
	running(t, "outage", "meanwhile")
	waitTraced(t, c, roles[1], userOf(t, "outage", "meanwhile"))
	remove(t, "outage", "meanwhile")

	for _, r := range roles {
		r.memory = anonymous(t, r.process.PID())
		r.ruleCheck = r.watcher.CheckRule(checkCurrent)
	}
	kill(t, c.process)
	killed := time.Now()
	deployText(t, "outage", outagePod)
	running(t, "outage", "meanwhile")
	during := userOf(t, "outage", "meanwhile")
	waitOutageEnd(t, c, roles, killed)
	start(t, c.process)
	back := time.Now()

	for _, r := range roles {
		first := r.waitCaughtUp(t, c)
		t.Logf("%s: the first push is of a page %s after the collector was back", r.name, first.Snapshot.Sub(back).Round(time.Second/10))
		if r.node != "" {
			checkCountersEnded(t, first)
		}
	}
	waitTraced(t, c, roles[1], during)
	t.Logf("the trace of meanwhile arrived %s after the collector was back", time.Since(back).Round(time.Second/10))
	for _, r := range roles {
		r.checkRecovered(t)
		r.checkUnaffected(t)
	}
}

// startPushing starts a role of each kind, with a different protocol each, and
// waits until the collector has all data of both.
func startPushing(t *testing.T, c *collector) []*outageRole {
	t.Helper()
	roles := []*outageRole{
		{
			sender:   startNodeSender(t, "outage-node", nil, "--otlp.endpoint="+c.grpc, "--otlp.protocol=grpc", pushInterval),
			endpoint: strings.TrimPrefix(c.grpc, "http://"), signals: []string{"metrics"}, rules: scrape.Rules(grace),
		},
		{
			sender:   startClusterSender(t, "outage-cluster", nil, "--otlp.endpoint="+c.http, pushInterval),
			endpoint: strings.TrimPrefix(c.http, "http://"), signals: []string{"metrics", "traces"}, rules: scrape.ClusterRules(),
		},
	}
	for _, r := range roles {
		target := func(context.Context) (string, error) { return r.url + "metrics", nil }
		r.watcher = scrape.Watch(t.Context(), 250*time.Millisecond, target, r.rules...)
		r.waitAgreement(t, c, "prometheus")
	}
	return roles
}

// waitOutageEnd waits until it is time to restart the collector, measures the
// memory of the roles meanwhile, and starts to keep pages in time.
func waitOutageEnd(t *testing.T, c *collector, roles []*outageRole, killed time.Time) {
	t.Helper()
	for _, r := range roles {
		r.waitOutageReported(t)
	}
	for time.Since(killed) < outage-maxPushRetry {
		for _, r := range roles {
			r.maxMemory = max(r.maxMemory, anonymous(t, r.process.PID()))
		}
		time.Sleep(time.Second)
	}
	for _, r := range roles {
		r.pages = r.recordPages(t)
		for _, signal := range r.signals {
			c.forget(t, r.name, signal)
		}
	}
	time.Sleep(maxPushRetry)
}

// checkCurrent returns errors unless the page's data is at most a few seconds
// old.
func checkCurrent(p *scrape.Page) []error {
	const most = 10 * time.Second
	newest := 0.0
	for _, row := range p.Rows("dra_exporter_source_last_success_timestamp_seconds", nil) {
		newest = max(newest, row.Value)
	}
	if old := p.At.Sub(time.UnixMilli(int64(newest * 1000))); old > most {
		return []error{fmt.Errorf("all that the page knows is at least %s old", old.Round(time.Second))}
	}
	return nil
}

// waitTraced waits until the collector has the trace of a pod, once.
func waitTraced(t *testing.T, c *collector, r *outageRole, u user) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "a trace of "+r.name, func(context.Context) error {
		all, err := c.spans(r.name, "outage")
		if err != nil {
			return err
		}
		_, _, err = wholeTrace(u, all, workingPhases()...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waitOutageReported waits until the page reports that the collector is down.
func (r *outageRole) waitOutageReported(t *testing.T) {
	t.Helper()
	err := cluster.Eventually(t.Context(), r.name+" to notice", func(ctx context.Context) error {
		p, err := r.watcher.Next(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, signal := range r.signals {
			errs = append(errs, hasGauge(p, "dra_exporter_otlp_up", scrape.Labels{"signal": signal}, 0))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
}

// waitCaughtUp waits until one of the first pushes after the outage has all of the
// page's data, and returns the first.
func (r *outageRole) waitCaughtUp(t *testing.T, c *collector) (first *compare.Push) {
	t.Helper()
	r.waitCheck(t, "the first pushes of "+r.name, func() error {
		pushes, err := c.pushed(r.name, time.Time{})
		if err != nil {
			return err
		}
		// The first may be of a snapshot that another one replaced before a page was read.
		if pushes = pushes[:min(len(pushes), 3)]; len(pushes) > 0 {
			first = pushes[0]
		}
		_, err = compare.Find(r.pages.all(), pushes, compare.Prometheus())
		return err
	})
	return first
}

// checkCountersEnded fails the test unless a push reports that the counters of
// the claim that ended just before the outage, which the grace period kept for
// a part of it, have ended.
func checkCountersEnded(t *testing.T, push *compare.Push) {
	t.Helper()
	off := push.EndedSeries()
	if !slices.ContainsFunc(off, func(series string) bool {
		return strings.HasPrefix(series, "dra_claim_held_seconds_total{") && strings.Contains(series, `namespace="outage"`)
	}) {
		t.Errorf("of the claim that has gone meanwhile nothing is called off: %q", off)
	}
}
