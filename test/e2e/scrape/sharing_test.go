package scrape

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// reasons is the state set with one reason as the present one.
func reasons(now string) (rows []string) {
	for _, reason := range AttributionReasons() {
		value := 0
		if reason == now {
			value = 1
		}
		rows = append(rows, fmt.Sprintf("dra_exporter_process_attribution{reason=%q} %d", reason, value))
	}
	return rows
}

func TestSharingRules(t *testing.T) {
	const (
		info    = `dra_device_info{uuid="a",parent_uuid=""} 1`
		part    = `dra_device_info{uuid="a",parent_uuid="g"} 1`
		own     = `dra_device_utilization_ratio{uuid="a"} 1`
		nobodys = `dra_device_unattributed_utilization_ratio{uuid="a"} 0.25`
		claim   = `dra_claim_utilization_ratio{resourceclaim=%q,uuid="a",attribution=%q} %v`
		pod     = `dra_pod_utilization_ratio{pod=%q,uuid="a"} %v`
		busy    = `dra_claim_busy_seconds_total{resourceclaim=%q,uuid="a",attribution=%q} %v`
		ownBusy = `dra_device_busy_seconds_total{uuid="a"} 20`
		power   = `dra_claim_power_watts{resourceclaim="c",uuid="a",attribution="process"} 1`
	)
	claims := func(attribution string, values ...float64) (rows []string) {
		rows = append(rows, own, nobodys, info)
		for i, value := range values {
			rows = append(rows, fmt.Sprintf(claim, fmt.Sprint(i), attribution, value))
		}
		return rows
	}
	pods := func(values ...float64) (rows []string) {
		rows = append(rows, own, nobodys, info)
		for i, value := range values {
			rows = append(rows, fmt.Sprintf(pod, fmt.Sprint(i), value))
		}
		return rows
	}
	ok := reasons("ok")
	for name, test := range map[string]struct {
		rows []string
		want string
	}{
		"divided":                 {slices.Concat(claims("process", 0.25, 0.5), ok), ""},
		"divided without a rest":  {slices.Concat(claims("process", 0.25, 0.5)[3:], []string{own, info}, ok), "what is unattributed"},
		"more than there is":      {slices.Concat(claims("process", 0.25, 0.75), ok), "claims of a have 1.25 of its"},
		"shared is not added":     {slices.Concat(claims("shared", 1, 1), ok), ""},
		"pods":                    {slices.Concat(pods(0.25, 0.5), ok), ""},
		"pods of more":            {slices.Concat(pods(0.25, 0.75), ok), "pods of a have 1.25 of its"},
		"busy":                    {append(slices.Clone(ok), ownBusy, fmt.Sprintf(busy, "c", "process", 8), fmt.Sprintf(busy, "d", "exclusive", 12)), ""},
		"busy for longer":         {append(slices.Clone(ok), ownBusy, fmt.Sprintf(busy, "c", "process", 8), fmt.Sprintf(busy, "d", "exclusive", 15)), "busy for 23 s"},
		"shared time":             {append(slices.Clone(ok), ownBusy, fmt.Sprintf(busy, "c", "shared", 20), fmt.Sprintf(busy, "d", "shared", 20)), ""},
		"power by processes":      {append(slices.Clone(ok), power), "cannot be known of processes"},
		"a partition's processes": {slices.Concat(claims("process", 0.25), []string{part}, ok)[1:], "cannot be known of processes"},
		"two reasons":             {append(slices.Clone(ok[:5]), `dra_exporter_process_attribution{reason="unsupported"} 1`), `["ok" "unsupported"]`},
		"no reason":               {reasons(""), "because of []"},
		"a reason is missing":     {ok[1:], "of the reasons no_pods"},
		"an unknown reason":       {append(slices.Clone(ok), `dra_exporter_process_attribution{reason="mood"} 0`), "mood"},
	} {
		t.Run(name, func(t *testing.T) {
			p := page(t, 0, test.rows...)
			err := errors.Join(slices.Concat(SumsHold(p), BusySumsHold(p), OnlyProcessesDivide(p), ReasonIsOne(p))...)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("broken: %v\nwant: %q", err, test.want)
			}
		})
	}
}
