package otlp

import (
	"crypto/tls"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/ratelog"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

func (p *pushing) failed(t *testing.T, times float64) {
	t.Helper()
	until(t, "pushes have failed", func() bool { return p.exports(t, resultFailure) >= times })
	if up, there := p.value(t, "dra_exporter_otlp_up", signalMetrics); up != 0 || !there {
		t.Errorf("dra_exporter_otlp_up is %g, there: %t", up, there)
	}
}

// recovers checks that the next push brings what the failed ones did not, and
// what is said of it.
func (p *pushing) recovers(t *testing.T, value float64) {
	t.Helper()
	p.set(value)
	p.arrives(t, value)
	until(t, "the log says that it works again", func() bool { return len(p.logged.with("push works again")) > 0 })
	if up, _ := p.value(t, "dra_exporter_otlp_up", signalMetrics); up != 1 {
		t.Errorf("dra_exporter_otlp_up is %g", up)
	}
	if last, _ := p.value(t, "dra_exporter_otlp_last_success_timestamp_seconds", signalMetrics); time.Since(time.Unix(int64(last), 0)) > time.Hour {
		t.Errorf("the last success was at %f", last)
	}
	p.checkLogged(t, 1, 1)
}

func TestCollectorAbsentAtStart(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, func(s *setting) { s.Dead = true })
		p.failed(t, 3)
		if line := p.logged.with("push fails")[0]; !strings.Contains(line, "connection refused") || !strings.Contains(line, p.collector.Address(protocol)) {
			t.Errorf("the log names neither reason nor endpoint: %s", line)
		}
		if _, there := p.value(t, "dra_exporter_otlp_last_success_timestamp_seconds"); there {
			t.Error("there is a last success, and nothing ever arrived")
		}
		if err := p.collector.Restart(); err != nil {
			t.Fatal(err)
		}
		p.recovers(t, 7)
	})
}

func TestCollectorDiesAndReturns(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, nil)
		p.arrives(t, 1)
		p.collector.Stop()
		p.set(2)
		p.failed(t, 3)
		if err := p.collector.Restart(); err != nil {
			t.Fatal(err)
		}
		p.recovers(t, 3)
		if p.stands(t, p.collector.Metrics(), 2) {
			t.Error("a rejected push has arrived")
		}
	})
}

func TestCollectorRefuses(t *testing.T) {
	answers := map[string]otelcollector.Answer{
		"exhausted for a while":    {Code: codes.ResourceExhausted, Message: "memory limit", RetryAfter: 10 * time.Millisecond},
		"exhausted":                {Code: codes.ResourceExhausted, Message: "memory limit"},
		"unavailable":              {Code: codes.Unavailable, Message: "shutting down"},
		"invalid":                  {Code: codes.InvalidArgument, Message: "what is this"},
		"unauthenticated":          {Code: codes.Unauthenticated, Message: "who are you"},
		"the connection is broken": {Code: codes.Unavailable, Break: true},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			protocols(t, func(t *testing.T, protocol string) {
				p := startPushing(t, protocol, nil)
				p.arrives(t, 1)
				p.collector.Answer(otelcollector.Always(answer))
				p.set(2)
				p.failed(t, 2)
				// Where an export is tried again, it may end by its timeout.
				saysWhy := !answer.Break && answer.RetryAfter == 0
				if line := p.logged.with("push fails")[0]; saysWhy && !strings.Contains(line, answer.Message) {
					t.Errorf("the log does not say what the collector said: %s", line)
				}
				p.collector.Answer(nil)
				p.recovers(t, 3)
			})
		})
	}
}

// A collector that asks for a pause longer than the interval is not called in it.
func TestCollectorWantsToBeLeftAlone(t *testing.T) {
	const rest = time.Second // the smallest of HTTP
	protocols(t, func(t *testing.T, protocol string) {
		var mu sync.Mutex
		var came []time.Time
		refuse := func(otelcollector.Request) otelcollector.Answer {
			mu.Lock()
			defer mu.Unlock()
			came = append(came, time.Now())
			return otelcollector.Answer{Code: codes.ResourceExhausted, Message: "slowly", RetryAfter: rest}
		}
		p := startPushing(t, protocol, nil)
		p.arrives(t, 1)
		p.collector.Answer(refuse)
		p.failed(t, 2)
		p.collector.Answer(nil)
		p.recovers(t, 2)
		mu.Lock()
		defer mu.Unlock()
		if pause := came[1].Sub(came[0]); pause < rest {
			t.Errorf("the collector was asked again after %v, it wanted %v", pause, rest)
		}
	})
}

// It is left alone at the end, too.
func TestCollectorIsLeftAloneAtTheEnd(t *testing.T) {
	p := startPushing(t, settings.ProtocolGRPC, nil)
	p.arrives(t, 1)
	p.collector.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.ResourceExhausted, RetryAfter: time.Hour}))
	p.failed(t, 1)
	before := p.collector.Counts().Requests
	p.finish()
	if after := p.collector.Counts().Requests; after != before {
		t.Errorf("it was asked %d times more", after-before)
	}
}

// While the collector hangs there is one request in flight, a scrape is
// answered, and afterwards all goes on.
func TestCollectorHangs(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, nil)
		p.arrives(t, 1)
		p.collector.Answer(otelcollector.Always(otelcollector.Answer{Hang: true}))
		until(t, "a request hangs", func() bool { return p.collector.Counts().InFlight == 1 })
		if _, err := p.registry.Gather(); err != nil {
			t.Errorf("scrape while a push hangs: %v", err)
		}
		p.set(2)
		p.failed(t, 2)
		p.collector.Answer(nil)
		p.recovers(t, 3)
		if most := p.collector.Counts().MostInFlight; most != 1 {
			t.Errorf("%d requests were in flight at once", most)
		}
	})
}

func TestTLSOfTheWrongKind(t *testing.T) {
	collector, trusting := secret(t)
	_, trustingAnother := secret(t)
	cases := []struct {
		name              string
		collector, client *tls.Config
		want              map[string]string // by protocol
	}{
		{"plaintext to TLS", collector, nil, map[string]string{settings.ProtocolGRPC: "https://", settings.ProtocolHTTP: "https://"}},
		{"TLS to plaintext", nil, trusting, map[string]string{settings.ProtocolGRPC: "does not use TLS", settings.ProtocolHTTP: "does not use TLS"}},
		{"an authority that is not trusted", collector, trustingAnother, map[string]string{
			settings.ProtocolGRPC: "unknown authority", settings.ProtocolHTTP: "unknown authority"}},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			protocols(t, func(t *testing.T, protocol string) {
				p := startPushing(t, protocol, func(s *setting) {
					s.Collector.TLS = test.collector
					s.Settings.Metrics.Insecure, s.Settings.Metrics.TLS = test.client == nil, test.client
				})
				p.failed(t, 2)
				if line := p.logged.with("push fails")[0]; !strings.Contains(line, test.want[protocol]) {
					t.Errorf("the log does not say %q: %s", test.want[protocol], line)
				}
				p.finish()
				p.checkLogged(t, 1, 0)
			})
		})
	}
}

func TestPushesThroughTLS(t *testing.T) {
	collector, trusting := secret(t)
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, func(s *setting) {
			s.Collector.TLS = collector
			s.Settings.Metrics.Insecure, s.Settings.Metrics.TLS = false, trusting
			s.Settings.Metrics.Timeout = patience
		})
		p.arrives(t, 1)
		p.finish()
		p.checkLogged(t, 0, 0)
	})
}

func TestCollectorRejectsAPart(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, func(s *setting) { s.Settings.Interval = time.Hour })
		p.arrives(t, 1)
		until(t, "the first push is counted", func() bool { return p.exports(t, resultSuccess) == 1 })
		before, _ := p.value(t, "dra_exporter_otlp_sent_total", signalMetrics)
		p.collector.Answer(otelcollector.Always(otelcollector.Answer{Rejected: 3, Message: "too old"}))
		p.finish()
		if got := p.exports(t, resultPartial); got != 1 {
			t.Fatalf("%g exports were taken in part, want 1", got)
		}
		after, _ := p.value(t, "dra_exporter_otlp_sent_total", signalMetrics)
		pushed := p.collector.Metrics()
		if want := float64(allPoints(pushed[len(pushed)-1]) - 3); after-before != want {
			t.Errorf("%g points are counted as sent, want %g", after-before, want)
		}
		if up, _ := p.value(t, "dra_exporter_otlp_up", signalMetrics); up != 1 {
			t.Errorf("dra_exporter_otlp_up is %g", up)
		}
		lines := p.logged.with("rejects a part")
		if len(lines) != 1 || !strings.Contains(lines[0], "too old") || !strings.Contains(lines[0], "rejected=3") {
			t.Errorf("logged:\n%s", p.logged)
		}
	})
}

func TestCollectorTakesSmallMessagesOnly(t *testing.T) {
	p := startPushing(t, settings.ProtocolGRPC, func(s *setting) { s.Collector.LargestMessage = 64 })
	p.failed(t, 2)
	if line := p.logged.with("push fails")[0]; !strings.Contains(line, "max_recv_msg_size_mib") {
		t.Errorf("the log does not say what to do: %s", line)
	}
}

// One request of a push that is refused for good keeps none of the others;
// one that gets no answer is the last of its push.
func TestSomeRequestsOfAPushFail(t *testing.T) {
	start := func(t *testing.T, answer otelcollector.Answer) *pushing {
		second := func(request otelcollector.Request) otelcollector.Answer {
			if pushed := request.Metrics[0]; len(pointsOf(pushed, "dra_test_energy_joules_total")) > 0 && len(pointsOf(pushed, "dra_test_power_watts")) > 0 {
				return answer
			}
			return otelcollector.Answer{}
		}
		p := startPushing(t, settings.ProtocolGRPC, func(s *setting) {
			s.Dead, s.World = true, newPushSource(mostPointsPerRequest*5/4) // three requests
			s.World.newest.Store(nil)
			s.Settings.Interval = time.Hour
			s.Settings.Metrics.Timeout = patience
		})
		p.collector.Answer(second)
		if err := p.collector.Restart(); err != nil {
			t.Fatal(err)
		}
		p.set(1)
		return p
	}
	t.Run("for good", func(t *testing.T) {
		p := start(t, otelcollector.Answer{Code: codes.InvalidArgument})
		until(t, "all requests are counted", func() bool { return p.exports(t, resultSuccess) == 2 && p.exports(t, resultFailure) == 1 })
		p.checkLogged(t, 1, 0)
	})
	t.Run("for a while", func(t *testing.T) {
		p := start(t, otelcollector.Answer{Code: codes.ResourceExhausted, RetryAfter: time.Hour})
		until(t, "a request is refused", func() bool { return p.exports(t, resultFailure) == 1 })
		p.finish()
		if got := p.collector.Counts(); got.Requests != 2 || got.Taken != 1 {
			t.Errorf("the collector was asked %d times and took %d, want 2 and 1", got.Requests, got.Taken)
		}
	})
}

// A collector that accepts every other push does not fill the log.
func TestCollectorTakesEveryOtherPush(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, nil)
		var asked atomic.Int64
		p.collector.Answer(func(otelcollector.Request) otelcollector.Answer {
			if asked.Add(1)%2 == 0 {
				return otelcollector.Answer{}
			}
			return otelcollector.Answer{Code: codes.InvalidArgument, Message: "not this one"}
		})
		until(t, "forty pushes have failed", func() bool { return p.exports(t, resultFailure) >= 40 })
		if n := strings.Count(p.logged.String(), "\n"); n > ratelog.PerMinute {
			t.Errorf("%d lines in the log", n)
		}
	})
}
