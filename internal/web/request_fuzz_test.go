package web_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/web"
)

// FuzzRequest sends any bytes to a running server, and closes the connection for writing.
// The server must respond with an expected status, or close the connection.
func FuzzRequest(f *testing.F) {
	for _, request := range []string{
		"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, zstd;q=0.5, *;q=0\r\nAccept: application/openmetrics-text;version=1.0.0;q=0.3\r\n\r\n",
		"GET /metrics?name[]=a&name[]=%ff HTTP/1.0\r\n\r\n",
		"HEAD / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YTpi\r\n\r\nGET /-/ready HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"GET /%2e%2e/%00?a=b;c HTTP/1.1\r\nHost: a:b\r\nIf-None-Match: *\r\nRange: bytes=0-,-1\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
		"\x16\x03\x01\x02\x00\x01\x00\x01",
	} {
		f.Add([]byte(request))
	}
	server, err := web.Listen(testConfig(f))
	if err != nil {
		f.Fatal(err)
	}
	address := server.Addresses()[0].String()
	ctx, ended := f.Context(), make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	f.Cleanup(func() {
		if err := <-ended; err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, request []byte) {
		if len(request) > 4<<10 {
			t.Skip("TestOddRequests has long requests")
		}
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer connection.Close()
		if err := connection.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, _ = connection.Write(request) // the server may have closed before its end
		_ = connection.(*net.TCPConn).CloseWrite()
		checkAnswers(t, request, bufio.NewReader(connection))
	})
}

// checkAnswers reads responses until the server closes the connection.
func checkAnswers(t *testing.T, request []byte, from *bufio.Reader) {
	t.Helper()
	for {
		if _, err := from.Peek(1); err != nil {
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				t.Fatalf("%q: the connection stays open", request)
			}
			return
		}
		// The response to HEAD has no body. The method of a response is unknown here,
		// but no body begins with HTTP/, so that the next response is found anyway.
		method := http.MethodGet
		if strings.Contains(string(request), http.MethodHead) {
			method = http.MethodHead
		}
		answer, err := http.ReadResponse(from, &http.Request{Method: method})
		if err != nil {
			return // after a HEAD, the body of another response
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if !slices.Contains([]int{100, 200, 206, 304, 307, 308, 400, 403, 404, 405, 406, 408, 412, 413, 414, 416, 417, 421, 431, 501, 503, 505}, answer.StatusCode) {
			t.Errorf("%q: %s", request, answer.Status)
		}
		if location := answer.Header.Get("Location"); location != "" && !strings.HasPrefix(location, "/") || strings.HasPrefix(location, "//") {
			t.Errorf("%q: the location is %q", request, location)
		}
		if len(body) > 64<<10 {
			t.Errorf("%q: %d bytes", request, len(body))
		}
		if method == http.MethodHead {
			return
		}
	}
}
