package scrape

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const grace = 30 * time.Second

// page puts a process's start time before the rows.
func page(t *testing.T, second int, rows ...string) *Page {
	t.Helper()
	text := "process_start_time_seconds 1\n" + strings.Join(rows, "\n") + "\n"
	p, err := Parse(time.Unix(int64(1000+second), 0), strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParseRefusesDuplicates(t *testing.T) {
	text := "dra_claim_held{uuid=\"a\",namespace=\"n\"} 1\ndra_claim_held{namespace=\"n\",uuid=\"a\"} 1\n"
	if _, err := Parse(time.Time{}, strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("the error is %v", err)
	}
}

func TestRules(t *testing.T) {
	const (
		held    = `dra_claim_held{namespace="n",resourceclaim="c",uuid="a"} 1`
		typed   = "# TYPE dra_claim_held_seconds_total counter\n"
		seconds = typed + `dra_claim_held_seconds_total{namespace="n",resourceclaim="c",uuid="a"} `
		total   = "# TYPE dra_namespace_device_seconds_total counter\n" + `dra_namespace_device_seconds_total{namespace="n"} 1`
		own     = `dra_device_utilization_ratio{uuid="a",parent_uuid=""} 0.5`
		gets    = `dra_claim_utilization_ratio{namespace="n",resourceclaim="c",uuid="a",attribution="exclusive"} `
		other   = `dra_claim_utilization_ratio{namespace="n",resourceclaim="d",uuid="a",attribution="exclusive"} 0.5`
		nobodys = `dra_device_unattributed_utilization_ratio{uuid="a",parent_uuid=""} 0`
	)
	part := func(row string) string { return strings.Replace(row, "exclusive", "process", 1) }
	twoHold := []string{held, strings.Replace(held, `"c"`, `"d"`, 1), own, nobodys}
	page := func(t *testing.T, second int, rows ...string) *Page {
		t.Helper()
		return page(t, second, append(reasons("ok"), rows...)...)
	}
	restarted := func(p *Page) *Page {
		p.Families["process_start_time_seconds"].Metric[0].Untyped.Value = new(float64)
		return p
	}
	for name, history := range map[string]struct {
		pages []*Page
		want  string
	}{
		"well":                    {[]*Page{page(t, 0, held, seconds+"1", own, gets+"0.5"), page(t, 1, held, seconds+"2")}, ""},
		"counter fell":            {[]*Page{page(t, 0, held, seconds+"2"), page(t, 1, held, seconds+"1")}, "fell from 2 to 1"},
		"another process":         {[]*Page{page(t, 0, held, seconds+"2"), restarted(page(t, 1, held, seconds+"1"))}, ""},
		"counter outlives":        {[]*Page{page(t, 0, held, seconds+"2"), page(t, 20, seconds+"2"), page(t, 30)}, ""},
		"counter goes too soon":   {[]*Page{page(t, 0, held, seconds+"2"), page(t, 20)}, "went 20s after"},
		"total goes":              {[]*Page{page(t, 0, total), page(t, 1)}, "is gone"},
		"gauge of nobody":         {[]*Page{page(t, 0, own, gets+"0.5")}, "does not hold"},
		"gauge is another":        {[]*Page{page(t, 0, held, own, gets+"0.4")}, "the device's own 0.5"},
		"gauge of no device":      {[]*Page{page(t, 0, held, gets+"0.4")}, "there are 0 rows"},
		"counted twice":           {[]*Page{page(t, 0, held, strings.Replace(held, `"c"`, `"d"`, 1), own, gets+"0.5", other)}, "is counted for"},
		"parts":                   {[]*Page{page(t, 0, append(twoHold, part(gets+"0.1"), strings.Replace(part(other), "0.5", "0.4", 1))...)}, ""},
		"part beside the whole":   {[]*Page{page(t, 0, append(twoHold, gets+"0.5", strings.Replace(part(other), "0.5", "0", 1))...)}, "is counted for"},
		"part is more":            {[]*Page{page(t, 0, held, own, nobodys, part(gets+"0.6"))}, "the device's own 0.5"},
		"strays beside one alone": {[]*Page{page(t, 0, held, own, strings.Replace(nobodys, "} 0", "} 0.2", 1), gets+"0.5")}, ""},
		"two claims of one name":  {[]*Page{page(t, 0, `dra_claim_info{namespace="n",resourceclaim="c",claim_uid="1"} 1`, `dra_claim_info{namespace="n",resourceclaim="c",claim_uid="2"} 1`)}, "several rows"},
		"two consumers, two pods": {[]*Page{page(t, 0, `dra_claim_consumer_info{uuid="a",pod="1"} 1`, `dra_claim_consumer_info{uuid="a",pod="2"} 1`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var broken []error
			rules := Rules(grace)
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

func TestDevicesStay(t *testing.T) {
	whole := []string{`dra_device_info{uuid="a"} 1`, `dra_device_utilization_ratio{uuid="a"} 0`, `dra_device_memory_used_bytes{uuid="a"} 0`}
	if broken := DevicesStay("a")(page(t, 0, whole...)); broken != nil {
		t.Error(broken)
	}
	if broken := DevicesStay("a")(page(t, 0, whole[:2]...)); len(broken) != 1 {
		t.Errorf("without memory: %v", broken)
	}
}
