package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/check"
)

// labelValue returns a text as a label value of the exposition format.
func labelValue(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`).Replace(strings.ToValidUTF8(text, "?")) + `"`
}

// contradicting returns a page that attributes all of a device to each of two
// claims, and charges them for more with each page.
func contradicting(claim string, second int64) string {
	name := labelValue(claim)
	return fmt.Sprintf(`dra_exporter_build_info{version="1"} 1
dra_exporter_unmatched_devices{side="hardware"} 0
process_start_time_seconds 7
dra_device_info{node="n",uuid="GPU-0",parent_uuid="",source="nvml"} 1
dra_device_holders{node="n",uuid="GPU-0",parent_uuid="",kind="claim"} 2
dra_device_power_watts{node="n",uuid="GPU-0",parent_uuid=""} 300
dra_claim_held{node="n",namespace="ml",resourceclaim=%[1]s,uuid="GPU-0"} 1
dra_claim_held{node="n",namespace="ml",resourceclaim="b",uuid="GPU-0"} 1
dra_claim_power_watts{node="n",namespace="ml",resourceclaim=%[1]s,uuid="GPU-0",attribution="exclusive"} 300
dra_claim_power_watts{node="n",namespace="ml",resourceclaim="b",uuid="GPU-0",attribution="exclusive"} 300
dra_claim_held_seconds_total{node="n",namespace="ml",resourceclaim=%[1]s,uuid="GPU-0"} %[2]d
dra_claim_held_seconds_total{node="n",namespace="ml",resourceclaim="b",uuid="GPU-0"} %[2]d
dra_claim_device_seconds_total{node="n",namespace="ml",resourceclaim=%[1]s,uuid="GPU-0"} %[2]d
dra_claim_device_seconds_total{node="n",namespace="ml",resourceclaim="b",uuid="GPU-0"} %[2]d
`, name, second)
}

// A page that contradicts itself or the page before is reported as a bug,
// whatever its names are.
func TestCheckFindsContradictions(t *testing.T) {
	t.Parallel()
	claims := hostileStrings()
	claims["plain"] = "a"
	for _, large := range []string{"a quarter of a mebibyte", "one of bad bytes"} { // longer than the longest permitted line
		claims[large] = claims[large][:1<<15]
	}
	pages := http.NewServeMux()
	urls, order := []string{}, []string{}
	for name, claim := range claims {
		var requests atomic.Int64
		path := fmt.Sprintf("/%d/", len(urls))
		pages.HandleFunc(path+"metrics", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(contradicting(claim, 100+requests.Add(1)))) // the check may have given up
		})
		pages.HandleFunc(path+"-/ready", func(http.ResponseWriter, *http.Request) {})
		urls, order = append(urls, path+"metrics"), append(order, name)
	}
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	for i := range urls {
		urls[i] = server.URL + urls[i]
	}
	found := runCheck(t, nil, append([]string{"agent"}, urls...)...)
	for i, url := range urls {
		for rule, words := range map[string]string{
			"alone_on_device":      "dra_claim_power_watts as exclusive of GPU-0 for ml/",
			"claims_within_device": "the claims of GPU-0 have 600 of dra_device_power_watts, which is 300",
			"device_time":          "claims that held GPU-0 for the same 1.000 s are charged 2.000 device-seconds",
		} {
			t.Log(order[i])
			found.expectFinding(t, url, "n: "+rule, check.Failure, words)
		}
	}
	if want := 3 * len(urls); found.Failures != want {
		t.Errorf("%d failures, want %d", found.Failures, want)
	}
	for _, f := range found.Findings {
		if len(f.Text) > 2000 || strings.ContainsAny(f.Text, "\x1b\n\r\x00") {
			t.Errorf("%d bytes: %.200q", len(f.Text), f.Text)
		}
	}
}

// An exporter that does not answer a second time is checked by its first page.
func TestCheckOfAgentThatStops(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "metrics") && requests.Add(1) > 1 {
			http.Error(w, "ended", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(contradicting("a", 1)))
	}))
	t.Cleanup(server.Close)
	found := runCheck(t, nil, "agent", server.URL)
	found.expectFinding(t, server.URL+"/metrics", "n", check.Skipped, "its counters are not compared with a second page: 503")
	found.expectFinding(t, server.URL+"/metrics", "n: alone_on_device", check.Failure, "2 claims hold the device: ml/a, ml/b")
}

// The demo has shared devices, partitions, device plugins, and claims that come
// and go.
func TestDemoHasNoContradictions(t *testing.T) {
	t.Parallel()
	address, _ := runningDemo(t)
	eventually(t, address+"/metrics", `dra_claim_utilization_ratio{attribution="process"`, `dra_claim_memory_used_bytes{attribution="partition"`)
	for range 3 {
		for _, f := range runCheck(t, nil, "agent", address).Findings {
			if f.Outcome != check.OK {
				t.Errorf("%s %s: %s", f.Outcome, f.Subject, f.Text)
			}
		}
	}
}
