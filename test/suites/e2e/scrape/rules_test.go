package scrape

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const grace = 30 * time.Second

// page returns a page with a process start time and these rows.
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
		info    = `dra_device_info{node="x",uuid="a",parent_uuid="",source="simulated"} 1`
		count   = `dra_device_holders{node="x",uuid="a",parent_uuid="",kind="claim"} 1`
		held    = `dra_claim_held{namespace="n",resourceclaim="c",uuid="a"} 1`
		charged = "# TYPE dra_claim_device_seconds_total counter\n" + `dra_claim_device_seconds_total{namespace="n",resourceclaim="c",uuid="a"} `
		typed   = "# TYPE dra_claim_held_seconds_total counter\n"
		seconds = typed + `dra_claim_held_seconds_total{namespace="n",resourceclaim="c",uuid="a"} `
		total   = "# TYPE dra_namespace_device_seconds_total counter\n" + `dra_namespace_device_seconds_total{namespace="n"} 1`
		own     = `dra_device_utilization_ratio{uuid="a",parent_uuid=""} 0.5`
		gets    = `dra_claim_utilization_ratio{namespace="n",resourceclaim="c",uuid="a",attribution="exclusive"} `
		energy  = "# TYPE dra_device_energy_joules_total counter\n" + `dra_device_energy_joules_total{uuid="a",parent_uuid=""} `
	)
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
		"well":                    {[]*Page{page(t, 0, info, count, held, seconds+"1", own, gets+"0.5"), page(t, 1, info, count, held, seconds+"2")}, ""},
		"counter fell":            {[]*Page{page(t, 0, held, seconds+"2"), page(t, 1, held, seconds+"1")}, "fell from 2 to 1"},
		"hardware's counter":      {[]*Page{page(t, 0, energy+"2"), page(t, 1, energy+"1")}, "fell from 2 to 1"},
		"another process":         {[]*Page{page(t, 0, held, seconds+"2"), restarted(page(t, 1, held, seconds+"1"))}, ""},
		"counter outlives":        {[]*Page{page(t, 0, held, seconds+"2"), page(t, 20, seconds+"2"), page(t, 30)}, ""},
		"the name again, after":   {[]*Page{page(t, 0, held, seconds+"2"), page(t, 29, seconds+"2"), page(t, 30, held, seconds+"0")}, ""},
		"the name again, within":  {[]*Page{page(t, 0, held, seconds+"2"), page(t, 20, seconds+"2"), page(t, 25, held, seconds+"0")}, "fell from 2 to 0"},
		"counter goes too soon":   {[]*Page{page(t, 0, held, seconds+"2"), page(t, 20)}, "went 20s after"},
		"total goes":              {[]*Page{page(t, 0, total), page(t, 1)}, "is gone"},
		"a page that is wrong":    {[]*Page{page(t, 0, info, count, held, own, gets+"0.4")}, "device_value: dra_claim_utilization_ratio of a is 0.4 for n/c (exclusive), but the device's own is 0.5 (node x)"},
		"two pages that are":      {[]*Page{page(t, 0, info, count, held, charged+"1"), page(t, 1, info, count, held, charged+"60")}, "device_time: claims are charged 59.000 device-seconds of a in 8.000 s: n/c 59.000"},
		"partitions for a moment": {[]*Page{page(t, 0, info, strings.Replace(info, `"a",parent_uuid=""`, `"p",parent_uuid="a"`, 1), `dra_device_memory_used_bytes{uuid="a",parent_uuid=""} 1`, `dra_device_memory_used_bytes{uuid="p",parent_uuid="a"} 2`)}, ""},
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
