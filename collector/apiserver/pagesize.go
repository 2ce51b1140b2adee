package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
)

// Pages of lists, where the API server does not stream them. The API server
// limits a page by a count of objects, and an object may have 1.5 MiB.
const (
	pageObjects = 500     // asked for at once, unless they are large
	pageBytes   = 4 << 20 // aimed at
	pageLimit   = 8 << 20 // of more objects than one: a longer page is asked for again, shorter
	pageShrink  = 8       // by how much fewer objects then
	pageGrowth  = 4       // by how much more objects at most, after a short page
)

// errPageTooLong stands for a page of more than pageLimit bytes.
var errPageTooLong = errors.New("the page of the list is too long")

// pageSize is how many objects of a collection are asked for at once: judging
// by the page before, as many as have pageBytes together. It is safe for
// concurrent use; the zero value is right before the first page.
type pageSize struct{ objects atomic.Int64 }

// limit is how many objects to ask for now.
func (p *pageSize) limit() int64 {
	if objects := p.objects.Load(); objects > 0 {
		return objects
	}
	return pageObjects
}

// request reads one page by the given function, which is told how many objects
// to ask for and returns how many there were. The answer is cut off, and a
// shorter page asked for, where it becomes too long. One object alone may have
// any size.
func (p *pageSize) request(ctx context.Context, read func(ctx context.Context, limit int64) (objects int, err error)) error {
	for {
		limit := p.limit()
		answer := &answerLimit{}
		if limit > 1 {
			answer.most = pageLimit
		}
		objects, err := read(context.WithValue(ctx, answerKey{}, answer), limit)
		switch {
		case err == nil:
			p.learn(limit, int64(objects), answer.read.Load())
			return nil
		case errors.Is(err, errPageTooLong) && ctx.Err() == nil:
			p.objects.Store(max(limit/pageShrink, 1))
		default:
			return err
		}
	}
}

// learn sets the size of the next page by that of the last.
func (p *pageSize) learn(limit, objects, bytes int64) {
	if objects == 0 {
		return
	}
	each := max(bytes/objects, 1)
	p.objects.Store(min(max(pageBytes/each, 1), limit*pageGrowth, pageObjects))
}

// answerLimit limits and counts the bytes of the answer to one request, after
// they have been decompressed.
type answerLimit struct {
	most int64 // 0: any number
	read atomic.Int64
}

// answerKey finds the answerLimit in the context of a request.
type answerKey struct{}

// limitingTransport applies the answerLimit of requests that have one.
type limitingTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t limitingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	limit, limited := request.Context().Value(answerKey{}).(*answerLimit)
	if err != nil || !limited {
		return response, err
	}
	response.Body = &pageBody{ReadCloser: response.Body, limit: limit}
	return response, nil
}

// WrappedRoundTripper lets client-go find the transport beneath.
func (t limitingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

type pageBody struct {
	io.ReadCloser
	limit *answerLimit
}

// Read implements io.Reader.
func (b *pageBody) Read(into []byte) (int, error) {
	count, err := b.ReadCloser.Read(into)
	if read := b.limit.read.Add(int64(count)); b.limit.most > 0 && read > b.limit.most {
		return 0, fmt.Errorf("%w: more than %d bytes", errPageTooLong, b.limit.most)
	}
	return count, err // as it is: io.EOF is compared
}
