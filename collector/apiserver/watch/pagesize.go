package watch

import "sync/atomic"

// Pages of lists that the API server does not stream. The API server limits a
// page by its number of objects, and an object may have 1.5 MiB.
const (
	PageObjects = 500 // of one page, unless they are large
	pageShrink  = 8   // divides the number of objects after a page beyond the limit
	pageGrowth  = 4   // multiplies it at most, after a short page
)

// pageSize is the number of objects of a collection to ask for in one request:
// so many that together they have half of Limits.List, estimated from the
// previous page. It is safe for concurrent use; the zero value is the size of
// the first page.
type pageSize struct{ objects atomic.Int64 }

// limit returns the number of objects of the next page.
func (p *pageSize) limit() int64 {
	if objects := p.objects.Load(); objects > 0 {
		return objects
	}
	return PageObjects
}

// learn sets the size of the next page from the last one: how many objects were
// asked for and returned, their bytes, and the most bytes that a page may have.
func (p *pageSize) learn(asked, objects, bytes, most int64) {
	if objects == 0 {
		return
	}
	size := max(bytes/objects, 1)
	p.objects.Store(min(max(most/2/size, 1), max(asked, p.limit())*pageGrowth, PageObjects))
}

// shrink makes the next page smaller after a page that exceeded the limit. It
// returns false if that page had only one object.
func (p *pageSize) shrink(asked int64) bool {
	if asked == 1 {
		return false
	}
	p.objects.Store(max(asked/pageShrink, 1))
	return true
}
