// Package cost reads from a recording of the management library what the agent's
// calls have cost: the duration of each function, and of whole reads of a GPU.
package cost

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Calls are the durations of the calls of one function: seconds, with what the
// recorder needs to pass a call on.
type Calls struct {
	Function string  `json:"function"`
	Count    int     `json:"count"`
	P50      float64 `json:"p50_seconds"`
	P99      float64 `json:"p99_seconds"`
	Most     float64 `json:"max_seconds"`
}

// Tier says what a read of a GPU reads.
type Tier string

// The tiers.
const (
	Fast  Tier = "fast"
	Tiers Tier = "fast and slow"
)

// Reads are the durations of reads of one GPU with its MIG devices, from the first
// call until the last one has returned: seconds, with what the agent and the
// recorder do between calls.
type Reads struct {
	Device string  `json:"device"` // its name in the recording: d0
	Tier   Tier    `json:"tier"`
	Count  int     `json:"count"`
	Calls  float64 `json:"calls"` // in a read, the mean
	P50    float64 `json:"p50_seconds"`
	P99    float64 `json:"p99_seconds"`
	Most   float64 `json:"max_seconds"`
}

// Recording is what a recording says of the cost. Calls are in the order of the
// time that all calls of a function took, Reads in that of devices and tiers.
type Recording struct {
	Calls []Calls `json:"calls"`
	Reads []Reads `json:"reads"`
}

// What is known of the agent's calls.
const (
	// pause is what the agent leaves at least between two reads of a GPU, which it
	// begins each second: nanoseconds.
	pause = 200e6
	// Functions that begin with fastPrefix are called in each read of a GPU,
	// slowFunction in those of the slow tier.
	fastPrefix   = "nvmlDeviceGetMemoryInfo"
	slowFunction = "nvmlDeviceGetEnforcedPowerLimit"
	waitPrefix   = "nvmlEventSetWait" // takes as long as the caller waits
)

// mostLine is how long a line may be, in bytes.
const mostLine = 1 << 20

// Read reads a recording. Lines are in the order in which calls returned. What is
// no call is left out, and so are waits for events, and the texts of errors that
// the recorder itself has asked for.
func Read(from io.Reader) (Recording, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, mostLine)
	if !lines.Scan() || !bytes.HasPrefix(lines.Bytes(), []byte("dra-recording 1 ")) {
		return Recording{}, errors.Join(errors.New("read a recording: the first line is not that of version 1"), lines.Err())
	}
	b := builder{durations: make(map[string][]float64), open: make(map[string]*read)}
	for number := 2; lines.Scan(); number++ {
		line := lines.Text()
		if strings.HasPrefix(line, "lacks ") || strings.HasPrefix(line, "stopped ") {
			continue
		}
		c, err := decode(line)
		if err != nil {
			return Recording{}, fmt.Errorf("read line %d of a recording: %w", number, err)
		}
		if !strings.HasPrefix(c.function, waitPrefix) && (c.began > 0 || c.took > 0) {
			b.add(c)
		}
	}
	if err := lines.Err(); err != nil {
		return Recording{}, fmt.Errorf("read a recording: %w", err)
	}
	return b.recording(), nil
}

// call is a line: nanoseconds since the start.
type call struct {
	began, took int64
	function    string
	device      string // the GPU that it is about, or ""
}

func decode(line string) (call, error) {
	words := strings.Fields(line)
	if len(words) < 3 || !slices.Contains(words, "=") {
		return call{}, fmt.Errorf("%.100q is no call", line)
	}
	began, wrong := strconv.ParseInt(words[0], 10, 64)
	took, alsoWrong := strconv.ParseInt(words[1], 10, 64)
	if err := errors.Join(wrong, alsoWrong); err != nil || began < 0 || took < 0 {
		return call{}, fmt.Errorf("%.100q has no times", line)
	}
	c := call{began: began, took: took, function: words[2]}
	for _, word := range words[3:] {
		if word == "=" {
			break
		}
		if device := gpuOf(word); device != "" {
			c.device = device
			break
		}
	}
	return c, nil
}

// gpuOf is d0 of d0, d0m1 and d0.2, and "" of other words.
func gpuOf(word string) string {
	rest, found := strings.CutPrefix(word, "d")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if !found || digits == 0 || digits < len(rest) && rest[digits] != 'm' && rest[digits] != '.' {
		return ""
	}
	return word[:1+digits]
}

// read is a read of a GPU that may go on.
type read struct {
	from, to   int64
	calls      int
	fast, slow bool
}

// builder collects durations in seconds.
type builder struct {
	durations map[string][]float64 // by function
	open      map[string]*read     // by device
	reads     map[readKey][]float64
	calls     map[readKey]int
}

type readKey struct {
	device string
	tier   Tier
}

func (b *builder) add(c call) {
	b.durations[c.function] = append(b.durations[c.function], float64(c.took)/1e9)
	if c.device == "" {
		return
	}
	r := b.open[c.device]
	if r == nil || c.began-r.to > pause {
		b.end(c.device)
		r = &read{from: c.began}
		b.open[c.device] = r
	}
	r.to = max(r.to, c.began+c.took)
	r.calls++
	r.fast = r.fast || strings.HasPrefix(c.function, fastPrefix)
	r.slow = r.slow || c.function == slowFunction
}

// end ends a read. What reads no quantity, such as a list of the devices, is none.
func (b *builder) end(device string) {
	r := b.open[device]
	if r == nil || !r.fast {
		return
	}
	key := readKey{device, Fast}
	if r.slow {
		key.tier = Tiers
	}
	if b.reads == nil {
		b.reads, b.calls = make(map[readKey][]float64), make(map[readKey]int)
	}
	b.reads[key] = append(b.reads[key], float64(r.to-r.from)/1e9)
	b.calls[key] += r.calls
}

func (b *builder) recording() Recording {
	for _, device := range slices.Sorted(maps.Keys(b.open)) {
		b.end(device)
	}
	found := Recording{Calls: []Calls{}, Reads: []Reads{}}
	sums := make(map[string]float64)
	for _, function := range slices.Sorted(maps.Keys(b.durations)) {
		all := b.durations[function]
		slices.Sort(all)
		for _, d := range all {
			sums[function] += d
		}
		found.Calls = append(found.Calls, Calls{function, len(all), quantile(all, 0.5), quantile(all, 0.99), all[len(all)-1]})
	}
	slices.SortStableFunc(found.Calls, func(x, y Calls) int {
		switch {
		case sums[x.Function] > sums[y.Function]:
			return -1
		case sums[x.Function] < sums[y.Function]:
			return 1
		}
		return 0
	})
	for key, all := range b.reads {
		slices.Sort(all)
		found.Reads = append(found.Reads, Reads{
			key.device, key.tier, len(all), float64(b.calls[key]) / float64(len(all)), quantile(all, 0.5), quantile(all, 0.99), all[len(all)-1],
		})
	}
	slices.SortFunc(found.Reads, func(x, y Reads) int {
		// d2 comes before d10.
		if byLength := len(x.Device) - len(y.Device); byLength != 0 {
			return byLength
		}
		return strings.Compare(x.Device+string(x.Tier), y.Device+string(y.Tier))
	})
	return found
}

// quantile is the smallest of sorted numbers that so large a part of them does not
// exceed.
func quantile(sorted []float64, part float64) float64 {
	at := int(part*float64(len(sorted)) + 0.999999)
	return sorted[min(max(at-1, 0), len(sorted)-1)]
}
