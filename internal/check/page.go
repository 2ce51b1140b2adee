package check

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/exposition"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Page is what an exporter's page of metrics reports about the exporter itself.
// Missing values are the zero value.
type Page struct {
	Version, Revision string
	Node              bool // it is the node role's page; else the cluster role's
	Sources           []PageSource
	SampledAt         time.Time          // newest readings of any device
	Unmatched         map[string]float64 // devices, by side: published, hardware
	Dropped           map[string]float64 // rows that did not fit, by family
	Pushes            map[string]bool    // whether the collector took the last push, by signal
	Released          string             // why the GPUs are released; empty: they are not
	Processes         string             // why shared devices are not split by process; "ok" where they are
	Devices, Held     int                // devices of the node, and how many of them claims hold, one or several
	NodeName          string
}

// PageSource is one source of a page, by name.
type PageSource struct {
	Name    string
	Up      bool
	Reasons []string // why it is down, or what is amiss though it is up
}

// errNoExporter means that a page is not that of an exporter, or not its page
// of metrics.
var errNoExporter = errors.New("the page has no dra_exporter_build_info: it is not the metrics page of an exporter")

// longestLine bounds the memory of one line of a page.
const longestLine = 1 << 20

// decodePage reads Prometheus' text format. Only the lines about the exporter are
// parsed. A page that is broken off, or is not in the format, is an error, and so is
// another program's.
func decodePage(r io.Reader) (Page, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, longestLine)
	page, concerned := Page{}, pageFamilies()
	families := make(map[string][]exposition.Series, len(concerned))
	for lines.Scan() {
		line := lines.Text()
		name := exposition.Name(line)
		if !slices.Contains(concerned, name) {
			continue
		}
		series, err := exposition.Parse(line)
		if err != nil {
			return Page{}, fmt.Errorf("the page is not in Prometheus' text format: %s: %w", name, err)
		}
		families[series.Name] = append(families[series.Name], series)
	}
	if err := lines.Err(); err != nil {
		return Page{}, fmt.Errorf("read the page: %w", err)
	}
	page.fill(families)
	if families[metric.ExporterBuildInfo] == nil {
		return Page{}, errNoExporter
	}
	return page, nil
}

func pageFamilies() []string {
	return []string{
		metric.ExporterBuildInfo, metric.ExporterSourceUp, metric.ExporterSourceErrorInfo,
		metric.ExporterSampleTimestampSeconds, metric.ExporterUnmatchedDevices, metric.ExporterSeriesDropped,
		metric.ExporterOTLPUp, metric.ExporterProcessAttribution, metric.ExporterDeviceAccess, metric.DeviceInfo, metric.ClaimHeld,
	}
}

// fill sets the fields from the families.
func (p *Page) fill(families map[string][]exposition.Series) {
	p.Unmatched, p.Dropped, p.Pushes = map[string]float64{}, map[string]float64{}, map[string]bool{}
	visit := func(family string, use func(labels map[string]string, value float64)) {
		for _, series := range families[family] {
			use(maps.Collect(series.Labels.Each), series.Value)
		}
	}
	visit(metric.ExporterBuildInfo, func(l map[string]string, _ float64) { p.Version, p.Revision = l["version"], l["revision"] })
	visit(metric.ExporterUnmatchedDevices, func(l map[string]string, v float64) { p.Unmatched[l["side"]] += v })
	visit(metric.ExporterSeriesDropped, func(l map[string]string, v float64) { p.Dropped[l["family"]] = v })
	visit(metric.ExporterOTLPUp, func(l map[string]string, v float64) { p.Pushes[l["signal"]] = v == 1 })
	visit(metric.DeviceInfo, func(l map[string]string, _ float64) { p.Devices, p.NodeName = p.Devices+1, l["node"] })
	held := map[string]bool{} // a shared device counts once
	visit(metric.ClaimHeld, func(l map[string]string, _ float64) { held[l["uuid"]] = true })
	p.Held = len(held)
	visit(metric.ExporterSampleTimestampSeconds, func(_ map[string]string, v float64) {
		if v > 0 && v < 1e11 {
			p.SampledAt = time.UnixMilli(int64(v * 1000))
		}
	})
	visit(metric.ExporterDeviceAccess, func(l map[string]string, _ float64) { p.Released = l["reason"] })
	visit(metric.ExporterProcessAttribution, func(l map[string]string, v float64) {
		p.Node = true
		if v == 1 {
			p.Processes = l["reason"]
		}
	})
	reasons := map[string][]string{}
	visit(metric.ExporterSourceErrorInfo, func(l map[string]string, _ float64) {
		reasons[l["source"]] = append(reasons[l["source"]], l["reason"])
	})
	visit(metric.ExporterSourceUp, func(l map[string]string, v float64) {
		p.Sources = append(p.Sources, PageSource{Name: l["source"], Up: v == 1, Reasons: reasons[l["source"]]})
	})
	slices.SortStableFunc(p.Sources, func(a, b PageSource) int { return strings.Compare(a.Name, b.Name) })
}
