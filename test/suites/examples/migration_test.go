package examples

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestMigrationQueries: every query of ours in docs/migration.md is valid on a
// real Prometheus that scrapes the demo, and has rows, except for those that
// must have none according to the page.
func TestMigrationQueries(t *testing.T) {
	prometheus := startRecording(t)
	none := []string{
		`on (cluster, node, uuid)` + "\n" + `  (dra_device_holders{kind="device_plugin"} > 0)`, // allocated twice
		`unless on (cluster, uuid)`,                         // what only one of both exporters has
		`dra_claim_idle_since_timestamp_seconds:max > 1800`, // the demo has not run for so long
		`dra_grpc_operations_duration_seconds_bucket`,       // of the kubelet, which the demo does not have
	}
	queries := paragraphs(read(t, repository, "docs", "migration.md"))
	if len(queries) < 25 {
		t.Fatalf("the page has %d queries", len(queries))
	}
	for _, query := range queries {
		expected := true
		for _, text := range none {
			expected = expected && !strings.Contains(query, text)
		}
		if !expected {
			if _, err := queryValues(prometheus, query); err != nil {
				t.Errorf("%s: %v", query, err)
			}
			continue
		}
		eventually(t, "rows of "+query, func() error {
			rows, err := queryValues(prometheus, query)
			if err == nil && len(rows) == 0 {
				err = fmt.Errorf("it has none")
			}
			return err
		})
	}
}

// TestWrongSums: the page's table of wrong sums is correct. The tolerances are
// small compared to the differences, because the demo's load changes slowly.
func TestWrongSums(t *testing.T) {
	prometheus := startRecording(t)
	for _, pair := range []struct {
		theirs, ours string
		least, most  float64 // their value ÷ ours
	}{
		{`sum(DCGM_FI_DEV_POWER_USAGE)`, `sum(dra_device_power_watts{parent_uuid=""})`, 1.3, 10},
		{`sum(DCGM_FI_DEV_FB_USED) * 1048576`, `sum(dra_device_memory_used_bytes{parent_uuid=""})`, 1.1, 10},
		{`count(DCGM_FI_DEV_GPU_UTIL < 5)`, `count(dra_claim_idle_since_timestamp_seconds)`, 1.5, 100},
		// Both exporters have the same value for one GPU, so the sums differ.
		{`max(DCGM_FI_DEV_GPU_UTIL{namespace="search"})`, `100 * max(dra_device_utilization_ratio and on (uuid) dra_claim_held{namespace="search"})`, 0.999, 1.001},
	} {
		ratio := fmt.Sprintf("(%s) / scalar(%s)", pair.theirs, pair.ours)
		eventually(t, fmt.Sprintf("%s to be from %v to %v", ratio, pair.least, pair.most), func() error {
			rows, err := queryValues(prometheus, ratio)
			if err == nil && (len(rows) != 1 || rows[0] < pair.least || rows[0] > pair.most) {
				err = fmt.Errorf("it is %v", rows)
			}
			return err
		})
	}
}

// startRecording runs the demo with dcgm-exporter's names, and a Prometheus
// that evaluates the shipped recording rules on it. Groups with an interval of
// five minutes are evaluated sooner.
func startRecording(t *testing.T) string {
	t.Helper()
	rules := read(t, repository, "alerts", "recording.yaml")
	if !strings.Contains(rules, "    interval: 5m\n") {
		t.Fatal("no group waits for five minutes")
	}
	file := filepath.Join(t.TempDir(), "recording.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(rules, "    interval: 5m\n", "    interval: 5s\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	node, cluster := startDemo(t, "--metrics.dcgm=copy")
	return startPrometheus(t, file, map[string]string{node: "gpu-node-1", cluster: "cluster"})
}

// paragraphs returns the PromQL blocks of a document, including indented ones.
func paragraphs(document string) (queries []string) {
	var block []string
	indent, inside := "", false
	for line := range strings.Lines(document) {
		trimmed := strings.TrimSpace(line)
		switch {
		case !inside && trimmed == "```promql":
			inside, indent, block = true, line[:strings.Index(line, "`")], nil
		case inside && trimmed == "```":
			inside = false
			queries = append(queries, strings.TrimRight(strings.Join(block, ""), "\n"))
		case inside:
			block = append(block, strings.TrimPrefix(line, indent))
		}
	}
	return queries
}

// queryValues evaluates a query and returns the values of its rows.
func queryValues(prometheus, query string) (values []float64, err error) {
	var answer struct {
		Data struct {
			ResultType string
			Result     []struct{ Value [2]any }
		}
	}
	if err := get(prometheus+"/api/v1/query?query="+url.QueryEscape(query), &answer); err != nil {
		return nil, err
	}
	for _, row := range answer.Data.Result {
		text, _ := row.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", query, err)
		}
		values = append(values, value)
	}
	return values, nil
}
