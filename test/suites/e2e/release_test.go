package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestRelease: what needs GPUs for itself is refused while the agent reads them, and
// succeeds with the agent running after it was asked to let go. The GPUs are
// scripted; the library refuses as NVIDIA's driver does, by the device files that
// processes have open.
func TestRelease(t *testing.T) {
	t.Run("driver-upgrade", testDriverUpgrade)
	t.Run("host", testHostRelease)
	t.Run("passthrough", testPassthrough)
}

const (
	// clientLabel is the label by which NVIDIA's GPU operator asks clients of the
	// GPUs to go.
	clientLabel = "nvidia.com/gpu.deploy.client"

	// releaseLimit is within which the agent lets go, and comes back.
	releaseLimit = 10 * time.Second

	// boundLimit is within which a GPU is read that was bound to its driver again while
	// others are read: the next search for devices finds it, and the library is
	// initialized again at most every 30 s.
	boundLimit = 90 * time.Second

	// releaseWatts is the power of a held GPU, from its energy counter.
	releaseWatts = 250

	// measuredLate is by how much a counter may lag behind the stub's: the reading
	// itself is up to two seconds old, and so is the one before.
	measuredLate = 5 * time.Second
)

// releaseManifest is a pod that holds a GPU by a claim. Its argument is the namespace,
// three times.
const releaseManifest = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: whole, namespace: %[1]s}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: worker, namespace: %[1]s}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: whole}]
`

// newReleaseGPUs scripts GPUs that draw power. A change of their MIG mode resets
// them.
func newReleaseGPUs(t *testing.T, count int) *stubs.Node {
	t.Helper()
	gpus := stubs.NewNode(t, count)
	gpus.SetNode("model", "A100")
	for gpu := range count {
		gpus.Script(gpu, map[string]string{
			"energy": fmt.Sprintf("90000+%d/s", releaseWatts), "power.draw": fmt.Sprint(releaseWatts), "utilization.gpu": "50",
		})
	}
	return gpus
}

// holder is an agent that reads scripted GPUs, with what must stay true while it lets
// go of them.
type holder struct {
	*hostAgent
	gpus   *stubs.Node
	pages  *scrape.Watcher
	alerts *prometheus
	before map[string]bool // alerts that were there before
}

// watchHolder begins to watch the pages of an agent, and the alerts on them.
func watchHolder(t *testing.T, name string, gpus *stubs.Node, agent *hostAgent) *holder {
	t.Helper()
	h := &holder{hostAgent: agent, gpus: gpus}
	h.pages = scrape.Watch(t.Context(), 250*time.Millisecond, agent.metrics, ownCountersRise(), scrape.PageInvariants)
	h.alerts = serve(t, "prometheus-"+name, serverConfig{
		jobs:  []object{hostJob(agent, time.Second), clusterJob(clusterURL, time.Second)},
		rules: []string{shippedRules(t), ruleFile(t, alertRules)}, every: time.Second,
	})
	h.alerts.waitRows(t, "count(dra_device_power_watts)", oneRow)
	h.before = h.shownAlerts(t)
	return h
}

// ownCountersRise returns a rule that the agent's own counters do not decrease, as
// those of hardware do that was reset.
func ownCountersRise() scrape.Rule {
	all := scrape.CountersRise(grace)
	return func(p *scrape.Page) []error {
		return slices.DeleteFunc(all(p), func(err error) bool { return strings.HasPrefix(err.Error(), "dra_device_") })
	}
}

// unwantedAlerts have fired, or are of the node and would fire if a release took
// longer.
const unwantedAlerts = `count by (alertname, alertstate) (last_over_time(ALERTS{alertstate="firing"}[10m]) or
	last_over_time(ALERTS{alertname=~"DRAExporterSourceDown|DRADeviceUnhealthy|DRAExporterUnmatchedDevices",node=%q}[10m]))`

// shownAlerts returns the alerts that no release may cause, by name and state.
func (h *holder) shownAlerts(t *testing.T) map[string]bool {
	t.Helper()
	rows, err := h.alerts.query(t.Context(), fmt.Sprintf(unwantedAlerts, shared.NodeName()))
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string]bool)
	for _, row := range rows {
		shown[row.Labels["alertname"]+" "+row.Labels["alertstate"]] = true
	}
	return shown
}

// checkQuiet fails the test if a page broke a rule, or if there was an alert that no
// release may cause.
func (h *holder) checkQuiet(t *testing.T) {
	t.Helper()
	if err := h.pages.Broken(); err != nil {
		t.Errorf("pages of the agent %s: %v", h.name, err)
	}
	for alert := range h.shownAlerts(t) {
		if !h.before[alert] {
			t.Errorf("there was the alert %s", alert)
		}
	}
}

// checkRefused fails the test unless an operation is refused because the agent holds
// the GPUs, as it was before the agent could let go.
func (h *holder) checkRefused(t *testing.T, what string, operation func() error) {
	t.Helper()
	checkRefused(t, what, h.process.Process.Pid, operation)
}

func checkRefused(t *testing.T, what string, pid int, operation func() error) {
	t.Helper()
	err := operation()
	if !errors.Is(err, stubs.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprintf("by %d", pid)) {
		t.Fatalf("%s while the agent (%d) reads the GPUs: %v", what, pid, err)
	}
	t.Logf("%s while the agent reads the GPUs: %v", what, err)
}

// waitReleased waits until no process has a device file open, and until the agent
// says so, and why.
func (h *holder) waitReleased(t *testing.T, reason string) {
	t.Helper()
	began := time.Now()
	waitUnheld(t, h.gpus)
	t.Logf("the agent %s had let go after %s", h.name, time.Since(began).Round(10*time.Millisecond))
	if took := time.Since(began); took > releaseLimit {
		t.Errorf("it took %s", took)
	}
	h.eventually(t, "the released GPUs on the page", func(p *scrape.Page) error {
		return errors.Join(checkAccess(p, "released", reason), checkNoReadings(p))
	})
}

// waitUnheld waits until no process has a device file open, nor anything of the
// library.
func waitUnheld(t *testing.T, gpus *stubs.Node) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "the GPUs let go", func(context.Context) error {
		if holders, live := gpus.Holders(), gpus.Live(); len(holders) > 0 || live != (stubs.Live{}) {
			return fmt.Errorf("%+v has files open, %+v is open of the library", holders, live)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waitClosed waits until no process has a device file open. On a busy machine an agent
// may end amid a call of the library: then the stub has its session still as open.
func waitClosed(t *testing.T, gpus *stubs.Node) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "no process to have GPUs open", func(context.Context) error {
		if holders := gpus.Holders(); len(holders) > 0 {
			return fmt.Errorf("%+v has files open", holders)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waitReopened waits until the agent reads these GPUs again, by their UUIDs.
func (h *holder) waitReopened(t *testing.T, uuids ...string) {
	t.Helper()
	h.waitRead(t, 2*releaseLimit, uuids...)
}

// waitRead waits until the agent reads these GPUs, which must be within the limit.
func (h *holder) waitRead(t *testing.T, limit time.Duration, uuids ...string) {
	t.Helper()
	began := time.Now()
	h.eventually(t, "the GPUs read again", func(p *scrape.Page) error {
		errs := []error{checkAccess(p, "open", "")}
		for _, uuid := range uuids {
			_, err := p.One("dra_device_power_watts", scrape.Labels{"uuid": uuid})
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	t.Logf("the agent %s reads again after %s", h.name, time.Since(began).Round(10*time.Millisecond))
	if took := time.Since(began); took > limit {
		t.Errorf("it took %s", took)
	}
}

// checkAccess returns an error unless the page has this state of access, and no other.
func checkAccess(p *scrape.Page, state, reason string) error {
	rows := p.Rows("dra_exporter_device_access", nil)
	if len(rows) != 1 || rows[0].Value != 1 || rows[0].Labels["state"] != state || rows[0].Labels["reason"] != reason {
		return fmt.Errorf("the access to devices is %v, not %s %s", rows, state, reason)
	}
	return nil
}

// checkNoReadings returns an error if the page has a value that must have been read
// from a GPU just now.
func checkNoReadings(p *scrape.Page) error {
	for _, family := range []string{"dra_device_power_watts", "dra_device_utilization_ratio", "dra_claim_power_watts", "dra_claim_utilization_ratio"} {
		if rows := p.Rows(family, nil); len(rows) > 0 {
			return fmt.Errorf("%s has %v", family, rows)
		}
	}
	return nil
}

// claimUse is what a claim has been credited with, at a time.
type claimUse struct {
	at              time.Time
	joules, seconds float64
}

// readUse reads what the claim that holds a GPU has been credited with.
func (h *holder) readUse(t *testing.T, uuid string) (u claimUse) {
	t.Helper()
	h.eventually(t, "the energy of the claim", func(p *scrape.Page) error {
		energy, err := p.One("dra_claim_energy_joules_total", scrape.Labels{"uuid": uuid})
		if err != nil {
			return err
		}
		seconds, err := p.One("dra_claim_device_seconds_total", scrape.Labels{"uuid": uuid})
		u = claimUse{at: p.At, joules: energy.Value, seconds: seconds.Value}
		return err
	})
	return u
}

// checkTruth fails the test unless the claim has been credited since with what the
// stub has counted, but for what is measured late.
func (h *holder) checkTruth(t *testing.T, uuid string, since claimUse) {
	t.Helper()
	now := h.readUse(t, uuid)
	elapsed := now.at.Sub(since.at)
	joules, most := now.joules-since.joules, releaseWatts*(elapsed+measuredLate).Seconds()
	if least := releaseWatts * (elapsed - measuredLate).Seconds(); joules < least || joules > most {
		t.Errorf("the claim has %.0f J of %s, not between %.0f and %.0f", joules, elapsed, least, most)
	}
	if held := now.seconds - since.seconds; held < (elapsed-measuredLate).Seconds() || held > (elapsed+measuredLate).Seconds() {
		t.Errorf("the claim has %.0f device-seconds of %s", held, elapsed)
	}
	t.Logf("in %s the claim was credited with %.0f J, the stub counted %.0f", elapsed.Round(time.Second), joules, releaseWatts*elapsed.Seconds())
}

// testHostRelease: an agent that stays lets go of the GPUs for a reset, by the file,
// and for a change of the MIG mode, by the label. A claim holds another GPU all the
// time.
func testHostRelease(t *testing.T) {
	gpus := newReleaseGPUs(t, 2)
	replaceDriver(t, shared.Process("driver-"+cluster.NVIDIADriver), func() (*cluster.Process, error) {
		return shared.StartNVIDIADriver(t.Context(), nvidiaOptions(t, gpus, 2, ""))
	})
	labelNode(t, clientLabel, "true")
	file := filepath.Join(t.TempDir(), "release")
	agent := startVendorAgent(t, gpus, "nvml", "--nvml.library="+stubs.Build(t).NVML, "--device.release-file="+file, "--device.release-label="+clientLabel)
	deployText(t, "release", fmt.Sprintf(releaseManifest, "release"))
	held := heldNVIDIADeviceOf(t, "release", []string{"worker/main"})
	h := watchHolder(t, "release", gpus, agent)
	idle := 1 - held.gpu
	idleUUID := publishedUUID(t, idle)
	t.Run("reset", func(t *testing.T) { h.testReset(t, file, idle, held.gpuUUID, idleUUID) })
	t.Run("mig-mode", func(t *testing.T) { h.testMIGMode(t, idle, held.gpuUUID) })
	h.checkQuiet(t)
}

// testReset: while the release file exists, a GPU can be reset.
func (h *holder) testReset(t *testing.T, file string, idle int, heldUUID, idleUUID string) {
	covers(t)
	h.waitReopened(t, heldUUID, idleUUID)
	since := h.readUse(t, heldUUID)
	reset := func() error { return h.gpus.ResetGPU(idle) }
	h.checkRefused(t, "a reset", reset)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.waitReleased(t, "file")
	if err := reset(); err != nil {
		t.Error(err)
	}
	at := time.Now()
	time.Sleep(10 * time.Second) // long enough for the growth to be seen
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	h.waitReopened(t, heldUUID, idleUUID)
	h.checkTruth(t, heldUUID, since)
	h.eventually(t, "the energy of the GPU that was reset", func(p *scrape.Page) error {
		energy, err := p.One("dra_device_energy_joules_total", scrape.Labels{"uuid": idleUUID})
		if most := releaseWatts * p.At.Sub(at).Seconds(); err == nil && energy.Value > most+releaseWatts {
			err = fmt.Errorf("it is %.0f J, and the GPU counted %.0f since the reset", energy.Value, most)
		}
		return err
	})
	h.checkQuiet(t)
}

// testMIGMode: while the label of the node says that the MIG mode is to be changed, it
// can be. Then the agent reports the GPU's partitions.
func (h *holder) testMIGMode(t *testing.T, idle int, heldUUID string) {
	covers(t)
	since := h.readUse(t, heldUUID)
	change := func() error { return h.gpus.ChangeMIGMode(idle, true) }
	h.checkRefused(t, "a change of the MIG mode", change)
	setNodeLabel(t, clientLabel, "paused-for-mig-change")
	h.waitReleased(t, "label")
	if err := change(); err != nil {
		t.Error(err)
	}
	for range 2 {
		h.gpus.CreateMIG(idle, "3g.40gb", -1)
	}
	time.Sleep(5 * time.Second)
	setNodeLabel(t, clientLabel, "true")
	h.waitReopened(t, heldUUID)
	h.eventually(t, "the partitions", func(p *scrape.Page) error {
		parts := p.Rows("dra_device_info", scrape.Labels{"partition_profile": "3g.40gb"})
		if len(parts) != 2 {
			return fmt.Errorf("there are %v", parts)
		}
		return nil
	})
	h.checkTruth(t, heldUUID, since)
	h.checkQuiet(t)
}
