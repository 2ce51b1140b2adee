// Package examples runs the programs in examples/ with the demo of the agent,
// and a real Prometheus that scrapes it. `make -C test examples` builds what
// it needs. python3 is Debian's.
package examples

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

const repository = "../../.."

// start runs a program until the test ends, and waits until the URL answers.
func start(t *testing.T, name, ready string, arguments ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(name, arguments...)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatalf("%v: see `make -C test examples`", err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
		log.Close()
		if t.Failed() {
			t.Logf("%s:\n%s", name, read(t, log.Name()))
		}
	})
	eventually(t, name+" to be ready", func() error { return get(ready, nil) })
}

// startDemo builds the demo and returns the URLs of its two roles.
func startDemo(t *testing.T, more ...string) (node, cluster string) {
	t.Helper()
	demo := filepath.Join(t.TempDir(), "dra-exporter")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", demo, "./cmd/dra-exporter")
	build.Dir, build.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	node, cluster = porttest.OneAddress(t), porttest.OneAddress(t)
	arguments := append([]string{"demo", "--web.listen-address=" + node, "--cluster.listen-address=" + cluster, "--training.listen-address="}, more...)
	start(t, demo, "http://"+node+"/-/ready", arguments...)
	return "http://" + node, "http://" + cluster
}

// startPrometheus runs one that scrapes each URL as this instance every
// second, with the settings of the shipped monitors, and evaluates the file of
// rules, if one is named. It returns its URL.
func startPrometheus(t *testing.T, rules string, instances map[string]string) string {
	t.Helper()
	var configuration strings.Builder
	configuration.WriteString("global: {scrape_interval: 1s, evaluation_interval: 5s}\n")
	if rules != "" {
		fmt.Fprintf(&configuration, "rule_files: [%q]\n", rules)
	}
	configuration.WriteString("scrape_configs:\n- job_name: demo\n  honor_labels: true\n  always_scrape_classic_histograms: true\n  static_configs:\n")
	for url, instance := range instances {
		fmt.Fprintf(&configuration, "  - {targets: [%q], labels: {job: dra-exporter, instance: %q}}\n", strings.TrimPrefix(url, "http://"), instance)
	}
	file := filepath.Join(t.TempDir(), "prometheus.yaml")
	if err := os.WriteFile(file, []byte(configuration.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	address := porttest.OneAddress(t)
	start(t, filepath.Join("..", "..", ".bin", "prometheus", "prometheus"), "http://"+address+"/-/ready",
		"--config.file="+file, "--storage.tsdb.path="+filepath.Join(t.TempDir(), "data"), "--web.listen-address="+address)
	return "http://" + address
}

// get decodes a JSON document, or ignores the body if into is nil.
func get(address string, into any) error {
	client := http.Client{Timeout: 10 * time.Second}
	response, err := client.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// eventually calls check every 200 ms until it succeeds, for at most two
// minutes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("wait for %s: %v", what, err)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
