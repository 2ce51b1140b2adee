package check

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

const nodePage = `# HELP dra_exporter_build_info The running version
# TYPE dra_exporter_build_info gauge
dra_exporter_build_info{version="0.1.0",revision="abc",goversion="go1.26"} 1
dra_exporter_source_up{source="nvml"} 1
dra_exporter_source_up{source="pods"} 0
dra_exporter_source_error_info{source="nvml",reason="device_error"} 1
dra_exporter_source_error_info{source="pods",reason="permission_denied"} 1
dra_exporter_sample_timestamp_seconds 1.7e+09
dra_exporter_unmatched_devices{driver="gpu.nvidia.com",side="hardware"} 1
dra_exporter_unmatched_devices{driver="gpu.nvidia.com",side="published"} 2
dra_exporter_series_dropped_total{family="dra_claim_held"} 7
dra_exporter_otlp_up{signal="metrics"} 0
dra_exporter_process_attribution{reason="ok"} 0
dra_exporter_process_attribution{reason="pid_namespace"} 1
dra_device_info{node="n",uuid="GPU-0",model="a \"b\" {c}"} 1
dra_claim_held{node="n",resourceclaim="a",uuid="GPU-0"} 1
dra_claim_held{node="n",resourceclaim="b",uuid="GPU-0"} 1
process_cpu_seconds_total 1
`

func TestDecodePage(t *testing.T) {
	page, err := decodePage(strings.NewReader(nodePage))
	if err != nil {
		t.Fatal(err)
	}
	if page.Version != "0.1.0" || !page.Node || page.Devices != 1 || page.Held != 1 || page.NodeName != "n" || page.Processes != "pid_namespace" ||
		page.Unmatched["published"] != 2 || page.Dropped["dra_claim_held"] != 7 || page.Pushes["metrics"] || !page.SampledAt.Equal(time.Unix(1_700_000_000, 0)) {
		t.Errorf("read as %+v", page)
	}
	if len(page.Sources) != 2 || !page.Sources[0].Up || page.Sources[1].Up || strings.Join(page.Sources[1].Reasons, "") != "permission_denied" {
		t.Errorf("sources %+v", page.Sources)
	}
	for name, text := range map[string]string{
		"another program's": "go_goroutines 7\n",
		"nothing":           "",
		"a web page":        "<html><body>dra_exporter_build_info</body></html>",
		"broken off":        nodePage[:strings.Index(nodePage, `",goversion`)],
		"no number":         "dra_exporter_build_info{version=\"1\"} one\n",
		"an endless line":   "dra_exporter_build_info 1\n" + strings.Repeat("x", longestLine+1),
	} {
		if page, err := decodePage(strings.NewReader(text)); err == nil {
			t.Errorf("%s passes for %+v", name, page)
		}
	}
	if _, err := decodePage(strings.NewReader("go_goroutines 7\n")); !errors.Is(err, errNoExporter) {
		t.Errorf("another program's page: %v", err)
	}
}

func TestAgents(t *testing.T) {
	page, err := decodePage(strings.NewReader(nodePage))
	if err != nil {
		t.Fatal(err)
	}
	bare := Page{Version: "0.1.0", Node: true, Unmatched: map[string]float64{}, Sources: []PageSource{{Name: "dcgm", Reasons: []string{"unavailable"}}}}
	at := page.SampledAt
	checkFindings(t, []findingsCase{
		{"all that can be wrong", Agents([]Agent{{URL: "http://a/metrics", Page: page, At: at.Add(time.Hour), Ready: errors.New("503")}}), []want{
			{Failure, "n", "is not ready"}, {Failure, "n: pods", "permission_denied"}, {Warning, "n: nvml", "device_error"}, {Failure, "n", "1h0m0s old"},
			{Warning, "n", "2 devices that claims hold"}, {Warning, "n", "1 device that the vendor's driver"}, {Warning, "n", "series of dra_claim_held"}, {Failure, "n", "last push of metrics"},
		}},
		{"a clock that is behind", Agents([]Agent{{Page: Page{Node: true, SampledAt: at}, At: at.Add(-time.Hour)}}), []want{{Warning, "exporter", "in the future"}}},
		{"no hardware", Agents([]Agent{{Address: "10.0.0.1", Page: bare}}), []want{{Warning, "10.0.0.1: dcgm", "no device is known"}}},
		{"no answer", Agents([]Agent{{Error: errors.New("refused")}}), []want{{Failure, "exporter", "refused"}}},
		{"two versions", Agents([]Agent{{Page: Page{Version: "1"}}, {Page: Page{Version: "2"}}, {Page: Page{Version: "2"}}}), []want{{Warning, "versions", "1 (1), 2 (2)"}}},
		{"well", Agents([]Agent{{Page: Page{Version: "1"}}}), []want{{OK, "cluster role", "version 1, 0 of 0 sources up"}}},
	})
}

// A foreign page is read or refused, and what is said of it can be shown.
func FuzzDecodePage(f *testing.F) {
	f.Add([]byte(nodePage))
	f.Add([]byte("dra_exporter_build_info 1\ndra_exporter_sample_timestamp_seconds NaN\n"))
	f.Add([]byte("dra_exporter_build_info{version=\"\\n\xff\"} 1\ndra_exporter_unmatched_devices{side=\"published\"} -Inf"))
	f.Fuzz(func(t *testing.T, data []byte) {
		page, err := decodePage(bytes.NewReader(data))
		if err != nil {
			return
		}
		report := Report{Findings: Agents([]Agent{{URL: "http://a", Page: page, At: time.Unix(1_700_000_000, 0)}})}
		text := report.Text(Style{})
		if strings.ContainsAny(text, "\x1b\r\x00") {
			t.Errorf("the terminal would obey: %q", text)
		}
		var document bytes.Buffer
		if err := encode(&document, &report); err != nil {
			t.Error(err)
		}
	})
}
