// Package series says how many series a fleet has, scraped and recorded, and what
// Prometheus stores of them. The numbers are of nodes that are alike: each has NVIDIA
// H100 GPUs without partitions, connected by NVLink, and claims of one GPU, each for a
// Job of one pod, in a namespace of its own.
package series

import (
	_ "embed" // for the counted series
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

//go:embed counts.json
var countsJSON []byte

// Nodes are what is counted.
type Nodes struct {
	Count   int `json:"count"`
	Devices int `json:"devices"` // of each node
	Claims  int `json:"claims"`  // on each node
}

// Line is a number of series that grows with a fleet: so many at least, and for each
// node, each GPU of the fleet and each claim. That of an agent has none for nodes.
type Line struct {
	Base   float64 `json:"base"`
	Node   float64 `json:"node,omitempty"`
	Device float64 `json:"device,omitempty"`
	Claim  float64 `json:"claim,omitempty"`
}

// count returns the number for so many nodes, with all their GPUs and claims.
func (l Line) count(nodes, devices, claims int) float64 {
	return l.Base + l.Node*float64(nodes) + l.Device*float64(devices) + l.Claim*float64(claims)
}

// Counts are the lines that a test counts on real pages and with the shipped rules.
type Counts struct {
	// Agent and Cluster are the series of a target, by level.
	Agent   map[string]Line `json:"agent"`
	Cluster map[string]Line `json:"cluster"`
	// Recorded are the series of a set by the interval of the rules, "0" if they have
	// none of their own. A set without any records what the counted fleets lack.
	Recorded map[string]map[string]Line `json:"recorded"`
}

// ReadCounts returns the counts that are built in.
func ReadCounts() (Counts, error) {
	var counts Counts
	if err := json.Unmarshal(countsJSON, &counts); err != nil {
		return Counts{}, fmt.Errorf("decode the counted series: %w", err)
	}
	return counts, nil
}

// Volume is how many series and samples nodes have.
type Volume struct {
	Nodes    Nodes          `json:"nodes"`
	Level    string         `json:"level"`
	Sets     []string       `json:"sets"`
	Interval float64        `json:"intervalSeconds"` // of scrapes, and of rules without an interval
	Agent    map[string]int `json:"agent"`           // series of one agent, by level
	Cluster  map[string]int `json:"cluster"`         // of the cluster role, by level
	Recorded map[string]int `json:"recorded"`        // by set
	Unknown  []string       `json:"unknown"`         // sets whose series were not counted
	Stored   int            `json:"stored"`          // series of the level and the sets
	Samples  float64        `json:"samplesPerSecond"`
	Bytes    float64        `json:"bytesPerDay"`
}

// bytesPerSample is what Prometheus stores of a sample on average, by its documentation
// one to two bytes.
const bytesPerSample = 1.5

// Estimate returns the volume of nodes. Level and sets must be among those of the
// counts.
func (c Counts) Estimate(nodes Nodes, level string, sets []string, interval time.Duration) Volume {
	devices, claims := nodes.Count*nodes.Devices, nodes.Count*nodes.Claims
	r := Volume{
		Nodes: nodes, Level: level, Sets: sets, Interval: interval.Seconds(),
		Agent: map[string]int{}, Cluster: map[string]int{}, Recorded: map[string]int{}, Unknown: []string{},
	}
	for name, line := range c.Agent {
		r.Agent[name] = round(line.count(0, nodes.Devices, nodes.Claims))
	}
	for name, line := range c.Cluster {
		r.Cluster[name] = round(line.count(nodes.Count, devices, claims))
	}
	r.Stored = nodes.Count*r.Agent[level] + r.Cluster[level]
	r.Samples = float64(r.Stored) / interval.Seconds()
	for _, name := range slices.Sorted(maps.Keys(c.Recorded)) {
		lines := c.Recorded[name]
		if len(lines) == 0 {
			r.Unknown = append(r.Unknown, name)
		}
		for _, every := range slices.Sorted(maps.Keys(lines)) {
			count := lines[every].count(nodes.Count, devices, claims)
			r.Recorded[name] += round(count)
			if !slices.Contains(sets, name) {
				continue
			}
			seconds := interval.Seconds()
			if pause, err := time.ParseDuration(every + "s"); err == nil && pause > 0 {
				seconds = pause.Seconds()
			}
			r.Stored += round(count)
			r.Samples += count / seconds
		}
	}
	r.Bytes = r.Samples * 24 * time.Hour.Seconds() * bytesPerSample
	return r
}

func round(count float64) int { return int(math.Round(count)) }

// Check says what of a question cannot be answered.
func (c Counts) Check(nodes Nodes, level string, sets []string) error {
	for _, number := range []struct {
		flag  string
		value int
	}{{"--nodes", nodes.Count}, {"--devices", nodes.Devices}} {
		if number.value < 1 || number.value > 1_000_000 {
			return fmt.Errorf("%s=%d is not between 1 and 1000000", number.flag, number.value)
		}
	}
	if nodes.Claims < 0 || nodes.Claims > nodes.Devices {
		return fmt.Errorf("--claims=%d is not between 0 and --devices=%d: each claim of a node holds one device", nodes.Claims, nodes.Devices)
	}
	for _, set := range sets {
		if _, ok := c.Recorded[set]; !ok {
			return fmt.Errorf("--sets: there is no set %s: there are %s", set, words.Join(slices.Sorted(maps.Keys(c.Recorded)), "and"))
		}
		if level == metric.LevelLean.String() && set != "core" {
			return fmt.Errorf("--sets=%s: --metrics.level=lean has only what the set core reads; the set %s needs the level default", set, set)
		}
	}
	return nil
}

// Text returns it for a terminal.
func (r Volume) Text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, each with %s and %s\n\n", words.Count(r.Nodes.Count, "node", "nodes"),
		words.Count(r.Nodes.Devices, "GPU", "GPUs"), words.Count(r.Nodes.Claims, "claim of one GPU", "claims of one GPU"))
	fmt.Fprintf(&text, "%-22s%12s%12s%12s\n", "scraped series", "lean", "default", "full")
	row := func(title string, times int, counts map[string]int) {
		fmt.Fprintf(&text, "  %-20s", title)
		for _, level := range []string{"lean", "default", "full"} {
			fmt.Fprintf(&text, "%12d", times*counts[level])
		}
		text.WriteByte('\n')
	}
	row("an agent", 1, r.Agent)
	row("all agents", r.Nodes.Count, r.Agent)
	row("the cluster role", 1, r.Cluster)
	text.WriteString("\nrecorded series\n")
	for _, set := range slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(r.Recorded)), r.Unknown))) {
		count, chosen := "unknown", ""
		if n, ok := r.Recorded[set]; ok {
			count = strconv.Itoa(n)
		}
		if slices.Contains(r.Sets, set) {
			chosen = "  chosen"
		}
		fmt.Fprintf(&text, "  %-20s%12s%s\n", set, count, chosen)
	}
	var counted, unknown []string
	for _, set := range r.Sets {
		if slices.Contains(r.Unknown, set) {
			unknown = append(unknown, set)
		} else {
			counted = append(counted, set)
		}
	}
	with := "no recorded series"
	if len(counted) > 0 {
		with = words.Join(counted, "and")
	}
	if len(unknown) > 0 {
		with += ", and without " + words.Join(unknown, "and")
	}
	fmt.Fprintf(&text, "\nlevel %s with %s: %d series, %.0f samples a second, %s a day\n", r.Level, with, r.Stored, r.Samples, words.Bytes(r.Bytes))
	fmt.Fprintf(&text, "\nEvery %s, %g bytes of a sample; without faults, prices and metrics of Kubernetes itself, which unknown\nsets record. The series of claims that end remain until Prometheus deletes them.\n",
		words.Duration(words.Seconds(r.Interval)), bytesPerSample)
	return text.String()
}
