package otelcol

import (
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/dra-exporter/dra-exporter/test/suites/otelcol/compare"
)

// TestSameAsThePage: every family of both roles' pages arrives at a real
// collector, with equal values, units, kinds, start times and label sets, and
// no other data; in both namings, by both protocols, and after a restart of
// the program.
func TestSameAsThePage(t *testing.T) {
	b := startBackend(t, clusterName)
	for _, naming := range []string{"prometheus", "semconv"} {
		for _, protocol := range []string{"grpc", "http/protobuf"} {
			t.Run(naming+" "+protocol, func(t *testing.T) {
				t.Parallel()
				cluster := naming + "-" + strings.ReplaceAll(protocol, "/", "-")
				arguments := []string{
					"--otlp.endpoint=http://" + map[string]string{"grpc": b.grpc, "http/protobuf": b.http}[protocol],
					"--otlp.protocol=" + protocol, "--otlp.naming=" + naming, "--otlp.cluster-name=" + cluster, "--metrics.dcgm=split",
				}
				first := startDemo(t, arguments...)
				first.waitSame(t, b, cluster, naming)
				first.end()
				again := time.Now()
				startDemo(t, arguments...).waitSame(t, b, cluster, naming)
				checkStartTimes(t, b, cluster, again)
			})
		}
	}
}

func names(naming string) *compare.Naming {
	if naming == "semconv" {
		return compare.Semantic()
	}
	return compare.Prometheus()
}

// waitSame waits until a push of each role equals a page of the role.
func (d *demo) waitSame(t *testing.T, b *backend, cluster, naming string) {
	t.Helper()
	for _, r := range d.roles {
		resource := map[string]string{"service.instance.id": r.instance}
		eventually(t, "a push of the "+r.name+" role that is the same as its page", func() error {
			stop := r.pages(t)
			time.Sleep(3 * time.Second)
			pages := stop()
			push, err := compare.Find(pages, compare.Pushes(b.metrics(t, cluster, resource)), names(naming))
			if err == nil {
				t.Logf("%s role: %s is the same as the page, %d families in %d points", r.name, push, len(pages[0].Families), push.Points())
				r.resource(t, cluster, push)
			}
			return err
		})
	}
}

// resource fails the test unless the push's resource identifies the role.
func (r role) resource(t *testing.T, cluster string, push *compare.Push) {
	t.Helper()
	want := map[string]string{"service.name": "dra-exporter", "service.instance.id": r.instance, clusterName: cluster, "k8s.node.name": ""}
	if r.name == "node" {
		want["k8s.node.name"] = r.instance
	}
	for name, value := range want {
		if push.Resource[name] != value {
			t.Errorf("%s role: %s is %q and not %q", r.name, name, push.Resource[name], value)
		}
	}
	if push.Resource["service.version"] == "" {
		t.Errorf("%s role: no service.version in %v", r.name, push.Resource)
	}
}

// checkStartTimes fails the test if a counter that was pushed after the second
// start has a start time before it.
func checkStartTimes(t *testing.T, b *backend, cluster string, again time.Time) {
	t.Helper()
	known := 0
	for _, request := range b.metrics(t, cluster, nil) {
		for _, of := range request.ResourceMetrics().All() {
			for _, scope := range of.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					known += beganAfter(t, m, again)
				}
			}
		}
	}
	if known == 0 {
		t.Error("no counter says when it began")
	}
}

func beganAfter(t *testing.T, m pmetric.Metric, again time.Time) (known int) {
	t.Helper()
	if m.Type() != pmetric.MetricTypeSum {
		return 0
	}
	for _, p := range m.Sum().DataPoints().All() {
		if p.StartTimestamp() == 0 || p.Timestamp() < pcommon.NewTimestampFromTime(again) {
			continue
		}
		known++
		if p.StartTimestamp().AsTime().Before(again) {
			t.Errorf("%s%v began at %s, before the program did at %s", m.Name(), p.Attributes().AsRaw(), p.StartTimestamp().AsTime(), again)
		}
	}
	return known
}
