package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// pendingQuery is "which claims have been pending for more than five minutes,
// and of which class?"
const pendingQuery = `sum by (namespace, pod, resourceclaim, deviceclass) (time() - dra_claim_pending_since_timestamp_seconds > 300)`

// TestClusterQuery evaluates a query with Prometheus' own engine. Its clock
// begins at zero, so the page's timestamps are moved by the time of the
// scrape.
func TestClusterQuery(t *testing.T) {
	covers(t)
	deployText(t, "turns", heldPods)
	running(t, "turns", "first")
	deployText(t, "turns", secondPod)
	waits := scrape.Labels{"namespace": "turns", "pod": "second"}
	p := waitClusterPage(t, "the second pod to wait", func(p *scrape.Page) error { return hasReason(p, waits, "insufficient_devices") })
	row, err := p.One("dra_claim_pending_since_timestamp_seconds", waits)
	if err != nil {
		t.Fatal(err)
	}
	scraped := p.At.Unix()
	var series strings.Builder
	for _, row := range p.Rows("dra_claim_pending_since_timestamp_seconds", scrape.Labels{"namespace": "turns"}) {
		fmt.Fprintf(&series, "  - {series: 'dra_claim_pending_since_timestamp_seconds%s', values: '%d+0x600'}\n", row.Labels, int64(row.Value)-scraped)
	}
	file := filepath.Join(t.TempDir(), "query.yaml")
	text := fmt.Sprintf(queryTest, series.String(), pendingQuery, pendingQuery, row.Labels["resourceclaim"], 600-(int64(row.Value)-scraped))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("DRA_E2E_BIN"), "prometheus", "promtool"), "test", "rules", file)
	if output, err := promtool.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, output, text)
	}
}

// queryTest is a rule test of promtool. Its arguments are the series, the
// query twice, the claim's name, and for how long it has been pending at the
// second time.
const queryTest = `
evaluation_interval: 1m
tests:
- interval: 1m
  input_series:
%s  promql_expr_test:
  - {expr: '%s', eval_time: 3m, exp_samples: []}
  - expr: '%s'
    eval_time: 10m
    exp_samples:
    - {labels: '{namespace="turns", pod="second", resourceclaim="%s", deviceclass="only.life"}', value: %d}
`
