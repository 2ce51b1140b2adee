package otlp

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// Run returns whatever the collector does. It promises two seconds; here it
// gets half a minute, for machines that are busy, and every timeout is a minute.
func TestEndsSoon(t *testing.T) {
	slow := func(s *setting) {
		s.Settings.Metrics.Timeout = time.Minute
		s.Settings.Traces = s.Settings.Metrics
	}
	end := func(t *testing.T, p *pushing) {
		p.Trace(lifecycles(0, 10))
		took := p.finish()
		t.Logf("it took %v", took)
		if took > 30*time.Second {
			t.Errorf("Run returned %v after the end", took)
		}
	}
	protocols(t, func(t *testing.T, protocol string) {
		t.Run("hanging", func(t *testing.T) {
			p := startPushing(t, protocol, slow)
			p.collector.Answer(otelcollector.Always(otelcollector.Answer{Hang: true}))
			until(t, "a request hangs", func() bool { return p.collector.Counts().InFlight > 0 })
			end(t, p)
		})
		t.Run("absent", func(t *testing.T) {
			p := startPushing(t, protocol, func(s *setting) { slow(s); s.Dead = true })
			until(t, "it has looked for a snapshot", func() bool { return p.looks.Load() > 1 })
			end(t, p)
			if lost, _ := p.value(t, "dra_exporter_otlp_dropped_traces_total", reasonShutdown); lost != 10 {
				t.Errorf("%g traces are counted as lost, want 10", lost)
			}
			if lines := p.logged.with("before shutdown"); len(lines) != 1 {
				t.Errorf("the lost traces are not logged:\n%s", p.logged)
			}
		})
		t.Run("silent", func(t *testing.T) {
			silent := listenSilently(t)
			p := startPushing(t, protocol, func(s *setting) {
				slow(s)
				s.Elsewhere = silent
				s.Settings.Metrics.Insecure, s.Settings.Metrics.TLS = false, &tls.Config{MinVersion: tls.VersionTLS12}
			})
			until(t, "it has looked for a snapshot", func() bool { return p.looks.Load() > 1 })
			end(t, p)
		})
	})
}

// listenSilently accepts connections and sends nothing.
func listenSilently(t *testing.T) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String() // the kernel accepts
}

// Two thousand pushes that are not accepted leave nothing behind. What one has in
// its hands while it is looked varies by some MiB; a request that each left
// would make dozens.
func TestMemoryIsBoundedWhileTheCollectorRefuses(t *testing.T) {
	protocols(t, func(t *testing.T, protocol string) {
		p := startPushing(t, protocol, func(s *setting) {
			s.Settings.Interval = time.Microsecond
			s.World = newPushSource(20)
			s.World.set(1)
			s.Collector.Keep = 1
			s.Settings.Metrics.Timeout = patience
		})
		p.collector.Answer(otelcollector.Always(otelcollector.Answer{Code: codes.InvalidArgument}))
		p.failed(t, 200)
		before := heapInUse()
		p.failed(t, 2200)
		after := heapInUse()
		t.Logf("%d KiB live after 200 pushes, %d KiB after 2,200", before>>10, after>>10)
		if after > before+8<<20 {
			t.Errorf("the heap has grown from %d to %d bytes", before, after)
		}
		if most := p.collector.Counts().MostInFlight; most != 1 {
			t.Errorf("%d requests were in flight at once", most)
		}
	})
}
