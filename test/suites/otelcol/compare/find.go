package compare

import (
	"errors"
	"time"
)

// searchTime is for how long pages are searched for a snapshot. A busy role
// may make the next snapshot late.
const searchTime = 10 * time.Second

// liveAge is how old live metrics of a page may be: many scrapes share one
// reading. Those of a push are read for it.
const liveAge = 100 * time.Millisecond

// Find looks for a push whose rows equal those of one of the pages, and whose
// live metrics are between the last page before it and the first page after
// it. The pages must be in the order of their scrapes, and from the sender of
// the pushes.
//
// Equal values of all counters identify the page's snapshot. The error is the
// smallest *Difference, or ErrNoPush if there was nothing to compare.
func Find(pages []*Page, pushes []*Push, naming *Naming) (*Push, error) {
	var smallest *Difference
	for _, push := range pushes {
		before, after := around(pages, push)
		if before == nil || after == nil {
			continue
		}
		err := Live(before, after, push, naming)
		for _, page := range pages {
			if page.Answered.Before(push.Snapshot) || page.Asked.After(push.Snapshot.Add(searchTime)) {
				continue
			}
			found := errors.Join(Rows(page, push, naming), err)
			if found == nil {
				return push, nil
			}
			if difference := join(found); smallest == nil || len(difference.Lines) < len(smallest.Lines) {
				smallest = difference
			}
		}
	}
	if smallest == nil {
		return nil, ErrNoPush
	}
	return nil, smallest
}

// around returns the pages before and after a push. The live metrics of the page after
// it were read later.
func around(pages []*Page, push *Push) (before, after *Page) {
	if push.Sent.IsZero() {
		return nil, nil
	}
	for _, page := range pages {
		if page.Answered.Before(push.Sent) {
			before = page
		}
		if after == nil && page.Asked.After(push.Sent.Add(liveAge)) {
			after = page
		}
	}
	return before, after
}

// join merges the differences in rows and in live metrics.
func join(err error) *Difference {
	all := &Difference{}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range several.Unwrap() {
			var difference *Difference
			if errors.As(one, &difference) {
				all.Page, all.Push = difference.Page, difference.Push
				all.Lines = append(all.Lines, difference.Lines...)
			}
		}
	}
	return all
}
