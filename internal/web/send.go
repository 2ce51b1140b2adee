package web

import (
	"cmp"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// writes bounds the pages that are being written: their number, and the bytes
// that they keep in memory, where a page that is written to several clients
// counts once. Beyond a bound, a new write ends another one, so that clients
// that do not read do not prevent answers to others: one of the client address
// with the most bytes to come; of these first one of a connection that has
// never taken a whole page; of these the one that has taken nothing for
// longest.
type writes struct {
	most             int // writes
	mostOfConnection int // of HTTP/2
	mostBytes        int // but a page always has room for pagesKept of its size

	mu           sync.Mutex
	open         map[*write]struct{}
	ofConnection map[*connection]int
	ofClient     map[string]int    // bytes
	pages        map[*rendered]int // how many write it
	bytes        int
}

// pagesKept is how many different pages of the size of the newest may be being
// written, however large they are.
const pagesKept = 4

func newWrites(most, mostOfConnection, mostBytes int) *writes {
	return &writes{
		most: most, mostOfConnection: mostOfConnection, mostBytes: mostBytes,
		open: map[*write]struct{}{}, ofConnection: map[*connection]int{}, ofClient: map[string]int{}, pages: map[*rendered]int{},
	}
}

// write is one page on its way to one client.
type write struct {
	page       *rendered
	connection *connection // nil: it cannot be ended early, and is not counted
	proven     bool        // the connection has taken a whole page before
	took       time.Time   // when the client last took a block; guarded by writes.mu
}

// send writes the page to the client. A client that takes nothing for
// stallTimeout, or does not have it all after sendTimeout, is cut off.
func (s *writes) send(w http.ResponseWriter, r *http.Request, page *rendered) {
	started := now()
	one, err := s.start(page, connectionOf(r.Context()), started)
	if err != nil {
		refuse(w, err)
		return
	}
	defer s.end(one)
	header := w.Header()
	for name, values := range page.header {
		header[name] = values
	}
	if header.Get("Content-Length") == "" {
		header.Set("Content-Length", strconv.Itoa(page.size))
	}
	controller, latest := http.NewResponseController(w), started.Add(sendTimeout)
	_ = controller.SetWriteDeadline(started.Add(stallTimeout)) // where there is none, nothing can stall
	w.WriteHeader(page.status)
	if r.Method == http.MethodHead {
		return
	}
	for _, block := range page.blocks {
		if _, err := w.Write(block); err != nil {
			return // the client has left, or was cut off
		}
		at := now()
		s.progressed(one, at)
		_ = controller.SetWriteDeadline(earlier(at.Add(stallTimeout), latest))
	}
	one.connection.prove()
}

// now is for deadlines of sockets, which are times with a monotonic clock
// reading.
func now() time.Time { return time.Now() } //nolint:forbidigo // see above

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func (s *writes) start(page *rendered, connection *connection, now time.Time) (*write, error) {
	one := &write{page: page, connection: connection, took: now, proven: connection.proven()}
	if connection == nil {
		return one, nil
	}
	s.mu.Lock()
	if s.ofConnection[connection] >= s.mostOfConnection {
		s.mu.Unlock()
		return nil, errBusy
	}
	s.add(one)
	ended := s.makeRoom(one)
	s.mu.Unlock()
	for _, other := range ended {
		_ = other.connection.Close() // its write fails at once, and ends
	}
	return one, nil
}

func (s *writes) add(one *write) {
	s.open[one] = struct{}{}
	s.ofConnection[one.connection]++
	s.ofClient[one.connection.client] += one.page.size
	if s.pages[one.page]++; s.pages[one.page] == 1 {
		s.bytes += one.page.size
	}
}

// remove is without effect where the write was ended early.
func (s *writes) remove(one *write) {
	if _, open := s.open[one]; !open {
		return
	}
	delete(s.open, one)
	if s.ofConnection[one.connection]--; s.ofConnection[one.connection] == 0 {
		delete(s.ofConnection, one.connection)
	}
	if s.ofClient[one.connection.client] -= one.page.size; s.ofClient[one.connection.client] == 0 {
		delete(s.ofClient, one.connection.client)
	}
	if s.pages[one.page]--; s.pages[one.page] == 0 {
		delete(s.pages, one.page)
		s.bytes -= one.page.size
	}
}

// makeRoom takes out the writes that are to be ended.
func (s *writes) makeRoom(newest *write) []*write {
	var ended []*write
	for len(s.open) > s.most || s.bytes > max(s.mostBytes, pagesKept*newest.page.size) {
		least := s.leastWorth(newest)
		if least == nil {
			break
		}
		s.remove(least)
		ended = append(ended, least)
	}
	return ended
}

func (s *writes) leastWorth(newest *write) *write {
	var least *write
	for one := range s.open {
		if one != newest && (least == nil || s.before(one, least)) {
			least = one
		}
	}
	return least
}

// before reports whether a is ended rather than b.
func (s *writes) before(a, b *write) bool {
	if byClient := cmp.Compare(s.ofClient[a.connection.client], s.ofClient[b.connection.client]); byClient != 0 {
		return byClient > 0
	}
	if a.proven != b.proven {
		return b.proven
	}
	return a.took.Before(b.took)
}

func (s *writes) progressed(one *write, now time.Time) {
	s.mu.Lock()
	one.took = now
	s.mu.Unlock()
	one.connection.progressed(now)
}

func (s *writes) end(one *write) {
	s.mu.Lock()
	s.remove(one)
	s.mu.Unlock()
}
