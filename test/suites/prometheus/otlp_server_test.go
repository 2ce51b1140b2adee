//go:build linux

package prometheus

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// receiver is a real Prometheus that receives OTLP and scrapes as well.
type receiver struct{ address string }

// startReceiver runs one until the test ends, which scrapes these addresses by
// instance twice as often as there are snapshots. Types and units are labels
// so that they can be compared, because the API does not return metadata of
// pushed series. It does not scrape the text format, in which Prometheus
// assigns the unit of one family to the next family without one.
func startReceiver(t *testing.T, pages map[string]string) *receiver {
	t.Helper()
	var targets []any
	for instance, address := range pages {
		targets = append(targets, map[string]any{
			"targets": []string{address}, "labels": map[string]string{"instance": instance, "cluster": "prod"},
		})
	}
	config, err := yaml.Marshal(map[string]any{
		"scrape_configs": []any{map[string]any{
			"job_name": scrapedJob, "scrape_interval": "500ms", "scrape_timeout": "500ms", "honor_labels": true,
			"scrape_protocols": []string{"PrometheusProto"}, "scrape_native_histograms": false, "static_configs": targets,
		}},
		"otlp":    map[string]any{"promote_resource_attributes": []string{"cluster"}},
		"storage": map[string]any{"tsdb": map[string]any{"out_of_order_time_window": "10m"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	folder, r := t.TempDir(), &receiver{address: freeAddress(t)}
	file := filepath.Join(folder, "prometheus.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, exec.CommandContext(t.Context(), filepath.Join(root, "test", ".bin", "prometheus", "prometheus"),
		"--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"), "--web.listen-address="+r.address,
		"--web.enable-otlp-receiver", "--enable-feature=exemplar-storage,type-and-unit-labels"))
	until(t, "Prometheus is ready", func() bool { return reachable(t, "http://"+r.address+"/-/ready") })
	return r
}

// startDemo runs the demo until the test ends. It pushes metrics to
// Prometheus, and traces to a server that accepts everything, because
// exemplars refer only to traces that are exported.
func startDemo(t *testing.T, pages map[string]string, r *receiver) {
	t.Helper()
	traces := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		_, _ = io.Copy(io.Discard, request.Body)
	}))
	t.Cleanup(traces.Close)
	demo := exec.CommandContext(t.Context(), demoBinary(t), "demo", "--web.listen-address="+pages[demoNode],
		"--cluster.listen-address="+pages["cluster"], "--training.listen-address=", "--metrics.dcgm=copy", "--otlp.interval=3s")
	demo.Env = append(os.Environ(),
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://"+r.address+"/api/v1/otlp/v1/metrics",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+traces.URL+"/v1/traces",
		"OTEL_RESOURCE_ATTRIBUTES=cluster=prod")
	run(t, demo)
}

// run starts a program, and logs its output if the test fails.
func run(t *testing.T, command *exec.Cmd) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "output")
	output, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = output, output
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 20 * time.Second
	if err := command.Start(); err != nil {
		t.Fatalf("start %s (make tools builds Prometheus): %v", command.Path, err)
	}
	t.Cleanup(func() { // after the context of the test has ended
		_ = command.Wait()
		_ = output.Close()
		if text, _ := os.ReadFile(path); t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(command.Path), text[max(0, len(text)-4000):])
		}
	})
}

// freeAddress returns an address of this machine on which no process listens. Its port
// is below those that the system uses for the near end of connections and for
// listeners on port 0, so that no other process takes it before the program that it is
// meant for. (test/fakes/porttest is of a module that this one cannot import.)
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 1000 {
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15000+rand.IntN(14000)))
		if err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// until polls for minutes, because the machine may be busy.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 300 {
		if holds() {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatalf("it never comes that %s", what)
}

func reachable(t *testing.T, address string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// get sends a request to the API and decodes the field data of its answer.
func (r *receiver) get(t *testing.T, path string, query url.Values, data any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.address+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v: %s %s %v", path, query, answer.Status, answer.Error, err)
	}
}

// sample is one sample. Time is in seconds.
type sample struct{ at, value float64 }

// UnmarshalJSON reads the API's pair of a number and a text.
func (m *sample) UnmarshalJSON(text []byte) error {
	var pair [2]any
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	at, isNumber := pair[0].(float64)
	value, isText := pair[1].(string)
	if !isNumber || !isText {
		return fmt.Errorf("%s is no sample", text)
	}
	m.at = at
	var err error
	m.value, err = strconv.ParseFloat(value, 64)
	return err
}

// stored is a series with all its samples.
type stored struct {
	Metric map[string]string
	Values []sample
}

func (r *receiver) query(t *testing.T, query string) []stored {
	t.Helper()
	var data struct{ Result []stored }
	r.get(t, "query", url.Values{"query": {query}}, &data)
	return data.Result
}
