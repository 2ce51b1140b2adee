package e2e

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestNVIDIADriver runs NVIDIA's driver on three whole GPUs and one with MIG
// devices, with all features that it supports at the same time.
func TestNVIDIADriver(t *testing.T) {
	gpus := stubs.NewNode(t, 4)
	for _, device := range []struct {
		profile   string
		placement int
	}{{"1g.10gb", 0}, {"1g.10gb", 1}, {"3g.40gb", 4}} {
		gpus.CreateMIG(3, device.profile, device.placement)
	}
	n := startNVIDIA(t, gpus, 4, "TimeSlicingSettings=true,MPSSupport=true,NVMLDeviceHealthCheck=true")
	n.xids = startXIDAlerts(t, n.nvml)
	deploy(t, "nvidia")
	for _, pod := range []string{"whole", "static-a", "static-b", "sliced-0", "sliced-1", "mps"} {
		running(t, "nvidia", pod)
	}
	t.Run("whole", n.testWhole)
	t.Run("static-mig", n.testStaticMIG)
	t.Run("time-slicing", n.testTimeSlicing)
	t.Run("mps", n.testMPS)
	n.xids.waitGPUs(t)
	t.Run("xid", n.testXID)
	t.Run("host-engine", n.testHostEngine)
	t.Run("alert-of-xid", n.testXIDAlert)
}

func (n *nvidiaNode) testWhole(t *testing.T) {
	covers(t)
	n.waitShown(t, "nvidia", wantedClaim{claim: "whole-gpu-*", class: gpuClass, template: "whole", devices: []wantedDevice{
		{wholeGPU, "gpu", "exclusive", []string{"whole/main"}},
	}})
}

func (n *nvidiaNode) testStaticMIG(t *testing.T) {
	covers(t)
	for _, pod := range []string{"static-a", "static-b"} {
		n.waitShown(t, "nvidia", wantedClaim{claim: pod + "-mig-*", class: "mig.nvidia.com", template: "static", devices: []wantedDevice{
			{"gpu.nvidia.com/gpu-3-mig-1g10gb-19-?", "mig", "partition", []string{pod + "/main"}},
		}})
	}
}

// testTimeSlicing: the claim holds its GPU alone, and two pods share the
// claim.
func (n *nvidiaNode) testTimeSlicing(t *testing.T) {
	covers(t)
	uuid := n.waitShown(t, "nvidia", wantedClaim{claim: "sliced", class: gpuClass, sharing: "time_slicing", devices: []wantedDevice{
		{wholeGPU, "gpu", "exclusive", []string{"sliced-0/main", "sliced-1/main"}},
	}})
	for _, call := range []string{"-i " + uuid + " -c DEFAULT", "compute-policy -i " + uuid + " --set-timeslice 3"} {
		if calls := cluster.NVIDIALog(n.Dir, "nvidia-smi"); !strings.Contains(calls, call+"\n") {
			t.Errorf("the driver has not called nvidia-smi %s, but\n%s", call, calls)
		}
	}
}

// testMPS: the driver has started a control daemon for the claim.
func (n *nvidiaNode) testMPS(t *testing.T) {
	covers(t)
	uuid := n.waitShown(t, "nvidia", wantedClaim{claim: "mps", class: gpuClass, sharing: "mps", devices: []wantedDevice{
		{wholeGPU, "gpu", "exclusive", []string{"mps/one", "mps/two"}},
	}})
	call := "-i " + uuid + " -c EXCLUSIVE_PROCESS"
	if calls := cluster.NVIDIALog(n.Dir, "nvidia-smi"); !strings.Contains(calls, call+"\n") {
		t.Errorf("the driver has not called nvidia-smi %s, but\n%s", call, calls)
	}
	daemons, err := shared.Client().CoreV1().Pods(cluster.NVIDIANamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(daemons.Items) != 1 {
		t.Fatalf("there are %d control daemons (%v)", len(daemons.Items), err)
	}
	log, err := shared.Kubectl(t.Context(), "logs", "--namespace", cluster.NVIDIANamespace, daemons.Items[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"started for " + uuid, "set_default_active_thread_percentage 50"} {
		if !strings.Contains(log, line) {
			t.Errorf("the control daemon did not receive %q, but\n%s", line, log)
		}
	}
}

// TestNVIDIADynamicMIG: two MIG devices of one profile are created on one GPU
// for two claims, are distinguished, and are deleted with their claims. The
// host engine reports no UUIDs for them, as old versions do, so that its agent
// must match them by the device nodes that the driver has prepared.
func TestNVIDIADynamicMIG(t *testing.T) {
	covers(t)
	gpus := stubs.NewNode(t, 1)
	for gi := range 15 {
		gpus.Set(0, fmt.Sprintf("mig.%d.dcgm.field.54", gi), "blank")
	}
	n := startNVIDIA(t, gpus, 1, "DynamicMIG=true,TimeSlicingSettings=true")
	n.engineIsOld = true
	deploy(t, "on-demand")
	pods := []string{"first", "second"}
	for _, pod := range pods {
		running(t, "on-demand", pod)
	}
	for _, pod := range pods {
		n.waitShown(t, "on-demand", wantedClaim{claim: pod + "-mig-*", class: "mig.nvidia.com", template: "slice", devices: []wantedDevice{
			{"gpu.nvidia.com/gpu-0-mig-1g10gb-19-?", "mig", "partition", []string{pod + "/main"}},
		}})
	}
	deleteWorkloads(t, "on-demand")
	for _, a := range n.agents() {
		a.eventually(t, "the MIG devices to be gone", func(p *scrape.Page) error {
			for _, row := range p.Rows("dra_device_memory_used_bytes", nil) {
				if row.Labels["parent_uuid"] != "" {
					return fmt.Errorf("%s is there", row.Labels["uuid"])
				}
			}
			return heldOnly(p, "on-demand")
		})
	}
}

// waitShown waits until both agents report exactly this of a claim with one
// device, which must be the device whose nodes the containers have, and report
// no unmatched device. It returns the UUID of the claim's GPU, or of its MIG
// device's GPU.
func (n *nvidiaNode) waitShown(t *testing.T, namespace string, claim wantedClaim) (gpu string) {
	t.Helper()
	expected := heldNVIDIADeviceOf(t, namespace, claim.devices[0].consumers)
	memory := n.scriptMemory(expected.nvidiaDevice)
	for _, a := range n.agents() {
		a.eventually(t, "claim "+claim.claim, func(p *scrape.Page) error {
			infos, err := currentClaims(t, p, namespace)
			if err != nil {
				return err
			}
			labels, err := checkNVIDIA(p, claim, infos, n.uuid(a, expected))
			if err != nil {
				return err
			}
			return errors.Join(checkInvariants(p),
				checkNVIDIAQuantities(p, labels, claim.devices[0].attribution),
				claimHas(p, "dra_claim_memory_used_bytes", labels, memory))
		})
	}
	return expected.gpuUUID
}

// uuid returns the UUID by which an agent must report a device.
func (n *nvidiaNode) uuid(a *hostAgent, d heldNVIDIADevice) string {
	switch {
	case d.gi < 0:
		return d.gpuUUID
	case a == n.dcgm && n.engineIsOld:
		return d.oldUUID()
	}
	return d.migUUID
}

// scriptMemory sets a use of memory that no other device has, and returns it
// in bytes.
func (n *nvidiaNode) scriptMemory(d nvidiaDevice) float64 {
	mebibytes := 100*(d.gpu+1) + 10*(d.gi+1) + d.ci + 1
	key := "memory.used"
	if d.gi >= 0 {
		key = fmt.Sprintf("mig.%d.memory.used", d.gi)
	}
	n.Set(d.gpu, key, fmt.Sprint(mebibytes<<20))
	return float64(mebibytes << 20)
}

// checkNVIDIA returns an error unless the claim has exactly this device. It
// returns the labels of the claim's rows for the device.
func checkNVIDIA(p *scrape.Page, w wantedClaim, infos []scrape.Row, uuid string) (scrape.Labels, error) {
	info, err := w.info(infos)
	if err != nil {
		return nil, err
	}
	claim := scrape.Labels{"namespace": info.Labels["namespace"], "resourceclaim": info.Labels["resourceclaim"]}
	device, err := p.One("dra_claim_device_info", claim)
	if err != nil {
		return nil, err
	}
	want := w.devices[0]
	switch labels := device.Labels; {
	case !matches(labels["driver"]+"/"+labels["device"], want.device) || labels["request"] != want.request || labels["deviceclass"] != w.class:
		return nil, fmt.Errorf("its device is %s", labels)
	case labels["uuid"] != uuid:
		return nil, fmt.Errorf("%s is taken for %s, not %s", labels["device"], labels["uuid"], uuid)
	}
	held, err := p.One("dra_claim_held", claim)
	if err != nil || held.Labels["uuid"] != uuid {
		return nil, fmt.Errorf("it holds %s, not %s (%w)", held.Labels, uuid, err)
	}
	var consumers []string
	for _, row := range p.Rows("dra_claim_consumer_info", with(claim, "uuid", uuid)) {
		consumers = append(consumers, row.Labels["pod"]+"/"+row.Labels["container"])
	}
	slices.Sort(consumers)
	if !slices.Equal(consumers, want.consumers) {
		return nil, fmt.Errorf("it is used by %s, not %s", consumers, want.consumers)
	}
	return with(claim, "uuid", uuid), nil
}

// checkNVIDIAQuantities returns an error unless a claim of a GPU has the GPU's
// values, and one of a MIG device has its memory and no value of its GPU.
func checkNVIDIAQuantities(p *scrape.Page, claim scrape.Labels, attribution string) error {
	whole := attribution != "partition"
	for name, there := range map[string]bool{
		"dra_claim_memory_used_bytes":   true,
		"dra_claim_utilization_ratio":   whole,
		"dra_claim_busy_seconds_total":  whole,
		"dra_claim_power_watts":         whole,
		"dra_claim_energy_joules_total": whole,
	} {
		rows := p.Rows(name, with(claim, "attribution", attribution))
		if all := p.Count(name, claim); there != (len(rows) == 1) || len(rows) != all {
			return fmt.Errorf("%s has %d rows, %d of them %s", name, all, len(rows), attribution)
		}
	}
	return nil
}

// checkInvariants returns an error if a device is unmatched or the page
// violates a rule that one page can violate.
func checkInvariants(p *scrape.Page) error {
	for _, row := range p.Rows("dra_exporter_unmatched_devices", nil) {
		if row.Value != 0 {
			return fmt.Errorf("%v devices of %s are unmatched on the side %s", row.Value, row.Labels["driver"], row.Labels["side"])
		}
	}
	return errors.Join(scrape.PageInvariants(p)...)
}

// claimHas returns an error unless the page has one such row, of this value.
func claimHas(p *scrape.Page, name string, labels scrape.Labels, want float64) error {
	row, err := p.One(name, labels)
	if err == nil && math.Abs(row.Value-want) > 1e-9*want {
		err = fmt.Errorf("%s%s is %v, not %v", name, labels, row.Value, want)
	}
	return err
}
