package tpu

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/tpu/runtimemetrics"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeLibtpu answers in place of libtpu, over gRPC.
type fakeLibtpu struct {
	runtimemetrics.UnimplementedRuntimeMetricServiceServer
	answer func(ctx context.Context, metric string) (*runtimemetrics.MetricResponse, error)
}

func (f *fakeLibtpu) GetRuntimeMetric(ctx context.Context, request *runtimemetrics.MetricRequest) (*runtimemetrics.MetricResponse, error) {
	return f.answer(ctx, request.GetMetricName())
}

// serve runs a fake until stop is called, and returns its address.
func serve(t *testing.T, address string, answer func(context.Context, string) (*runtimemetrics.MetricResponse, error)) (_ string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.MaxSendMsgSize(16 << 20))
	if answer != nil {
		runtimemetrics.RegisterRuntimeMetricServiceServer(server, &fakeLibtpu{answer: answer})
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(listener) }()
	stop = func() { server.Stop(); <-ended }
	t.Cleanup(stop)
	return listener.Addr().String(), stop
}

// twoChips are two chips at work.
func twoChips(_ context.Context, metric string) (*runtimemetrics.MetricResponse, error) {
	switch metric {
	case dutyCycle:
		return response(double(0, 40), double(1, 60)), nil
	case memoryUsage:
		return response(integer(0, 1<<30), integer(1, 2<<30)), nil
	case memoryTotal:
		return response(integer(0, 16<<30), integer(1, 16<<30)), nil
	}
	return nil, status.Error(codes.NotFound, metric)
}

func newSource(t *testing.T, addresses ...string) *Source {
	t.Helper()
	sysfs := t.TempDir()
	if err := os.MkdirAll(filepath.Join(sysfs, "class/accel/accel1"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Addresses: addresses, Sysfs: sysfs, Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// readersOf lists the readers as the sampler does.
func readersOf(t *testing.T, s *Source) []device.Reader {
	t.Helper()
	readers, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return readers
}

// Services come and go with workloads. None is there at first, and that is no error.
func TestServicesComeAndGo(t *testing.T) {
	address, stop := serve(t, "127.0.0.1:0", twoChips)
	stop()
	s := newSource(t, address)
	if readers := readersOf(t, s); len(readers) != 0 || s.Name() != "tpu" || s.LookEvery() != 5*time.Second {
		t.Fatalf("got %v before a workload runs", readers)
	}
	_, stop = serve(t, address, twoChips)
	readers := readersOf(t, s)
	if len(readers) != 1 || readers[0].Key() != address {
		t.Fatalf("got %v", readers)
	}
	if again := readersOf(t, s); len(again) != 1 || again[0] != readers[0] {
		t.Errorf("another reader: %v", again)
	}
	chips, err := readers[0].Read(t.Context(), device.Fast)
	want := []string{
		"0 memory_size 1.7179869184e+10", "0 memory_used 1.073741824e+09", "0 utilization 0.4",
		"accel1 memory_size 1.7179869184e+10", "accel1 memory_used 2.147483648e+09", "accel1 utilization 0.6",
	}
	if got := linesOf(chips); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	published := device.PublishedName{Driver: "tpu.google.com", Device: "accel1"}
	if d := chips[1].Device; d.Published != published || d.Vendor != "google" {
		t.Errorf("got %+v", d)
	}
	stop()
	if readers := readersOf(t, s); len(readers) != 0 {
		t.Errorf("got %v after the workload", readers)
	}
}

func TestWrongServices(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(context.Context, string) (*runtimemetrics.MetricResponse, error)
		want   string
		reason source.Reason
	}{
		"another service": {nil, "unknown service tpu.monitoring.runtime.RuntimeMetricService", source.ReasonOther},
		"hangs": {func(ctx context.Context, _ string) (*runtimemetrics.MetricResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "DeadlineExceeded", source.ReasonTimeout},
		"too large": {func(context.Context, string) (*runtimemetrics.MetricResponse, error) {
			return &runtimemetrics.MetricResponse{Metric: &runtimemetrics.TPUMetric{Name: strings.Repeat("x", maxResponse+1)}}, nil
		}, "received message larger than max", source.ReasonResourceExhausted},
		"empty entries": {func(context.Context, string) (*runtimemetrics.MetricResponse, error) {
			return &runtimemetrics.MetricResponse{Metric: &runtimemetrics.TPUMetric{Metrics: slices.Repeat([]*runtimemetrics.Metric{{}}, maxEntries)}}, nil
		}, "the message has more than 10000 entries", source.ReasonOther},
		"an error": {func(context.Context, string) (*runtimemetrics.MetricResponse, error) {
			return nil, status.Error(codes.Internal, "no TPU")
		}, "no TPU", source.ReasonOther},
		"a wrong value": {func(context.Context, string) (*runtimemetrics.MetricResponse, error) {
			return response(double(0, -1)), nil
		}, "the value of the device 0 is -1", source.ReasonInvalid},
		"no chips": {func(context.Context, string) (*runtimemetrics.MetricResponse, error) { return response(), nil }, "0 duty cycles", source.ReasonOther},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, _ := serve(t, "127.0.0.1:0", c.answer)
			readers := readersOf(t, newSource(t, address))
			if len(readers) != 1 {
				t.Fatalf("got %v", readers)
			}
			chips, err := readers[0].Read(t.Context(), device.Fast)
			if len(chips) != 0 || err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), address) || source.ReasonOf(err) != c.reason {
				t.Errorf("got %v, %v (%s); want %s (%s)", chips, err, source.ReasonOf(err), c.want, c.reason)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "8431", "tpu-1:8431", "http://localhost:8431", "localhost"} {
		if _, err := New(Options{Addresses: []string{address}}); err == nil || !strings.Contains(err.Error(), "is not HOST:PORT with an IP address of this node or localhost") {
			t.Errorf("%q: got %v", address, err)
		}
	}
	if _, err := New(Options{Addresses: make([]string, maxServices+1)}); err == nil {
		t.Error("too many addresses")
	}
	for _, address := range []string{"localhost:8431", "127.0.0.1:8431", "[::1]:8431"} {
		if _, err := New(Options{Addresses: []string{address}}); err != nil {
			t.Errorf("%q: got %v", address, err)
		}
	}
}

// flood serves connections that consist of a frame again and again, and counts them.
func flood(t *testing.T, frame []byte) (address string, connections, sent *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections, sent = &atomic.Int64{}, &atomic.Int64{}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			serving.Go(func() {
				defer connection.Close()
				serving.Go(func() { _, _ = io.Copy(io.Discard, connection) })
				_ = http2.NewFramer(connection, nil).WriteSettings() // if it fails, so does the next
				for {
					n, err := connection.Write(frame)
					if sent.Add(int64(n)); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	return listener.Addr().String(), connections, sent
}

// A service that sends frames without an answer is disconnected, and read less often.
func TestFloods(t *testing.T) {
	for name, write := range map[string]func(*http2.Framer) error{
		"pings":            func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) },
		"answers to pings": func(f *http2.Framer) error { return f.WritePing(true, [8]byte{}) },
		"settings": func(f *http2.Framer) error {
			return f.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16 << 10})
		},
		"windows":            func(f *http2.Framer) error { return f.WriteWindowUpdate(0, 1) },
		"empty data":         func(f *http2.Framer) error { return f.WriteData(1, false, nil) },
		"data of no stream":  func(f *http2.Framer) error { return f.WriteData(77, false, make([]byte, 100)) },
		"resets":             func(f *http2.Framer) error { return f.WriteRSTStream(77, http2.ErrCodeCancel) },
		"an unknown type":    func(f *http2.Framer) error { return f.WriteRawFrame(77, 0, 0, make([]byte, 16)) },
		"continued headings": func(f *http2.Framer) error { return f.WriteContinuation(1, false, make([]byte, 10)) },
		"GOAWAY":             func(f *http2.Framer) error { return f.WriteGoAway(1<<31-1, 0, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var frame bytes.Buffer
			if err := write(http2.NewFramer(&frame, nil)); err != nil {
				t.Fatal(err)
			}
			address, connections, sent := flood(t, frame.Bytes())
			var elapsed atomic.Int64
			s := &service{address: address, options: Options{Clock: func() clock.Instant { return clock.Instant{Elapsed: time.Duration(elapsed.Load())} }}}
			refused := 0
			for second := range 30 {
				elapsed.Store(int64(second) * int64(time.Second))
				chips, err := s.Read(t.Context(), device.Fast)
				if len(chips) != 0 || err == nil || !strings.Contains(err.Error(), "libtpu at "+address) {
					t.Fatalf("got %v, %v", chips, err)
				}
				if source.ReasonOf(err) == source.ReasonResourceExhausted {
					refused++
				}
			}
			// In 30 s there are reads at 0, 2, 6 and 14 s, of some connections each; what
			// was sent is what was read and what the kernel buffers. On a busy machine the
			// connection may end before it has cost too much: by the protocol, or at its limit
			// of time.
			n := connections.Load()
			if refused == 30 && n > 4*16 || sent.Load() > n*(16<<20) {
				t.Errorf("%d connections, %d bytes, %d reads refused", n, sent.Load(), refused)
			}
			if refused == 0 && name != "continued headings" {
				t.Error("no read was refused for what it cost")
			}
		})
	}
}
