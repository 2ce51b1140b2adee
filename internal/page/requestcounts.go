package page

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// RequestCounts has, for one request, how many devices each stage leaves. A count
// that is not known is nil.
type RequestCounts struct {
	Request   string   `json:"request"`
	Asked     *float64 `json:"asked,omitempty"` // how many devices; not known where it is all that match
	Published *float64 `json:"published,omitempty"`
	Class     *float64 `json:"class,omitempty"`
	Selectors *float64 `json:"selectors,omitempty"`
	Untainted *float64 `json:"untainted,omitempty"`
	Free      *float64 `json:"free,omitempty"`
	BestNode  *float64 `json:"bestNode,omitempty"`
}

// newRequestCounts returns the counts of each request, by name: of one that occurs twice,
// the first. nodes reports whether nodes are known.
func newRequestCounts(asked []dra.RequestStages, nodes bool) []RequestCounts {
	var requests []RequestCounts
	for i := range asked {
		f := &asked[i]
		if slices.ContainsFunc(requests, func(counts RequestCounts) bool { return counts.Request == f.Request }) {
			continue
		}
		count := func(stage dra.Stage) *float64 { return new(float64(f.Left[stage])) }
		counts := RequestCounts{
			Request: f.Request, Published: count(dra.StagePublished), Class: count(dra.StageClass), Selectors: count(dra.StageSelectors),
			Untainted: count(dra.StageUntainted), Free: count(dra.StageFree),
		}
		if f.Count > 0 {
			counts.Asked = new(float64(f.Count))
		}
		if nodes {
			counts.BestNode = count(dra.StageBestNode)
		}
		requests = append(requests, counts)
	}
	slices.SortFunc(requests, func(a, b RequestCounts) int { return cmp.Compare(a.Request, b.Request) })
	return requests
}

// Stage is a stage of selection as it is drawn.
type Stage struct {
	Name    string // for programs that read the page
	Title   string // for people
	Left    string // likewise
	Width   string // of its bar: the logarithm, because clusters are large and requests small
	Narrows bool   // this is where it gets too narrow
}

// newStages returns the stages of a request that is pending for a reason.
func newStages(f RequestCounts, reason string) []Stage {
	stages := []Stage{
		{Name: "published", Title: "published"},
		{Name: "class", Title: "of the class"},
		{Name: "selectors", Title: "selected"},
		{Name: "untainted", Title: "untainted"},
		{Name: "free", Title: "free"},
		{Name: "best_node", Title: "on best node"},
	}
	counts := [...]*float64{f.Published, f.Class, f.Selectors, f.Untainted, f.Free, f.BestNode}
	narrowest := narrowest(stages, counts[:], f.Asked, reason)
	for i, left := range counts {
		stages[i].Left, stages[i].Narrows = whole(left), i == narrowest
		if left != nil && f.Published != nil && *f.Published > 0 {
			share := math.Log1p(max(*left, 0)) / math.Log1p(*f.Published)
			stages[i].Width = strconv.FormatFloat(100*min(share, 1), 'f', 1, 64) + "%"
		}
	}
	return stages
}

// narrowest returns the first stage that leaves no device, or fewer than
// requested; else the stage of the reason, if it removes any device of this
// request; else -1: then the reason is another request of the claim.
func narrowest(stages []Stage, counts []*float64, asked *float64, reason string) int {
	for i, left := range counts {
		if left != nil && (*left == 0 || asked != nil && *left < *asked) {
			return i
		}
	}
	if asked != nil {
		return -1
	}
	for _, blamed := range dra.PendingReason(reason).Info().Stages {
		for i := 1; i < len(counts); i++ {
			previous, left := counts[i-1], counts[i]
			if stages[i].Name == blamed.String() && previous != nil && left != nil && *left < *previous {
				return i
			}
		}
	}
	return -1
}
