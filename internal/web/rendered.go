package web

import (
	"net/http"
)

// blockSize is how much of a page is written at once, and the size of the
// blocks that it is kept in.
const blockSize = 16 << 10

// rendered is an answer that is complete, in memory. It does not change once
// it is rendered, so that several clients may be sent the same one.
type rendered struct {
	status int
	header http.Header
	blocks [][]byte
	size   int
}

// render has the handler answer into memory.
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
			p.blocks = append(p.blocks, make([]byte, 0, p.nextBlock()))
			last++
		}
		block := p.blocks[last]
		n := min(len(text), cap(block)-len(block))
		p.blocks[last] = append(block, text[:n]...)
		text = text[n:]
	}
	return written, nil
}

// nextBlock is small for the first block, as most answers are.
func (p *rendered) nextBlock() int {
	if len(p.blocks) == 0 {
		return blockSize / 8
	}
	return blockSize
}
