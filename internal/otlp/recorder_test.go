package otlp

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

// refused is the error of an export that ends with this HTTP status.
func refused(status int, rest time.Duration) error {
	return &url.Error{Op: "Post", URL: "http://collector/v1/metrics", Err: &responseRefusal{Status: status, RetryAfter: rest}}
}

// recorderTest is a recorder with the test's clock.
type recorderTest struct {
	*recorder
	now    clock.Instant
	logged *lines
}

func newRecorderTest(t *testing.T) *recorderTest {
	t.Helper()
	h := &recorderTest{now: clock.System()(), logged: &lines{}}
	registry := prometheus.NewRegistry()
	metrics, err := newPushMetrics(registry, false)
	if err != nil {
		t.Fatal(err)
	}
	h.recorder = newRecorder(signalMetrics, settings.SignalSettings{Endpoint: "collector:4318", Protocol: settings.ProtocolHTTP}, metrics,
		func() clock.Instant { return h.now }, slog.New(slog.NewTextHandler(h.logged, nil)))
	return h
}

// push records a push of requests with these errors, which takes a second.
func (h *recorderTest) push(outcomes ...error) {
	h.begin()
	for _, outcome := range outcomes {
		h.record(h.now, 10, outcome)
	}
	h.now = h.now.Add(time.Second)
	h.end()
}

// number is the value of a gauge or a counter.
func number(t *testing.T, of prometheus.Metric) float64 {
	t.Helper()
	var message dto.Metric
	if err := of.Write(&message); err != nil {
		t.Fatal(err)
	}
	return message.GetGauge().GetValue() + message.GetCounter().GetValue()
}

func TestLogsOneLineEachWay(t *testing.T) {
	const fails, works, part = "push fails", "push works again", "rejects a part"
	bad, less := refused(http.StatusBadRequest, 0), error(PartialSuccess{ErrorMessage: "too\nold", RejectedItems: 2})
	cases := []struct {
		name   string
		pushes [][]error
		want   []string
	}{
		{"all is well", [][]error{{nil, nil}, {nil}}, nil},
		{"fails", [][]error{{bad, bad}, {bad}}, []string{fails}},
		{"fails and works", [][]error{{bad}, {bad, bad}, {nil, nil}, {nil}}, []string{fails, works}},
		{"one request fails each time", [][]error{{nil, bad, nil}, {nil, bad, nil}}, []string{fails}},
		{"a round of nothing is no success", [][]error{{bad}, {}, {}}, []string{fails}},
		{"fails twice", [][]error{{bad}, {nil}, {bad}, {nil}}, []string{fails, works, fails, works}},
		{"one request is taken in part each time", [][]error{{nil, less, nil}, {nil, less, nil}}, []string{part}},
		{"in part, whole, in part", [][]error{{less}, {nil}, {less}}, []string{part, part}},
		{"taken in part is taken", [][]error{{bad}, {less}}, []string{fails, part, works}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			h := newRecorderTest(t)
			for _, outcomes := range test.pushes {
				h.push(outcomes...)
			}
			logged := h.logged.with("")
			matches := slices.EqualFunc(logged, test.want, strings.Contains)
			if !matches {
				t.Errorf("want lines with %q, got:\n%s", test.want, h.logged)
			}
		})
	}
}

func TestSaysHowLongItFailed(t *testing.T) {
	h := newRecorderTest(t)
	for range 60 {
		h.push(refused(http.StatusBadRequest, 0))
	}
	h.push(nil)
	if lines := h.logged.with("works again"); len(lines) != 1 || !strings.Contains(lines[0], "after=1m1s failed=60") {
		t.Errorf("logged:\n%s", h.logged)
	}
}

// A failure of hours is logged again, with the present error.
func TestRemindsOfFailing(t *testing.T) {
	h := newRecorderTest(t)
	h.push(errors.New("no such host"))
	for range int(logInterval/time.Second) - 1 {
		h.push(errors.New("no such tenant"))
	}
	if lines := h.logged.with(""); len(lines) != 1 {
		t.Fatalf("logged:\n%s", h.logged)
	}
	for range 10 {
		h.push(errors.New("no such tenant"))
	}
	lines := h.logged.with("push still fails")
	if len(lines) != 1 || !strings.Contains(lines[0], "no such tenant") || !strings.Contains(lines[0], "for=30m0s failed=1801") {
		t.Errorf("logged:\n%s", h.logged)
	}
}

// A push of which one request fails each time is not up, whichever it is.
func TestUpIsAllOfAPush(t *testing.T) {
	bad := refused(http.StatusBadRequest, 0)
	for want, pushes := range map[float64][][][]error{
		0: {{{bad}}, {{nil}, {bad, nil, nil}}, {{nil, nil, bad}}, {{nil}, {bad, nil}, {}}},
		1: {{{nil}}, {{bad}, {nil, nil}}, {{nil}, {}}, {{PartialSuccess{RejectedItems: 1}}}},
	} {
		for _, outcomes := range pushes {
			h := newRecorderTest(t)
			for _, round := range outcomes {
				h.push(round...)
			}
			if got := number(t, h.metrics.all.up.WithLabelValues(signalMetrics)); got != want {
				t.Errorf("after %v it is up: %g, want %g", outcomes, got, want)
			}
		}
	}
}

// Whatever number a collector claims to reject, no more and no less was sent than
// there was.
func TestRejectsNonsense(t *testing.T) {
	for rejected, want := range map[int64]float64{-5: 10, math.MinInt64: 10, 3: 7, 11: 0, math.MaxInt64: 0} {
		h := newRecorderTest(t)
		h.push(PartialSuccess{RejectedItems: rejected})
		if got := number(t, h.metrics.all.sent.WithLabelValues(signalMetrics)); got != want {
			t.Errorf("of 10 points %d are rejected, and %g are counted as sent", rejected, got)
		}
	}
}

func TestLeavesTheCollectorAlone(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{0: 0, time.Minute: time.Minute, 24 * time.Hour: longestPause} {
		h := newRecorderTest(t)
		h.begin()
		h.record(h.now, 10, refused(http.StatusTooManyRequests, asked))
		h.begin() // the next round
		if got := h.pause(); got != want || h.allowed() != (want == 0) {
			t.Errorf("asked to for %v it rests %v, wanted: %t", asked, got, h.allowed())
		}
		h.now = h.now.Add(want)
		if !h.allowed() || h.pause() != 0 {
			t.Errorf("after %v it rests for %v more", want, h.pause())
		}
	}
}

// scripted is an exporter that returns the errors of the test.
type scripted struct {
	sdkmetric.Exporter
	outcome func(context.Context) error
	calls   int
}

func (e *scripted) Export(ctx context.Context, _ *metricdata.ResourceMetrics) error {
	e.calls++
	return e.outcome(ctx)
}

func onePoint() *metricdata.ResourceMetrics {
	return &metricdata.ResourceMetrics{ScopeMetrics: []metricdata.ScopeMetrics{{Metrics: []metricdata.Metrics{{
		Data: metricdata.Gauge[float64]{DataPoints: make([]metricdata.DataPoint[float64], 1)}}}}}}
}

// After a request that may succeed later the rest of the push is left out;
// after one that never will it is not.
func TestGivesUpARound(t *testing.T) {
	for status, want := range map[int]int{http.StatusServiceUnavailable: 1, http.StatusBadRequest: 3} {
		h := newRecorderTest(t)
		inner := &scripted{outcome: func(context.Context) error { return refused(status, 0) }}
		watched := &recordedMetrics{Exporter: inner, recorder: h.recorder}
		for round := 1; round <= 2; round++ {
			h.begin()
			for range 3 {
				if err := watched.Export(t.Context(), onePoint()); err != nil {
					t.Errorf("the SDK is passed %v", err)
				}
			}
			if inner.calls != round*want {
				t.Errorf("after %d, %d requests were made in %d pushes", status, inner.calls, round)
			}
		}
	}
}

// What is cancelled at the end is neither counted nor logged, and what comes
// after that is not tried.
func TestCancelledExportsSayNothing(t *testing.T) {
	h := newRecorderTest(t)
	ctx, cancel := context.WithCancel(t.Context())
	inner := &scripted{outcome: func(ctx context.Context) error { cancel(); return ctx.Err() }}
	watched := &recordedMetrics{Exporter: inner, recorder: h.recorder}
	for range 2 {
		if err := watched.Export(ctx, onePoint()); err != nil {
			t.Errorf("the SDK is passed %v", err)
		}
	}
	h.end()
	if inner.calls != 1 || h.logged.String() != "" {
		t.Errorf("%d requests, logged:\n%s", inner.calls, h.logged)
	}
	h.begin()
	if !h.allowed() {
		t.Error("the last push is not wanted any more")
	}
}

func TestPushesStayOnTheirGrid(t *testing.T) {
	h := newRecorderTest(t)
	p := &Pusher{options: Options{Clock: func() clock.Instant { return h.now }, Settings: settings.Settings{Interval: 10 * time.Second}},
		metrics: &recordedMetrics{recorder: h.recorder}}
	began := h.now
	for took, want := range map[time.Duration]time.Duration{0: 10 * time.Second, 3 * time.Second: 7 * time.Second, 10 * time.Second: 10 * time.Second, 34 * time.Second: 6 * time.Second} {
		h.now = began.Add(took)
		if got := p.untilNext(began); got != want {
			t.Errorf("after a push of %v the next comes in %v, want %v", took, got, want)
		}
	}
	h.begin()
	h.record(h.now, 1, refused(http.StatusTooManyRequests, 25*time.Second))
	if got := p.untilNext(h.now); got != 25*time.Second {
		t.Errorf("asked to rest 25 s, the next comes in %v", got)
	}
}

// The metrics about pushing are those that the documentation is made from.
func TestMetricsAboutPushingAreDocumented(t *testing.T) {
	p := startPushing(t, settings.ProtocolGRPC, func(s *setting) {
		s.Settings.Traces = s.Settings.Metrics
		s.Settings.Traces.Timeout = patience
	})
	p.arrives(t, 1)
	p.Trace([]trace.Trace{lifecycle(1)})
	until(t, "both signals are up", func() bool {
		metrics, _ := p.value(t, "dra_exporter_otlp_up", signalMetrics)
		traces, _ := p.value(t, "dra_exporter_otlp_up", signalTraces)
		return metrics+traces == 2
	})
	gathered, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]string{}
	for _, family := range self.NewPushFamilies().All() {
		missing[family.Name] = family.Help + "/" + family.Type.String() + "/" + strings.Join(slices.Sorted(slices.Values(family.Labels)), ",")
	}
	for _, family := range gathered {
		var labels []string
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, pair.GetName())
		}
		got := family.GetHelp() + "/" + strings.ToLower(family.GetType().String()) + "/" + strings.Join(labels, ",")
		if want := missing[family.GetName()]; got != want {
			t.Errorf("%s is %q, documented as %q", family.GetName(), got, want)
		}
		delete(missing, family.GetName())
	}
	if len(missing) > 0 {
		t.Errorf("not there: %v", slices.Sorted(maps.Keys(missing)))
	}
	if family := gathered[slices.IndexFunc(gathered, isDuration)]; len(family.GetMetric()[0].GetHistogram().GetPositiveSpan()) == 0 || len(family.GetMetric()[0].GetHistogram().GetBucket()) == 0 {
		t.Error("the durations are not both classic and native")
	}
}

func isDuration(family *dto.MetricFamily) bool {
	return family.GetName() == "dra_exporter_otlp_export_duration_seconds"
}

func TestRegistersOnce(t *testing.T) {
	options := Options{Settings: settings.Settings{Interval: time.Second, Metrics: settings.SignalSettings{On: true, Protocol: settings.ProtocolGRPC, Endpoint: "127.0.0.1:1", Insecure: true, Timeout: time.Second}},
		Registry: prometheus.NewRegistry(), Clock: clock.System(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Snapshot: newPushSource(1).snapshot}
	first, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	first.Run(ended)
	var already prometheus.AlreadyRegisteredError
	if _, err := New(t.Context(), options); !errors.As(err, &already) {
		t.Errorf("a second pusher with the same registry: %v", err)
	}
}

// A warning with a full success rejects nothing.
func TestAWarningIsNoRejection(t *testing.T) {
	h := newRecorderTest(t)
	h.push(PartialSuccess{ErrorMessage: "an old schema"})
	h.push(PartialSuccess{ErrorMessage: "an old schema"})
	exports := h.metrics.all.exports
	if taken, part := number(t, exports.WithLabelValues(signalMetrics, resultSuccess)), number(t, exports.WithLabelValues(signalMetrics, resultPartial)); taken != 2 || part != 0 {
		t.Errorf("%g exports count as taken and %g as taken in part, want 2 and none", taken, part)
	}
	if lines := h.logged.with("with a warning"); len(lines) != 1 || len(h.logged.with("rejects")) != 0 {
		t.Errorf("logged:\n%s", h.logged)
	}
}
