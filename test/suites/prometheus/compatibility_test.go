package prometheus

import (
	"regexp"
	"strings"
	"testing"
)

// TestCompatibilityTable: docs/compatibility.md names the versions with which
// the tests run: those of the modules, and those of Debian that test/Makefile
// expects.
func TestCompatibilityTable(t *testing.T) {
	document := read(t, root+"/docs/compatibility.md")
	for _, test := range []struct{ program, column, file, version string }{
		{"Prometheus", "oldest", "test/Makefile", `OLD_PROMETHEUS_VERSION := (\S+)`},
		{"Prometheus", "newest", "test/suites/prometheus/go.mod", `github.com/prometheus/prometheus v(\S+)`},
		{"Alertmanager", "oldest", "test/Makefile", `OLD_ALERTMANAGER_VERSION := (\S+)`},
		{"Alertmanager", "newest", "test/programs/sources/go.mod", `github.com/prometheus/alertmanager v(\S+)`},
		{"OpenTelemetry Collector", "oldest", "test/programs/otelcol/oldest.mod", `go.opentelemetry.io/collector/otelcol v(\S+)`},
		{"OpenTelemetry Collector", "newest", "test/programs/otelcol/go.mod", `go.opentelemetry.io/collector/otelcol v(\S+)`},
	} {
		row := regexp.MustCompile(`(?m)^\| ` + test.program + ` \| (\S+) \| (\S+) \|`).FindStringSubmatch(document)
		pin := regexp.MustCompile(test.version).FindStringSubmatch(read(t, root+"/"+test.file))
		if row == nil || pin == nil {
			t.Errorf("%s: the table's row is %v, and %s has %v", test.program, row, test.file, pin)
			continue
		}
		got, want := row[1], pin[1]
		if test.column == "newest" {
			got = row[2]
		}
		// The module of Prometheus v3.15.0 is v0.315.0.
		if module := regexp.MustCompile(`^0\.(\d)(\d\d)\.\d+$`).FindStringSubmatch(want); module != nil && test.program == "Prometheus" {
			want = module[1] + "." + strings.TrimPrefix(module[2], "0")
		}
		if got != want {
			t.Errorf("the %s %s is %s in docs/compatibility.md, and %s in %s", test.column, test.program, got, want, test.file)
		}
	}
}
