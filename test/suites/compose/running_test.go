package compose

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// TestRunning runs the demo, Prometheus and Alertmanager with the files of
// their containers. Only their addresses differ, and rules with an interval of
// five minutes are evaluated sooner.
func TestRunning(t *testing.T) {
	services := project(t).Services
	node, cluster, training := startDemo(t)
	oldest := alertmanagers()[0]
	manager := oldest.start(t, oldest.file(t))
	service := services["prometheus"]
	top := root(t, service)
	file := filepath.Join(top, flag(t, service, "config.file"))
	move(t, file, map[string]string{"demo:9420": node, "demo:9421": cluster, "demo:9422": training, "alertmanager:9093": strings.TrimPrefix(manager, "http://")})
	shortenIntervals(t, filepath.Join(filepath.Dir(file), "alerts", "recording.yaml"))
	if output, err := exec.Command(program("prometheus/promtool"), "check", "config", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	address := porttest.OneAddress(t)
	prometheus := "http://" + address
	start(t, program("prometheus/prometheus"), prometheus+"/-/ready", "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(t.TempDir(), "data"), "--web.listen-address="+address)

	eventually(t, "both agents and the cluster role to be scraped, as one job", func() error {
		return hasResult(prometheus, `sum by (instance) (up{job="dra-exporter"})`, "cluster", "gpu-node-1", "gpu-node-3")
	})
	eventually(t, "the instance to be the node", func() error {
		return hasResult(prometheus, `count by (instance) (dra_device_info{node="gpu-node-1"})`, "gpu-node-1")
	})
	eventually(t, "all rules to be evaluated", func() error { return rulesHealthy(prometheus) })
	eventually(t, "a recorded value", func() error {
		return hasResult(prometheus, `count(pod:dra_pod_utilization_ratio:avg) > 0`, "")
	})
	eventually(t, "Prometheus to know Alertmanager", func() error {
		var known struct {
			Data struct{ ActiveAlertmanagers []any }
		}
		if err := get(prometheus+"/api/v1/alertmanagers", &known); err != nil || len(known.Data.ActiveAlertmanagers) == 1 {
			return err
		}
		return fmt.Errorf("it knows %v", known.Data.ActiveAlertmanagers)
	})
}

// move replaces addresses in a configuration, each of which must occur once.
func move(t *testing.T, file string, addresses map[string]string) {
	t.Helper()
	text := read(t, file)
	for from, to := range addresses {
		if strings.Count(text, from) != 1 {
			t.Fatalf("%s has not %s once", file, from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// shortenIntervals shortens the interval of groups that are evaluated every
// five minutes.
func shortenIntervals(t *testing.T, file string) {
	t.Helper()
	const every, soon = "    interval: 5m\n", "    interval: 15s\n"
	text := read(t, file)
	if !strings.Contains(text, every) {
		t.Fatalf("%s has no group that is evaluated every five minutes", file)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, every, soon)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startDemo builds the demo as its image does, and returns the addresses of its roles:
// of the agents of two nodes and of the cluster role.
func startDemo(t *testing.T) (node, cluster, training string) {
	t.Helper()
	demo := filepath.Join(t.TempDir(), "dra-exporter")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", demo, "./cmd/dra-exporter")
	build.Dir, build.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	service := project(t).Services["demo"]
	node, cluster, training = porttest.OneAddress(t), porttest.OneAddress(t), porttest.OneAddress(t)
	var arguments []string
	for _, argument := range service.Command {
		argument = strings.Replace(argument, "--web.listen-address=:9420", "--web.listen-address="+node, 1)
		argument = strings.Replace(argument, "--training.listen-address=:9422", "--training.listen-address="+training, 1)
		arguments = append(arguments, strings.Replace(argument, "--cluster.listen-address=:9421", "--cluster.listen-address="+cluster, 1))
	}
	start(t, demo, "http://"+node+"/-/ready", arguments...)
	return node, cluster, training
}

// hasResult returns an error unless a query has rows of exactly these
// instances. A row without an instance counts as "".
func hasResult(prometheus, query string, instances ...string) error {
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := get(prometheus+"/api/v1/query?query="+url.QueryEscape(query), &answer); err != nil {
		return err
	}
	found := map[string]bool{}
	for _, row := range answer.Data.Result {
		if row.Value[1] != "0" {
			found[row.Metric["instance"]] = true
		}
	}
	for _, instance := range instances {
		if !found[instance] {
			return fmt.Errorf("%s: nothing of %q: %v", query, instance, answer.Data.Result)
		}
	}
	if len(found) != len(instances) {
		return fmt.Errorf("%s: %v", query, answer.Data.Result)
	}
	return nil
}

// rulesHealthy returns an error unless each rule of both files has been
// evaluated, without an error.
func rulesHealthy(prometheus string) error {
	var answer struct {
		Data struct {
			Groups []struct {
				File  string
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := get(prometheus+"/api/v1/rules", &answer); err != nil {
		return err
	}
	files := map[string]bool{}
	var broken error
	for _, group := range answer.Data.Groups {
		files[filepath.Base(group.File)] = true
		for _, rule := range group.Rules {
			if rule.Health != "ok" {
				broken = errors.Join(broken, fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError))
			}
		}
	}
	if !files["recording.yaml"] || !files["alerts.yaml"] {
		return fmt.Errorf("the rules are of %v", files)
	}
	return broken
}

// checkInhibited returns an error unless Alertmanager has this many alerts,
// and inhibits exactly those whose label says so.
func checkInhibited(manager string, count int) error {
	var alerts []struct {
		Labels map[string]string
		Status struct{ InhibitedBy []string }
	}
	if err := get(manager+"/api/v2/alerts", &alerts); err != nil {
		return err
	}
	if len(alerts) != count {
		return fmt.Errorf("there are %d alerts of %d", len(alerts), count)
	}
	var wrong error
	for _, a := range alerts {
		if want := a.Labels["held"] == "back"; want != (len(a.Status.InhibitedBy) > 0) {
			wrong = errors.Join(wrong, fmt.Errorf("%v is held back by %q", a.Labels, a.Status.InhibitedBy))
		}
	}
	return wrong
}
