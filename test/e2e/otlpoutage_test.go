package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/e2e/scrape"
	"github.com/dra-exporter/dra-exporter/test/otelcol/compare"
)

const (
	// outage is for how long the collector is away.
	outage = 60 * time.Second
	// longestPush is for how long a push is tried again: the first that the
	// collector is told may have been made so long ago.
	longestPush = 12 * time.Second
	// mostGrowth is how much more memory of its own a role may have at any time
	// while the collector is away, in bytes: the garbage collector lets a heap
	// breathe by some.
	mostGrowth = 8 << 20
)

// pushing is a role whose collector goes away, and what was known of it before.
type pushing struct {
	*sender
	endpoint string   // HOST:PORT of the collector
	signals  []string // that it pushes
	rules    []scrape.Rule
	watcher  *scrape.Watcher
	pages    *album // from shortly before the collector is back
	vigil    *scrape.Vigil

	memory, most int // bytes of its own: before the outage, and the most during it
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

// testOutage: a collector that is killed and comes back a minute later has missed
// nothing that counts, and nobody else has noticed.
func testOutage(t *testing.T) {
	shows(t)
	c := startCollector(t, "otelcol-outage")
	roles := startPushing(t, c)
	deployText(t, "outage", outagePod) // one trace, so that either signal works before
	running(t, "outage", "meanwhile")
	traced(t, c, roles[1], userOf(t, "outage", "meanwhile"))
	remove(t, "outage", "meanwhile")

	for _, r := range roles {
		r.memory = anonymous(t, r.process.PID())
		r.vigil = r.watcher.Keep(current)
	}
	kill(t, c.process)
	killed := time.Now()
	deployText(t, "outage", outagePod)
	running(t, "outage", "meanwhile")
	during := userOf(t, "outage", "meanwhile")
	passOutage(t, c, roles, killed)
	start(t, c.process)
	back := time.Now()

	for _, r := range roles {
		first := r.caughtUp(t, c)
		t.Logf("%s: the first push is of a page %s after the collector was back", r.name, first.Snapshot.Sub(back).Round(time.Second/10))
		if r.node != "" {
			calledOff(t, first)
		}
	}
	traced(t, c, roles[1], during)
	t.Logf("the trace of meanwhile arrived %s after the collector was back", time.Since(back).Round(time.Second/10))
	for _, r := range roles {
		r.recovered(t)
		r.unaffected(t)
	}
}

// startPushing starts a role of each kind, with a protocol each, and waits until
// the collector has all of both.
func startPushing(t *testing.T, c *collector) []*pushing {
	t.Helper()
	roles := []*pushing{
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
		r.agrees(t, c, "prometheus")
	}
	return roles
}

// passOutage waits until it is time for the collector to come back, looks at the
// memory of the roles meanwhile, and begins to keep pages in time.
func passOutage(t *testing.T, c *collector, roles []*pushing, killed time.Time) {
	t.Helper()
	for _, r := range roles {
		r.notices(t)
	}
	for time.Since(killed) < outage-longestPush {
		for _, r := range roles {
			r.most = max(r.most, anonymous(t, r.process.PID()))
		}
		time.Sleep(time.Second)
	}
	for _, r := range roles {
		r.pages = r.photographed(t)
		for _, signal := range r.signals {
			c.forget(t, r.name, signal)
		}
	}
	time.Sleep(longestPush)
}

// current: a page knows what has been a few seconds ago.
func current(p *scrape.Page) []error {
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

// traced waits until the collector has the trace of a pod, once.
func traced(t *testing.T, c *collector, r *pushing, u user) {
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

// notices waits until the page says that the collector is away.
func (r *pushing) notices(t *testing.T) {
	t.Helper()
	err := cluster.Eventually(t.Context(), r.name+" to notice", func(ctx context.Context) error {
		p, err := r.watcher.Next(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, signal := range r.signals {
			errs = append(errs, gauge(p, "dra_exporter_otlp_up", scrape.Labels{"signal": signal}, 0))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
}

// caughtUp: the first that the collector is told again is the whole truth. It
// returns that.
func (r *pushing) caughtUp(t *testing.T, c *collector) (first *compare.Push) {
	t.Helper()
	r.finds(t, "the first push of "+r.name, func() error {
		pushes, err := c.pushed(r.name, time.Time{})
		if err != nil {
			return err
		}
		first, err = compare.Find(r.pages.all(), pushes[:min(len(pushes), 1)], compare.Prometheus())
		return err
	})
	return first
}

// calledOff: a push says of the counters of the claim that went just before the
// outage, which the grace kept for a part of it, that they are no more.
func calledOff(t *testing.T, push *compare.Push) {
	t.Helper()
	off := push.CalledOff()
	if !slices.ContainsFunc(off, func(series string) bool {
		return strings.HasPrefix(series, "dra_claim_held_seconds_total{") && strings.Contains(series, `namespace="outage"`)
	}) {
		t.Errorf("of the claim that has gone meanwhile nothing is called off: %q", off)
	}
}
