// Package promlabels compares queries with the documentation: the families and
// labels in rules, alerts, dashboards and runbooks must exist.
package promlabels

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Families are the names that a query may select, each with the labels that its
// series may have.
type Families map[string][]string

const (
	// anything stands for any labels.
	anything = "*"
	// podLabels stands for the labels of pods that --labels.pod names.
	podLabels = "label_*"
)

// targetLabels returns the labels of every scraped series: cluster, which a
// store of several clusters has, and those that Prometheus adds.
func targetLabels() []string { return []string{"cluster", "job", "instance"} }

// ofTargets returns the families that Prometheus adds to a scrape, and those
// of every process that is written in Go.
func ofTargets() []string {
	return []string{
		"up", "scrape_duration_seconds", "scrape_samples_scraped", "scrape_samples_post_metric_relabeling", "scrape_series_added",
		"process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes", "process_start_time_seconds",
		"process_open_fds", "process_max_fds", "go_goroutines", "go_threads", "go_memory_classes_total_bytes",
		"go_memory_classes_heap_objects_bytes", "go_memory_classes_heap_released_bytes", "go_sched_gomaxprocs_threads",
	}
}

// Documented returns the families of docs/metrics.md, those of Kubernetes and
// of NVIDIA's driver in test/fakes/fixtures/upstream-metrics, and those of every
// target. root is the project's root folder.
func Documented(root string) (Families, error) {
	families := Families{"ALERTS": {anything}, "ALERTS_FOR_STATE": {anything}}
	for _, name := range ofTargets() {
		families[name] = targetLabels()
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/metrics.md"))
	if err != nil {
		return nil, err
	}
	if families.document(string(text)); len(families) < 50 {
		return nil, fmt.Errorf("docs/metrics.md has %d families", len(families))
	}
	files, err := filepath.Glob(filepath.Join(root, "test/fakes/fixtures/upstream-metrics/*-metrics.txt"))
	if err != nil {
		return nil, err
	}
	if len(files) < 5 {
		return nil, fmt.Errorf("test/fakes/fixtures/upstream-metrics has %d files", len(files))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		families.exposition(string(text))
	}
	return families, nil
}

// Clone returns a copy, to which names can be added.
func (f Families) Clone() Families { return maps.Clone(f) }

// document adds the rows of the tables of docs/metrics.md. Labels that the
// families of a table have in common are in a sentence above it; a row with
// *only* has all labels of its family.
func (f Families) document(text string) {
	sentence := regexp.MustCompile("^All (?:but those with \\*only\\* )?have (`.*`)\\.$")
	row := regexp.MustCompile("^\\| `([a-z_]+)` \\|[^|]*\\|([^|]*)\\|([^|]*)\\|$")
	label := regexp.MustCompile("`([a-z_]+)`")
	common := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			common = ""
		}
		if match := sentence.FindStringSubmatch(line); match != nil {
			common = match[1]
		}
		match := row.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		name, cell, labels := match[1], match[2], targetLabels()
		if !strings.Contains(cell, "*only*") {
			cell = common + cell
		}
		for _, pair := range label.FindAllStringSubmatch(cell, -1) {
			labels = append(labels, pair[1])
		}
		if strings.Contains(match[3], "label_…") {
			labels = append(labels, podLabels)
		}
		f[name] = labels
		if strings.HasSuffix(name, "_duration_seconds") { // a histogram; the name without suffix is that of the native histogram
			f[name+"_bucket"] = with(labels, "le")
			f[name+"_sum"], f[name+"_count"] = labels, labels
		}
	}
}

// exposition adds the families of a page in the text format.
func (f Families) exposition(text string) {
	sample := regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? \S+$`)
	label := regexp.MustCompile(`([a-z_]+)="(?:[^"\\]|\\.)*"`)
	for _, match := range sample.FindAllStringSubmatch(text, -1) {
		labels := with(f[match[1]], targetLabels()...)
		for _, pair := range label.FindAllStringSubmatch(match[2], -1) {
			labels = with(labels, pair[1])
		}
		f[match[1]] = labels
	}
}

func with(labels []string, more ...string) []string {
	all := slices.Concat(labels, more)
	slices.Sort(all)
	return slices.Compact(all)
}

// without returns the labels except for some.
func without(labels []string, gone ...string) []string {
	return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return slices.Contains(gone, l) })
}

func same(a, b []string) bool { return slices.Equal(with(a), with(b)) }
