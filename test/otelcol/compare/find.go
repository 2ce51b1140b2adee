package compare

import (
	"errors"
	"time"
)

// searchTime is for how long a snapshot is looked for on pages. A role that is busy
// makes the next one later than usual.
const searchTime = 10 * time.Second

// Find looks for a push whose rows are those of one of the pages, and whose
// live metrics lie between the page last taken before it and the one first
// taken after it. The pages are in the order in which they were taken, and of
// the sender of the pushes.
//
// Equal values of everything that accrues make it the page's snapshot; no
// other way of telling is needed. The error is the smallest *Difference that
// was found, or ErrNoPush if there was nothing to look at.
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

// around are the pages on both sides of a push.
func around(pages []*Page, push *Push) (before, after *Page) {
	if push.Sent.IsZero() {
		return nil, nil
	}
	for _, page := range pages {
		if page.Answered.Before(push.Sent) {
			before = page
		}
		if after == nil && page.Asked.After(push.Sent) {
			after = page
		}
	}
	return before, after
}

// join makes one of the differences in rows and in live metrics.
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
