package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const deviceMetricsClaim = `
apiVersion: v1
kind: Namespace
metadata: {name: devicemetrics}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: measured, namespace: devicemetrics}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: measured, namespace: devicemetrics}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: measured}]
`

// metricsServer is a process beside a driver that serves metrics of devices of
// dra-example-driver with Prometheus' library.
type metricsServer struct {
	program, folder, driver string
	process                 *exec.Cmd
}

// TestDeviceMetrics: a claim of dra-example-driver has what a process beside the
// driver serves, and nothing of what another driver says of the same devices. After
// kill -9 of the process, gauges end and counters stay; a new process is read again.
func TestDeviceMetrics(t *testing.T) {
	folder, err := os.MkdirTemp("", "metrics") // the path of a socket has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	s := &metricsServer{program: filepath.Join(os.Getenv("DRA_E2E_BIN"), "device-metrics", "metrics"), folder: folder, driver: "gpu.example.com"}
	s.write(t, 0.5, 1000)
	s.start(t)
	liar := &metricsServer{program: s.program, folder: folder, driver: "liar.example.com"}
	liar.write(t, 0.9, 9000)
	liar.start(t)
	agent := &hostAgent{name: "device metrics"}
	agent.launch(t, exec.Command(agentBinary(), "node", "--kubelet.pod-resources-socket="+shared.KubeletSocket(),
		"--device.source=exporter", "--exporter.dir="+folder))
	deployText(t, "devicemetrics", deviceMetricsClaim)
	running(t, "devicemetrics", "measured")

	claim := scrape.Labels{"namespace": "devicemetrics", "resourceclaim": "measured"}
	var index int // of the device that the claim has
	has := func(utilization, energy float64) func(p *scrape.Page) error {
		return func(p *scrape.Page) error {
			info, err := p.One("dra_claim_device_info", with(claim, "driver", "gpu.example.com"))
			if err != nil {
				return err
			}
			if index, err = strconv.Atoi(strings.TrimPrefix(info.Labels["device"], "gpu-")); err != nil {
				return err
			}
			gpu := with(claim, "uuid", fmt.Sprintf("%s/gpu.example.com/%[1]s/gpu-%d", shared.NodeName(), index), "attribution", "exclusive")
			return errors.Join(
				claimHas(p, "dra_claim_utilization_ratio", gpu, utilization+float64(index)/100),
				claimHas(p, "dra_claim_memory_used_bytes", gpu, 1e9*float64(index+1)),
				claimHas(p, "dra_claim_energy_joules_total", gpu, energy),
				claimHas(p, "dra_device_power_watts", scrape.Labels{"uuid": gpu["uuid"]}, 70+float64(index)),
				claimHas(p, "dra_exporter_source_up", scrape.Labels{"source": "exporter"}, 1),
				claimHas(p, "dra_exporter_source_error_info", scrape.Labels{"source": "exporter", "reason": "invalid"}, 1), // of the liar
				claimHas(p, "dra_exporter_unmatched_devices", scrape.Labels{"driver": "gpu.example.com", "side": "published"}, 0),
				checkInvariants(p))
		}
	}
	agent.eventually(t, "what the process serves", func(p *scrape.Page) error {
		// What a counter grows between a measurement before the hold and one after its
		// start is the claim's only in part: readings are up to two seconds old.
		held, err := p.One("dra_claim_held_seconds_total", claim)
		if err == nil && held.Value < 5 {
			err = fmt.Errorf("held for %v s", held.Value)
		}
		return errors.Join(err, has(0.5, 0)(p))
	})
	s.write(t, 0.75, 1500)
	agent.eventually(t, "what it serves then", has(0.75, 500))

	s.kill(t)
	agent.eventually(t, "the end of gauges", func(p *scrape.Page) error {
		if count := p.Count("dra_claim_utilization_ratio", claim) + p.Count("dra_device_power_watts", nil); count != 0 {
			return fmt.Errorf("there are %d series of gauges", count)
		}
		return errors.Join(
			claimHas(p, "dra_claim_energy_joules_total", claim, 500),
			claimHas(p, "dra_claim_held", claim, 1),
			claimHas(p, "dra_exporter_source_up", scrape.Labels{"source": "exporter"}, 0),
			claimHas(p, "dra_exporter_source_up", scrape.Labels{"source": "podresources"}, 1),
			checkInvariants(p))
	})
	s.write(t, 0.25, 1600)
	s.start(t)
	agent.eventually(t, "the process after its restart", has(0.25, 600))
}

// write replaces what the process serves, of four devices of dra-example-driver.
func (s *metricsServer) write(t *testing.T, utilization, energy float64) {
	t.Helper()
	type device struct {
		Driver, Pool, Name string
		Values             map[string]float64
	}
	var devices []device
	for i := range 4 {
		devices = append(devices, device{"gpu.example.com", shared.NodeName(), fmt.Sprintf("gpu-%d", i), map[string]float64{
			"dra_device_utilization_ratio": utilization + float64(i)/100, "dra_device_memory_used_bytes": 1e9 * float64(i+1),
			"dra_device_power_watts": 70 + float64(i), "dra_device_energy_joules_total": energy,
		}})
	}
	text, err := json.Marshal(devices)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.folder, s.driver+".json")
	if err := errors.Join(os.WriteFile(path+".draft", text, 0o600), os.Rename(path+".draft", path)); err != nil {
		t.Fatal(err)
	}
}

func (s *metricsServer) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command(s.program, "-driver-name="+s.driver, "-folder="+s.folder, "-devices="+filepath.Join(s.folder, s.driver+".json"))
	s.process.Stderr = os.Stderr
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	process := s.process
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait() // kill may have waited for it
	})
}

// kill ends the process as kill -9 does: its socket stays.
func (s *metricsServer) kill(t *testing.T) {
	t.Helper()
	if err := s.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.process.Wait() // it was killed
}
