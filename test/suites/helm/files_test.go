package helm

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/chart/copies"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

var update = flag.Bool("update", false, "write the thresholds of the chart's values, and README.md")

// TestMain writes what the chart copies, so that no test renders an old copy.
func TestMain(m *testing.M) {
	belongs, err := sets.Read(root)
	if err == nil {
		err = copies.Write(root, chart, belongs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "helm:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestChartWithoutFiles: the chart of a fresh clone is refused, whatever else is
// wrong, with what to do.
func TestChartWithoutFiles(t *testing.T) {
	const says = "the chart has no dashboards and rules in its folder files, which is not in git: run `make chart-files` in the clone, " +
		"or install the packaged chart (oci://ghcr.io/dra-exporter/charts/dra-exporter)"
	for _, lost := range []string{"files", "files/dashboards", "files/rules/alerts.yaml", "files/rules/recording.yaml", "files/rules/sets.yaml"} {
		folder := filepath.Join(t.TempDir(), "dra-exporter")
		if err := os.CopyFS(folder, os.DirFS(chart)); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(folder, lost)); err != nil {
			t.Fatal(err)
		}
		for _, values := range []string{"{}", "{rules: {enabled: true, disabledAlerts: [DRAClaimIdle]}, imagePullSecrets: [{name: x}]}"} {
			if _, err := tryRender(t, install{chart: folder, values: values, apis: []string{prometheusRules}}); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("without %s, %s: %v", lost, values, err)
			}
		}
		if output, err := helm(t, "template", "x", folder, "--kube-version", "v1.37.1"); err == nil || !strings.Contains(output, says) {
			t.Errorf("without %s: %v: %s", lost, err, output)
		}
	}
}
