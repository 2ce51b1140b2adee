package page

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// readRows passes each row to the function of its family, if there is one.
func readRows[R any](rows []metric.Row, r R, families map[string]func(R, metric.Row)) {
	for family, run := range metric.Runs(rows) {
		if read := families[family.Name]; read != nil {
			for _, row := range run {
				read(r, row)
			}
		}
	}
}

// known is the value of a row, nil if it is not a number that could be shown.
func known(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return &value
}

// moment is the time of a _timestamp_seconds row, to the millisecond.
func moment(row metric.Row) time.Time {
	if known(row.Value) == nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(row.Value * 1000))).UTC()
}

// Source is one source of facts: a device library, the kubelet, a resource of
// the API server.
type Source struct {
	Name        string
	Up          bool
	Reason      string // why not, or what is amiss though it is up
	Message     string // the same for people, with the remedy
	LastSuccess time.Time
	Age         time.Duration // since the last success, if there was one
}

// sourceReader gathers what the rows of the cluster role say of its sources.
type sourceReader struct {
	at      time.Time
	sources []*Source
}

// source finds the source that the row is about, or begins it.
func (r *sourceReader) source(row metric.Row) *Source {
	name := row.Labels.Get("source")
	for _, source := range r.sources {
		if source.Name == name {
			return source
		}
	}
	r.sources = append(r.sources, &Source{Name: name})
	return r.sources[len(r.sources)-1]
}

func (r *sourceReader) sourceUp(row metric.Row) { r.source(row).Up = row.Value == 1 }

func (r *sourceReader) sourceError(row metric.Row) { r.source(row).Reason = row.Labels.Get("reason") }

func (r *sourceReader) sourceSuccess(row metric.Row) {
	source := r.source(row)
	source.LastSuccess = moment(row)
	source.Age, _ = since(r.at, source.LastSuccess)
}

// byName are the sources in their order.
func (r *sourceReader) byName() []Source {
	var sorted []Source
	for _, source := range r.sources {
		sorted = append(sorted, *source)
	}
	slices.SortFunc(sorted, func(a, b Source) int { return cmp.Compare(a.Name, b.Name) })
	return sorted
}

// find returns the value of a key, a copy of begin if there is none.
func find[K comparable, V any](known map[K]*V, key K, begin V) *V {
	if found := known[key]; found != nil {
		return found
	}
	begun := begin // the address of begin itself would cost an allocation for every row
	known[key] = &begun
	return &begun
}
