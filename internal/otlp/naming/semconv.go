package naming

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// SemConv converts the families that have a convention by it, and all others
// under the names of the scrape. Every row is exported once. In addition it
// derives the metrics that the conventions define and that are no rows. It is
// not safe for concurrent use.
type SemConv struct {
	others   *Prometheus
	targets  []semConvMetric
	families map[string]*convention
	derived  map[string][]*convention // by family

	subjects subjects
	cache    attributeCache
	plain    []metric.Row // for others; reused by the next call
}

// NewSemConv returns the naming by semantic conventions, with this
// project's names for what they lack. The node is a resource attribute, not
// an attribute of points.
func NewSemConv() *SemConv {
	s := &SemConv{
		others: NewPrometheus(), targets: targets(), families: map[string]*convention{}, derived: map[string][]*convention{},
		subjects: newSubjects(), cache: newAttributeCache(),
	}
	for i, t := range s.targets {
		for _, c := range t.families {
			c.target, c.rules = i, append(c.subject.rules(), c.rules...)
			if c.derive == nil {
				s.families[c.family] = &c
			} else {
				s.derived[c.family] = append(s.derived[c.family], &c)
			}
		}
	}
	return s
}

// Metrics returns the rows as gauges and sums with the time of the snapshot. Facts of
// devices and claims come from its model, whatever families the rows are of; nil has
// none. The caller may change what it returns, except for the attribute sets.
func (s *SemConv) Metrics(rows []metric.Row, node *model.Node, at time.Time) []metricdata.Metrics {
	s.cache.begin()
	s.subjects.observe(node, at)
	points := s.allocate(rows)
	clear(s.plain)
	s.plain = s.plain[:0]
	for family, run := range runs(rows) {
		c := s.families[family.Name]
		if c == nil {
			s.plain = append(s.plain, run...)
		} else {
			points[c.target] = s.appendPoints(points[c.target], c, run, at)
		}
		s.derive(points, family.Name, run, at)
	}
	s.cache.evict()
	s.subjects.evict()
	var all []metricdata.Metrics
	for i, t := range s.targets {
		if len(points[i]) > 0 {
			all = append(all, metricdata.Metrics{Name: t.name, Description: t.help, Unit: t.unit, Data: t.kind.data(points[i])})
		}
	}
	return append(all, s.others.Metrics(s.plain, node, at)...)
}

// allocate gives each target a part of one slab, with room for all of its rows.
func (s *SemConv) allocate(rows []metric.Row) [][]metricdata.DataPoint[float64] {
	counts, total := make([]int, len(s.targets)), 0
	for family, run := range runs(rows) {
		if c := s.families[family.Name]; c != nil {
			counts[c.target] += len(run)
			total += len(run)
		}
	}
	slab := make([]metricdata.DataPoint[float64], total)
	points := make([][]metricdata.DataPoint[float64], len(s.targets))
	for i, count := range counts {
		points[i], slab = slab[:0:count], slab[count:]
	}
	return points
}

func (s *SemConv) appendPoints(points []metricdata.DataPoint[float64], c *convention, run []metric.Row, at time.Time) []metricdata.DataPoint[float64] {
	for i := range run {
		entry := s.update(s.cache.row(c, i, run[i].Labels), c)
		points = append(points, metricdata.DataPoint[float64]{
			Attributes: entry.attributes,
			StartTime:  entry.subject.start(run[i].Start),
			Time:       at,
			Value:      run[i].Value,
		})
	}
	return points
}

// update computes the attributes again if the facts of the device or claim have
// changed.
func (s *SemConv) update(entry *cacheEntry, c *convention) *cacheEntry {
	if entry.subject == nil {
		entry.subject = s.subjects.find(c.subject, entry.labels)
	}
	entry.subject.lastSeen = s.subjects.generation
	if entry.version != entry.subject.version {
		entry.version = entry.subject.version
		entry.attributes = c.attributes(entry.labels, s.targets[c.target].facts, entry.subject.facts)
	}
	return entry
}

// derive adds the points of derived metrics that are computed from the rows of a
// family.
func (s *SemConv) derive(points [][]metricdata.DataPoint[float64], family string, run []metric.Row, at time.Time) {
	derived := s.derived[family]
	for i := range run {
		for _, c := range derived {
			if !c.selects(run[i].Labels) {
				continue
			}
			entry := s.update(s.cache.get(c, run[i].Labels), c)
			if value, ok := c.derive(run[i].Value, entry.subject); ok {
				points[c.target] = append(points[c.target], metricdata.DataPoint[float64]{Attributes: entry.attributes, Time: at, Value: value})
			}
		}
	}
}

// attributeCache keeps the attributes of every point from one snapshot to the
// next. Families share labels and have different attributes for them, so that
// both are the key. What a snapshot does not use is evicted.
//
// Rows mostly come in the order of the snapshot before; then no map is accessed.
type attributeCache struct {
	generation int
	used       int // entries of this generation
	entries    map[cacheKey]*cacheEntry
	orders     map[*convention][]*cacheEntry // in the order of the family's rows; only what is in entries
}

type cacheKey struct {
	convention *convention
	labels     *metric.Labels
}

// cacheEntry is the attributes of labels, by that version of the subject's
// facts.
type cacheEntry struct {
	labels     *metric.Labels
	attributes attribute.Set
	subject    *subject // nil: attributes are not computed yet
	version    int
	generation int
}

func newAttributeCache() attributeCache {
	return attributeCache{entries: map[cacheKey]*cacheEntry{}, orders: map[*convention][]*cacheEntry{}}
}

func (a *attributeCache) begin() { a.generation, a.used = a.generation+1, 0 }

// get returns the entry, which may be a new one without attributes.
func (a *attributeCache) get(c *convention, labels *metric.Labels) *cacheEntry {
	key := cacheKey{c, labels}
	entry := a.entries[key]
	if entry == nil {
		entry = &cacheEntry{labels: labels}
		a.entries[key] = entry
	}
	a.use(entry)
	return entry
}

// row is get for row i of the convention's family.
func (a *attributeCache) row(c *convention, i int, labels *metric.Labels) *cacheEntry {
	order := a.orders[c]
	if i < len(order) && order[i].labels == labels {
		a.use(order[i])
		return order[i]
	}
	entry := a.get(c, labels)
	a.orders[c] = append(order[:min(i, len(order))], entry)
	return entry
}

func (a *attributeCache) use(entry *cacheEntry) {
	if entry.generation != a.generation {
		entry.generation = a.generation
		a.used++
	}
}

func (a *attributeCache) evict() {
	if a.used == len(a.entries) {
		return
	}
	clear(a.orders)
	for key, entry := range a.entries {
		if entry.generation != a.generation {
			delete(a.entries, key)
		}
	}
}
