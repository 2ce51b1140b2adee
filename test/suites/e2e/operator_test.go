package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOperatorObjects: the API server validates the shipped monitors and rules
// by the Prometheus operator's own definitions. It accepts them, and refuses
// misspelt fields.
func TestOperatorObjects(t *testing.T) {
	covers(t)
	withOperator(t)
	for component, misspelling := range map[string][2]string{
		"podmonitor":     {"podMetricsEndpoints:", "podMetricEndpoints:"},
		"prometheusrule": {"- alert: ", "- alarm: "},
	} {
		var objects []string
		for _, object := range rendered(t, "base", component, "") {
			if strings.Contains(object, "apiVersion: monitoring.coreos.com/v1\n") {
				objects = append(objects, object)
			}
		}
		if len(objects) == 0 {
			t.Errorf("%s: it has no object of the operator", component)
			continue
		}
		text := strings.Join(objects, "\n---\n")
		if err := dryRunCreate(t.Context(), written(t, text)); err != nil {
			t.Errorf("%s: %v", component, err)
		}
		wrong := strings.Replace(text, misspelling[0], misspelling[1], 1)
		if wrong == text {
			t.Fatalf("%s: there is no %q", component, misspelling[0])
		}
		if err := dryRunCreate(t.Context(), written(t, wrong)); err == nil {
			t.Errorf("%s: %q was not refused", component, misspelling[1])
		}
	}
}

// written returns the path of a file with the text.
func written(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
