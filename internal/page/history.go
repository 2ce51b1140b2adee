package page

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

const (
	historyMinutes = 60
	historyEvery   = 10 * time.Second // time between two observations

	// maxHistories is how many devices, and devices of claims, have a history, of about
	// 300 bytes each. Further ones have none until an hour after another one has ended.
	maxHistories = 4096
)

// History is the utilization of devices, and of claims on them, in the last hour: a mean
// for each minute. It is in memory only. It is safe for concurrent use.
type History struct {
	mu         sync.Mutex
	first, now int64 // minutes of the first and the last observation
	hours      map[usedDevice]*hour
}

// usedDevice is a device as a whole, or what a claim uses of it. A claim that is created
// again under its name has another UID.
type usedDevice struct{ namespace, claim, uid, uuid string }

// hour is the means of the last minutes, at their number modulo historyMinutes.
type hour struct {
	means [historyMinutes]float32
	last  int64 // newest minute; the mean of an older one that is not in the hour is invalid
	sum   float64
	count int // observations of the newest minute
}

// NewHistory returns an empty history.
func NewHistory() *History {
	return &History{first: -1, hours: make(map[usedDevice]*hour)}
}

// Run observes the newest model every ten seconds until the context ends. It is nil before
// the first. now is a time that never goes back.
func (h *History) Run(ctx context.Context, newest func() *model.Node, now func() time.Duration) {
	ticker := time.NewTicker(historyEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			h.observe(newest(), now())
		}
	}
}

// observe adds the utilization that a node has; nil: nothing is known. at is a time that
// never goes back.
func (h *History) observe(n *model.Node, at time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = int64(at / time.Minute)
	if h.first < 0 {
		h.first = h.now
	}
	if n != nil {
		h.addNode(n)
	}
	for d, hour := range h.hours {
		if h.now-hour.last >= historyMinutes {
			delete(h.hours, d)
		}
	}
}

func (h *History) addNode(n *model.Node) {
	for i := range n.Devices {
		d := &n.Devices[i]
		for _, reading := range d.Readings {
			if d.Fresh && reading.Quantity == device.Utilization {
				h.add(usedDevice{uuid: d.UUID}, reading.Value)
			}
		}
	}
	uids := make(map[dra.ClaimRef]string, len(n.Claims))
	for _, claim := range n.Claims {
		uids[claim.Ref] = claim.UID
	}
	for i := range n.Holds {
		if hold := &n.Holds[i]; hold.Utilization.Known {
			h.add(usedDevice{hold.Claim.Namespace, hold.Claim.Name, uids[hold.Claim], hold.UUID}, hold.Utilization.Value)
		}
	}
}

func (h *History) add(d usedDevice, value float64) {
	samples := h.hours[d]
	switch {
	case math.IsNaN(value):
		return
	case samples == nil && len(h.hours) >= maxHistories:
		return
	case samples == nil:
		samples = &hour{last: h.now - historyMinutes}
		h.hours[d] = samples
	}
	for minute := max(samples.last+1, h.first, h.now-historyMinutes+1); minute <= h.now; minute++ {
		samples.means[minute%historyMinutes] = float32(math.NaN())
		samples.sum, samples.count = 0, 0
	}
	samples.last = h.now
	samples.sum, samples.count = samples.sum+value, samples.count+1
	samples.means[h.now%historyMinutes] = float32(samples.sum / float64(samples.count))
}

// of returns the means of the last hour, the oldest first, or those since the first
// observation, the same number for all; NaN is unknown. It is nil unless at least two
// minutes are known.
func (h *History) of(used usedDevice) []float64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	hour := h.hours[used]
	if hour == nil {
		return nil
	}
	begin := max(h.first, h.now-historyMinutes+1)
	means, known := make([]float64, h.now-begin+1), 0
	for i := range means {
		means[i] = math.NaN()
		minute := begin + int64(i)
		if minute <= hour.last && minute > hour.last-historyMinutes {
			means[i] = float64(hour.means[minute%historyMinutes])
		}
		if !math.IsNaN(means[i]) {
			known++
		}
	}
	if known < 2 {
		return nil
	}
	return means
}

// addHistory adds the last hour of each claim's devices, and if all is true, of the
// devices themselves: others may have used them within the hour.
func (v *View) addHistory(h *History, all bool) {
	for i := range v.Claims {
		claim := &v.Claims[i]
		for j := range claim.Devices {
			claim.Devices[j].Hour = h.of(usedDevice{claim.Namespace, claim.Name, claim.UID, claim.Devices[j].UUID})
		}
	}
	if !all {
		return
	}
	for i := range v.Devices {
		v.Devices[i].Hour = h.of(usedDevice{uuid: v.Devices[i].UUID})
		for j := range v.Devices[i].Partitions {
			partition := &v.Devices[i].Partitions[j]
			partition.Hour = h.of(usedDevice{uuid: partition.UUID})
		}
	}
}

// graph is the utilization of some minutes, drawn in a box of Width times graphHeight.
type graph struct {
	Width      int
	Path, Text string
}

const graphHeight = 20

// newGraph draws ratios; what is unknown is a gap. It returns nil if there are none.
func newGraph(ratios []float64) *graph {
	var path strings.Builder
	sum, highest, known := 0.0, 0.0, 0
	drawn, level := false, 0 // whether the point before is known, and its height
	for i, ratio := range ratios {
		if math.IsNaN(ratio) {
			drawn = false
			continue
		}
		sum, highest, known = sum+ratio, max(highest, ratio), known+1
		y := depth(ratio)
		x := strconv.Itoa(i)
		switch {
		case !drawn: // a point is drawn even if there is no next one
			path.WriteString("M" + x + " " + strconv.Itoa(y) + "h0")
		case y == level && i+1 < len(ratios) && !math.IsNaN(ratios[i+1]) && depth(ratios[i+1]) == y: // within a level part
		case y == level:
			path.WriteString("H" + x)
		default:
			path.WriteString("L" + x + " " + strconv.Itoa(y))
		}
		drawn, level = true, y
	}
	if known == 0 {
		return nil
	}
	mean := sum / float64(known)
	last := "hour"
	if len(ratios) < historyMinutes {
		last = fmt.Sprintf("%d minutes", len(ratios))
	}
	return &graph{len(ratios) - 1, path.String(), fmt.Sprintf("Utilization in the last %s: mean %s, highest minute %s", last, percent(&mean), percent(&highest))}
}

// depth is where a ratio is drawn: 0 is the top, of ratio 1.
func depth(ratio float64) int {
	return graphHeight - int(math.Round(graphHeight*min(max(ratio, 0), 1)))
}
