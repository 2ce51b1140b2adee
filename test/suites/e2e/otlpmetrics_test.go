package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/otelcol/compare"
)

// pushInterval is no multiple of the interval between readings of the devices,
// so that pushes occur at varying times between two readings.
const pushInterval = "--otlp.interval=1300ms"

// testPushedMetrics: all families of both roles' pages are pushed, in both
// namings and by both protocols, also after a restart of the process.
func testPushedMetrics(t *testing.T) {
	covers(t)
	for _, namespace := range faultNamespaces() {
		deploy(t, namespace)
	}
	running(t, "exclusive", "train")
	for _, pod := range []string{"whole", "static", "on-demand"} {
		running(t, "mig", pod)
	}
	c := startCollector(t, "otelcol-metrics")
	for _, naming := range []string{"prometheus", "semconv"} {
		for _, protocol := range []string{"grpc", "http"} {
			t.Run(naming+" "+protocol, func(t *testing.T) { testPushed(t, c, naming, protocol) })
		}
	}
}

func testPushed(t *testing.T, c *collector, naming, protocol string) {
	flags := []string{"--otlp.endpoint=" + c.grpc, "--otlp.protocol=grpc", "--otlp.naming=" + naming, pushInterval}
	if protocol == "http" {
		flags[0], flags[1] = "--otlp.endpoint="+c.http, "--otlp.protocol=http/protobuf"
	}
	senders := []*sender{
		startNodeSender(t, "node-"+naming+"-"+protocol, nil, flags...),
		startClusterSender(t, "cluster-"+naming+"-"+protocol, nil, flags...),
	}
	for _, s := range senders {
		s.waitAgreement(t, c, naming)
		kill(t, s.process)
		restarted := time.Now()
		start(t, s.process)
		s.waitAgreementSince(t, c, naming, restarted)
	}
}

// namingOf returns the naming of the flag's value.
func namingOf(flag string) *compare.Naming {
	if flag == "semconv" {
		return compare.Semantic()
	}
	return compare.Prometheus()
}

// pushed returns the pushes of a sender since a time.
func (c *collector) pushed(sender string, since time.Time) (some []*compare.Push, err error) {
	requests, err := compare.ReadMetrics(c.file(sender, "metrics"))
	if err != nil {
		return nil, err
	}
	for _, push := range compare.Pushes(requests) {
		if push.Snapshot.After(since) {
			some = append(some, push)
		}
	}
	return some, nil
}

// waitAgreement waits until a push equals a page of the sender: each family of
// either has the same values, units, start times and labels.
func (s *sender) waitAgreement(t *testing.T, c *collector, naming string) {
	t.Helper()
	s.waitAgreementSince(t, c, naming, time.Time{})
}

// waitAgreementSince does the same and ignores pushes before a time.
func (s *sender) waitAgreementSince(t *testing.T, c *collector, naming string, since time.Time) {
	t.Helper()
	pages := s.recordPages(t)
	s.waitCheck(t, "a push of "+s.name+" that is as a page", func() error {
		pushes, err := c.pushed(s.name, since)
		if err != nil {
			return err
		}
		push, err := compare.Find(pages.all(), pushes, namingOf(naming))
		if err == nil {
			err = s.checkResource(push.Resource)
		}
		return err
	})
}

// waitCheck calls check for as long as several pushes take, and fails the test
// with its last error.
func (s *sender) waitCheck(t *testing.T, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var last error
	err := cluster.Eventually(ctx, what, func(context.Context) error {
		err := check()
		// recentPages drops old pages, so that a later error may only be that
		// nothing can be compared. The earlier difference is more helpful.
		if last == nil || !errors.Is(err, compare.ErrNoPush) {
			last = err
		}
		return err
	})
	if err != nil {
		t.Fatalf("%v\n%v", err, last)
	}
}

// checkResource returns an error unless the resource identifies the sender, as
// the scrape's job and instance do.
func (s *sender) checkResource(resource map[string]string) error {
	var errs []error
	want := map[string]string{"service.name": "dra-exporter", "k8s.cluster.name": s.name, "service.instance.id": "cluster"}
	if s.node != "" {
		want["service.instance.id"], want["k8s.node.name"] = s.node, s.node
	}
	for name, value := range want {
		if resource[name] != value {
			errs = append(errs, fmt.Errorf("the resource says that %s is %q, not %q", name, resource[name], value))
		}
	}
	if resource["service.version"] == "" {
		errs = append(errs, errors.New("the resource does not say which version it is"))
	}
	return errors.Join(errs...)
}

// recentPages has the pages of a sender of the last twenty seconds. A push may
// be retried for ten of them.
type recentPages struct {
	lock  sync.Mutex
	pages []*compare.Page
}

// recordPages keeps the sender's pages until the test ends. It reads four a
// second, so that it has one of each snapshot.
func (s *sender) recordPages(t *testing.T) *recentPages {
	a := &recentPages{}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if page, err := compare.Scrape(ctx, s.url+"metrics"); err == nil {
				a.add(page)
			}
			select {
			case <-ctx.Done():
			case <-time.After(250 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return a
}

func (a *recentPages) add(page *compare.Page) {
	const most = 80
	a.lock.Lock()
	defer a.lock.Unlock()
	a.pages = append(a.pages, page)
	a.pages = a.pages[max(0, len(a.pages)-most):]
}

func (a *recentPages) all() []*compare.Page {
	a.lock.Lock()
	defer a.lock.Unlock()
	return append([]*compare.Page(nil), a.pages...)
}
