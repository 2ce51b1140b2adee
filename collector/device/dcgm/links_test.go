//go:build cgo && linux

package dcgm

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

// newLinkReader returns the reader of a source, and the elapsed time of its
// clock, which the test advances. That clock runs faster than the engine samples,
// so the interval is long: no value becomes stale before the next sample.
func newLinkReader(t *testing.T, node *stubs.Node) (r device.Reader, elapsed *time.Duration) {
	t.Helper()
	use(t, node)
	now := time.Hour
	s := newSource(t, Options{Interval: time.Hour, Clock: func() clock.Instant { return clock.Instant{Elapsed: now} }})
	return connected(t, s), &now
}

// The states of links are read periodically, because an engine queries the
// driver for each link. That a link is down is confirmed by the next read.
func TestLinkStatesAreReadPeriodically(t *testing.T) {
	node := stubs.NewNode(t, 1)
	r, elapsed := newLinkReader(t, node)
	for _, step := range []struct {
		links string
		after time.Duration
		want  float64
	}{
		{"1", 0, 0}, {"0", linkInterval - 1, 0},
		{"0", 1, 1}, {"1", 1, 0}, // down in one read
		{"0", linkInterval - 1, 0}, {"0", 1, 1}, {"0", 1, 1},
		{"1", linkInterval - 1, 1}, {"1", 1, 0}, // confirmed by a second read
	} {
		node.Set(0, "nvlink.3.state", step.links)
		*elapsed += step.after
		got, is := reading(read(t, r, device.Fast)[0], device.NVLinks, "inactive")
		if got != step.want || !is {
			t.Errorf("after %v with a link at %s there are %v down (%v), want %v", step.after, step.links, got, is, step.want)
		}
	}
}

// Link states that are used again keep the time at which they were read.
func TestTimesOfLinkStates(t *testing.T) {
	node := stubs.NewNode(t, 1)
	r, elapsed := newLinkReader(t, node)
	for _, step := range []struct{ after, want time.Duration }{
		{0, 0}, {time.Second, 0}, {linkInterval - time.Second, linkInterval}, {linkInterval / 2, linkInterval},
	} {
		*elapsed += step.after
		at, is := measured(read(t, r, device.Fast)[0], device.NVLinks, "active")
		if want := (device.Window{From: time.Hour + step.want, To: time.Hour + step.want}); at != want || !is {
			t.Errorf("at %v links were read at %v (%v), want %v", *elapsed, at, is, want)
		}
	}
}

// In MIG mode the driver reports every link as down. That gives no reading, even
// before an instance is created.
func TestLinksInMIGMode(t *testing.T) {
	node := stubs.NewNode(t, 2)
	r, elapsed := newLinkReader(t, node)
	expect := func(when, want string) {
		t.Helper()
		*elapsed += linkInterval
		var got []string
		for _, o := range read(t, r, device.Fast) {
			up, is := reading(o, device.NVLinks, "active")
			_, down := reading(o, device.NVLinks, "inactive")
			switch {
			case is != down:
				t.Errorf("%s: half of the states are missing", when)
			case !is:
				got = append(got, "none")
			case up == 18:
				got = append(got, "up")
			default:
				got = append(got, "down")
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: the links are %s, want %s", when, text, want)
		}
	}
	expect("outside", "up up")
	node.SetMIGMode(0, true)
	expect("in MIG mode", "none up")
	node.Set(0, "dcgm.field.67", "blank")
	expect("a mode that is not reported", "none up")
	node.SetMIGMode(0, false)
	expect("not reported, outside of MIG mode", "none up")
	node.Set(0, "dcgm.field.67", "status:NOT_SUPPORTED")
	expect("a GPU without such a mode", "up up")
	node.Unset(0, "dcgm.field.67")
	expect("outside again", "up up")
	node.SetNode("dcgm.return.dcgmGetNvLinkLinkStatus", "GENERIC_ERROR")
	*elapsed += linkInterval
	if observations, err := r.Read(t.Context(), device.Fast); !errors.Is(err, status(-3)) {
		t.Errorf("links that fail are %v\n%s", err, written(observations, nil))
	}
}

func TestFewerLinks(t *testing.T) {
	a, b := entity{wholeGPU, 0}, entity{wholeGPU, 1}
	for _, test := range []struct {
		what        string
		now, before map[entity]links
		want        bool
	}{
		{"the first answer", map[entity]links{a: {up: 3, down: 1}}, nil, false},
		{"as before", map[entity]links{a: {up: 3, down: 1}}, map[entity]links{a: {up: 3, down: 1}}, false},
		{"one came up", map[entity]links{a: {up: 4}}, map[entity]links{a: {up: 3, down: 1}}, false},
		{"one went down", map[entity]links{a: {up: 4}, b: {up: 3, down: 1}}, map[entity]links{a: {up: 3}, b: {up: 4}}, true},
		{"one is missing", map[entity]links{a: {up: 3}}, map[entity]links{a: {up: 4}}, true},
		{"a GPU without links", map[entity]links{b: {up: 4}}, map[entity]links{a: {up: 4}, b: {up: 4}}, false},
		{"no answer", nil, map[entity]links{a: {up: 4}}, false},
	} {
		if got := fewerUp(test.now, test.before); got != test.want {
			t.Errorf("%s: fewer %v", test.what, got)
		}
	}
}
