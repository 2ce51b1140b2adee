package web

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

const (
	// liveAge is for how long the live metrics of a response are shared: for less than
	// the time between two scrapes of one client.
	liveAge = 100 * time.Millisecond

	// maxEncodings is how many responses of one page are kept: a client can ask for
	// each of about fifty combinations of format, escaping and compression.
	maxEncodings = 4
)

// scrapes serves the page of the newest snapshot, followed by the live metrics.
//
// The page is encoded and compressed once for each format by the first scraper that
// asks for it. The page of a response is never older than the newest one when the
// request arrived. Its live metrics were gathered at most liveAge before. A
// response that is ready needs no slot.
type scrapes struct {
	config     Config
	slots      *renderLimiter
	writes     *writes
	selected   http.Handler // scrapes of selected families (name[])
	gathered   *completeness
	errors     *prometheus.CounterVec
	formats    []expfmt.Format
	compressor sync.Pool // of *flate.Writer
	empty      *metric.Page

	blocks blockPool
	newest atomic.Pointer[encodings]
}

func newScrapes(config Config, slots *renderLimiter, writes *writes, compressed func(http.Handler) http.Handler) *scrapes {
	s := &scrapes{
		config: config, slots: slots, writes: writes, gathered: &completeness{log: config.Log},
		formats: expfmt.DefaultOpenMetricsAcceptedFormats(), empty: metric.NewPage(nil),
	}
	s.compressor.New = func() any {
		writer, err := flate.NewWriter(nil, flate.BestSpeed)
		if err != nil {
			panic(err) // the level is a constant of the same package
		}
		return writer
	}
	newest := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return s.page().Gather() })
	s.selected = slots.buffered(writes, compressed(promhttp.HandlerFor(s.gathered.watch(metric.Concat(newest, config.Metrics)), promhttp.HandlerOpts{
		// An incomplete page is better than none; the error is logged.
		ErrorHandling:                       promhttp.ContinueOnError,
		Registry:                            config.Registry,
		DisableCompression:                  true, // newGzipMiddleware needs less time
		EnableOpenMetrics:                   true,
		EnableOpenMetricsTextCreatedSamples: config.Created,
		AcceptedFormats:                     s.formats,
	})))
	s.errors = scrapeErrors(config.Registry)
	return s
}

// scrapeErrors returns the counter of errors of promhttp, which has registered it.
func scrapeErrors(registry prometheus.Registerer) *prometheus.CounterVec {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promhttp_metric_handler_errors_total", Help: "Total number of internal errors encountered by the promhttp metric handler.",
	}, []string{"cause"})
	if registry == nil {
		return counter
	}
	var registered prometheus.AlreadyRegisteredError
	if errors.As(registry.Register(counter), &registered) {
		if theirs, ok := registered.ExistingCollector.(*prometheus.CounterVec); ok {
			return theirs
		}
	}
	return counter
}

// page returns the page of the newest snapshot.
func (s *scrapes) page() *metric.Page {
	if s.config.Page != nil {
		if page := s.config.Page(); page != nil {
			return page
		}
	}
	return s.empty
}

func (s *scrapes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.RawQuery != "" {
		s.selected.ServeHTTP(w, r)
		return
	}
	key := encodingKey{expfmt.NegotiateAccept(r.Header, s.formats...), acceptsGzip(r.Header.Get("Accept-Encoding"))}
	response, err := s.response(s.page(), key, r)
	if err != nil {
		refuse(w, err)
		return
	}
	s.writes.send(w, r, response)
}

// encodings are the responses of one page. They are attached to the page, and do not
// refer to it, so that it can be freed before them.
type encodings struct {
	mu    sync.Mutex
	byKey map[encodingKey]*encoding

	live struct { // the live metrics that were gathered last
		sync.Mutex
		families []*dto.MetricFamily
		err      error
		at       time.Time
	}
}

type encodingKey struct {
	format     expfmt.Format
	compressed bool
}

// encoding is the response of one page in one format. Its fields are guarded by
// encodings.mu, except for body, which belongs to whoever makes the response.
type encoding struct {
	response   *rendered
	gatheredAt time.Time
	usedAt     time.Time
	making     *making // nil: no response is being made

	body *segment
}

// making is a response that is being made.
type making struct {
	done     chan struct{}
	requests int32     // that use the response; guarded by encodings.mu
	response *rendered // once done; nil if there was no slot
}

// findEncodings returns the responses of a page. Those of the page before are dropped when
// this one is new, so that their blocks are used again.
func (s *scrapes) findEncodings(page *metric.Page) *encodings {
	kept, ok := page.Attached.Load(s)
	if !ok {
		if kept, ok = page.Attached.LoadOrStore(s, &encodings{byKey: map[encodingKey]*encoding{}}); !ok {
			if previous := s.newest.Swap(kept.(*encodings)); previous != nil {
				previous.drop(&s.blocks)
			}
		}
	}
	return kept.(*encodings)
}

// drop drops the responses, so that their blocks can be used again, and no others. One
// that is being made is left to the garbage collector.
func (e *encodings) drop(blocks *blockPool) {
	blocks.clear()
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, encoding := range e.byKey {
		if encoding.making == nil {
			encoding.release()
			delete(e.byKey, key)
		}
	}
}

// release ends the uses by the encoding.
func (o *encoding) release() {
	o.response.release()
	if o.body != nil {
		o.body.out.release()
	}
}

// response returns the response that is ready, or makes one, or waits, for renderWait
// at most, for the one that another request makes. The caller must release it.
func (s *scrapes) response(page *metric.Page, key encodingKey, r *http.Request) (*rendered, error) {
	encodings := s.findEncodings(page)
	if ready := encodings.ready(key, now()); ready != nil {
		return ready, nil
	}
	client := peerAddress(r.RemoteAddr)
	if !s.slots.enter(client) {
		return nil, errBusy
	}
	defer s.slots.leave(client)
	response, joined, mine := encodings.join(key, now())
	if response != nil {
		return response, nil
	}
	if mine != nil {
		s.make(page, encodings, key, mine, joined, r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), renderWait)
	defer cancel()
	select {
	case <-joined.done:
	case <-ctx.Done():
		return nil, errBusy
	}
	if joined.response == nil {
		return nil, errBusy
	}
	return joined.response, nil
}

// ready returns the response if it has been made and its live metrics are recent.
func (e *encodings) ready(key encodingKey, now time.Time) *rendered {
	e.mu.Lock()
	defer e.mu.Unlock()
	if encoding := e.byKey[key]; encoding != nil && encoding.response != nil && now.Sub(encoding.gatheredAt) < liveAge {
		encoding.usedAt = now
		encoding.response.users.Add(1)
		return encoding.response
	}
	return nil
}

// join returns the response if it is ready by now, otherwise the one that is being
// made; mine is not nil if the caller must make it.
func (e *encodings) join(key encodingKey, now time.Time) (response *rendered, joined *making, mine *encoding) {
	if ready := e.ready(key, now); ready != nil {
		return ready, nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	entry := e.byKey[key]
	if entry == nil {
		entry = &encoding{}
		e.byKey[key] = entry
	}
	entry.usedAt = now
	if entry.making != nil {
		entry.making.requests++
		return nil, entry.making, nil
	}
	entry.making = &making{done: make(chan struct{}), requests: 1}
	return nil, entry.making, entry
}

// finish publishes what was made, and drops the responses that were not used for
// longest.
func (e *encodings) finish(entry *encoding, made *making, gatheredAt time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	entry.making = nil
	if made.response != nil {
		made.response.users.Store(made.requests + 1) // the last is that of the encoding
		entry.response.release()
		entry.response, entry.gatheredAt = made.response, gatheredAt
	}
	for len(e.byKey) > maxEncodings {
		var oldest *encodingKey
		for key, candidate := range e.byKey {
			if candidate.making == nil && candidate != entry && (oldest == nil || candidate.usedAt.Before(e.byKey[*oldest].usedAt)) {
				oldest = &key
			}
		}
		if oldest == nil {
			break
		}
		e.byKey[*oldest].release()
		delete(e.byKey, *oldest)
	}
	close(made.done)
}

// make makes the response of an encoding. It does not stop if the client of the request
// disconnects, because other requests wait for the response.
func (s *scrapes) make(page *metric.Page, all *encodings, key encodingKey, mine *encoding, made *making, r *http.Request) {
	var gatheredAt time.Time
	defer func() { all.finish(mine, made, gatheredAt) }()
	if s.slots.acquire(context.WithoutCancel(r.Context())) != nil {
		return
	}
	defer s.slots.release()
	families, at, err := s.gather(page, all)
	if err != nil && len(families) == 0 && page.IsEmpty() {
		made.response = render(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no metrics could be gathered:\n\n"+err.Error(), http.StatusInternalServerError)
		}), r)
		return // it is not ready for others
	}
	if mine.body == nil {
		mine.body = s.encodePage(page, key)
	}
	made.response, gatheredAt = s.respond(key, mine.body, families), at
}

// gather returns the live metrics, and when they were gathered.
func (s *scrapes) gather(page *metric.Page, all *encodings) ([]*dto.MetricFamily, time.Time, error) {
	live := &all.live
	live.Lock()
	defer live.Unlock()
	if at := now(); live.at.IsZero() || at.Sub(live.at) >= liveAge {
		live.families, live.err = s.gathered.watch(page.Beside(s.config.Metrics)).Gather()
		live.at = at
		if live.err != nil {
			s.errors.WithLabelValues("gathering").Inc()
		}
	}
	return live.families, live.at, live.err
}

// encodePage encodes the rows of a page.
func (s *scrapes) encodePage(page *metric.Page, key encodingKey) *segment {
	body := &segment{out: rendered{pool: &s.blocks}}
	body.out.users.Store(1) // the encoding
	if key.compressed {
		_, _ = body.out.Write([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}) // RFC 1952: deflate, no flags, no time, fastest, unknown system
		body.compressor = s.compressor.Get().(*flate.Writer)
		defer s.compressor.Put(body.compressor)
		body.compressor.Reset(&body.out)
	}
	if err := page.Encode(body, key.format, s.config.Created); err != nil {
		s.errors.WithLabelValues("encoding").Inc()
	}
	if key.compressed {
		_ = body.compressor.Flush() // into memory; the next segment begins at a byte
		body.compressor = nil
	}
	return body
}

// respond returns the response of the page, followed by the live metrics.
func (s *scrapes) respond(key encodingKey, body *segment, families []*dto.MetricFamily) *rendered {
	end := &segment{out: rendered{page: &body.out, pool: &s.blocks, size: body.out.size}, sum: body.sum, plain: body.plain}
	body.out.users.Add(1) // the response
	if key.compressed {
		end.compressor = s.compressor.Get().(*flate.Writer)
		defer s.compressor.Put(end.compressor)
		end.compressor.Reset(&end.out)
	}
	s.encodeLive(end, key.format, families)
	header := http.Header{"Content-Type": {string(key.format)}, "Vary": {"Accept-Encoding", "Accept"}}
	if key.compressed {
		header.Set("Content-Encoding", "gzip")
		_ = end.compressor.Close() // into memory
		trailer := binary.LittleEndian.AppendUint32(nil, end.sum)
		_, _ = end.out.Write(binary.LittleEndian.AppendUint32(trailer, end.plain))
	}
	end.out.status, end.out.header = http.StatusOK, header
	return &end.out
}

// encodeLive encodes what was gathered, and ends the page.
func (s *scrapes) encodeLive(part *segment, format expfmt.Format, families []*dto.MetricFamily) {
	var options []expfmt.EncoderOption
	if s.config.Created {
		options = append(options, expfmt.WithCreatedLines())
	}
	encoder := expfmt.NewEncoder(part, format, options...)
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			s.errors.WithLabelValues("encoding").Inc()
		}
	}
	if closer, ok := encoder.(expfmt.Closer); ok {
		_ = closer.Close() // into memory
	}
}

// segment is a part of a response: plain, or a part of one gzip stream (RFC 1952). A
// stream may have several parts that were compressed independently. The checksum and the
// length at its end are those of the plain text.
type segment struct {
	out        rendered      // its blocks
	compressor *flate.Writer // writes to out; nil: plain
	sum        uint32        // CRC-32 of the plain text so far
	plain      uint32        // its length modulo 2³²
}

func (s *segment) Write(text []byte) (int, error) {
	if s.compressor == nil {
		return s.out.Write(text)
	}
	s.sum = crc32.Update(s.sum, crc32.IEEETable, text)
	s.plain += uint32(len(text))
	return s.compressor.Write(text)
}
