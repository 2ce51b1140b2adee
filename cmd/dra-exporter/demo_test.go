package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dra-exporter/dra-exporter/internal/check"
	"github.com/dra-exporter/dra-exporter/test/tools/invariant"
)

// runningDemo starts the demo as a program and returns the addresses of its
// roles.
func runningDemo(t *testing.T) (node, cluster string) {
	t.Helper()
	node, cluster, _ = touringDemo(t)
	return node, cluster
}

// touringDemo is like runningDemo and also returns what the demo prints after the
// addresses. The addresses are its first two lines.
func touringDemo(t *testing.T) (node, cluster string, tour *bufio.Scanner) {
	t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(stop)
	var log bytes.Buffer
	command := program(ctx, "demo", "--metrics.dcgm=split", "--web.listen-address=127.0.0.1:0", "--cluster.listen-address=127.0.0.1:0", "--training.listen-address=127.0.0.1:0")
	command.Stderr = &log
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have exited already
		if err := command.Wait(); err != nil {
			t.Errorf("the demo did not end well: %v\n%s", err, log.String())
		}
	})
	for lines := bufio.NewScanner(output); lines.Scan(); {
		address, _, _ := strings.Cut(lines.Text(), "/  ")
		if node == "" {
			node = address // the first line
			continue
		}
		return node, address, lines
	}
	t.Fatalf("the demo does not say where it is:\n%s", log.String())
	return "", "", nil
}

// parsePage parses a page in text format, by family.
func parsePage(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// sums adds up a gauge by one of its labels, over the series that count.
func sums(family *dto.MetricFamily, by string, counts func(labels map[string]string) bool) map[string]float64 {
	sums := make(map[string]float64)
	for _, series := range family.GetMetric() {
		labels := make(map[string]string)
		for _, pair := range series.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		if counts(labels) {
			sums[labels[by]] += series.GetGauge().GetValue()
		}
	}
	return sums
}

// The demo has shared devices, partitions, device plugins, and claims that come and go:
// its pages satisfy the rules for all pages, and check has no finding.
func TestDemoSatisfiesTheRules(t *testing.T) {
	t.Parallel()
	address, _ := runningDemo(t)
	eventually(t, address+"/metrics", `dra_claim_utilization_ratio{attribution="process"`, `dra_claim_memory_used_bytes{attribution="partition"`, `serial="1651023004007"`)
	var watch invariant.Watch
	for range 3 {
		_, text := get(t, address+"/metrics")
		page := invariant.FromFamilies(slices.Collect(maps.Values(parsePage(t, text))), time.Now())
		page.Slack = 30 * time.Second // on a busy machine
		for _, v := range watch.Next(page) {
			if !v.Momentary {
				t.Error(v)
			}
		}
		for _, f := range runCheck(t, nil, "agent", address).Findings {
			if f.Outcome != check.OK {
				t.Errorf("%s %s: %s", f.Outcome, f.Subject, f.Text)
			}
		}
	}
}

// The demo has all attributions: shared devices are split by process,
// unattributed usage is separate, sums do not exceed the device, and usage of
// namespaces has costs.
func TestDemoSplitsAndPrices(t *testing.T) {
	const shared, free, plugged = "GPU-a92c4e68-35d1-4f7b-8e09-6c1b7d5a0f43", "GPU-d40f81b5-92e6-4a3c-b158-7e2a9c6d3f08", "GPU-0937c5ea-6bf4-4d12-8c7f-e5a20d14b986"
	address, _ := runningDemo(t)
	eventually(t, address+"/metrics",
		`dra_exporter_process_attribution{reason="ok"} 1`,
		`dra_claim_utilization_ratio{attribution="process",namespace="search"`,
		`dra_claim_utilization_ratio{attribution="process",namespace="ranking"`,
		`dra_claim_memory_used_bytes{attribution="process",namespace="ranking"`,
		`dra_pod_utilization_ratio{namespace="legacy"`,
		`dra_namespace_cost_total{currency="USD",deviceclass="dra.net"`,
		`label_team="discovery"`,
	)
	everything := func(map[string]string) bool { return true }
	var families map[string]*dto.MetricFamily
	works := func() bool { // the first containers have just started when the first page is there
		_, page := get(t, address+"/metrics")
		families = parsePage(t, page)
		pods := sums(families["dra_pod_utilization_ratio"], "uuid", everything)
		return pods[shared] > 0 && pods[plugged] > 0
	}
	for patience := 0; !works(); patience++ {
		if patience == 100 {
			t.Fatalf("nothing uses %s or %s", shared, plugged)
		}
		time.Sleep(100 * time.Millisecond)
	}
	for quantity, unattributed := range map[string]string{"utilization_ratio": "utilization_ratio", "memory_used_bytes": "memory_bytes"} {
		device := sums(families["dra_device_"+quantity], "uuid", everything)
		claims := sums(families["dra_claim_"+quantity], "uuid", func(l map[string]string) bool { return l["attribution"] != "shared" })
		pods := sums(families["dra_pod_"+quantity], "uuid", everything)
		unattributedSums := sums(families["dra_device_unattributed_"+unattributed], "uuid", everything)
		for uuid, whole := range device {
			if held := max(claims[uuid], pods[uuid]) + unattributedSums[uuid]; held > whole*(1+1e-9) {
				t.Errorf("%s of %s: %g is accounted for, it has %g", quantity, uuid, held, whole)
			}
		}
		if claims[shared] == 0 || unattributedSums[shared] == 0 || math.Abs(claims[shared]-pods[shared]) > 1e-9*claims[shared] || pods[plugged] == 0 {
			t.Errorf("%s: claims %v, pods %v, unattributed %v", quantity, claims, pods, unattributedSums)
		}
	}
	pods := sums(families["dra_pod_utilization_ratio"], "pod", func(l map[string]string) bool { return l["uuid"] == shared })
	named := sums(families["DCGM_FI_DEV_GPU_UTIL"], "pod", func(l map[string]string) bool { return l["UUID"] == shared })
	for pod, ratio := range pods {
		if math.Abs(named[pod]-100*ratio) > 1e-9 {
			t.Errorf("%s uses %g %% by its DCGM name, want its own %g", pod, named[pod], 100*ratio)
		}
	}
	if unattributed := sums(families["dra_device_unattributed_memory_bytes"], "uuid", func(map[string]string) bool { return true })[free]; unattributed < 3e9 {
		t.Errorf("the unattributed part of the free GPU has %g bytes", unattributed)
	}
	if _, html := get(t, address+"/"); !strings.Contains(html, "2.99 USD/h") || !strings.Contains(html, "team=discovery") || strings.Contains(html, "not split by process") {
		t.Error("the page shows no prices or no teams, or that nothing is split")
	}
	var text string
	for patience := 0; !hasCost(t, address, &text); patience++ {
		if patience == 100 {
			t.Fatalf("what search has had is %s", text)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// TestFormatsHaveTheSameSeries: the text format and the one that Prometheus requests by
// default, which has no series _created by default, have the same number of series.
// Claims come and go, so a tolerance of a tenth applies.
func TestFormatsHaveTheSameSeries(t *testing.T) {
	address, _ := runningDemo(t)
	eventually(t, address+"/metrics", `dra_claim_utilization_ratio{attribution="process"`)
	for patience := 0; ; patience++ {
		text, other := float64(seriesCount(t, address+"/metrics", "")), float64(seriesCount(t, address+"/metrics", openMetrics))
		if text > 500 && math.Abs(text/other-1) < 0.1 {
			return
		}
		if patience == 100 {
			t.Fatalf("the text has %v series, OpenMetrics %v", text, other)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// seriesCount returns how many series a page has in a format, without those
// under DCGM's names.
func seriesCount(t *testing.T, address, format string) (count int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", format)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "#") && !strings.HasPrefix(lines.Text(), "DCGM_") {
			count++
		}
	}
	return count
}

// hasCost reports whether a namespace has had devices that cost something.
func hasCost(t *testing.T, address string, text *string) bool {
	t.Helper()
	_, *text = get(t, address+"/api/v1/namespaces?namespace=search")
	var answer struct {
		Namespaces []struct {
			Cost float64 `json:"cost"`
		} `json:"namespaces"`
	}
	if err := json.Unmarshal([]byte(*text), &answer); err != nil {
		t.Fatal(err)
	}
	return len(answer.Namespaces) == 1 && answer.Namespaces[0].Cost > 0
}
