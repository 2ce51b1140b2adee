package role

import (
	"math"
	"math/rand/v2"
	"slices"
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
		"nobody":                  {node: rest, want: 5 * time.Second},
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
				pace.need()
			}
			for _, now = range c.scrapes {
				pace.scraped()
			}
			now = 200 * time.Second
			if got := pace.next(c.node); got != c.want {
				t.Errorf("read each %s, want %s", got, c.want)
			}
		})
	}
}

// TestReadsOfHeldDevices is why held devices are read at each interval: at twice the
// interval, the busy and idle seconds of an hour differ too much in the worst of twenty
// load curves. Docs/limitations.md has the figure.
func TestReadsOfHeldDevices(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, every := range []int{2, 5} {
		errors := make([]float64, 1000)
		for i := range errors {
			utilization := randomLoad(random)
			busy, idle := accrue(utilization, 0, 1)
			slowBusy, slowIdle := accrue(utilization, random.IntN(every), every)
			errors[i] = max(math.Abs(slowBusy-busy)/max(5, busy/50), math.Abs(slowIdle-idle)/max(5, idle/50))
		}
		slices.Sort(errors)
		worst := errors[len(errors)*95/100]
		t.Logf("read every %d s: %.1f of what is allowed (5 s or 2 %%)", every, worst)
		if worst <= 1 {
			t.Errorf("reads every %d s of held devices would be good enough", every)
		}
	}
}

// randomLoad returns the utilization of each second of an hour: it is on and off for times
// from a fifth of a second to ten minutes on average.
func randomLoad(random *rand.Rand) []float64 {
	const perSecond = 10
	mean := func() float64 { return 0.2 * math.Pow(3000, random.Float64()) }
	means, level, on := [2]float64{mean(), mean()}, 0.1+0.9*random.Float64(), random.IntN(2)
	utilization, left := make([]float64, 3600), 0.0
	for i := range utilization {
		for range perSecond {
			if left -= 1.0 / perSecond; left <= 0 {
				on, left = 1-on, random.ExpFloat64()*means[on]
			}
			utilization[i] += level * float64(on) / perSecond
		}
	}
	return utilization
}

// accrue returns the busy and the idle seconds that reads so many seconds apart find.
func accrue(utilization []float64, first, every int) (busy, idle float64) {
	reads := 0.0
	for i := first; i < len(utilization); i += every {
		reads++
		busy += utilization[i]
		if utilization[i] < 0.01 {
			idle++
		}
	}
	seconds := float64(len(utilization)) / reads
	return busy * seconds, idle * seconds
}
