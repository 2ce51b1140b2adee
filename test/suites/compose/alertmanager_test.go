package compose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// alertmanager has the programs of one version.
type alertmanager struct{ name, server, tool string }

// alertmanagers returns the supported versions that are tested: the oldest,
// and, where DRA_TEST_VERSIONS says so, the newest as well, which takes minutes
// to build.
func alertmanagers() []alertmanager {
	all := []alertmanager{
		{"oldest", program("alertmanager/prometheus-alertmanager"), program("alertmanager/amtool")},
		{"newest", program("alertmanager-newest/alertmanager"), program("alertmanager-newest/amtool")},
	}
	if os.Getenv("DRA_TEST_VERSIONS") != "all" {
		return all[:1]
	}
	return all
}

// eachAlertmanager runs a test with each version.
func eachAlertmanager(t *testing.T, test func(*testing.T, alertmanager)) {
	for _, manager := range alertmanagers() {
		t.Run(manager.name, func(t *testing.T) { test(t, manager) })
	}
}

// TestRouting tests the receivers of alerts with Alertmanager's own tool.
func TestRouting(t *testing.T) { eachAlertmanager(t, testRouting) }

func testRouting(t *testing.T, manager alertmanager) {
	file := manager.file(t)
	for labels, want := range map[string]string{
		`severity=critical node=gpu-node-1 uuid=GPU-1`:                         "on-call",
		`severity=critical namespace=ml-training`:                              "on-call",
		`alertname=DRAClaimIdle severity=warning namespace=ml-training`:        "team-ml",
		`alertname=DRAMemoryNearlyFull severity=warning namespace=html`:        "tenants",
		`alertname=DRAClaimPendingTooLong severity=warning namespace=web`:      "tenants",
		`alertname=DRAPreparationStuck severity=warning namespace=ml-training`: "platform",
		`alertname=DRAClaimOrphaned severity=warning namespace=web`:            "platform",
		`severity=warning driver=gpu.nvidia.com pool=gpu-node`:                 "platform",
	} {
		arguments := append([]string{"config", "routes", "test", "--config.file=" + file}, strings.Fields(labels)...)
		output, err := exec.Command(manager.tool, arguments...).Output() // it may print warnings about the environment
		if got := strings.TrimSpace(string(output)); err != nil || got != want {
			t.Errorf("%s goes to %s, not to %s (%v)", labels, got, want, err)
		}
	}
}

// TestOneMessagePerNode: all alerts of one node are one message, and those of
// another node another.
func TestOneMessagePerNode(t *testing.T) { eachAlertmanager(t, testOneMessagePerNode) }

func testOneMessagePerNode(t *testing.T, manager alertmanager) {
	url := manager.start(t, manager.file(t))
	send(t, url, []map[string]any{
		alert("alertname=DRADeviceXIDFatal", "severity=critical", "node=a", "uuid=GPU-1", "xid=79"),
		alert("alertname=DRADeviceXIDFatal", "severity=critical", "node=a", "uuid=GPU-2", "xid=79"),
		alert("alertname=DRAPreparationStuck", "severity=critical", "node=a"),
		alert("alertname=DRADeviceXIDFatal", "severity=critical", "node=b", "uuid=GPU-1", "xid=79"),
	})
	eventually(t, "a message for each node", func() error {
		var groups []struct {
			Labels map[string]string
			Alerts []any
		}
		if err := get(url+"/api/v2/alerts/groups", &groups); err != nil {
			return err
		}
		if len(groups) != 2 || len(groups[0].Alerts)+len(groups[1].Alerts) != 4 {
			return fmt.Errorf("there are %d: %v", len(groups), groups)
		}
		return nil
	})
}

// file returns the configuration as the container has it, valid.
func (a alertmanager) file(t *testing.T) string {
	t.Helper()
	service := project(t).Services["alertmanager"]
	file := filepath.Join(root(t, service), flag(t, service, "config.file"))
	a.check(t, file)
	return file
}

// check fails the test if a configuration, or a template that it names, is not
// valid.
func (a alertmanager) check(t *testing.T, file string) {
	t.Helper()
	if output, err := exec.Command(a.tool, "check-config", file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

// start runs it with a configuration, and returns its URL.
func (a alertmanager) start(t *testing.T, file string) string {
	t.Helper()
	address := porttest.OneAddress(t)
	start(t, a.server, "http://"+address+"/-/ready", "--config.file="+file, "--storage.path="+t.TempDir(),
		"--web.listen-address="+address, "--cluster.listen-address=")
	return "http://" + address
}

// TestNamesOfAlerts: the alerts in the configuration exist.
func TestNamesOfAlerts(t *testing.T) {
	alerts := read(t, repository, "alerts/alerts.yaml")
	for _, name := range regexp.MustCompile(`\bDRA[A-Za-z]+`).FindAllString(read(t, folder, "alertmanager.yaml"), -1) {
		if name != "DRAExporter" && !strings.Contains(alerts, "alert: "+name+"\n") { // DRAExporter.+ matches several
			t.Errorf("there is no alert %s", name)
		}
	}
}

// alert returns an alert as Prometheus sends it. labels are NAME=VALUE.
func alert(labels ...string) map[string]any {
	all := map[string]string{}
	for _, label := range labels {
		name, value, _ := strings.Cut(label, "=")
		all[name] = value
	}
	return map[string]any{"labels": all, "startsAt": time.Now(), "endsAt": time.Now().Add(time.Hour)}
}

// TestInhibition: a real Alertmanager inhibits alerts that follow from another
// one, and no others.
func TestInhibition(t *testing.T) { eachAlertmanager(t, testInhibition) }

func testInhibition(t *testing.T, manager alertmanager) {
	url := manager.start(t, manager.file(t))
	const node = "node=gpu-node-1"
	all := []map[string]any{
		alert("alertname=DRAExporterDown", "severity=critical", "scope=cluster", "cluster=dark"),
		alert("alertname=DRAExporterDown", "severity=warning", "scope=target", "cluster=dark", "instance=a", "held=back"),
		alert("alertname=DRAExporterStale", "severity=warning", "cluster=dark", "instance=b", "held=back"),
		alert("alertname=DRAExporterStale", "severity=warning", "cluster=light", "instance=b"),

		alert("alertname=DRAExporterDown", "severity=warning", "scope=target", "job=dra-exporter", "instance=gpu-node-1"),
		alert("alertname=DRAExporterSourceDown", "severity=warning", "instance=gpu-node-1", "source=nvml", "held=back"),
		alert("alertname=DRAExporterSourceDown", "severity=warning", "instance=gpu-node-2", "source=nvml"),

		alert("alertname=DRADeviceUnhealthy", "severity=critical", node, "uuid=GPU-1", "parent_uuid="),
		alert("alertname=DRADeviceXIDFatal", "severity=critical", node, "uuid=GPU-1", "xid=79", "held=back"),
		alert("alertname=DRADeviceECCUncorrected", "severity=warning", node, "uuid=GPU-1", "held=back"),
		alert("alertname=DRADeviceXIDFatal", "severity=critical", node, "uuid=GPU-2", "xid=79"),
		alert("alertname=DRADeviceUnhealthy", "severity=warning", node, "uuid=GPU-3"),
		alert("alertname=DRADeviceXIDFatal", "severity=critical", node, "uuid=GPU-3", "xid=79"),
		alert("alertname=DRADeviceRowRemapPending", "severity=warning", node, "uuid=GPU-3", "held=back"),
		alert("alertname=DRADeviceHealthDisagreement", "severity=warning", "driver=gpu.nvidia.com", "pool=gpu-node-1", "device=gpu-1"),
	}
	send(t, url, all)
	eventually(t, "all alerts to be known, and those held back that are to be", func() error { return checkInhibited(url, len(all)) })
}

// send sends alerts to Alertmanager, as Prometheus does.
func send(t *testing.T, url string, all []map[string]any) {
	t.Helper()
	body, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(url+"/api/v2/alerts", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("Alertmanager answers %s", response.Status)
	}
}
