package web

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// slowWriter writes each block after a pause, or fails at its deadline.
type slowWriter struct {
	pause    time.Duration
	deadline time.Time
	written  int
}

func (s *slowWriter) Header() http.Header { return http.Header{} }
func (s *slowWriter) WriteHeader(int)     {}
func (s *slowWriter) SetWriteDeadline(deadline time.Time) error {
	s.deadline = deadline
	return nil
}

func (s *slowWriter) Write(block []byte) (int, error) {
	if left := s.deadline.Sub(now()); left < s.pause {
		time.Sleep(left)
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(s.pause)
	s.written += len(block)
	return len(block), nil
}

// TestDeadlinesOfWrites checks that a client that reads nothing is disconnected after
// stallTimeout, and one that reads slowly after sendTimeout.
func TestDeadlinesOfWrites(t *testing.T) {
	const blocks = 20
	page := pageOf(blocks * blockSize)
	for name, test := range map[string]struct {
		pause, ends time.Duration
		whole       bool
	}{
		"reads nothing":     {time.Hour, stallTimeout, false},
		"slow and steady":   {2 * time.Second, time.Duration(len(page.blocks)) * 2 * time.Second, true},
		"too slow in total": {stallTimeout - time.Second, sendTimeout, false},
		"reads immediately": {0, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, writer := time.Now(), &slowWriter{pause: test.pause}
				newWrites(10, 10, 1<<20).send(writer, httptest.NewRequest(http.MethodGet, "/", nil), page)
				if took := time.Since(begun); took != test.ends || (writer.written == page.size) != test.whole {
					t.Errorf("%d of %d bytes in %s, want it to end after %s", writer.written, page.size, took, test.ends)
				}
			})
		})
	}
}

// TestIdleConnectionsEnd checks that only connections without requests end.
func TestIdleConnectionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		limited := newConnections(10, 10).add(ours)
		defer limited.Close()
		if err := limited.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			go func() { _, _ = theirs.Write([]byte("x")) }() // Read returns the error
			if _, err := limited.Read(make([]byte, 1)); err != nil {
				t.Fatalf("a connection with requests: %v", err)
			}
			time.Sleep(idleTimeout - time.Second)
		}
		begun := time.Now()
		_, err := limited.Read(make([]byte, 1))
		if took := time.Since(begun); !errors.Is(err, os.ErrDeadlineExceeded) || took != idleTimeout {
			t.Errorf("a connection without requests ends after %s: %v", took, err)
		}
	})
}
