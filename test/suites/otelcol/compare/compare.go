package compare

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrNoPush is the error if there is nothing to compare: no push has arrived,
// or none between two pages.
var ErrNoPush = errors.New("no push from between two pages")

// Difference is the difference between a page and a push.
type Difference struct {
	Page, Push string // descriptions of both
	Lines      []string
}

// Error returns the first lines.
func (d *Difference) Error() string {
	const most = 20
	lines := d.Lines
	if len(lines) > most {
		lines = append(slices.Clone(lines[:most]), fmt.Sprintf("and %d more", len(lines)-most))
	}
	return fmt.Sprintf("%s and %s differ:\n%s", d.Page, d.Push, strings.Join(lines, "\n"))
}

// err returns nil if there is no difference.
func (d *Difference) err() error {
	if len(d.Lines) == 0 {
		return nil
	}
	slices.Sort(d.Lines)
	return d
}

func (d *Difference) add(key, format string, arguments ...any) {
	d.Lines = append(d.Lines, key+": "+fmt.Sprintf(format, arguments...))
}

// Rows returns how the rows of a page differ from those of a push, nil if they
// are of the same snapshot. A push may also end series that the page does not
// have.
func Rows(page *Page, push *Push, naming *Naming) error {
	rows, _ := scraped(page)
	difference := &Difference{Page: page.String(), Push: push.String()}
	for _, key := range push.duplicates {
		difference.add(key, "is pushed twice, with two values")
	}
	for key := range push.ended {
		if _, there := push.rows[key]; there {
			difference.add(key, "is called off, and pushed all the same")
		}
	}
	pushed := map[string]series{}
	for _, point := range push.rows {
		if plain, row := naming.plain(point); row {
			if _, twice := pushed[plain.key()]; twice {
				difference.add(plain.key(), "only attributes of other rows distinguish two points")
			}
			pushed[plain.key()] = plain
		}
	}
	for _, s := range rows {
		want := naming.expect(s)
		got, arrived := pushed[want.key()]
		delete(pushed, want.key())
		if !arrived {
			difference.add(want.key(), "is not pushed")
			continue
		}
		difference.shape(want, got)
		if !same(got.parts, want.parts) {
			difference.add(want.key(), "is %v, pushed as %v", want.parts, got.parts)
		}
	}
	for key := range pushed {
		difference.add(key, "is not on the page")
	}
	return difference.err()
}

// shape compares everything except the values.
func (d *Difference) shape(want, got series) {
	if got.kind != want.kind {
		d.add(want.key(), "is a %s, pushed as a %s", want.kind, got.kind)
	}
	if got.unit != want.unit {
		d.add(want.key(), "is in %q, pushed in %q", want.unit, got.unit)
	}
	if got.help != want.help {
		d.add(want.key(), "is described by %q, pushed with %q", want.help, got.help)
	}
	if got.start != want.start {
		d.add(want.key(), "began at %s, pushed as %s", began(want.start), began(got.start))
	}
}

func began(nanoseconds uint64) string {
	if nanoseconds == 0 {
		return "an unknown time"
	}
	return time.Unix(0, int64(nanoseconds)).UTC().Format(time.RFC3339Nano)
}

// String identifies the page.
func (p *Page) String() string { return "the page of " + p.Answered.UTC().Format(time.RFC3339Nano) }

// String identifies the push.
func (p *Push) String() string { return "the push of " + p.Snapshot.UTC().Format(time.RFC3339Nano) }

// Names returns the families of the page, sorted.
func (p *Page) Names() []string { return slices.Sorted(maps.Keys(p.Families)) }
