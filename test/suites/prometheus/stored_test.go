//go:build linux

package prometheus

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
// node, at each level and by each scrape protocol. All protocols store the same, but for
// series _created. docs/benchmarks.md has the figures of the newest version, within 5
// percent; -update writes them.
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
	table := "| scrape protocol | full, `--metrics.created` | full | default (≤ 900) | lean (≤ 500) |\n|---|---|---|---|---|\n"
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
			line := fmt.Sprintf("| %s | %g | %g | %s | %s |\n", protocol, counts["full-created"], counts["full"], missed(counts["default"], 900), missed(counts["lean"], 500))
			t.Logf("%s: %s", version, line)
			if version == "newest" && protocol != "" {
				table += line
			}
			if counts["lean"] >= counts["default"] || counts["default"] >= counts["full"] {
				t.Errorf("%s, %q: the levels do not differ: %v", version, protocol, counts)
			}
			created := counts["full-created"] / counts["full"]
			if asText := !strings.HasPrefix(protocol, "Prometheus"); asText != (created > 1.2) || !asText && math.Abs(created-1) > 0.1 {
				t.Errorf("%s, %q: with series _created there are %.2f times as many", version, protocol, created)
			}
		}
	}
	if _, ok := commands["newest"]; ok {
		documentStored(t, table)
	}
}

// missed returns a figure, in bold if it misses its target.
func missed(figure, target float64) string {
	if figure > target {
		return fmt.Sprintf("**%g**", figure)
	}
	return fmt.Sprint(figure)
}

// documentStored compares the figures of docs/benchmarks.md with those of a table, or
// writes them.
func documentStored(t *testing.T, table string) {
	t.Helper()
	const path, begin, end = root + "/docs/benchmarks.md", "<!-- stored -->\n", "<!-- end of stored -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(text), begin)
	documented, last, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no table of stored series", path)
	}
	if *update {
		if err := os.WriteFile(path, []byte(first+begin+table+end+last), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	counts := regexp.MustCompile(`\b\d{3,}\b`)
	said, counted := counts.FindAllString(documented, -1), counts.FindAllString(table, -1)
	if len(said) != len(counted) {
		t.Fatalf("%s has the table\n%swant\n%s", path, documented, table)
	}
	for i := range said {
		a, _ := strconv.ParseFloat(said[i], 64)
		b, _ := strconv.ParseFloat(counted[i], 64)
		if math.Abs(a-b) > 0.05*b {
			t.Errorf("%s says %g where %g series are stored", path, a, b)
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
