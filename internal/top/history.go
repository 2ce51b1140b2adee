package top

import (
	"fmt"
	"math"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Limits of the history: samples of a device or of a claim's part of it, and how
// many of these there are.
const (
	maxSamples = 240
	maxSeries  = 50_000
)

// history is the recent utilization and use of memory, as this program has seen
// them. It is not safe for concurrent use.
type history struct {
	times  []time.Time // of the samples, the newest last
	number int         // of samples ever
	series map[seriesKey]*sampleSeries
}

// seriesKey is a device, or a claim's part of it.
type seriesKey struct {
	deviceKey
	namespace, claim string
}

func (r *Row) seriesKey() seriesKey { return seriesKey{r.deviceKey(), r.Namespace, r.Claim} }

// sampleSeries has a sample of each time up to the newest, none older than itself.
type sampleSeries struct {
	utilization, memory []sample
	last                int // number of the last sample that was observed
}

// sample is a ratio in steps of 1/250.
type sample uint8

const (
	unknownSample sample = math.MaxUint8
	fullSample           = 250
)

func newSample(ratio *float64) sample {
	if ratio == nil || math.IsNaN(*ratio) {
		return unknownSample
	}
	return sample(math.Round(min(max(*ratio, 0), 1) * fullSample))
}

func newHistory() *history { return &history{series: map[seriesKey]*sampleSeries{}} }

// observe appends the values of a reading.
func (h *history) observe(reading *FleetState) {
	h.number++
	h.times = appendBounded(h.times, reading.At)
	for _, r := range reading.Rows {
		h.append(r.seriesKey(), r.Utilization, ratio(r.MemoryUsed, r.MemoryAllocated))
	}
	for _, d := range reading.All {
		h.append(seriesKey{deviceKey: deviceKey{d.Node, d.UUID}}, d.Utilization, ratio(d.MemoryUsed, d.MemorySize))
	}
	for key, series := range h.series {
		switch missed := h.number - series.last; {
		case missed > maxSamples/4:
			delete(h.series, key)
		case missed > 0:
			series.append(unknownSample, unknownSample)
		}
	}
}

func (h *history) append(key seriesKey, utilization, memory *float64) {
	series := h.series[key]
	if series == nil {
		if len(h.series) >= maxSeries {
			return
		}
		series = &sampleSeries{}
		h.series[key] = series
	}
	if series.last != h.number { // else an agent lists it twice
		series.last = h.number
		series.append(newSample(utilization), newSample(memory))
	}
}

func (s *sampleSeries) append(utilization, memory sample) {
	s.utilization, s.memory = appendBounded(s.utilization, utilization), appendBounded(s.memory, memory)
}

// appendBounded appends to a list, whose first entries it drops.
func appendBounded[T any](list []T, value T) []T {
	if len(list) < maxSamples {
		return append(list, value)
	}
	copy(list, list[1:])
	list[len(list)-1] = value
	return list
}

// mean returns the mean of several series at each time, the newest last; NaN
// where none is known.
func (h *history) mean(keys []seriesKey, read func(*sampleSeries) []sample) []float64 {
	sums, counts := make([]float64, len(h.times)), make([]int, len(h.times))
	for _, key := range keys {
		known := h.series[key]
		if known == nil {
			continue
		}
		samples := read(known)
		for i, s := range samples {
			if at := len(sums) - len(samples) + i; at >= 0 && s != unknownSample {
				sums[at] += float64(s) / fullSample
				counts[at]++
			}
		}
	}
	for i := range sums {
		sums[i] /= float64(counts[i]) // 0/0 is NaN
	}
	return sums
}

// span is how long ago the oldest of the last samples was taken.
func (h *history) span(last int) time.Duration {
	if len(h.times) == 0 {
		return 0
	}
	return h.times[len(h.times)-1].Sub(h.times[max(len(h.times)-last, 0)])
}

func ratio(part, whole *float64) *float64 {
	if part == nil || whole == nil || *whole <= 0 {
		return nil
	}
	return new(*part / *whole)
}

// graph draws ratios in so many columns and lines, the newest at the right.
// What is not 0 is seen, and unknown values leave a gap.
func (g Glyphs) graph(values []float64, columns, lines int) []string {
	values = values[max(len(values)-columns, 0):]
	steps := len(g.Levels)
	drawn := make([]string, lines)
	for line := range lines {
		below := (lines - 1 - line) * steps
		text := make([]rune, columns)
		for i := range text {
			text[i] = ' '
			at := i - (columns - len(values))
			if at < 0 || math.IsNaN(values[at]) {
				continue
			}
			level := int(math.Round(values[at] * float64(lines*steps)))
			if values[at] > 0 {
				level = max(level, 1)
			}
			if level = min(level-below, steps); level > 0 {
				text[i] = g.Levels[level-1]
			}
		}
		drawn[line] = string(text)
	}
	return drawn
}

// summarize says what a graph shows, in numbers.
func summarize(values []float64, window time.Duration) string {
	least, most, sum, known := math.Inf(1), 0.0, 0.0, 0
	for _, value := range values {
		if !math.IsNaN(value) {
			least, most, sum, known = min(least, value), max(most, value), sum+value, known+1
		}
	}
	if known == 0 {
		return "not known"
	}
	return fmt.Sprintf("last %s: least %s, mean %s, most %s", words.Age(window), words.Percent(least), words.Percent(sum/float64(known)), words.Percent(most))
}
