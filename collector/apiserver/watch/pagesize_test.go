package watch

import "testing"

// TestPageSize reads objects of changing sizes: all come once, in order, in
// pages within the limit, but for an object that exceeds it alone.
func TestPageSize(t *testing.T) {
	const count, most = 2000, 8 << 20
	size := func(i int64) int64 {
		switch {
		case i < 600:
			return 1000
		case i < 700:
			return 1 << 20
		case i == 700:
			return most + 1000
		default:
			return 300
		}
	}
	pages, requests := pageSize{}, 0
	for next := int64(0); next < count; {
		requests++
		asked, bytes := pages.limit(), int64(0)
		objects := min(asked, count-next)
		for i := next; i < next+objects; i++ {
			bytes += size(i)
		}
		if bytes > most && pages.shrink(asked) {
			continue
		}
		if bytes > most && objects != 1 {
			t.Errorf("%d objects from %d have %d bytes", objects, next, bytes)
		}
		pages.learn(asked, objects, bytes, most)
		next += objects
	}
	if requests > 60 {
		t.Errorf("%d requests", requests)
	}
}
