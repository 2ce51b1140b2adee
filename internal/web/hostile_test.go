package web_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// dial opens a connection for raw bytes. Reads fail after a minute.
func dial(t *testing.T, base string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return connection
}

// sendRaw sends raw bytes and returns the status and the body of the response; 0 if the
// connection ends without one.
func sendRaw(t *testing.T, base, request string) (status int, body string) {
	t.Helper()
	connection := dial(t, base)
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestOddRequests checks that invalid and unusual requests get an error, read nothing
// of the file system, and do not stop the server.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	base, _ := serve(t, testConfig(t))
	const end = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	for name, test := range map[string]struct {
		request string
		status  []int
	}{
		"another method":      {"TRACE /metrics" + end, []int{405}},
		"an invalid method":   {"BREW /" + end, []int{405}},
		"a proxy's request":   {"CONNECT internal:443" + end, []int{400, 404, 405}},
		"dots":                {"GET /../../../../etc/passwd" + end, []int{404, 307}},
		"escaped dots":        {"GET /%2e%2e/%2e%2e/etc/passwd" + end, []int{404, 307}},
		"a NUL":               {"GET /metrics%00/x" + end, []int{404}},
		"two slashes":         {"GET //evil.example/metrics" + end, []int{404, 307}},
		"another host":        {"GET http://169.254.169.254/latest" + end, []int{404}},
		"a host with a line":  {"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", []int{400}},
		"no host":             {"GET / HTTP/1.1\r\n\r\n", []int{400}},
		"two lengths":         {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", []int{400}},
		"a length and chunks": {"GET /unknown HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", []int{400, 404}},
		"no HTTP":             {"\x16\x03\x01\x02\x00\x01\x00\x01", []int{0, 400}},
		"a huge header":       {"GET / HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 80<<10) + "\r\n\r\n", []int{431}},
		"many headers":        {"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 20<<10) + "\r\n", []int{431}},
		"a huge path":         {"GET /" + strings.Repeat("a", 80<<10) + end, []int{431}},
		"a compressed body":   {"POST /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00", []int{405}},
		"a query without end": {"GET /?" + strings.Repeat("a=b;&%", 1000) + end, []int{200, 400}},
	} {
		status, body := sendRaw(t, base, test.request)
		expected := false
		for _, one := range test.status {
			expected = expected || status == one
		}
		if !expected || strings.Contains(body, "root:") {
			t.Errorf("%s: %d %.200q, want one of %v", name, status, body, test.status)
		}
	}
	if got := get(t, base+"/metrics", nil); got.status != http.StatusOK || got.body != plainText {
		t.Errorf("afterwards a scrape gets %d %q", got.status, got.body)
	}
}

// TestSlowHeaders checks that clients that do not complete their headers, or send
// nothing, are disconnected, and that other clients get responses meanwhile.
func TestSlowHeaders(t *testing.T) {
	t.Parallel()
	base, _ := serve(t, testConfig(t))
	const clients = 200
	slow := make([]net.Conn, clients)
	for i := range slow {
		slow[i] = dial(t, base)
		if i%2 == 0 {
			if _, err := io.WriteString(slow[i], "GET /metrics HTTP/1.1\r\nHost: x\r\nX-"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := get(t, base+"/metrics", nil); got.status != http.StatusOK {
		t.Errorf("beside %d slow clients a scrape gets %d", clients, got.status)
	}
	for i, connection := range slow {
		if _, err := io.Copy(io.Discard, connection); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the connection of slow client %d is still open after a minute", i)
		}
	}
}

// TestSlowBodies checks that endless bodies of GET requests occupy no slot.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	base, _ := serve(t, testConfig(t))
	const clients = 100
	for range clients {
		connection := dial(t, base)
		if _, err := fmt.Fprintf(connection, "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\nhalf", 1<<30); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		if got := get(t, base+"/", nil); got.status != http.StatusOK {
			t.Fatalf("beside %d slow bodies the page answers %d", clients, got.status)
		}
	}
}
