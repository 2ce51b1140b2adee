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
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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
	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
)

const (
	collectorQueue = 100              // spans that may wait
	collectorRoom  = 8 << 20          // bytes for each pusher and its collector
	collectorTime  = 4 * time.Second  // for which they are attacked
	collectorEnd   = 10 * time.Second // within which Run, which promises two seconds, has to end beside the others
	collectorGiant = 64 << 20         // bytes of an answer
)

// Collectors that do everything but take what is pushed, by HTTP and by gRPC:
// the queue keeps its bound, goroutines and memory do not pile up, the log stays
// short, the end comes in time, and every trace that was lost is counted.
func TestHostileCollectors(t *testing.T) {
	pushers := make(map[string]*collectorPusher)
	giant := collectorGiantAnswer(t)
	idle := collectorHeap()
	for name, answer := range collectorHTTPAnswers(t, giant) {
		pushers["http: "+name] = startCollectorPusher(t, "http/protobuf", collectorServe(t, func(c net.Conn) { collectorHTTP(c, answer) }))
	}
	for name, answer := range collectorGRPCAnswers(t) {
		pushers["grpc: "+name] = startCollectorPusher(t, "grpc", collectorServe(t, func(c net.Conn) { collectorGRPC(c, answer) }))
	}
	time.Sleep(collectorTime / 2)
	early := runtime.NumGoroutine()
	time.Sleep(collectorTime / 2)
	late, heap := runtime.NumGoroutine(), collectorHeap()-idle
	t.Logf("%d pushers: %d MiB of heap, %d goroutines, and before %d", len(pushers), heap>>20, late, early)
	if late > early+5*len(pushers) {
		t.Errorf("there were %d goroutines, and then %d", early, late)
	}
	if heap > uint64(len(pushers))*collectorRoom {
		t.Errorf("they take %d MiB", heap>>20)
	}
	for _, p := range pushers {
		p.look(t)
		p.stop()
	}
	stopped := time.Now()
	for _, p := range pushers {
		<-p.ended
	}
	if took := time.Since(stopped); took > collectorEnd {
		t.Errorf("they took %v to end", took)
	}
	for name, p := range pushers {
		t.Run(name, p.judge)
	}
}

func collectorHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// collectorPusher pushes to one collector.
type collectorPusher struct {
	*otlp.Pusher
	registry *prometheus.Registry
	log      *collectorLog
	stop     context.CancelFunc
	ended    chan struct{}
	offered  atomic.Int64
	waiting  float64 // traces, while it was attacked
}

type collectorLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *collectorLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *collectorLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.SplitAfter(strings.TrimSuffix(l.text.String(), "\n"), "\n")
}

func startCollectorPusher(t *testing.T, protocol, address string) *collectorPusher {
	t.Helper()
	p := &collectorPusher{registry: prometheus.NewRegistry(), log: &collectorLog{}, ended: make(chan struct{})}
	signal := otlp.Signal{On: true, Protocol: protocol, Endpoint: address, Insecure: true, Timeout: 400 * time.Millisecond}
	metrics, traces := signal, signal
	if protocol != "grpc" {
		metrics.Path, traces.Path = "/v1/metrics", "/v1/traces"
	}
	power := &metric.Family{Name: "dra_test_power_watts", Help: "Power", Unit: "watts", Type: metric.Gauge}
	row := metric.Row{Family: power, Labels: metric.NewLabels(nil), Value: 1}
	var err error
	p.Pusher, err = otlp.New(t.Context(), otlp.Options{
		Settings: otlp.Settings{
			Metrics: metrics, Traces: traces, Naming: "prometheus", Interval: 200 * time.Millisecond, Timeout: time.Second,
			QueueSize: collectorQueue, BatchSize: 20, Delay: 10 * time.Millisecond,
		},
		Identity: otlp.Identity{Version: "1.2.3", Node: "node-a", Instance: "node-a"},
		Snapshot: func() ([]metric.Row, time.Time) { return []metric.Row{row}, time.Now() },
		Live:     p.registry, Registry: p.registry, Clock: clock.System(), Log: slog.New(slog.NewTextHandler(p.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	go func() { defer close(p.ended); p.Run(ctx) }()
	go p.offer(ctx)
	t.Cleanup(func() { stop(); <-p.ended })
	return p
}

// offer gives the pusher traces until ctx ends.
func (p *collectorPusher) offer(ctx context.Context) {
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for ctx.Err() == nil {
		n := p.offered.Add(1)
		begin := trace.Moment{At: time.Unix(n, 0), Evidence: trace.EvidenceWatch}
		end := trace.Moment{At: time.Unix(n+1, 0), Evidence: trace.EvidenceWatch}
		p.Trace([]trace.Trace{{
			Claim: trace.Claim{Namespace: "team-a", Name: fmt.Sprint("claim-", n), UID: fmt.Sprint("claim-uid-", n), Class: "gpu.example.com"},
			Pod:   trace.Pod{Name: "pod", UID: fmt.Sprint("pod-uid-", n), Node: "node-a"},
			Spans: []trace.Span{{Phase: trace.PhaseReady, Attempt: 1, Begin: begin, End: end}},
		}})
		select {
		case <-every.C:
		case <-ctx.Done():
		}
	}
}

// sum adds up the values of a family whose metrics have this value of a label,
// or of all.
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

// look notes what waits.
func (p *collectorPusher) look(t *testing.T) {
	t.Helper()
	p.waiting = p.sum(t, "dra_exporter_otlp_queued_traces", "")
}

// judge looks at a pusher that has ended.
func (p *collectorPusher) judge(t *testing.T) {
	for _, signal := range []string{"metrics", "traces"} {
		if p.sum(t, "dra_exporter_otlp_up", signal) != 0 || p.sum(t, "dra_exporter_otlp_sent_total", signal) != 0 {
			t.Errorf("%s look as if they were taken", signal)
		}
	}
	if p.sum(t, "dra_exporter_otlp_exports_total", "failure") == 0 {
		t.Error("no export has failed")
	}
	if p.waiting > collectorQueue {
		t.Errorf("%g traces waited", p.waiting)
	}
	if dropped := p.sum(t, "dra_exporter_otlp_dropped_traces_total", ""); dropped != float64(p.offered.Load()) {
		t.Errorf("%g of %d traces are counted as dropped", dropped, p.offered.Load())
	}
	lines := p.log.lines()
	if len(lines) > 4 { // each signal fails, and what is left at the end is told
		t.Errorf("%d lines in the log:\n%s", len(lines), strings.Join(lines, ""))
	}
	for _, line := range lines {
		if len(line) > 1<<10 {
			t.Errorf("a line has %d bytes: %.200s", len(line), line)
		}
	}
}

// collectorServe gives each connection to a function until the test ends.
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

// drip writes a byte now and then until the other side leaves.
func drip(w io.Writer, text byte) {
	for {
		if _, err := w.Write([]byte{text}); err != nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// endless writes, some 16 MiB a second, until the other side leaves.
func endless(w io.Writer, text string) {
	for piece := []byte(strings.Repeat(text, 1<<14/len(text))); ; time.Sleep(time.Millisecond) {
		if _, err := w.Write(piece); err != nil {
			return
		}
	}
}

// collectorGiantAnswer is one that rejects a part, with a giant's words.
func collectorGiantAnswer(t *testing.T) []byte {
	t.Helper()
	raw, err := proto.Marshal(&collectorpb.ExportMetricsServiceResponse{PartialSuccess: &collectorpb.ExportMetricsPartialSuccess{
		RejectedDataPoints: 1, ErrorMessage: strings.Repeat("no ", collectorGiant/3),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
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

func collectorHTTPAnswers(t *testing.T, giant []byte) map[string]func(net.Conn) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\n"
	var bomb bytes.Buffer
	packed := gzip.NewWriter(&bomb)
	if _, err := packed.Write(giant[:8<<20]); err != nil {
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
		"never answers":            func(c net.Conn) { _, _ = io.Copy(io.Discard, c) },
		"drips its head":           func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\nX-Long: "); drip(c, 'x') },
		"drips its body":           func(c net.Conn) { fmt.Fprint(c, ok+"Content-Length: 1000000\r\n\r\n"); drip(c, 'x') },
		"a head without end":       func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200 OK\r\n"); endless(c, "X-Long: xxxxxxxx\r\n") },
		"provisional without end":  func(c net.Conn) { endless(c, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n") },
		"a body without end":       func(c net.Conn) { fmt.Fprint(c, ok+"\r\n"); endless(c, "x") },
		"a failure without end":    func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 503 Busy\r\n\r\n"); endless(c, "busy ") },
		"wants hours":              whole("HTTP/1.1 429 Slowly\r\nRetry-After: 36000\r\n", nil),
		"a giant's words":          whole(ok, giant),
		"a giant's words, packed":  whole(ok+"Content-Encoding: gzip\r\n", bomb.Bytes()),
		"redirects to itself":      whole("HTTP/1.1 307 Here\r\nLocation: /v1/metrics\r\n", nil),
		"redirects far":            whole("HTTP/1.1 302 There\r\nLocation: http://127.0.0.1:1/"+strings.Repeat("far/", 5000)+"\r\n", nil),
		"a status of control text": whole("HTTP/1.1 500 \x1b[2J"+strings.Repeat("!", 20_000)+"\r\n", []byte(strings.Repeat("\x1b[2J\x00", 100_000))),
	}
}

// collectorGRPC speaks HTTP/2 frame by frame and answers each stream.
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

// collectorConnection is a connection of HTTP/2.
type collectorConnection struct {
	mu     sync.Mutex
	framer *http2.Framer
	reset  map[uint32]bool // streams that the client has left
}

// write writes while nobody else does, and reports whether that went well.
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

// collectorBlock packs names and values of headers, which it has no table for.
func collectorBlock(fields ...string) []byte {
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for i := 0; i < len(fields); i += 2 {
		_ = encoder.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1], Sensitive: true})
	}
	return block.Bytes()
}

// headers writes a block in as many frames as it takes.
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

// Write makes a frame of data of what is written, unless the client has left.
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

// collectorSays begins a message of so many bytes, and goes on somehow.
func collectorSays(length uint32, goOn func(io.Writer)) func(*collectorStream) {
	return func(s *collectorStream) {
		s.begin()
		_, _ = s.Write(message(length))
		goOn(s)
	}
}

// message is the head of a message of so many bytes.
func message(length uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0}, length) }

func collectorGRPCAnswers(t *testing.T) map[string]func(*collectorStream) {
	hours, err := status.New(codes.Unavailable, "later").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(10 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	details, err := proto.Marshal(hours.Proto())
	if err != nil {
		t.Fatal(err)
	}
	many := make([]string, 0, 40_000)
	for i := range 20_000 {
		many = append(many, fmt.Sprint("x-", i), "x")
	}
	drips := func(w io.Writer) { drip(w, 'x') }
	goesOn := func(w io.Writer) { endless(w, "no ") }
	more := bytes.Repeat([]byte{0x40, 1, 'x', 1, 'x'}, 3_000)
	return map[string]func(*collectorStream){
		"never answers":       func(*collectorStream) {},
		"drips its message":   collectorSays(60_000, drips),
		"a giant's message":   collectorSays(collectorGiant, goesOn),
		"a long message":      collectorSays(1<<20, goesOn),
		"a long status":       collectorEnds(codes.Unavailable, "grpc-message", strings.Repeat("no%0A%1B", 7_000)),
		"a status of no text": collectorEnds(codes.Internal, "grpc-message", strings.Repeat("\xff", 60_000)),
		"a giant's status":    collectorEnds(codes.Unavailable, "grpc-message", strings.Repeat("x", 8<<20)),
		"many trailers":       collectorEnds(codes.Unavailable, many...),
		"wants hours":         collectorEnds(codes.Unavailable, "grpc-message", "later", "grpc-status-details-bin", base64.RawStdEncoding.EncodeToString(details)),
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
