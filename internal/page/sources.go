package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Source is one source of facts: a device library, the kubelet, a resource of
// the API server.
type Source struct {
	Name        string
	Up          bool
	Reason      string // why not, or what is amiss though it is up
	Message     string // the same for people, with the remedy
	LastSuccess time.Time
	Age         time.Duration // since then, if there was one
}

// sourceReader gathers what the rows of either role say of its sources.
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

func (r *sourceReader) sourceUp(row metric.Row)    { r.source(row).Up = row.Value == 1 }
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

// explain adds what no row has room for.
func explain(sources []Source, troubles func() map[string]string) {
	if troubles == nil {
		return
	}
	known := troubles()
	for i := range sources {
		sources[i].Message = known[sources[i].Name]
	}
}
