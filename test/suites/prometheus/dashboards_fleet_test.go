//go:build linux

package prometheus

import (
	"fmt"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	stalemarker "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

const (
	// Every unhealthyEach-th node has the demo's faults.
	unhealthyEach = 20
	// perTenant nodes belong to the same teams, with their own namespaces.
	perTenant = 50
	// copies is how many pods each tenant has of each pending pod of the demo.
	copies = 4
	// Every renewEach-th node has all its claims replaced within the hour.
	renewEach = 4

	scrapeInterval = 30 * time.Second
	scrapes        = 121 // in an hour, both ends included
)

// fleetPlace is the position of a row of the demo in the fleet.
type fleetPlace struct {
	node       int
	tenant     int
	copy       int
	generation int // of the node's claims
}

// fleetSeries is one series of the fleet. Series of an earlier generation of
// claims end where those of the next begin.
type fleetSeries struct {
	*pageRow
	fleetPlace
	from, to int // scrapes
	ref      storage.SeriesRef
}

// fleet is an hour of a cluster of nodes that each have the demo's eight GPUs,
// two of them with MIG devices, and its network adapter.
type fleet struct {
	db         *tsdb.DB
	nodes      int
	start, end time.Time
	// Numbers of series of one agent's page, and of those among them that a
	// query selects.
	perNode, usedPerNode int
	series               int
}

// newFleet fills a store with the series that a query selects.
func newFleet(b *testing.B, nodes int, used func(name string) bool) *fleet {
	b.Helper()
	options := tsdb.DefaultOptions()
	options.WALSegmentSize = -1 // it is not read again
	// Rules are evaluated after all scrapes, when their first samples must not
	// be too old.
	options.MinBlockDuration = (24 * time.Hour).Milliseconds()
	db, err := tsdb.Open(b.TempDir(), slog.New(slog.DiscardHandler), nil, options, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	end := time.Now().Truncate(scrapeInterval)
	f := &fleet{db: db, nodes: nodes, start: end.Add(-(scrapes - 1) * scrapeInterval), end: end}
	all := f.populated(b, used)
	f.series = len(all)
	for scrape := range scrapes {
		f.scrape(b, all, scrape)
	}
	return f
}

// populated returns all series of the hour.
func (f *fleet) populated(b *testing.B, used func(name string) bool) (all []fleetSeries) {
	pages := scrapedDemo(b)
	f.perNode = len(pages.healthy)
	chosen := func(job, instance string, rows []pageRow) []pageRow { return ofTarget(job, instance, rows, used) }
	healthy, unhealthy := chosen("dra-exporter", demoNode, pages.healthy), chosen("dra-exporter", demoNode, pages.unhealthy)
	f.usedPerNode = len(healthy)
	node := append(chosen("kubelet", demoNode, upstream(b, "kubelet")), chosen("nvidia-dra-driver", demoNode, upstream(b, "nvidia-driver"))...)
	for i := range f.nodes {
		page := healthy
		if i%unhealthyEach == 0 {
			page = unhealthy
		}
		for r := range page {
			all = append(all, seriesOf(&page[r], i)...)
		}
		for r := range node {
			all = append(all, seriesOf(&node[r], i)...)
		}
	}
	once := chosen("dra-exporter", "cluster", pages.cluster)
	once = append(once, chosen("scheduler", "scheduler", upstream(b, "scheduler"))...)
	once = append(once, chosen("controller-manager", "controller-manager", upstream(b, "kcm"))...)
	once = append(once, chosen("unseen", "unseen", upstream(b, "unseen"))...)
	for r := range once {
		all = append(all, f.spread(&once[r])...)
	}
	return all
}

// ofTarget returns the kept rows of a target's page, with the target's labels
// and Prometheus' own families of the scrape.
func ofTarget(job, instance string, rows []pageRow, used func(name string) bool) (kept []pageRow) {
	for name, number := range map[string]float64{"up": 1, "scrape_duration_seconds": 0.01, "scrape_samples_scraped": float64(len(rows)),
		"scrape_samples_post_metric_relabeling": float64(len(rows)), "scrape_series_added": 0} {
		rows = append(rows, pageRow{labels: labels.FromStrings("__name__", name), before: number, after: number})
	}
	faults := regexp.MustCompile(`_(errors|replays|violations)_total$`)
	for _, row := range rows {
		row.faults = faults.MatchString(row.labels.Get("__name__"))
		if used(row.labels.Get("__name__")) {
			row.labels = labels.NewBuilder(row.labels).Set("job", job).Set("instance", instance).Labels()
			kept = append(kept, row)
		}
	}
	return kept
}

// seriesOf returns the one or two series of a row on a node.
func seriesOf(row *pageRow, node int) []fleetSeries {
	one := fleetSeries{pageRow: row, fleetPlace: fleetPlace{node: node, tenant: node / perTenant}, to: scrapes}
	if node%renewEach != 1 || row.labels.Get("resourceclaim") == "" {
		return []fleetSeries{one}
	}
	next := one
	one.to = scrapes/10 + node%(scrapes*8/10)
	next.from, next.generation = one.to, 1
	return []fleetSeries{one, next}
}

// spread returns the series of a row of the cluster role: one for each node,
// tenant or pod to which it belongs.
func (f *fleet) spread(row *pageRow) (all []fleetSeries) {
	nodes, tenants, pods := 1, 1, 1
	row.labels.Range(func(label labels.Label) {
		switch {
		case label.Name != "instance" && strings.Contains(label.Value, demoNode):
			nodes = f.nodes
		case label.Name == "namespace":
			tenants = max(1, f.nodes/perTenant)
		case label.Name == "pod":
			pods = copies
		}
	})
	for node := range nodes {
		for tenant := range tenants {
			for pod := range pods {
				at := fleetPlace{node: node, tenant: tenant + node/perTenant, copy: pod}
				all = append(all, fleetSeries{pageRow: row, fleetPlace: at, to: scrapes})
			}
		}
	}
	return all
}

// labelsOf returns the labels of a series: the demo's, with the names of its
// place.
func (p fleetSeries) labelsOf(uuid *regexp.Regexp) labels.Labels {
	builder := labels.NewBuilder(p.labels)
	p.labels.Range(func(label labels.Label) {
		text := strings.ReplaceAll(label.Value, demoNode, fmt.Sprintf("gpu-node-%04d", p.node))
		switch label.Name {
		case "uuid", "parent_uuid", "peer", "claim_uid", "pod_uid":
			text = uuid.ReplaceAllString(text, fmt.Sprintf("${1}%04x${2}", p.node))
		case "namespace":
			text = fmt.Sprintf("%s-%02d", text, p.tenant)
		case "resourceclaim", "pod", "owner_name":
			if text != "" {
				text = fmt.Sprintf("%s-%04d", text, 10*p.node+p.copy+p.generation)
			}
		}
		if text != label.Value {
			builder.Set(label.Name, text)
		}
	})
	return builder.Labels()
}

// scrape appends one scrape of everything.
func (f *fleet) scrape(b *testing.B, all []fleetSeries, scrape int) {
	b.Helper()
	at := f.start.Add(time.Duration(scrape) * scrapeInterval)
	uuid := regexp.MustCompile(`^((?:GPU-|MIG-)?[0-9a-f]{4})[0-9a-f]{4}(-[0-9a-f]{4}-)`)
	appender := f.db.Appender(b.Context())
	for i := range all {
		p := &all[i]
		if scrape < p.from || scrape > p.to {
			continue
		}
		number, lset := f.number(p, at), labels.EmptyLabels()
		if scrape == p.to { // the claim has ended
			number = math.Float64frombits(stalemarker.StaleNaN)
		}
		if p.ref == 0 {
			lset = p.labelsOf(uuid)
		}
		ref, err := appender.Append(p.ref, lset, at.UnixMilli(), number)
		if err != nil {
			b.Fatalf("%s: %v", p.labelsOf(uuid), err)
		}
		if p.ref = ref; i%100000 == 99999 {
			if err := appender.Commit(); err != nil {
				b.Fatal(err)
			}
			appender = f.db.Appender(b.Context())
		}
	}
	if err := appender.Commit(); err != nil {
		b.Fatal(err)
	}
}

// number returns the value of a series. Counters continue at their speed,
// multiplied by a factor of the node, but errors occur only on nodes with
// faults. Gauges alternate between their two values. The time of a page
// becomes the time of the scrape.
func (f *fleet) number(p *fleetSeries, at time.Time) float64 {
	elapsed, change := at.Sub(f.start), p.after-p.before
	pace := max(change, 0) / between.Seconds() * (1 + float64(p.node%10)/20)
	switch {
	case p.counter && p.from > 0: // it began with its claim
		return pace * (elapsed - time.Duration(p.from-1)*scrapeInterval).Seconds()
	case p.faults:
		if p.after > 0 && p.node%unhealthyEach == 0 {
			return p.after + math.Floor(elapsed.Minutes()/10)
		}
		return p.after
	case p.counter:
		return p.after + pace*elapsed.Seconds()
	case change != 0 && strings.HasSuffix(p.labels.Get("__name__"), "_timestamp_seconds"):
		return p.after - f.end.Sub(at).Seconds()
	case int(elapsed/scrapeInterval)/3%2 == p.node%2:
		return p.before
	}
	return p.after
}
