package watch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/objectfields"
)

// Limits bound what is accepted from an API server. A limit that is zero is
// the default.
type Limits struct {
	List    int64         // bytes of one page of a list; after a larger one, pages have fewer objects
	Object  int64         // bytes of one object that is read by its name
	Event   int64         // bytes of one event of a watch
	Failure int64         // bytes of the text of a failed request
	Objects int           // that a collection may have
	Lag     time.Duration // how long events may wait before their source is lagging
}

// orDefault fills in the defaults. The API server accepts objects of at most
// 3 MiB, and etcd of 1.5 MiB, which JSON makes larger. docs/security.md lists
// the limits.
func (l Limits) orDefault() Limits {
	return Limits{
		List:    cmp.Or(l.List, 8<<20),
		Object:  cmp.Or(l.Object, 8<<20),
		Event:   cmp.Or(l.Event, 8<<20),
		Failure: cmp.Or(l.Failure, 64<<10),
		Objects: cmp.Or(l.Objects, 300_000),
		Lag:     cmp.Or(l.Lag, 10*time.Second),
	}
}

// limitError reports that an answer exceeds a limit.
type limitError struct {
	what  string
	limit string
}

func (e *limitError) Error() string { return e.what + " than the limit of " + e.limit }

func isLimitExceeded(err error) bool {
	var exceeded *limitError
	return errors.As(err, &exceeded)
}

func tooLarge(subject string, limit int64) error {
	return &limitError{what: subject + " is larger", limit: formatSize(limit)}
}

func tooManyObjects(limit int) error {
	return &limitError{what: "there are more objects", limit: strconv.Itoa(limit)}
}

// formatSize renders a number of bytes in the largest unit that divides it.
func formatSize(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}

// request describes a request. It is in the context of the request.
type request struct {
	kind     requestKind
	bytes    *atomic.Int64 // of a list: set to the uncompressed size of the answer; may be nil
	exceeded func(error)   // of a watch: called when an event exceeds a limit; may be nil
	read     *atomic.Int64 // of a watch: set to the memory of all its events so far; may be nil
}

type requestKind int

const (
	requestList requestKind = iota // the default, if the context has no request
	requestObject
	requestWatch
)

type requestKey struct{}

func withRequest(ctx context.Context, r request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// LimitAnswers returns a copy of the configuration whose answers fail beyond the
// default limits. The limits apply to the size of an answer after decompression.
func LimitAnswers(config *rest.Config) *rest.Config { return limited(config, Limits{}.orDefault()) }

func limited(config *rest.Config, limits Limits) *rest.Config {
	bounded := rest.CopyConfig(config)
	bounded.Wrap(func(next http.RoundTripper) http.RoundTripper { return &limiter{next: next, limits: limits} })
	return bounded
}

// limiter is a transport whose answers fail at their limit.
type limiter struct {
	next   http.RoundTripper
	limits Limits
}

// RoundTrip implements http.RoundTripper.
func (l *limiter) RoundTrip(sent *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(sent)
	if err != nil || answer.Body == nil {
		return answer, err
	}
	if err := refuseRedirect(sent, answer); err != nil {
		return nil, errors.Join(err, answer.Body.Close())
	}
	described, _ := sent.Context().Value(requestKey{}).(request)
	switch {
	case answer.StatusCode < http.StatusOK || answer.StatusCode > http.StatusPartialContent:
		l.limitFailure(answer)
	case described.kind == requestWatch:
		answer.Body = newEventBody(answer, l.limits.Event, &described)
	case described.kind == requestObject:
		answer.Body = newLimitedBody(answer, l.limits.Object, "the object", nil)
	default:
		answer.Body = newLimitedBody(answer, l.limits.List, "the answer", described.bytes)
	}
	return answer, nil
}

// refuseRedirect returns an error for an answer that redirects to another host, or away
// from TLS: the next request would carry the credentials there.
func refuseRedirect(sent *http.Request, answer *http.Response) error {
	if answer.StatusCode < http.StatusMultipleChoices || answer.StatusCode >= http.StatusBadRequest {
		return nil
	}
	target, err := answer.Location()
	if err != nil || target.Hostname() == sent.URL.Hostname() && (target.Scheme == sent.URL.Scheme || target.Scheme == "https") {
		return nil //nolint:nilerr // it redirects nowhere
	}
	return fmt.Errorf("the API server redirects to another server, %s://%s, which is refused", target.Scheme, target.Host)
}

// WrappedRoundTripper gives client-go access to the idle connections.
func (l *limiter) WrappedRoundTripper() http.RoundTripper { return l.next }

// limitFailure reads the text of a failure and replaces one that is too long.
func (l *limiter) limitFailure(answer *http.Response) {
	text, err := io.ReadAll(io.LimitReader(answer.Body, l.limits.Failure+1))
	_ = answer.Body.Close() // what was read stays
	answer.Body = io.NopCloser(bytes.NewReader(text))
	if err != nil {
		answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader(text), failingReader{err}))
	}
	if int64(len(text)) > l.limits.Failure {
		text := tooLarge("the text of the API server's failure", l.limits.Failure).Error()
		answer.Header = answer.Header.Clone()
		answer.Header.Set("Content-Type", "text/plain")
		answer.Header.Del("Content-Length")
		answer.ContentLength = int64(len(text))
		answer.Body = io.NopCloser(strings.NewReader(text))
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// limitedBody is read as a whole at the first call of Read, which fails if the
// body exceeds the limit of its bytes or of its fields.
type limitedBody struct {
	io.ReadCloser
	limit    int64
	what     string
	protobuf bool
	size     *atomic.Int64 // may be nil
	whole    *bytes.Reader
	failed   error
}

func newLimitedBody(answer *http.Response, limit int64, subject string, size *atomic.Int64) *limitedBody {
	return &limitedBody{ReadCloser: answer.Body, limit: limit, what: subject, size: size, protobuf: isProtobuf(answer)}
}

func isProtobuf(answer *http.Response) bool {
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return err == nil && kind == runtime.ContentTypeProtobuf
}

func (b *limitedBody) Read(buffer []byte) (int, error) {
	if b.whole == nil {
		b.whole = bytes.NewReader(b.readAll())
	}
	if b.whole.Len() == 0 && b.failed != nil {
		return 0, b.failed
	}
	return b.whole.Read(buffer)
}

func (b *limitedBody) readAll() []byte {
	whole, err := io.ReadAll(io.LimitReader(b.ReadCloser, b.limit+1))
	if b.size != nil {
		b.size.Store(int64(len(whole)))
	}
	switch {
	case int64(len(whole)) > b.limit:
		b.failed = tooLarge(b.what, b.limit)
		return nil
	case b.countFields(whole) > objectfields.Max:
		b.failed = tooManyFields(b.what)
		return nil
	default:
		b.failed = err
		return whole
	}
}

func (b *limitedBody) countFields(whole []byte) int {
	if b.protobuf {
		return objectfields.Count(whole, objectfields.Max+1)
	}
	var counted objectCounter
	counted.count(whole)
	return counted.objects
}

func tooManyFields(subject string) error {
	return &limitError{what: subject + " has more fields", limit: strconv.Itoa(objectfields.Max)}
}

// eventBody is the body of a watch. It fails once an event exceeds the limit of
// its bytes, before they are read, or of its fields.
type eventBody struct {
	io.ReadCloser
	framing  framing
	limit    int64
	exceeded func(error)
	read     *atomic.Int64
	failed   error
}

func newEventBody(answer *http.Response, limit int64, described *request) *eventBody {
	body := &eventBody{ReadCloser: answer.Body, limit: limit, exceeded: described.exceeded, read: described.read, framing: &jsonFraming{}}
	if isProtobuf(answer) {
		body.framing = &lengthFraming{limit: limit}
	}
	return body
}

func (b *eventBody) Read(buffer []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.ReadCloser.Read(buffer)
	switch size := b.framing.largest(buffer[:n]); {
	case size > b.limit:
		b.failed = tooLarge("an event of the watch", b.limit)
	case b.framing.fields() > objectfields.Max:
		b.failed = tooManyFields("an event of the watch")
	default:
		if b.read != nil {
			b.read.Store(b.framing.memory())
		}
		return n, err
	}
	if b.exceeded != nil {
		b.exceeded(b.failed)
	}
	return 0, b.failed
}
