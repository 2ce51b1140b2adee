package scrape

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// stages returns the rows of a request with these devices left by its stages.
func stages(left ...int) (rows []string) {
	for i, stage := range Stages()[:len(left)] {
		rows = append(rows, fmt.Sprintf(`dra_claim_pending_candidates{namespace="n",pod="p",pod_claim="c",request="main",stage=%q} %d`, stage, left[i]))
	}
	return rows
}

func TestClusterRules(t *testing.T) {
	const (
		ref      = `namespace="n",pod="p",pod_claim="c"`
		since    = `dra_claim_pending_since_timestamp_seconds{` + ref + `,resourceclaim="x",deviceclass="d"} `
		reason   = `dra_claim_pending_reason_info{` + ref + `,reason="tainted"} 1`
		another  = `dra_claim_pending_reason_info{` + ref + `,reason="fragmented"} 1`
		invented = `dra_claim_pending_reason_info{` + ref + `,reason="laziness"} 1`
		took     = "# TYPE dra_allocation_duration_seconds histogram\ndra_allocation_duration_seconds_sum{phase=\"start\"} 1\ndra_allocation_duration_seconds_bucket{phase=\"start\",le=\"+Inf\"} %d\ndra_allocation_duration_seconds_count{phase=\"start\"} %d"
		free     = `dra_devices{driver="d",state="free"} 1`
	)
	whole := []string{free, strings.Replace(free, "free", "allocated", 1), strings.Replace(free, "free", "unavailable", 1)}
	waits := []string{since + "900", reason}
	for name, history := range map[string]struct {
		pages []*Page
		want  string
	}{
		"well":                {[]*Page{page(t, 0, append(append(whole, waits...), stages(9, 4, 4, 3, 1, 1)...)...), page(t, 1, waits...)}, ""},
		"observations vanish": {[]*Page{page(t, 0, fmt.Sprintf(took, 2, 2)), page(t, 1, fmt.Sprintf(took, 1, 1))}, "fell from 2 to 1"},
		"since falls":         {[]*Page{page(t, 0, waits...), page(t, 1, since+"899", reason)}, "moved from 900 back to 899"},
		"since is to come":    {[]*Page{page(t, 0, since+"1010", reason)}, "in the future"},
		"no reason":           {[]*Page{page(t, 0, since+"900")}, "0 reasons"},
		"two reasons":         {[]*Page{page(t, 0, since+"900", reason, another)}, "2 reasons"},
		"invented reason":     {[]*Page{page(t, 0, since+"900", invented)}, `"laziness"`},
		"reason of no pod":    {[]*Page{page(t, 0, reason)}, "does not wait"},
		"request of no pod":   {[]*Page{page(t, 0, stages(1, 1, 1, 1, 1, 1)...)}, "has requests"},
		"stages widen":        {[]*Page{page(t, 0, append(stages(9, 4, 5, 3, 1, 1), waits...)...)}, "4 at class and 5 at selectors"},
		"a stage is missing":  {[]*Page{page(t, 0, append(stages(9, 4, 4), waits...)...)}, "has the stages"},
		"state is missing":    {[]*Page{page(t, 0, whole[1:]...)}, "has 1 states"},
	} {
		t.Run(name, func(t *testing.T) {
			var broken []error
			rules := ClusterRules()
			for _, p := range history.pages {
				for _, rule := range rules {
					broken = append(broken, rule(p)...)
				}
			}
			err := errors.Join(broken...)
			if history.want == "" && err != nil || history.want != "" && (err == nil || !strings.Contains(err.Error(), history.want)) {
				t.Errorf("broken: %v\nwant: %q", err, history.want)
			}
		})
	}
}

func TestHistogram(t *testing.T) {
	p := page(t, 0, "# TYPE h histogram", `h_sum{phase="a"} 3`, `h_bucket{phase="a",le="+Inf"} 2`, `h_count{phase="a"} 2`)
	if count, sum := p.Histogram("h", Labels{"phase": "a"}); count != 2 || sum != 3 {
		t.Errorf("count %v, sum %v", count, sum)
	}
	if count, sum := p.Histogram("h", Labels{"phase": "b"}); count != 0 || sum != 0 {
		t.Errorf("count %v, sum %v of another", count, sum)
	}
}
