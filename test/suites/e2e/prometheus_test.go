package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// prometheus is a Prometheus server of one test, with the shipped rules.
type prometheus struct{ url string }

// object is a part of a configuration file.
type object = map[string]any

// tick is how often a test's Prometheus evaluates rules, also those that the
// file evaluates every five minutes. Their windows remain five minutes.
const tick = 5 * time.Second

// serverConfig is the configuration of a Prometheus server.
type serverConfig struct {
	jobs         []object
	rules        []string      // files
	every        time.Duration // evaluation interval of groups without one
	alertmanager string        // HOST:PORT; empty: no notifications
	flags        []string

	scrapesItself bool // in the job prometheus
}

// startPrometheus runs a server that scrapes these jobs, with the shipped
// recording rules, until the test ends.
func startPrometheus(t *testing.T, name string, jobs ...object) *prometheus {
	t.Helper()
	return serve(t, name, serverConfig{jobs: jobs, rules: []string{shippedRules(t)}, every: tick})
}

// serve runs a server until the test ends.
func serve(t *testing.T, name string, what serverConfig) *prometheus {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "prometheus.yaml")
	address := porttest.OneAddress(t)
	text, err := yaml.Marshal(what.config(address))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	s := &prometheus{url: "http://" + address}
	t.Cleanup(func() {
		if err := shared.EndProgram(name); err != nil {
			t.Error(err)
		}
	})
	_, err = shared.StartProgram(t.Context(), name, filepath.Join(os.Getenv("DRA_E2E_BIN"), "prometheus", "prometheus"), append([]string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(folder, "data"), "--web.listen-address=" + address,
	}, what.flags...), s.url+"/-/ready")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (w serverConfig) config(own string) object {
	if w.scrapesItself {
		w.jobs = append(slices.Clone(w.jobs), object{
			"job_name": "prometheus", "scrape_interval": w.every.String(), "scrape_timeout": w.every.String(),
			"static_configs": []object{{"targets": []string{own}}},
		})
	}
	config := object{
		"global":         object{"evaluation_interval": w.every.String()},
		"rule_files":     w.rules,
		"scrape_configs": w.jobs,
	}
	if w.alertmanager != "" {
		config["alerting"] = object{"alertmanagers": []object{{
			"static_configs": []object{{"targets": []string{w.alertmanager}}},
		}}}
	}
	return config
}

// query evaluates an expression now. Rows are in the server's order.
func (s *prometheus) query(ctx context.Context, expr string) ([]scrape.Row, error) {
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Metric scrape.Labels
				Value  [2]any
			}
		}
	}
	if err := s.get(ctx, "/api/v1/query?query="+url.QueryEscape(expr), &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", expr, err)
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	var rows []scrape.Row
	for _, result := range answer.Data.Result {
		text, _ := result.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: parse value: %w", expr, err)
		}
		delete(result.Metric, "__name__")
		rows = append(rows, scrape.Row{Labels: result.Metric, Value: value})
	}
	return rows, nil
}

func (s *prometheus) get(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}

// waitRows waits until check accepts the result of an expression, and returns
// it.
func (s *prometheus) waitRows(t *testing.T, expr string, check func([]scrape.Row) error) (rows []scrape.Row) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "Prometheus to answer "+expr, func(ctx context.Context) (err error) {
		if rows, err = s.query(ctx, expr); err != nil {
			return err
		}
		return check(rows)
	})
	if err != nil {
		t.Fatalf("%v; the last answer: %v", err, rows)
	}
	return rows
}

// checkRulesHealthy waits until all rules have been evaluated, and fails the
// test if the last evaluation of one failed.
func (s *prometheus) checkRulesHealthy(t *testing.T) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "all rules to be evaluated", func(ctx context.Context) error {
		var answer struct {
			Data struct {
				Groups []struct {
					Rules []struct{ Name, Health, LastError string }
				}
			}
		}
		if err := s.get(ctx, "/api/v1/rules", &answer); err != nil {
			return err
		}
		var broken error
		count := 0
		for _, group := range answer.Data.Groups {
			for _, rule := range group.Rules {
				if count++; rule.Health != "ok" {
					broken = errors.Join(broken, fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError))
				}
			}
		}
		if count == 0 {
			return errors.New("there are no rules")
		}
		return broken
	})
	if err != nil {
		t.Error(err)
	}
}

// oneRow returns an error unless there is one row.
func oneRow(rows []scrape.Row) error {
	if len(rows) != 1 {
		return fmt.Errorf("there are %d rows", len(rows))
	}
	return nil
}
