package otlp

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// answerBytes is how many bytes an answer that takes an export may have: it has
// one message in it. It is no round number, so that gRPC's words for an answer
// that is too large are told from a collector's, which has a limit of its own.
const answerBytes = 64<<10 - 1

// answerText is how many bytes of a collector's answer are read for its
// message.
const answerText = 4 << 10

// answer is an HTTP answer by which a collector did not take an export. The
// SDK's exporters make a string of it; as an error of the transport it reaches
// the caller, in a *url.Error, with its status.
type answer struct {
	Status     int
	RetryAfter time.Duration // the collector asks to be left alone for so long; 0: it does not say
	Message    string        // the collector's words, on one line; may be empty
}

// Error gives the status and the collector's words.
func (a *answer) Error() string {
	text := fmt.Sprintf("%d %s", a.Status, cmp.Or(http.StatusText(a.Status), "unknown status"))
	if a.Status/100 == 2 {
		text += ", and a web page, which is not the answer of a collector"
	}
	if a.Message != "" {
		text += ": " + a.Message
	}
	return text
}

// passing are the statuses that OTLP's specification has tried again.
func (a *answer) passing() bool {
	switch a.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// answers is a transport that makes an *answer of everything but a success. A
// redirection is no success either: most of them would make a GET without a
// body of the export, which any web server answers well.
type answers struct {
	inner http.RoundTripper
}

// newAnswers wraps the transport of an OTLP exporter.
func newAnswers(inner http.RoundTripper) http.RoundTripper { return &answers{inner: inner} }

// RoundTrip does what the inner transport does, and returns an *answer as its
// error where the status is not 2xx, or what came is a web page: servers and
// proxies that know nothing of OTLP answer everything so, and nothing would be
// taken.
func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := a.inner.RoundTrip(request)
	if err != nil || response.StatusCode/100 == 2 && !webPage(response) {
		return response, err
	}
	defer response.Body.Close()
	return nil, &answer{
		Status:     response.StatusCode,
		RetryAfter: retryAfterHeader(response.Header),
		Message:    answerMessage(response),
	}
}

// webPage reports whether a browser would show what came. An empty body is
// none, whatever it is called.
func webPage(response *http.Response) bool {
	return response.ContentLength != 0 && strings.HasPrefix(strings.ToLower(response.Header.Get("Content-Type")), "text/html")
}

// CloseIdleConnections lets http.Client reach the inner transport.
func (a *answers) CloseIdleConnections() {
	if inner, ok := a.inner.(interface{ CloseIdleConnections() }); ok {
		inner.CloseIdleConnections()
	}
}

// retryAfterHeader reads Retry-After, which is seconds or a date; the date is
// compared with the server's own, so that its clock need not agree with ours.
// What cannot be read is 0.
func retryAfterHeader(header http.Header) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}

// answerMessage is what the body says: the message of a google.rpc.Status, as
// OTLP has it, or text.
func answerMessage(response *http.Response) string {
	if location := response.Header.Get("Location"); location != "" {
		return "redirected to " + oneLine(location)
	}
	// What was read before an error is as good a message.
	body, _ := io.ReadAll(io.LimitReader(response.Body, answerText))
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/x-protobuf") {
		decoded := status.New(codes.Unknown, "").Proto()
		if proto.Unmarshal(body, decoded) != nil {
			return ""
		}
		return oneLine(decoded.GetMessage())
	}
	return oneLine(string(bytes.TrimSpace(body)))
}

// oneLine makes foreign text fit a log line: valid UTF-8, no control
// characters, 200 bytes. Only the beginning of the text is looked at.
func oneLine(text string) string {
	text = text[:min(len(text), answerText)]
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return r == ' ' || r < ' ' || r == 0x7f || r == 0x85
	}), " ")
	return cut(text, 200)
}
