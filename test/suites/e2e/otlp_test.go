package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// TestOTLP pushes to real OpenTelemetry Collectors. Its parts share the
// cluster and run in parallel. The longest lasts for a minute. Only one of
// them makes a driver fail.
func TestOTLP(t *testing.T) {
	t.Run("outage", func(t *testing.T) { t.Parallel(); testOutage(t) })
	t.Run("metrics", func(t *testing.T) { t.Parallel(); testPushedMetrics(t) })
	t.Run("traces", func(t *testing.T) { t.Parallel(); testTraces(t) })
	t.Run("component", func(t *testing.T) { t.Parallel(); testPushComponent(t) })
}

// collector is a real OpenTelemetry Collector of one test. It writes what it
// receives to one file for each sender's cluster name and signal.
type collector struct {
	process    *cluster.Process
	grpc, http string // URLs
	folder     string
}

// startCollector runs a collector on this machine until the test ends.
func startCollector(t *testing.T, name string) *collector {
	t.Helper()
	free := porttest.Addresses(t, 3)
	return startCollectorAt(t, name, free[0], free[1], free[2])
}

// startCollectorAt is startCollector with given addresses: of both protocols,
// and of its health endpoint.
func startCollectorAt(t *testing.T, name, grpc, http, health string) *collector {
	t.Helper()
	folder := t.TempDir()
	c := &collector{folder: folder, grpc: "http://" + grpc, http: "http://" + http}
	config, err := yaml.Marshal(collectorConfig(folder, grpc, http, health))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "config.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.EndProgram(name); err != nil {
			t.Error(err)
		}
	})
	c.process, err = shared.StartProgram(t.Context(), name, filepath.Join(os.Getenv("DRA_E2E_BIN"), "otelcol", "otelcol"),
		[]string{"--config=" + file}, "http://"+health+"/")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// collectorConfig has a file for each sender and signal, which the collector
// flushes soon after it has received a request.
func collectorConfig(folder, grpc, http, health string) object {
	files := func(signal string) object {
		return object{
			"path": filepath.Join(folder, "*-"+signal+".json"), "append": true, "flush_interval": "50ms",
			"group_by": object{"enabled": true, "resource_attribute": "k8s.cluster.name"},
		}
	}
	pipeline := func(exporter string) object {
		return object{"receivers": []string{"otlp"}, "exporters": []string{exporter}}
	}
	return object{
		"extensions": object{"health_check": object{"endpoint": health}},
		"receivers":  object{"otlp": object{"protocols": object{"grpc": object{"endpoint": grpc}, "http": object{"endpoint": http}}}},
		"exporters":  object{"file/metrics": files("metrics"), "file/traces": files("traces")},
		"service": object{
			"extensions": []string{"health_check"},
			"telemetry":  object{"metrics": object{"level": "none"}},
			"pipelines":  object{"metrics": pipeline("file/metrics"), "traces": pipeline("file/traces")},
		},
	}
}

// file returns the path of a sender's file of a signal. It has one request per
// line.
func (c *collector) file(sender, signal string) string {
	return filepath.Join(c.folder, sender+"-"+signal+".json")
}

// forget removes a sender's file of a signal: after the collector was killed
// its last line may be incomplete, and a line appended to it could not be
// decoded.
func (c *collector) forget(t *testing.T, sender, signal string) {
	t.Helper()
	if err := os.Remove(c.file(sender, signal)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}

// sender is a role of the exporter on the host that pushes.
type sender struct {
	name    string // of its cluster, by which the collector separates the senders
	node    string // name of the node, for the node role
	process *cluster.Process
	url     string // of its pages, with a slash at the end
}

// startSender runs a role with these arguments and variables until the test
// ends, with the permissions of the role's account.
func startSender(t *testing.T, name, account string, env, args []string) *sender {
	t.Helper()
	address := porttest.OneAddress(t)
	s := &sender{name: name, url: "http://" + address + "/"}
	kubeconfig, err := accountKubeconfig(t.Context(), t.TempDir(), account)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.EndProgram(s.processName()); err != nil {
			t.Error(err)
		}
	})
	// The program env executes the exporter in its own process, so that
	// killing it kills the exporter.
	command := append(env, agentBinary())
	command = append(command, args...)
	command = append(command, "--kubeconfig="+kubeconfig, "--web.listen-address="+address)
	s.process, err = shared.StartProgram(t.Context(), s.processName(), "/usr/bin/env", command, s.url+"-/ready")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *sender) processName() string { return "exporter-" + s.name }

// startNodeSender runs an agent that reads the simulated devices of the node
// and its kubelet.
func startNodeSender(t *testing.T, name string, env []string, args ...string) *sender {
	t.Helper()
	config := filepath.Join(t.TempDir(), "devices.yaml")
	if err := os.WriteFile(config, []byte(devices.yaml()), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSender(t, name, agentAccount, env, append([]string{
		"node", "--node.name=" + shared.NodeName(), "--cdi.dir=" + shared.CDIDir(),
		"--kubelet.pod-resources-socket=" + shared.KubeletSocket(), fmt.Sprintf("--ledger.grace=%s", grace),
		"--device.source=simulated", "--simulated.config=" + config, "--otlp.cluster-name=" + name,
	}, args...))
	s.node = shared.NodeName()
	return s
}

// startClusterSender runs a cluster role.
func startClusterSender(t *testing.T, name string, env []string, args ...string) *sender {
	t.Helper()
	return startSender(t, name, clusterAccount, env, append([]string{"cluster", "--otlp.cluster-name=" + name}, args...))
}

// protobufFormat includes what other formats omit: the creation time of each
// counter, and the exemplars of native histograms.
const protobufFormat = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// getFrom reads a page in one format.
func getFrom(t *testing.T, url, format string) []byte {
	t.Helper()
	body, err := readFrom(t.Context(), url, format)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func readFrom(ctx context.Context, url, format string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", format)
	response, err := (&http.Client{Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("read %s: %s", url, response.Status)
	}
	return body, err
}
