package compare

import (
	"math"
	"sort"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/smi"
)

// point is a value at a time.
type point struct {
	at    time.Time
	value Value
}

// series are points in the order of time.
type series []point

// reported reports whether any point in a window is known.
func (s series) reported(w Window) bool {
	for _, p := range s {
		if p.value.Known && w.contains(p.at) {
			return true
		}
	}
	return false
}

// known are the points of a window that are known.
func (s series) known(w Window) series {
	var found series
	for _, p := range s {
		if p.value.Known && w.contains(p.at) {
			found = append(found, p)
		}
	}
	return found
}

// bounds are the least and the greatest number of all points, and the coarsest
// resolution.
func (s series) bounds() (least, most, resolution float64) {
	least, most = math.Inf(1), math.Inf(-1)
	for _, p := range s {
		least, most = min(least, p.value.Number), max(most, p.value.Number)
		resolution = max(resolution, p.value.Resolution)
	}
	return least, most, resolution
}

func (s series) mean() float64 {
	sum := 0.0
	for _, p := range s {
		sum += p.value.Number
	}
	return sum / float64(len(s))
}

// value is the number at a time, on a line between the points around it. Before
// the first and after the last it is theirs. There must be a point.
func (s series) value(at time.Time) float64 {
	next := sort.Search(len(s), func(i int) bool { return !s[i].at.Before(at) })
	switch {
	case next == 0:
		return s[0].value.Number
	case next == len(s):
		return s[len(s)-1].value.Number
	}
	before, after := s[next-1], s[next]
	part := at.Sub(before.at).Seconds() / after.at.Sub(before.at).Seconds()
	return before.value.Number + part*(after.value.Number-before.value.Number)
}

// unwrapped is a counter of 32 bits as if it were wide enough. What has fallen
// has started again at 0 once.
func (s series) unwrapped() series {
	var wide series
	base, last := 0.0, 0.0
	for _, p := range s {
		if p.value.Number < last {
			base += 1 << 32
		}
		last = p.value.Number
		p.value.Number += base
		wide = append(wide, p)
	}
	return wide
}

// gap is the longest time between two points.
func (s series) gap() time.Duration {
	longest := time.Duration(0)
	for i := 1; i < len(s); i++ {
		longest = max(longest, s[i].at.Sub(s[i-1].at))
	}
	return longest
}

// agentSeries is what the agent's pages have of a family with some label values,
// one point for each page. With a label, the values are its texts.
func agentSeries(pages []AgentPage, family, label string, labels map[string]string) series {
	var all series
	for _, page := range pages {
		value := Value{}
		for _, m := range page.Families[family].GetMetric() {
			if matches(m, labels) {
				value = agentValue(m, label)
			}
		}
		all = append(all, point{page.Time, value})
	}
	return all
}

func matches(m *dto.Metric, labels map[string]string) bool {
	for name, want := range labels {
		if labelOf(m, name) != want {
			return false
		}
	}
	return true
}

func labelOf(m *dto.Metric, name string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

func agentValue(m *dto.Metric, label string) Value {
	if label != "" {
		return words(labelOf(m, label))
	}
	for _, n := range []*float64{
		valueOf(m.GetGauge() != nil, m.GetGauge().GetValue()),
		valueOf(m.GetCounter() != nil, m.GetCounter().GetValue()),
		valueOf(m.GetUntyped() != nil, m.GetUntyped().GetValue()),
	} {
		if n != nil {
			return number(n)
		}
	}
	return Value{}
}

func valueOf(there bool, value float64) *float64 {
	if !there {
		return nil
	}
	return &value
}

// deviceLabels are the labels of a device's series.
func deviceLabels(uuid string, more map[string]string) map[string]string {
	labels := map[string]string{"uuid": uuid}
	for name, value := range more {
		labels[name] = value
	}
	return labels
}

// librarySeries is what the library reports of a device, one point for each
// sample that has the device.
func (o Observations) librarySeries(uuid string, read func(LibraryDevice) Value) series {
	var all series
	for _, sample := range o.Library {
		for _, d := range sample.Devices {
			if d.UUID == uuid {
				all = append(all, point{d.Time, read(LibraryDevice{d, sample.DriverVersion})})
			}
		}
	}
	return all
}

// smiSeries is what nvidia-smi prints of a device.
func (o Observations) smiSeries(d subject, row Row) series {
	var all series
	for _, l := range o.SMI {
		for _, gpu := range l.Log.GPUs {
			switch {
			case d.parent == "" && gpu.UUID == d.uuid && row.SMI != nil:
				all = append(all, point{l.Time, row.SMI(SMIGPU{gpu, l.Log.DriverVersion})})
			case d.parent != "" && gpu.UUID == d.parent && row.SMIPartition != nil:
				for _, m := range gpu.MIG.Devices {
					if d.is(m) {
						all = append(all, point{l.Time, row.SMIPartition(m)})
					}
				}
			}
		}
	}
	return all
}

// subject is a device that is compared.
type subject struct {
	uuid, parent string
	instances    [2]float64 // of a MIG device: of the GPU, and for computing
}

// is reports whether a MIG device of nvidia-smi is the same, by its UUID, or by
// the ids of its instances where no UUID is printed.
func (d subject) is(m smi.MIGDevice) bool {
	if m.UUID != "" {
		return m.UUID == d.uuid
	}
	return m.GPUInstance.Known && m.ComputeInstance.Known && [2]float64{m.GPUInstance.Value, m.ComputeInstance.Value} == d.instances
}

// subjects are the devices that the library has reported in a window, in its
// order, or nvidia-smi's GPUs if the library has reported none.
func (o Observations) subjects(w Window) []subject {
	var found []subject
	known := make(map[string]bool)
	add := func(s subject) {
		if !known[s.uuid] {
			known[s.uuid] = true
			found = append(found, s)
		}
	}
	for _, sample := range o.Library {
		if !w.contains(sample.Time) {
			continue
		}
		for _, d := range sample.Devices {
			s := subject{uuid: d.UUID, parent: d.ParentUUID, instances: [2]float64{-1, -1}}
			if d.GPUInstance != nil && d.ComputeInstance != nil {
				s.instances = [2]float64{*d.GPUInstance, *d.ComputeInstance}
			}
			add(s)
		}
	}
	if len(found) > 0 {
		return found
	}
	for _, l := range o.SMI {
		for _, gpu := range l.Log.GPUs {
			if w.contains(l.Time) {
				add(subject{uuid: gpu.UUID})
			}
		}
	}
	return found
}

// pages are the agent's pages of a window.
func (o Observations) pages(w Window) []AgentPage {
	var found []AgentPage
	for _, page := range o.Agent {
		if w.contains(page.Time) {
			found = append(found, page)
		}
	}
	return found
}
