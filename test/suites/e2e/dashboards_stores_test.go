package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// dashboardServer is a Prometheus server on which tests evaluate the queries
// of dashboards, rules and alerts.
type dashboardServer struct {
	*prometheus
	boards []queries.Board
	rules  []string // files
	began  time.Time
}

// demo is `dra-exporter demo`, both roles.
type demo struct{ node, cluster string } // HOST:PORT

const demoNode = "gpu-node-1"

func startDemo(t *testing.T) demo {
	t.Helper()
	d := demo{porttest.OneAddress(t), porttest.OneAddress(t)}
	t.Cleanup(func() {
		if err := shared.EndProgram("demo"); err != nil {
			t.Error(err)
		}
	})
	_, err := shared.StartProgram(t.Context(), "demo", agentBinary(), []string{
		"demo", "--web.listen-address=" + d.node, "--cluster.listen-address=" + d.cluster, "--training.listen-address=",
	}, "http://"+d.node+"/-/ready")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// jobs scrape the demo as the shipped PodMonitors scrape a cluster, except for
// the address. The targets have these labels in addition, and each job these
// settings.
func (d demo) jobs(labels map[string]string, more object) (all []object) {
	for instance, target := range map[string]string{demoNode: d.node, "cluster": d.cluster} {
		all = append(all, merged(object{
			"job_name": instance, "honor_labels": true, "scrape_interval": scraped.String(), "scrape_timeout": scraped.String(),
			"always_scrape_classic_histograms": true,
			"static_configs": []object{{
				"targets": []string{target},
				"labels":  merged(map[string]string{"job": "dra-exporter", "instance": instance}, labels),
			}},
		}, more))
	}
	return all
}

// merged returns the union of two maps. The second takes precedence.
func merged[M ~map[string]V, V any](first, second M) M {
	all := maps.Clone(first)
	maps.Copy(all, second)
	return all
}

// startDashboards starts a Prometheus with these jobs, rules and dashboards.
func startDashboards(t *testing.T, name string, jobs []object, rules []string, boards string) *dashboardServer {
	t.Helper()
	loaded, err := queries.Load(boards)
	if err != nil {
		t.Fatal(err)
	}
	g := &dashboardServer{boards: loaded, rules: rules, began: time.Now()}
	g.prometheus = serve(t, "prometheus-"+name, serverConfig{jobs: jobs, rules: rules, every: scraped, scrapesItself: true})
	return g
}

// queries returns all queries of dashboards, rules and alerts, and how many
// values each variable of a dashboard has.
func (g *dashboardServer) queries(t *testing.T, when span) (all []namedQuery, offered map[string]int) {
	t.Helper()
	offered = map[string]int{}
	for _, board := range g.boards {
		questions, values, err := g.boardQueries(t.Context(), board, when)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, questions...)
		for name, count := range values {
			offered[board.UID+" / variable "+name] = count
		}
	}
	for _, file := range g.rules {
		ruled, err := ruleQueries(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ruled...)
	}
	return all, offered
}

// ruleQueries returns the expressions of a file's recording rules and alerts.
// Alerts of one name are numbered.
func ruleQueries(file string) (all []namedQuery, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var read struct {
		Groups []struct {
			Rules []struct{ Record, Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &read); err != nil {
		return nil, fmt.Errorf("decode %s: %w", file, err)
	}
	seen := map[string]int{}
	for _, group := range read.Groups {
		for _, rule := range group.Rules {
			q := namedQuery{board: strings.TrimSuffix(filepath.Base(file), ".yaml"), panel: rule.Record + rule.Alert, exprs: []string{rule.Record}}
			if rule.Alert != "" {
				q.exprs = []string{rule.Expr}
			}
			q.ref = string(rune('A' + seen[q.panel]))
			if seen[q.panel]++; rule.Record == "" || seen[q.panel] == 1 {
				all = append(all, q)
			}
		}
	}
	return all, nil
}
