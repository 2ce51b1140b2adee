//go:build linux

package prometheus

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// prometheusVersions returns the folders with the programs of the oldest and
// the newest supported Prometheus. Not every test builds both.
func prometheusVersions(t *testing.T) map[string]string {
	t.Helper()
	if os.Getenv("DRA_TEST_VERSIONS") != "all" {
		t.Skip("make -C test prometheus")
	}
	programs := filepath.Join(root, "test", ".bin")
	return map[string]string{"oldest": filepath.Join(programs, "prometheus-oldest"), "newest": filepath.Join(programs, "prometheus")}
}

// TestVersionQueries: promtool of the oldest and the newest supported version
// can parse all queries of dashboards, documents and runbooks. It reads them as
// rules.
func TestVersionQueries(t *testing.T) {
	versions := prometheusVersions(t)
	var rules []any
	for i, query := range allQueries(t) {
		rules = append(rules, map[string]any{"record": fmt.Sprintf("query:number:%d", i), "expr": query})
	}
	file := filepath.Join(t.TempDir(), "queries.yaml")
	writeYAML(t, file, map[string]any{"groups": []any{map[string]any{"name": "queries", "rules": rules}}})
	for name, folder := range versions {
		output, err := exec.CommandContext(t.Context(), filepath.Join(folder, "promtool"), "check", "rules", file).CombinedOutput()
		if err != nil || !strings.Contains(string(output), fmt.Sprintf("%d rules found", len(rules))) {
			t.Errorf("the %s promtool: %v\n%s", name, err, output)
		}
	}
}

// allQueries returns the queries of dashboards, of their variables, of
// documents and of runbooks.
func allQueries(t *testing.T) (all []string) {
	t.Helper()
	for _, board := range boards(t) {
		var texts []string
		for _, v := range board.Variables {
			texts = append(texts, v.Selector)
		}
		for _, p := range board.panels {
			for _, target := range p.Targets {
				texts = append(texts, target.Expr)
			}
		}
		for _, text := range texts {
			expr, err := board.Expr(text, anyChoice(board.Board), anHour())
			if err != nil {
				t.Fatalf("%s: %v", board.UID, err)
			}
			all = append(all, expr)
		}
	}
	fromBoards := len(all)
	for _, file := range documents(t) {
		all = append(all, shown(read(t, file))...)
	}
	for _, text := range runbooks(t) {
		all = append(all, blocks(text, "promql")...)
	}
	if fromBoards < 300 || len(all) < fromBoards+150 {
		t.Fatalf("there are %d queries, %d of them on dashboards", len(all), fromBoards)
	}
	return all
}

// TestVersionServers runs the oldest and the newest supported Prometheus over
// the demo. Both evaluate all shipped rules and all queries without an error,
// record the same series, and expand the texts of all alerts.
func TestVersionServers(t *testing.T) {
	versions := prometheusVersions(t)
	pages := map[string]string{demoNode: freeAddress(t), "cluster": freeAddress(t)}
	run(t, exec.CommandContext(t.Context(), demoBinary(t), "demo",
		"--web.listen-address="+pages[demoNode], "--cluster.listen-address="+pages["cluster"], "--training.listen-address="))
	servers := map[string]*receiver{}
	for name, folder := range versions {
		servers[name] = startEvaluating(t, folder, pages)
	}
	for name, server := range servers {
		var problems []string
		until(t, "rules are evaluated by the "+name+" version without an error", func() bool {
			problems = server.ruleProblems(t)
			if len(problems) > 0 && testing.Verbose() {
				t.Logf("%s: %d problems, such as %s", name, len(problems), problems[0])
			}
			return len(problems) == 0
		})
		for _, query := range allQueries(t) {
			server.get(t, "query", url.Values{"query": {query}}, new(any))
		}
	}
	until(t, "both versions record the same", func() bool {
		oldest, newest := servers["oldest"].recordedNames(t), servers["newest"].recordedNames(t)
		t.Logf("the oldest version has recorded %d names, the newest %d", len(oldest), len(newest))
		return len(oldest) >= 50 && slices.Equal(oldest, newest)
	})
}

// startEvaluating runs a Prometheus until the test ends. It scrapes these
// addresses by instance and evaluates the shipped rules every few seconds, and
// forcedAlerts with them.
func startEvaluating(t *testing.T, programs string, pages map[string]string) *receiver {
	t.Helper()
	folder, r := t.TempDir(), &receiver{address: freeAddress(t)}
	interval := regexp.MustCompile(`(?m)^    interval: \w+$`)
	for _, file := range []string{rulesFile, alertsFile} {
		text := interval.ReplaceAllString(read(t, file), "    interval: 5s")
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeYAML(t, filepath.Join(folder, "forced.yaml"), map[string]any{"groups": []any{map[string]any{"name": "forced", "rules": forcedAlerts(t)}}})
	var targets []any
	for instance, address := range pages {
		targets = append(targets, map[string]any{"targets": []string{address}, "labels": map[string]string{"instance": instance}})
	}
	file := filepath.Join(folder, "prometheus.yaml")
	writeYAML(t, file, map[string]any{
		"global":     map[string]any{"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "5s"},
		"rule_files": []string{"recording.yaml", "alerts.yaml", "forced.yaml"},
		"scrape_configs": []any{map[string]any{
			"job_name": "dra-exporter", "honor_labels": true, "static_configs": targets,
		}},
	})
	run(t, exec.CommandContext(t.Context(), filepath.Join(programs, "prometheus"), "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+r.address))
	until(t, "Prometheus is ready", func() bool { return reachable(t, "http://"+r.address+"/-/ready") })
	return r
}

// forcedAlerts returns the shipped alerts without thresholds and without a
// time for which they must hold, so that a server expands their texts for the
// demo's series. An alert without a series has one with the labels that its
// texts name.
func forcedAlerts(t *testing.T) (all []any) {
	t.Helper()
	label := regexp.MustCompile(`\$labels\.(\w+)`)
	for i, rule := range alerts(t) {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		fallback, named := "vector(1)", map[string]bool{}
		for _, texts := range []map[string]string{rule.Labels, rule.Annotations} {
			for _, text := range texts {
				for _, match := range label.FindAllStringSubmatch(text, -1) {
					named[match[1]] = true
				}
			}
		}
		for name := range named {
			fallback = fmt.Sprintf(`label_replace(%s, %q, "any", "", "")`, fallback, name)
		}
		all = append(all, map[string]any{
			"alert": fmt.Sprintf("%s%d", rule.Alert, i), "labels": rule.Labels, "annotations": rule.Annotations,
			"expr": fmt.Sprintf("(%s) or on () %s", unlimited(expr), fallback),
		})
	}
	return all
}

// ruleProblems returns what is wrong with the rules of a server: rules that
// are not there, that have not been evaluated or failed, and texts that were
// not expanded.
func (r *receiver) ruleProblems(t *testing.T) (problems []string) {
	t.Helper()
	var data struct {
		Groups []struct {
			File  string
			Rules []struct {
				Name, Health, LastError string
				Alerts                  []struct{ Labels, Annotations map[string]string }
			}
		}
	}
	r.get(t, "rules", nil, &data)
	counts := map[string]int{}
	for _, group := range data.Groups {
		file := filepath.Base(group.File)
		counts[file] += len(group.Rules)
		for _, rule := range group.Rules {
			if rule.Health != "ok" || rule.LastError != "" {
				problems = append(problems, fmt.Sprintf("%s is %s: %s", rule.Name, rule.Health, rule.LastError))
			}
			if file == "forced.yaml" && len(rule.Alerts) == 0 {
				problems = append(problems, rule.Name+" does not fire")
			}
			for _, alert := range rule.Alerts {
				if text := fmt.Sprint(alert.Labels, alert.Annotations); strings.Contains(text, "error expanding") || strings.Contains(text, "<no value>") {
					problems = append(problems, rule.Name+": "+text)
				}
			}
		}
	}
	for file, want := range map[string]int{"recording.yaml": len(rules(t)), "alerts.yaml": len(alerts(t)), "forced.yaml": len(alerts(t))} {
		if counts[file] != want {
			problems = append(problems, fmt.Sprintf("%s has %d rules of %d", file, counts[file], want))
		}
	}
	return problems
}

// recordedNames returns the names of shipped recording rules that have series,
// in their order.
func (r *receiver) recordedNames(t *testing.T) (names []string) {
	t.Helper()
	for _, row := range r.query(t, `count by (__name__) ({__name__=~".+:dra_.+"})`) {
		name := row.Metric["__name__"]
		if slices.ContainsFunc(rules(t), func(rule rulefmt.Rule) bool { return rule.Record == name }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func writeYAML(t *testing.T, file string, document any) {
	t.Helper()
	text, err := yaml.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestVersionScrapeConfiguration: the scrape configuration without the
// operator is valid in the newest version, and without one line, which
// docs/compatibility.md names, in the oldest.
func TestVersionScrapeConfiguration(t *testing.T) {
	_, section, _ := strings.Cut(read(t, root+"/deploy/kustomize/README.md"), "\n## Prometheus without the operator\n")
	const option = "    always_scrape_classic_histograms: true\n"
	// Debian's package does not have this way to find targets.
	discovery := regexp.MustCompile(`(?s)    kubernetes_sd_configs:\n.*?(    relabel_configs:\n)`)
	current := discovery.ReplaceAllString(blocks(section, "yaml")[0], "    static_configs: [{targets: [localhost]}]\n$1")
	older := strings.Replace(current, option, "", 1)
	for name, folder := range prometheusVersions(t) {
		for text, valid := range map[string]bool{current: name == "newest", older: true} {
			file := filepath.Join(t.TempDir(), "prometheus.yaml")
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			output, err := exec.CommandContext(t.Context(), filepath.Join(folder, "promtool"), "check", "config", file).CombinedOutput()
			if (err == nil) != valid {
				t.Errorf("the %s promtool: %v\n%s\n%s", name, err, output, text)
			}
		}
	}
}
