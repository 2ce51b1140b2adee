//go:build linux

package prometheus

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// storedPages are the ways to run the demo whose stored series are counted, with the
// flags of each.
func storedPages() map[string][]string {
	return map[string][]string{
		"full-created": {"--metrics.level=full", "--metrics.created"},
		"full":         {"--metrics.level=full"},
		"default":      nil,
		"lean":         {"--metrics.level=lean"},
	}
}

// storing returns the commands of the Prometheus servers that store: the oldest and
// the newest supported one, or only that of DRA_TEST_PROMETHEUS, a program that knows
// scrape_protocols, with its flags.
func storing(t *testing.T) map[string][]string {
	t.Helper()
	if given := strings.Fields(os.Getenv("DRA_TEST_PROMETHEUS")); len(given) > 0 {
		return map[string][]string{"given": given}
	}
	commands := map[string][]string{}
	for version, folder := range prometheusVersions(t) {
		commands[version] = []string{filepath.Join(folder, "prometheus")}
	}
	return commands
}

// TestVersionStoredSeries counts what Prometheus stores of a scrape of the demo's
// node, at each level and by each scrape protocol. The table is in
// docs/benchmarks.md. All protocols store the same, but for series _created.
func TestVersionStoredSeries(t *testing.T) {
	commands := storing(t)
	addresses := map[string]string{}
	binary := demoBinary(t)
	for name, flags := range storedPages() {
		addresses[name] = freeAddress(t)
		run(t, exec.CommandContext(t.Context(), binary, append([]string{"demo",
			"--web.listen-address=" + addresses[name], "--cluster.listen-address=" + freeAddress(t), "--training.listen-address="}, flags...)...))
	}
	protocols := map[string][]string{
		"oldest": {""}, // it has no option for the protocol, and requests OpenMetrics
		"newest": {"", "OpenMetricsText1.0.0", "PrometheusText0.0.4", "PrometheusProto"},
		"given":  {"OpenMetricsText1.0.0", "PrometheusText0.0.4", "PrometheusProto"}, // flags may change its default
	}
	for version, command := range commands {
		server := startStoring(t, command, addresses, protocols[version])
		for _, protocol := range protocols[version] {
			counts := map[string]float64{}
			for name := range addresses {
				until(t, fmt.Sprintf("the %s version has scraped %s over %q", version, name, protocol), func() bool {
					counts[name] = server.stored(t, name, protocol)
					return counts[name] > 300
				})
			}
			t.Logf("| %s | %s | %g | %g | %g | %g |", version, protocol, counts["full-created"], counts["full"], counts["default"], counts["lean"])
			if counts["lean"] >= counts["default"] || counts["default"] >= counts["full"] {
				t.Errorf("%s, %q: the levels do not differ: %v", version, protocol, counts)
			}
			created := counts["full-created"] / counts["full"]
			if asText := !strings.HasPrefix(protocol, "Prometheus"); asText != (created > 1.2) || !asText && math.Abs(created-1) > 0.1 {
				t.Errorf("%s, %q: with series _created there are %.2f times as many", version, protocol, created)
			}
		}
	}
}

// startStoring runs a Prometheus until the test ends, which scrapes each address by
// each protocol.
func startStoring(t *testing.T, command []string, addresses map[string]string, protocols []string) *receiver {
	t.Helper()
	folder, r := t.TempDir(), &receiver{address: freeAddress(t)}
	var jobs []any
	for name, address := range addresses {
		for _, protocol := range protocols {
			job := map[string]any{
				"job_name": storedJob(name, protocol), "honor_labels": true,
				"static_configs": []any{map[string]any{"targets": []string{address}}},
			}
			if protocol != "" {
				job["scrape_protocols"] = []string{protocol}
			}
			jobs = append(jobs, job)
		}
	}
	file := filepath.Join(folder, "prometheus.yaml")
	writeYAML(t, file, map[string]any{"global": map[string]any{"scrape_interval": "5s", "scrape_timeout": "5s"}, "scrape_configs": jobs})
	run(t, exec.CommandContext(t.Context(), command[0], append(slices.Clone(command[1:]), "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+r.address)...))
	until(t, "Prometheus is ready", func() bool { return reachable(t, "http://"+r.address+"/-/ready") })
	return r
}

func storedJob(name, protocol string) string { return strings.TrimSuffix(name+"/"+protocol, "/") }

// stored returns how many samples the newest scrape of a page has stored, 0 before the
// first.
func (r *receiver) stored(t *testing.T, name, protocol string) float64 {
	t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	r.get(t, "query", url.Values{"query": {fmt.Sprintf("scrape_samples_post_metric_relabeling{job=%q}", storedJob(name, protocol))}}, &data)
	if len(data.Result) == 0 {
		return 0
	}
	count, err := strconv.ParseFloat(fmt.Sprint(data.Result[0].Value[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return count
}
