package web

import (
	"cmp"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// rendered is a complete response in memory. It is immutable after render, so that it
// can be sent to several clients.
type rendered struct {
	status int
	header http.Header
	page   *rendered // nil, or the part before the blocks, which several responses have
	blocks [][]byte
	size   int // with page

	pool  *blockPool // nil: the blocks are left to the garbage collector
	users atomic.Int32
}

// release ends one use of the response. After the last one, its blocks are used again
// for others. A use that is not released costs nothing but that: the blocks are then
// left to the garbage collector.
func (p *rendered) release() {
	if p == nil || p.pool == nil || p.users.Add(-1) != 0 {
		return
	}
	p.pool.put(p.blocks)
	p.blocks = nil
	p.page.release()
}

// all calls yield with each block.
func (p *rendered) all(yield func([]byte) bool) {
	if p.page != nil {
		for _, block := range p.page.blocks {
			if !yield(block) {
				return
			}
		}
	}
	for _, block := range p.blocks {
		if !yield(block) {
			return
		}
	}
}

// render returns the response of the handler.
func render(handler http.Handler, r *http.Request) *rendered {
	page := &rendered{header: http.Header{}}
	handler.ServeHTTP(page, r)
	if page.status == 0 {
		page.status = http.StatusOK
	}
	return page
}

// Header, WriteHeader and Write are those of http.ResponseWriter, for render.
func (p *rendered) Header() http.Header { return p.header }

func (p *rendered) WriteHeader(status int) {
	if p.status == 0 && status >= http.StatusOK {
		p.status = status
	}
}

func (p *rendered) Write(text []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	p.size += len(text)
	written := len(text)
	for len(text) > 0 {
		last := len(p.blocks) - 1
		if last < 0 || len(p.blocks[last]) == cap(p.blocks[last]) {
			p.blocks = append(p.blocks, p.nextBlock())
			last++
		}
		block := p.blocks[last]
		n := min(len(text), cap(block)-len(block))
		p.blocks[last] = append(block, text[:n]...)
		text = text[n:]
	}
	return written, nil
}

// nextBlock returns an empty block: a small one at first, because most responses are
// small.
func (p *rendered) nextBlock() []byte {
	if len(p.blocks) == 0 {
		return make([]byte, 0, blockSize/8)
	}
	if p.pool == nil {
		return make([]byte, 0, blockSize)
	}
	return p.pool.get()
}

// errBusy is the error of a request that gets 503.
var errBusy = errors.New("too many requests in flight, try again later")

// writes bounds the pages that are being written: their number and their bytes in
// memory; a page that is written to several clients counts once. Beyond a bound, a
// new write ends another one, so that clients that do not read do not exclude others: one
// of the client address with the most bytes left; of these first one on a connection
// that has never received a whole page; of these the one without progress for
// longest.
type writes struct {
	max             int // writes
	maxOfConnection int // of HTTP/2
	maxBytes        int // or pagesKept times the size of the newest page, if that is more

	mu           sync.Mutex
	open         map[*write]struct{}
	ofConnection map[*clientConnection]int
	ofClient     map[string]int    // bytes
	pages        map[*rendered]int // number of writes
	bytes        int
}

// pagesKept is how many different pages of the size of the newest may be written
// concurrently, however large they are.
const pagesKept = 4

func newWrites(most, mostOfConnection, mostBytes int) *writes {
	return &writes{
		max: most, maxOfConnection: mostOfConnection, maxBytes: mostBytes,
		open: map[*write]struct{}{}, ofConnection: map[*clientConnection]int{}, ofClient: map[string]int{}, pages: map[*rendered]int{},
	}
}

// write is the transfer of one page to one client.
type write struct {
	page         *rendered
	connection   *clientConnection // nil: it cannot be ended early, and is not counted
	received     bool              // the connection has received a whole page before
	progressedAt time.Time         // when the client last received a block; guarded by writes.mu
}

// send writes the page to the client, and releases it. A client without progress for
// stallTimeout, or without the whole page after sendTimeout, is disconnected. After
// a failed write the page is not released, because HTTP/2 may still read it then.
func (s *writes) send(w http.ResponseWriter, r *http.Request, page *rendered) {
	started := now()
	write, err := s.start(page, contextConnection(r.Context()), started)
	if err != nil {
		refuse(w, err)
		return
	}
	defer s.end(write)
	header := w.Header()
	for name, values := range page.header {
		header[name] = values
	}
	if header.Get("Content-Length") == "" {
		header.Set("Content-Length", strconv.Itoa(page.size))
	}
	controller, latest := http.NewResponseController(w), started.Add(sendTimeout)
	_ = controller.SetWriteDeadline(started.Add(stallTimeout)) // a writer without deadlines cannot stall
	w.WriteHeader(page.status)
	if r.Method == http.MethodHead {
		page.release()
		return
	}
	for block := range page.all {
		if _, err := w.Write(block); err != nil {
			return // the client has disconnected, or was disconnected
		}
		at := now()
		s.progressed(write, at)
		_ = controller.SetWriteDeadline(earlier(at.Add(stallTimeout), latest))
	}
	write.connection.setReceived()
	page.release()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (s *writes) start(page *rendered, connection *clientConnection, now time.Time) (*write, error) {
	w := &write{page: page, connection: connection, progressedAt: now, received: connection.hasReceived()}
	if connection == nil {
		return w, nil
	}
	s.mu.Lock()
	if s.ofConnection[connection] >= s.maxOfConnection {
		s.mu.Unlock()
		return nil, errBusy
	}
	s.add(w)
	ended := s.evict(w)
	s.mu.Unlock()
	for _, other := range ended {
		_ = other.connection.Close() // its write fails immediately, and ends
	}
	return w, nil
}

func (s *writes) add(w *write) {
	s.open[w] = struct{}{}
	s.ofConnection[w.connection]++
	s.ofClient[w.connection.client] += w.page.size
	if s.pages[w.page]++; s.pages[w.page] == 1 {
		s.bytes += w.page.size
	}
}

// remove has no effect if the write was ended early.
func (s *writes) remove(w *write) {
	if _, ok := s.open[w]; !ok {
		return
	}
	delete(s.open, w)
	if s.ofConnection[w.connection]--; s.ofConnection[w.connection] == 0 {
		delete(s.ofConnection, w.connection)
	}
	if s.ofClient[w.connection.client] -= w.page.size; s.ofClient[w.connection.client] == 0 {
		delete(s.ofClient, w.connection.client)
	}
	if s.pages[w.page]--; s.pages[w.page] == 0 {
		delete(s.pages, w.page)
		s.bytes -= w.page.size
	}
}

// evict removes and returns the writes to end.
func (s *writes) evict(newest *write) []*write {
	var ended []*write
	for len(s.open) > s.max || s.bytes > max(s.maxBytes, pagesKept*newest.page.size) {
		least := s.evictable(newest)
		if least == nil {
			break
		}
		s.remove(least)
		ended = append(ended, least)
	}
	return ended
}

func (s *writes) evictable(newest *write) *write {
	var least *write
	for write := range s.open {
		if write != newest && (least == nil || s.before(write, least)) {
			least = write
		}
	}
	return least
}

// before reports whether a is ended rather than b.
func (s *writes) before(a, b *write) bool {
	if byClient := cmp.Compare(s.ofClient[a.connection.client], s.ofClient[b.connection.client]); byClient != 0 {
		return byClient > 0
	}
	if a.received != b.received {
		return b.received
	}
	return a.progressedAt.Before(b.progressedAt)
}

func (s *writes) progressed(w *write, now time.Time) {
	s.mu.Lock()
	w.progressedAt = now
	s.mu.Unlock()
	w.connection.progressed(now)
}

func (s *writes) end(w *write) {
	s.mu.Lock()
	s.remove(w)
	s.mu.Unlock()
}

// refuse responds that the server is busy.
func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Retry-After", "1")
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
