package apiserver

import "sync/atomic"

// Pages of lists, where the API server does not stream them. The API server
// limits a page by a count of objects, and an object may have 1.5 MiB.
const (
	pageObjects = 500 // asked for at once, unless they are large
	pageShrink  = 8   // by how much fewer objects after a page beyond the limit
	pageGrowth  = 4   // by how much more objects at most, after a short page
)

// pageSize is how many objects of a collection are asked for at once: judging
// by the page before, as many as have half of Limits.List together. It is safe
// for concurrent use; the zero value is right before the first page.
type pageSize struct{ objects atomic.Int64 }

// limit is how many objects to ask for now.
func (p *pageSize) limit() int64 {
	if objects := p.objects.Load(); objects > 0 {
		return objects
	}
	return pageObjects
}

// learn sets the size of the next page by that of the last: how many objects
// it could have had, and had, and the bytes of those.
func (p *pageSize) learn(asked, objects, bytes, most int64) {
	if objects == 0 {
		return
	}
	each := max(bytes/objects, 1)
	p.objects.Store(min(max(most/2/each, 1), max(asked, p.limit())*pageGrowth, pageObjects))
}

// shrink notes that as many objects as were asked for are larger than a page
// may be. False: it was one.
func (p *pageSize) shrink(asked int64) bool {
	if asked == 1 {
		return false
	}
	p.objects.Store(max(asked/pageShrink, 1))
	return true
}
