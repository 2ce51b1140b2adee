package watch

import "sync/atomic"

// Pages of lists that the API server does not stream. The API server limits a
// page by its number of objects, and an object may have 1.5 MiB.
const (
	PageObjects = 500 // of one page, unless they are large
	pageShrink  = 8   // divides the number of objects after a page beyond the limit
	pageGrowth  = 4   // multiplies it at most, after a short page
)

// pageSize is how many objects of a collection one request asks for: as many as
// have half of Limits.List together, estimated from the page before. It is safe
// for concurrent use; the zero value is the size of the first page.
type pageSize struct{ objects atomic.Int64 }

// limit is the number of objects of the next page.
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

// shrink makes the next page smaller, since a page of as many objects was larger
// than it may be. It returns false if that was one object.
func (p *pageSize) shrink(asked int64) bool {
	if asked == 1 {
		return false
	}
	p.objects.Store(max(asked/pageShrink, 1))
	return true
}
