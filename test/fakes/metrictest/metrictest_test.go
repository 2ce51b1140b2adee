package metrictest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// recorder is a test that only notes why it failed.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestTextNotices(t *testing.T) {
	var (
		family  = &metric.Family{Name: "dra_device_power_watts", Help: "Power", Unit: "watts"}
		again   = &metric.Family{Name: "dra_device_power_watts", Help: "Power", Unit: "watts"}
		helpful = &metric.Family{Name: "dra_device_energy_joules", Type: metric.Counter, Unit: "joules"}
		bare    = &metric.Family{Name: "dra_claim_busy_seconds_total", Help: "Busy", Type: metric.Counter}
		first   = metric.NewLabels([]string{"uuid"}, "GPU-1")
		second  = metric.NewLabels([]string{"uuid"}, "GPU-2")
		twice   = metric.NewLabels([]string{"uuid", "uuid"}, "GPU-2", "GPU-3")
	)
	for _, test := range []struct {
		name  string
		rows  []metric.Row
		allow []string
		want  string
	}{
		{name: "nothing", rows: []metric.Row{{Family: family, Labels: first}, {Family: family, Labels: second}}},
		{name: "a label set twice", rows: []metric.Row{{Family: family, Labels: first}, {Family: family, Labels: first}},
			want: "was collected before with the same name and label values"},
		{name: "a label twice", rows: []metric.Row{{Family: family, Labels: twice}}, want: "inconsistent page"},
		{name: "a family twice", rows: []metric.Row{{Family: family, Labels: first}, {Family: again, Labels: second}},
			want: "family dra_device_power_watts appears twice"},
		{name: "a name with a unit that is not declared", rows: []metric.Row{{Family: bare, Labels: first}},
			want: `family dra_claim_busy_seconds_total declares the unit "", want "seconds"`},
		{name: "what promlint notices", rows: []metric.Row{{Family: helpful, Labels: first}}, want: "promlint: dra_device_energy_joules"},
		{name: "not what is allowed", rows: []metric.Row{{Family: helpful, Labels: first}}, allow: []string{"dra_device_energy_joules"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			record := &recorder{TB: t}
			metrictest.Text(record, metric.NewPage(test.rows), test.allow...)
			got := strings.Join(record.failures, "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("failures %q, want %q", got, test.want)
			}
		})
	}
}

func TestCompareGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "golden.txt")
	if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"one\ntwo\n":              "",
		"one\nthree\n":            "golden.txt:2 differs\n-two\n+three\nif this",
		"one\ntwo\nthree\n":       "golden.txt:3 differs\n+three\nif this is as it should be: go test . -run '^TestCompareGolden$' -update",
		"one":                     "golden.txt:2 differs\n-two\n-\nif this",
		strings.Repeat("a\n", 20): "golden.txt:1 differs\n-one\n-two\n" + strings.Repeat("+a\n", 8) + "and 12 lines more\nif this",
	} {
		record := &recorder{TB: t}
		metrictest.CompareGolden(record, path, text)
		if got := strings.Join(record.failures, "\n"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("comparing with %q: failures %q, want %q", text, got, want)
		}
	}
}
