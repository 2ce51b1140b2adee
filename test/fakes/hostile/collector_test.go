package hostile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

const (
	collectorHeapLimit  = 8 << 20          // bytes of heap for each pusher and its collector
	collectorGoroutines = 60               // for each pusher and its collector
	collectorAttackTime = 4 * time.Second  // duration of the attack
	collectorEndLimit   = 10 * time.Second // within which Run must end. It promises two seconds, but many run in parallel here.
	collectorHuge       = 64 << 20         // bytes of an answer

	collectorOK = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
)

// TestHostileCollectors runs collectors that do not accept what is pushed, by
// HTTP and by gRPC. The queue keeps its limit, goroutines and memory do not
// accumulate, the log stays short, Run ends in time, and every lost trace is
// counted.
func TestHostileCollectors(t *testing.T) {
	pushers := make(map[string]*collectorPusher)
	huge := collectorHugeAnswer(t)
	idle, before := collectorHeap(), runtime.NumGoroutine()
	for name, answer := range collectorHTTPAnswers(t, huge) {
		pushers["http: "+name] = startCollectorPusher(t, collectorLight(), "http/protobuf", collectorServe(t, func(c net.Conn) { collectorHTTP(c, answer) }))
	}
	for name, answer := range collectorGRPCAnswers(t) {
		pushers["grpc: "+name] = startCollectorPusher(t, collectorLight(), "grpc", collectorServe(t, func(c net.Conn) { collectorGRPC(c, answer) }))
	}
	for name, protocol := range map[string]string{"http": "http/protobuf", "grpc": "grpc"} {
		pushers[name+": closes connections"] = startCollectorPusher(t, collectorLight(), protocol, collectorServe(t, func(net.Conn) {}))
	}
	time.Sleep(collectorAttackTime / 2)
	early := runtime.NumGoroutine()
	time.Sleep(collectorAttackTime / 2)
	late, heap := runtime.NumGoroutine(), collectorHeap()-idle
	t.Logf("%d pushers: %d MiB of heap, %d goroutines, %d before, %d at half the time", len(pushers), heap>>20, late, before, early)
	if late > early+5*len(pushers) || late > before+collectorGoroutines*len(pushers) {
		t.Errorf("there were %d goroutines at first, then %d and %d", before, early, late)
	}
	if heap > int64(len(pushers))*collectorHeapLimit {
		t.Errorf("they take %d MiB", heap>>20)
	}
	for _, p := range pushers {
		p.sample(t)
		p.stop()
	}
	stopped := time.Now()
	for _, p := range pushers {
		<-p.ended
	}
	if took := time.Since(stopped); took > collectorEndLimit {
		t.Errorf("they took %v to end", took)
	}
	for name, p := range pushers {
		t.Run(name, p.check)
	}
}

// TestHostileCollectorsUnderLoad: a pusher of a dense node, with a queue of
// the default size and two thousand traces at a time, keeps the same limits
// when the collector does not read, answers endlessly as fast as it can, or
// sends long messages.
func TestHostileCollectorsUnderLoad(t *testing.T) {
	const room = 96 << 20 // bytes that are held all the time
	message := strings.Repeat("A\x1b[2J ", 1<<18)
	short := message[:60_000]
	flood := func(head string) func(*testing.T) string {
		return func(t *testing.T) string {
			return collectorServe(t, func(c net.Conn) {
				collectorHTTP(c, func(c net.Conn) { fmt.Fprint(c, head+"\r\n"); endless(c, message[:64<<10], 0) })
			})
		}
	}
	const overHTTP, overGRPC = "http/protobuf", "grpc"
	for name, attack := range map[string]struct {
		protocol string
		takes    bool // accepts all but a part
		start    func(*testing.T) (address string)
	}{
		"http: a success without end":          {overHTTP, false, flood(collectorOK)},
		"http: a success of no type":           {overHTTP, false, flood("HTTP/1.1 200 OK\r\n")},
		"http: a failure without end":          {overHTTP, false, flood("HTTP/1.1 500 No\r\nContent-Type: text/plain\r\n")},
		"http: does not read":                  {overHTTP, false, collectorDoesNotRead},
		"http: rejects a part, a long message": {overHTTP, true, collectorSimulated(overHTTP, otelcollector.Answer{Rejected: 1, Message: short})},
		"grpc: rejects a part, a long message": {overGRPC, true, collectorSimulated(overGRPC, otelcollector.Answer{Rejected: 1, Message: short})},
		"http: rejects a part, too long":       {overHTTP, false, collectorSimulated(overHTTP, otelcollector.Answer{Rejected: 1, Message: message})},
		"grpc: rejects a part, too long":       {overGRPC, false, collectorSimulated(overGRPC, otelcollector.Answer{Rejected: 1, Message: message})},
		"grpc: refuses, a long message":        {overGRPC, false, collectorSimulated(overGRPC, otelcollector.Answer{Code: codes.Unavailable, Message: message})},
		"grpc: closes the connection":          {overGRPC, false, collectorSimulated(overGRPC, otelcollector.Answer{Code: codes.Unavailable, Break: true})},
		"grpc: does not answer":                {overGRPC, false, collectorSimulated(overGRPC, otelcollector.Answer{Hang: true})},
	} {
		t.Run(name, func(t *testing.T) {
			address := attack.start(t)
			idle, before := collectorHeap(), runtime.NumGoroutine()
			load := collectorHeavy()
			if attack.takes {
				load.timeout = 10 * time.Second // exports succeed on a slow machine, too
			}
			p := startCollectorPusher(t, load, attack.protocol, address)
			p.accepts = attack.takes
			p.waitForExport(t)
			// The smallest of several measurements is what is held all the time:
			// a single one may fall into a push that encodes or retries.
			most, heap := 0, int64(math.MaxInt64)
			for range 8 {
				time.Sleep(collectorAttackTime / 40)
				most = max(most, runtime.NumGoroutine())
				heap = min(heap, collectorHeap()-idle)
			}
			t.Logf("%d MiB of heap, %d goroutines, %d before", heap>>20, most, before)
			if heap > room {
				t.Errorf("it takes %d MiB", heap>>20)
			}
			if most > before+collectorGoroutines {
				t.Errorf("there were %d goroutines, and %d before", most, before)
			}
			p.sample(t)
			p.stop()
			select {
			case <-p.ended:
			case <-time.After(collectorEndLimit):
				t.Fatal("it does not end")
			}
			p.check(t)
		})
	}
}

func collectorHeap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // memory that finalizers held
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// collectorLoad is the amount of data that is pushed.
type collectorLoad struct {
	rows   []metric.Row
	queue  int // most spans in the queue
	batch  int // spans of an export
	traces int // at a time
	every  time.Duration

	timeout time.Duration // of an export
}

func collectorLight() collectorLoad {
	power := &metric.Family{Name: "dra_test_power_watts", Help: "Power", Unit: "watts", Type: metric.Gauge}
	rows := []metric.Row{{Family: power, Labels: metric.NewLabels(nil), Value: 1}}
	return collectorLoad{rows: rows, queue: 100, batch: 20, traces: 1, every: 20 * time.Millisecond, timeout: 400 * time.Millisecond}
}

// collectorHeavy has the defaults' queue and batches.
func collectorHeavy() collectorLoad {
	return collectorLoad{rows: metrictest.DenseRows(), queue: 65_536, batch: 512, traces: 2_000, every: 100 * time.Millisecond, timeout: 400 * time.Millisecond}
}

// collectorPusher pushes to one collector.
type collectorPusher struct {
	*otlp.Pusher
	registry *prometheus.Registry
	load     collectorLoad
	log      *clientsLog
	stop     context.CancelFunc
	ended    chan struct{}
	accepts  bool // the collector accepts all but a part
	offered  int  // traces, known after the end
	queued   float64
}

func startCollectorPusher(t *testing.T, load collectorLoad, protocol, address string) *collectorPusher {
	t.Helper()
	p := &collectorPusher{registry: prometheus.NewRegistry(), load: load, log: &clientsLog{}, ended: make(chan struct{})}
	signal := settings.SignalSettings{On: true, Protocol: protocol, Endpoint: address, Insecure: true, Timeout: load.timeout}
	metrics, traces := signal, signal
	if protocol != "grpc" {
		metrics.Path, traces.Path = "/v1/metrics", "/v1/traces"
	}
	var err error
	p.Pusher, err = otlp.New(t.Context(), otlp.Options{
		Settings: settings.Settings{
			Metrics: metrics, Traces: traces, Naming: "prometheus", Interval: 200 * time.Millisecond, Timeout: max(load.timeout, time.Second),
			QueueSize: load.queue, BatchSize: load.batch, Delay: 10 * time.Millisecond,
		},
		Identity: otlp.Identity{Version: "1.2.3", Node: "node-a", Instance: "node-a"},
		Snapshot: func() ([]metric.Row, *model.Node, time.Time) { return load.rows, nil, time.Now() },
		Live:     p.registry, Registry: p.registry, Clock: clock.System(), Log: slog.New(slog.NewTextHandler(p.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() {
		defer close(p.ended)
		var offering sync.WaitGroup
		offering.Go(func() { p.offer(ctx) })
		p.Run(ctx)
		offering.Wait()
	}()
	t.Cleanup(func() { stop(); <-p.ended })
	return p
}

// offer adds traces to the pusher's queue until ctx ends.
func (p *collectorPusher) offer(ctx context.Context) {
	every := time.NewTicker(p.load.every)
	defer every.Stop()
	for ctx.Err() == nil {
		p.Trace(collectorTraces(p.offered, p.load.traces))
		p.offered += p.load.traces
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}

// collectorTraces returns the traces of count claims.
func collectorTraces(from, count int) []trace.Trace {
	message := strings.Repeat("m", 500)
	traces := make([]trace.Trace, 0, count)
	for n := from; n < from+count; n++ {
		begin := trace.Timestamp{At: time.Unix(int64(n), 0), Evidence: trace.EvidenceWatch}
		end := trace.Timestamp{At: time.Unix(int64(n)+1, 0), Evidence: trace.EvidenceWatch}
		traces = append(traces, trace.Trace{
			Claim: trace.Claim{Namespace: "team-a", Name: fmt.Sprint("claim-", n), UID: fmt.Sprint("claim-uid-", n), Class: "gpu.example.com"},
			Pod:   trace.Pod{Name: fmt.Sprint("pod-", n), UID: fmt.Sprint("pod-uid-", n), Node: "node-a"},
			Spans: []trace.Span{{Phase: trace.PhaseReady, Attempt: 1, Begin: begin, End: end, Message: message}},
		})
	}
	return traces
}

// sum adds the values of a family whose metrics have this label value, or of
// all.
func (p *collectorPusher) sum(t *testing.T, name, value string) (sum float64) {
	t.Helper()
	families, err := p.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			of := value == ""
			for _, label := range m.GetLabel() {
				of = of || label.GetValue() == value
			}
			if family.GetName() == name && of {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// waitForExport waits until check has the exports to check, however slow the
// machine is: a failed one, or of each signal one that was sent.
func (p *collectorPusher) waitForExport(t *testing.T) {
	t.Helper()
	seen := func() bool {
		if p.accepts {
			return p.sum(t, "dra_exporter_otlp_sent_total", "metrics") > 0 && p.sum(t, "dra_exporter_otlp_sent_total", "traces") > 0
		}
		return p.sum(t, "dra_exporter_otlp_exports_total", "failure") > 0
	}
	for begun := time.Now(); !seen() && time.Since(begun) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
}

// sample records how many traces are queued.
func (p *collectorPusher) sample(t *testing.T) {
	t.Helper()
	p.queued = p.sum(t, "dra_exporter_otlp_queued_traces", "")
}

// check checks a pusher that has ended.
func (p *collectorPusher) check(t *testing.T) {
	if p.accepts {
		p.checkAccepted(t)
	} else {
		p.checkFailed(t)
	}
	if p.queued > float64(p.load.queue) {
		t.Errorf("%g traces were queued", p.queued)
	}
	lines := p.log.lines()
	if len(lines) > 7 { // of each signal a rejection, a failure and a recovery, and one for what is left at the end
		t.Errorf("%d lines in the log:\n%.2000s", len(lines), strings.Join(lines, "\n"))
	}
	for _, line := range lines {
		if len(line) > 1<<10 || strings.Contains(line, "\x1b") {
			t.Errorf("a line has %d bytes: %.200q", len(line), line)
		}
	}
}

func (p *collectorPusher) checkFailed(t *testing.T) {
	t.Helper()
	for _, signal := range []string{"metrics", "traces"} {
		if p.sum(t, "dra_exporter_otlp_up", signal) != 0 || p.sum(t, "dra_exporter_otlp_sent_total", signal) != 0 {
			t.Errorf("%s are counted as sent", signal)
		}
	}
	if p.sum(t, "dra_exporter_otlp_exports_total", "failure") == 0 {
		t.Error("no export has failed")
	}
	if dropped := p.sum(t, "dra_exporter_otlp_dropped_traces_total", ""); dropped != float64(p.offered) {
		t.Errorf("%g of %d traces are counted as dropped", dropped, p.offered)
	}
}

func (p *collectorPusher) checkAccepted(t *testing.T) {
	t.Helper()
	for _, signal := range []string{"metrics", "traces"} {
		if p.sum(t, "dra_exporter_otlp_sent_total", signal) == 0 {
			t.Errorf("no %s are counted as sent", signal)
		}
	}
	if p.sum(t, "dra_exporter_otlp_exports_total", "partial") == 0 {
		t.Error("no export was taken in part")
	}
}

// collectorServe calls a function for each connection until the test ends.
func collectorServe(t *testing.T, serve func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	var mu sync.Mutex
	open := make(map[net.Conn]bool)
	serving.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[connection] = true
			mu.Unlock()
			serving.Go(func() {
				serve(connection)
				connection.Close()
				mu.Lock()
				delete(open, connection)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for connection := range open {
			connection.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	return listener.Addr().String()
}

// drip writes a byte periodically until the other side closes the connection.
func drip(w io.Writer, text byte) {
	for {
		if _, err := w.Write([]byte{text}); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// endless writes repeatedly, with pauses, until the other side closes the
// connection.
func endless(w io.Writer, text string, pause time.Duration) {
	for piece := []byte(strings.Repeat(text, max(1, 1<<14/len(text)))); ; time.Sleep(pause) {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// collectorHugeAnswer is a partial success with a message of 64 MiB.
func collectorHugeAnswer(t *testing.T) []byte {
	t.Helper()
	raw, err := proto.Marshal(&collectorpb.ExportMetricsServiceResponse{PartialSuccess: &collectorpb.ExportMetricsPartialSuccess{
		RejectedDataPoints: 1, ErrorMessage: strings.Repeat("no ", collectorHuge/3),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// collectorDoesNotRead accepts an export without reading the body, and never
// completes its answer.
func collectorDoesNotRead(t *testing.T) (address string) {
	t.Helper()
	return collectorServe(t, func(c net.Conn) {
		_ = c.(*net.TCPConn).SetReadBuffer(1 << 12)
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			fmt.Fprint(c, collectorOK+"Transfer-Encoding: chunked\r\n\r\n")
			<-t.Context().Done()
		}
	})
}

// collectorSimulated starts a collector that decodes the exports and always
// returns this answer.
func collectorSimulated(protocol string, answer otelcollector.Answer) func(*testing.T) (address string) {
	return func(t *testing.T) string {
		t.Helper()
		collector, err := otelcollector.Start(otelcollector.Options{Keep: 1})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(collector.Close)
		collector.Answer(otelcollector.Always(answer))
		return collector.Address(protocol)
	}
}

// collectorHTTP answers each request of a connection.
func collectorHTTP(connection net.Conn, answer func(net.Conn)) {
	for from := bufio.NewReader(connection); ; {
		request, err := http.ReadRequest(from)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, request.Body); err != nil {
			return
		}
		answer(connection)
	}
}

func collectorHTTPAnswers(t *testing.T, huge []byte) map[string]func(net.Conn) {
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	if _, err := packed.Write(huge[:8<<20]); err != nil {
		t.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	whole := func(head string, body []byte) func(net.Conn) {
		return func(c net.Conn) {
			fmt.Fprintf(c, "%sContent-Length: %d\r\n\r\n", head, len(body))
			_, _ = c.Write(body)
		}
	}
	return map[string]func(net.Conn){
		"never answers":  func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"drips its head": func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nX-Long: "); drip(c, 'x') },
		"drips a failure": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 400 No\r\nContent-Type: application/json\r\n\r\n")
			drip(c, 'A')
		},
		"drips its body": func(c net.Conn) { fmt.Fprint(c, collectorOK+"Content-Length: 1000000\r\n\r\n"); drip(c, 'x') },
		"a head without end": func(c net.Conn) {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n")
			endless(c, "X-Long: xxxxxxxx\r\n", time.Millisecond)
		},
		"provisional without end":  func(c net.Conn) { endless(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", time.Millisecond) },
		"a body without end":       func(c net.Conn) { fmt.Fprint(c, collectorOK+"\r\n"); endless(c, "x", time.Millisecond) },
		"a failure without end":    func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 503 Busy\r\n\r\n"); endless(c, "busy ", time.Millisecond) },
		"wants hours":              whole("HTTP/1.1 429 Slowly\r\nRetry-After: 36000\r\n", nil),
		"wants a thousand years":   whole("HTTP/1.1 503 Later\r\nRetry-After: 2147483647\r\n", []byte("later")),
		"a huge message":           whole(collectorOK, huge),
		"a huge message, packed":   whole(collectorOK+"Content-Encoding: gzip\r\n", bomb.Bytes()),
		"redirects to itself":      whole("HTTP/1.1 307 Here\r\nLocation: /v1/metrics\r\n", nil),
		"redirects far":            whole("HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/"+strings.Repeat("far/", 8000)+"\r\n", nil),
		"a status of control text": whole("HTTP/1.1 500 \x1b[2J"+strings.Repeat("!", 20_000)+"\r\n", []byte(strings.Repeat("\x1b[2J\x00", 100_000))),
	}
}

// collectorGRPC serves HTTP/2 frame by frame and answers each stream.
func collectorGRPC(connection net.Conn, answer func(c *collectorStream)) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(connection, preface); err != nil {
		return
	}
	c := &collectorConnection{framer: http2.NewFramer(connection, connection), reset: make(map[uint32]bool)}
	var answering sync.WaitGroup
	defer answering.Wait()
	defer connection.Close()
	c.write(func(f *http2.Framer) error { return f.WriteSettings() })
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				c.write((*http2.Framer).WriteSettingsAck)
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				c.write(func(f *http2.Framer) error { return f.WritePing(true, frame.Data) })
			}
		case *http2.RSTStreamFrame:
			c.mu.Lock()
			c.reset[frame.StreamID] = true
			c.mu.Unlock()
		case *http2.DataFrame:
			if n := uint32(len(frame.Data())); n > 0 {
				c.write(func(f *http2.Framer) error { return f.WriteWindowUpdate(0, n) })
			}
			if id := frame.StreamID; frame.StreamEnded() {
				answering.Go(func() { answer(&collectorStream{c, id}) })
			}
		}
	}
}

// collectorConnection is an HTTP/2 connection.
type collectorConnection struct {
	mu     sync.Mutex
	framer *http2.Framer
	reset  map[uint32]bool // streams that the client has reset
}

// write writes under a lock, and reports whether it succeeded.
func (c *collectorConnection) write(write func(*http2.Framer) error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return write(c.framer) == nil
}

// collectorStream is one call.
type collectorStream struct {
	connection *collectorConnection
	id         uint32
}

// collectorBlock encodes names and values of headers, without a dynamic table.
func collectorBlock(fields ...string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true})
	}
	return block.Bytes()
}

// headers writes a block in as many frames as it needs.
func (s *collectorStream) headers(last bool, block []byte) {
	s.connection.write(func(f *http2.Framer) error {
		n := min(len(block), 16_000)
		err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block[:n], EndHeaders: n == len(block), EndStream: last})
		for rest := block[n:]; err == nil && len(rest) > 0; rest = rest[n:] {
			n = min(len(rest), 16_000)
			err = f.WriteContinuation(s.id, n == len(rest), rest[:n])
		}
		return err
	})
}

func (s *collectorStream) begin() {
	s.headers(false, collectorBlock(":status", "200", "content-type", "application/grpc"))
}

// Write sends a data frame, unless the client has reset the stream.
func (s *collectorStream) Write(p []byte) (int, error) {
	if !s.connection.write(func(f *http2.Framer) error {
		if s.connection.reset[s.id] {
			return io.ErrClosedPipe
		}
		return f.WriteData(s.id, false, p)
	}) {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// collectorEnds ends each call with a status and more trailers.
func collectorEnds(code codes.Code, trailers ...string) func(*collectorStream) {
	block := collectorBlock(append([]string{":status", "200", "content-type", "application/grpc", "grpc-status", fmt.Sprint(int(code))}, trailers...)...)
	return func(s *collectorStream) { s.headers(true, block) }
}

// collectorMessage sends the head of a message of this length, and then what
// goOn writes.
func collectorMessage(length uint32, goOn func(io.Writer)) func(*collectorStream) {
	return func(s *collectorStream) {
		s.begin()
		_, _ = s.Write(message(length))
		goOn(s)
	}
}

// message returns the head of a message of this length.
func message(length uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0}, length) }

func collectorGRPCAnswers(t *testing.T) map[string]func(*collectorStream) {
	retryAfter := func(code codes.Code, delay time.Duration) func(*collectorStream) {
		later, err := status.New(code, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(delay)})
		if err != nil {
			t.Fatal(err)
		}
		details, err := proto.Marshal(later.Proto())
		if err != nil {
			t.Fatal(err)
		}
		return collectorEnds(code, "grpc-message", "later", "grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(details))
	}
	many := make([]string, 0, 40_000)
	for i := range 20_000 {
		many = append(many, fmt.Sprint("x-", i), "x")
	}
	drips := func(w io.Writer) { drip(w, 'x') }
	endlessBody := func(w io.Writer) { endless(w, "no ", time.Millisecond) }
	more := bytes.Repeat([]byte{0x40, 1, 'x', 1, 'x'}, 3_000)
	return map[string]func(*collectorStream){
		"never answers":         func(*collectorStream) {},
		"drips its message":     collectorMessage(60_000, drips),
		"a huge message":        collectorMessage(collectorHuge, endlessBody),
		"a long message":        collectorMessage(1<<20, endlessBody),
		"a long status":         collectorEnds(codes.Unavailable, "grpc-message", strings.Repeat("no%0A%1B", 7_000)),
		"a status of no text":   collectorEnds(codes.Internal, "grpc-message", strings.Repeat("\xff", 60_000)),
		"a huge status":         collectorEnds(codes.Unavailable, "grpc-message", strings.Repeat("x", 8<<20)),
		"many trailers":         collectorEnds(codes.Unavailable, many...),
		"wants hours":           retryAfter(codes.Unavailable, 10*time.Hour),
		"wants a hundred years": retryAfter(codes.ResourceExhausted, 100*365*24*time.Hour),
		"redirects": func(s *collectorStream) {
			s.headers(true, collectorBlock(":status", "302", "location", "http://127.0.0.1:1/"))
		},
		"trailers without end": func(s *collectorStream) {
			s.connection.write(func(f *http2.Framer) error {
				err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, EndStream: true})
				for ; err == nil; time.Sleep(time.Millisecond) {
					err = f.WriteContinuation(s.id, false, more)
				}
				return err
			})
		},
		"pings without end": func(s *collectorStream) {
			for s.connection.write(func(f *http2.Framer) error { return f.WritePing(false, [8]byte{}) }) {
				time.Sleep(100 * time.Microsecond)
			}
		},
	}
}
