package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// teams are the class and templates for teamPod: an NVIDIA GPU, or a part of
// one.
const teams = `
apiVersion: v1
kind: Namespace
metadata: {name: teams}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: whole, namespace: teams}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: part, namespace: teams}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: shared.nvidia.com, capacity: {requests: {memory: 8Gi}}}}]}}}
`

// teamPod has two containers, one of which uses the device, and the labels of a pod
// of a Volcano job that is called as the team. Its arguments are the name, team and
// template.
const teamPod = `---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: teams, labels: {team: %[2]s, volcano.sh/job-name: %[2]s, volcano.sh/task-spec: worker, volcano.sh/queue-name: gpus}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: gpu}]}}
  - {name: side, image: localhost/pause:1, imagePullPolicy: Never}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: %[3]s}]
`

// TestDCGMQueries evaluates the queries of dashboards, alerts and autoscalers
// for dcgm-exporter, and an autoscaler's query of our own rule, and compares
// the results with the file of the simulated hardware and the scheduler's
// allocations.
func TestDCGMQueries(t *testing.T) {
	covers(t)
	hardware := distinctHardware()
	s := startPrometheus(t, "prometheus-dcgm", hostJob(flaggedAgent(t, hardware, "--metrics.dcgm=copy"), 2*time.Second))
	allocated := map[string]*chip{}
	for name := range deployTeams(t) {
		allocated[name] = allocatedTo(t, hardware, "teams", name)
	}
	percent := func(c *chip) float64 { return 100 * c.Quantities["utilization"].(float64) }
	used := func(c *chip) float64 {
		return c.Quantities["memory_used"].(float64) / c.Quantities["memory_size"].(float64)
	}

	s.byPod(t, `avg by (namespace, pod) (DCGM_FI_DEV_GPU_UTIL{namespace="teams", container="main"})`, allocated, percent)
	s.byPod(t, `max by (namespace, pod) (DCGM_FI_DEV_FB_USED{namespace="teams"} / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE))`, allocated, used)
	s.byPod(t, `topk(5, avg by (namespace, pod) (DCGM_FI_DEV_GPU_UTIL{pod!=""}))`, allocated, percent)
	s.waitRows(t, `topk(2, avg by (namespace, pod) (DCGM_FI_DEV_GPU_UTIL{pod!=""}))`, func(rows []scrape.Row) error {
		return sameRows(rows, busiest(allocated, 2, percent))
	})
	s.waitRows(t, `count(max by (UUID) (DCGM_FI_DEV_GPU_UTIL) < 30)`, func(rows []scrape.Row) error {
		return sameRows(rows, map[string]float64{"": float64(countBelow(hardware, 30, percent))})
	})
	// The query of an autoscaler, with dcgm-exporter's names and without.
	// Without them, the parts of one GPU are not distinguished, and the rule
	// has no value for them.
	s.byPod(t, `avg by (namespace, pod) (avg_over_time(DCGM_FI_DEV_GPU_UTIL{namespace="teams"}[10s]))`, allocated, percent)
	halves := map[string]*chip{"half-a": allocated["half-a"], "half-b": allocated["half-b"]}
	s.byPod(t, `100 * pod_device:dra_pod_utilization_ratio:upper_bound{namespace="teams"}`, halves, percent)
	maps.DeleteFunc(allocated, func(pod string, _ *chip) bool { return halves[pod] != nil })
	s.byPod(t, `100 * avg by (namespace, pod) (avg_over_time(pod:dra_pod_utilization_ratio:avg{namespace="teams"}[10s]))`, allocated, percent)
	s.checkRulesHealthy(t)
}

// priceList is in the order of precedence.
const priceList = `
currency: EUR
prices:
- {deviceclass: gpu.nvidia.com, perHour: 3.6}
- {deviceclass: shared.nvidia.com, perHour: 1.8}
`

// TestTeamCost: each team is charged for the device-seconds of its claims at
// the price of their class, and the sums over teams, claims and the namespace
// are equal.
func TestTeamCost(t *testing.T) {
	covers(t)
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte(priceList), 0o600); err != nil {
		t.Fatal(err)
	}
	a := flaggedAgent(t, distinctHardware(), "--cost.prices="+prices, "--labels.pod=team")
	s := startPrometheus(t, "prometheus-cost", hostJob(a, 2*time.Second))
	s.waitRows(t, `dra_exporter_build_info`, oneRow)
	deployTeams(t)
	for team, perHour := range map[string]float64{"red": 3.6, "blue": 1.8} {
		s.waitRows(t, fmt.Sprintf(`team:dra_claim_cost:increase5m{team=%q, currency="EUR"} / on (team) team:dra_claim_device_seconds:increase5m * 3600`, team),
			func(rows []scrape.Row) error { return sameRows(rows, map[string]float64{"": perHour}) })
	}
	for _, same := range []string{
		`sum(team:dra_claim_cost:increase5m) / sum(claim:dra_claim_cost:increase5m)`,
		`sum(namespace_class:dra_namespace_cost:increase5m{namespace="teams"}) / sum(claim:dra_claim_cost:increase5m{namespace="teams"})`,
	} {
		s.waitRows(t, same, func(rows []scrape.Row) error { return sameRows(rows, map[string]float64{"": 1}) })
	}
	s.checkRulesHealthy(t)
}

// flaggedAgent starts another agent of the node with additional flags.
func flaggedAgent(t *testing.T, devices *hardware, flags ...string) *hostAgent {
	t.Helper()
	a := &hostAgent{name: strings.Join(flags, " "), config: filepath.Join(t.TempDir(), "devices.yaml")}
	a.change(t, devices)
	a.launch(t, exec.Command(agentBinary(), append([]string{"node", "--kubelet.pod-resources-socket=" + shared.KubeletSocket(),
		"--device.source=simulated", "--simulated.config=" + a.config}, flags...)...))
	return a
}

// deployTeams runs three pods of one team with a GPU each, and two of another
// with a part of a fourth. It returns each pod's team.
func deployTeams(t *testing.T) map[string]string {
	t.Helper()
	pods := map[string]string{"one": "red", "two": "red", "three": "red", "half-a": "blue", "half-b": "blue"}
	templates := map[string]string{"red": "whole", "blue": "part"}
	manifests := teams
	for name, team := range pods {
		manifests += fmt.Sprintf(teamPod, name, team, templates[team])
	}
	deployText(t, "teams", manifests)
	for name := range pods {
		running(t, "teams", name)
	}
	return pods
}

// distinctHardware is the hardware of the node, without MIG devices of its
// own, with constant values by which each GPU can be distinguished. The one
// with parts has the lowest.
func distinctHardware() *hardware {
	h := steadyHardware(0.5)
	for i, gpu := range h.Devices {
		gpu.Partitions = nil
		gpu.Quantities["utilization"] = 0.10 + 0.08*float64(i)
		gpu.Quantities["memory_used"] = float64(i+1) * (4 << 30)
		gpu.Quantities["memory_size"] = float64(80 << 30)
	}
	h.chip(h.uuidOf("gpu.nvidia.com/gpu-4")).Quantities["utilization"] = 0.05
	return h
}

// allocatedTo returns the hardware of the only device of a pod's only claim.
func allocatedTo(t *testing.T, h *hardware, namespace, pod string) *chip {
	t.Helper()
	claim := podsClaim(t, namespace, pod)
	device := claim.Status.Allocation.Devices.Results[0]
	chip := h.chip(h.uuidOf(device.Driver + "/" + device.Device))
	if chip == nil {
		t.Fatalf("there is no hardware behind %s/%s", device.Driver, device.Device)
	}
	return chip
}

// podsClaim returns the only claim of a pod, which was created from a
// template.
func podsClaim(t *testing.T, namespace, pod string) *resourceapi.ResourceClaim {
	t.Helper()
	found, err := shared.Client().CoreV1().Pods(namespace).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim, err := shared.Client().ResourceV1().ResourceClaims(namespace).Get(t.Context(), *found.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return claim
}

// byPod waits until a result has one row for each pod, with the value of its
// hardware.
func (s *prometheus) byPod(t *testing.T, expr string, expected map[string]*chip, value func(*chip) float64) {
	t.Helper()
	want := map[string]float64{}
	for pod, chip := range expected {
		want[pod] = value(chip)
	}
	s.waitRows(t, expr, func(rows []scrape.Row) error { return sameRows(rows, want) })
}

// sameRows compares values by pod.
func sameRows(rows []scrape.Row, want map[string]float64) error {
	var wrong error
	if len(rows) != len(want) {
		wrong = fmt.Errorf("there are %d rows, not %d", len(rows), len(want))
	}
	for _, row := range rows {
		value, there := want[row.Labels["pod"]]
		if !there || !(math.Abs(row.Value-value) <= 1e-3) {
			wrong = errors.Join(wrong, fmt.Errorf("%s is %v, not %v", row.Labels, row.Value, value))
		}
	}
	return wrong
}

// busiest returns the pods with the highest values.
func busiest(allocated map[string]*chip, n int, value func(*chip) float64) map[string]float64 {
	var pods []string
	for pod := range allocated {
		pods = append(pods, pod)
	}
	slices.SortFunc(pods, func(a, b string) int { return cmp.Compare(value(allocated[b]), value(allocated[a])) })
	top := map[string]float64{}
	for _, pod := range pods[:n] {
		top[pod] = value(allocated[pod])
	}
	return top
}

// countBelow counts the NVIDIA GPUs below a value.
func countBelow(h *hardware, limit float64, value func(*chip) float64) (count int) {
	for _, gpu := range h.Devices {
		if gpu.Vendor == "nvidia" && value(gpu) < limit {
			count++
		}
	}
	return count
}
