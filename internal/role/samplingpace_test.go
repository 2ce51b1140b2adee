package role

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// TestSamplingPace lists who needs reads how often.
func TestSamplingPace(t *testing.T) {
	rest := &model.Node{Claims: []*model.Claim{{}}, Devices: make([]model.Device, 2)}
	held := &model.Node{Devices: []model.Device{{}, {Holders: model.HolderCounts{Claims: 1}}}}
	plugin := &model.Node{Devices: []model.Device{{Holders: model.HolderCounts{Possible: 1}}}}
	admin := &model.Node{Claims: []*model.Claim{{Live: true, Admin: true}}}
	seconds := func(n ...int) (all []time.Duration) {
		for _, s := range n {
			all = append(all, time.Duration(s)*time.Second)
		}
		return all
	}
	for name, c := range map[string]struct {
		node     *model.Node
		interval time.Duration
		always   bool
		needs    []time.Duration
		scrapes  []time.Duration
		want     time.Duration // 200 s after the start
	}{
		"nothing known":           {node: nil, want: time.Second},
		"no holder":               {node: rest, want: 5 * time.Second},
		"a claim":                 {node: held, want: time.Second},
		"perhaps a pod":           {node: plugin, want: time.Second},
		"admin access":            {node: admin, want: time.Second},
		"rates of readings":       {node: rest, always: true, want: time.Second},
		"a page":                  {node: rest, needs: seconds(180), want: time.Second},
		"a page of earlier":       {node: rest, needs: seconds(160), want: 5 * time.Second},
		"a long interval":         {node: rest, interval: 20 * time.Second, want: 20 * time.Second},
		"scrapes each 15 s":       {node: rest, scrapes: seconds(150, 165, 180, 195), want: 5 * time.Second},
		"scrapes each 6 s":        {node: rest, scrapes: seconds(182, 188, 194, 200), want: 2 * time.Second},
		"scrapes each second":     {node: rest, scrapes: seconds(196, 197, 198, 199), want: time.Second},
		"two servers":             {node: rest, scrapes: seconds(164, 173, 179, 188, 194), want: 2 * time.Second},
		"the shortest of three":   {node: rest, scrapes: seconds(158, 164, 179, 194), want: 2 * time.Second},
		"not the one before":      {node: rest, scrapes: seconds(149, 150, 165, 180, 195), want: 5 * time.Second},
		"one scrape":              {node: rest, scrapes: seconds(199), want: 5 * time.Second},
		"scrapes that have ended": {node: rest, scrapes: seconds(70, 71, 72, 73), want: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Duration(0)
			pace := samplingPace{interval: max(c.interval, time.Second), always: c.always, clock: func() clock.Instant { return clock.Instant{Elapsed: now} }}
			for _, now = range c.needs {
				pace.noteNeed()
			}
			for _, now = range c.scrapes {
				pace.noteScrape()
			}
			now = 200 * time.Second
			if got := pace.next(c.node); got != c.want {
				t.Errorf("read each %s, want %s", got, c.want)
			}
		})
	}
}
