package e2e

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// requirements are the agent's behaviours that must be tested on a real node,
// and the test of each. A run without -run fails if one of them is missing.
var requirements = []struct{ item, test string }{
	{"the features of this release of Kubernetes, and no others", "TestFeatures"},
	{"exclusive claim from a template", "TestExclusiveClaim"},
	{"one claim of two devices with two containers, each on its own request", "TestTwoRequests"},
	{"one claim shared by two pods", "TestSharedClaim"},
	{"two claims sharing one device (consumable capacity)", "TestConsumableCapacity"},
	{"admin access", "TestAdminAccess"},
	{"prioritized list", "TestPrioritizedList"},
	{"extended resource, by the name that the class has for it", "TestExtendedResource"},
	{"extended resource, by the implicit name of the class", "TestImplicitExtendedResource"},
	{"partitions with and without UUID", "TestPartitions"},
	{"init container → attributed while it runs", "TestInitContainer"},
	{"driver killed for 60 s → no claim loses its labels", "TestDriverKilled"},
	{"claims come and go while a driver is down and its slices are gone → each is shown on its own hardware", "TestTurnoverWhileDriverDown"},
	{"pod deleted → dra_claim_held and gauges gone at once, counters through the grace", "TestPodDeleted"},
	{"claim re-created under its name → counters never go backwards", "TestClaimRecreated"},
	{"kubelet killed and restarted", "TestKubeletKilled"},
	{"kubelet restarted beside a static pod → a List that names the static pod alone ends no hold and makes no shared device exclusive, also for an agent without the API server, also beside a device plugin", "TestKubeletRestartStaticPods"},
	{"pods from the kubelet's Pods API, without a permission to read any: the same as from the API server, also of init containers, after a pod has gone, and over restarts of kubelet and agent", "TestPodsAPI"},
	{"API server down for 30 s → still claim-labelled, source_up 0, then recovers", "TestAPIServerDown"},
	{"agent killed and restarted", "TestAgentKilled"},
	{"idle devices exported throughout", "TestIdleDevices"},
	{"one claim's utilization on the page and in /metrics, with JavaScript on and off, also while a source hangs", "TestBrowser"},
	{"promtool check metrics is silent; OpenMetrics and protobuf say the same", "TestFormats"},
	{"SIGTERM ends the agent within 2 s, also with a hung source", "TestSIGTERM"},
	{"no capability, a read-only root, no permission but the listed ones", "TestPodSecurity"},
	{"NVIDIA's driver: a whole GPU, by NVML and by DCGM", "TestNVIDIADriver/whole"},
	{"NVIDIA's driver: static MIG devices, by NVML and by DCGM", "TestNVIDIADriver/static-mig"},
	{"NVIDIA's driver: two MIG devices of one profile made on demand, by NVML and by DCGM", "TestNVIDIADynamicMIG"},
	{"NVIDIA's driver: time-slicing, by NVML and by DCGM", "TestNVIDIADriver/time-slicing"},
	{"NVIDIA's driver: MPS, by NVML and by DCGM", "TestNVIDIADriver/mps"},
	{"XID 79 on a claimed GPU → within 2 s counted, unhealthy, the class's violation; red on the page; the driver's taint; recovery", "TestNVIDIADriver/xid"},
	{"DCGM's host engine killed and restarted → same series, no gap longer than the outage, no leaked groups", "TestNVIDIADriver/host-engine"},
	{"a claim of gpu.amd.com has its card's utilization", "TestOtherVendors/amd"},
	{"a claim of dra.net has its adapter's throughput", "TestOtherVendors/network"},
	{"a pod with 32 CPUs of dra.cpu, a virtual function and a GPU (both drivers imitated): the CPUs are one bundle of few series, each is charged its price and the function none, and no alert finds unmatched devices", "TestCPUs"},
	{"each reason why a claim is pending, by real objects; explain names what to do; unused and gated claims", "TestClusterPending"},
	{"preparation delayed by 3 s and a binding condition by 4 s show in their phases and in no other; the phases add up", "TestClusterPhases"},
	{"a restart of the cluster role adds no observation and moves no since; a wait over it is observed at its end", "TestClusterRestart"},
	{"a driver killed before preparation shows in that phase until it is back", "TestClusterDriverKilled"},
	{"what is published and what is left: partitions, consumable capacity, extended resources, prioritized lists, admin access", "TestClusterSupply"},
	{"taint rules of each effect, and an eviction", "TestClusterTaintRules"},
	{"an eviction by a rule is in progress while pods have yet to be evicted, and then is not", "TestClusterEvictionProgress"},
	{"a claim whose devices skip preparation has no such phase, one that mixes has; the API server drops the field before 1.37", "TestClusterSkippedPreparation"},
	{"devices by pool and by type of partition, compared with Kubernetes' own ResourcePoolStatusRequest; it is not served before 1.37", "TestResourcePoolStatus"},
	{"the pods of a real indexed Job and of a Deployment have their workload, with ranks; their number and the duration of their start", "TestWorkloads"},
	{"a gang of the real scheduler that lacks a pod, or a device for one pod: the others have the reason gang_quorum, explain workload names what is missing, and all start once it is there", "TestGang"},
	{"a JobSet, a LeaderWorkerSet and a Job of their real controllers have their workloads and ranks; what real Kueue lets wait for quota is known before it has pods, explain has Kueue's message, and both end once it is admitted", "TestQueues"},
	{"a ComputeDomain of NVIDIA's real controller: without the controller, short of a node, ready, without a node that it had", "TestComputeDomain"},
	{"events of node autoscalers about a pending pod are counted and explained", "TestAutoscalers"},
	{"as many pods as predicted run, and the next one is pending for the predicted reason; the headroom says the same; what keeps pods from a node with devices is named", "TestFit"},
	{"devices that the real scheduler allocates with matchAttribute are aligned, those without are not, on the pages and in the matrix of the command; the rack of a node and of a workload", "TestTopology"},
	{"claims that cannot go, orphans, failed preparation and binding, two words on one device", "TestClusterUnhealthy"},
	{"permission for one kind missing → its families absent, the reason named, the rest flows", "TestClusterPermission"},
	{"API server restarted → no page missing, nothing observed twice, then all goes on", "TestClusterAPIServer"},
	{"a claim pending over five minutes, with its device class, is one query", "TestClusterQuery"},
	{"the shipped Deployment, and its permissions", "TestClusterDeployment"},
	{"a job of 10 s between scrapes 60 s apart: through the shipped rule, and exactly in the raw totals", "TestShortJob"},
	{"queries for dcgm-exporter with --metrics.dcgm=copy, and an autoscaler's metric without", "TestDCGMQueries"},
	{"teams pay for the device-seconds of their claims, and in all what the namespace pays", "TestTeamCost"},
	{"two claims of two pods on one GPU: 30 % and 50 % by their containers' processes, a process of the host is unattributed; without the host's pids both are shared, and the reason says so", "TestProcessAttribution/two-claims"},
	{"a process ends → its part is removed, and no claim gets it; a pod without a claim is unattributed; a claim idles by itself", "TestProcessAttribution/process-ends"},
	{"kubelet killed and restarted → each page goes on splitting", "TestProcessAttribution/kubelet-killed"},
	{"two claims of one pod by its containers, also when one is restarted, and shared where one container has both", "TestProcessAttribution/one-pod"},
	{"two pods of one claim are distinguished", "TestProcessAttribution/one-claim"},
	{"processes whose reported sum exceeds their GPU are scaled down to it", "TestProcessAttribution/overreported"},
	{"two claims of one MIG device stay shared", "TestProcessAttribution/partition"},
	{"a container with admin access beside one that works on the same GPU: what it does is unattributed", "TestAdminContainerBesideSharing"},
	{"a claim that stays pending → DRAClaimPendingTooLong at a real Alertmanager's webhook, in words for a person; one alert whatever the reason; not while gated; resolved", "TestPendingAlert"},
	{"a GPU's first Xid, on a claimed GPU → DRADeviceXIDFatal at the webhook within a minute, with the claim", "TestNVIDIADriver/alert-of-xid"},
	{"every query of a dashboard, rule and alert has data on a Prometheus that scraped the demo, or a reason why not", "TestDashboards/demo"},
	{"likewise on the real cluster, with the kubelet's and the control plane's own metrics", "TestDashboards/cluster"},
	{"dashboards and rules for a Prometheus that scrapes without honorLabels say the same", "TestDashboards/without-honorLabels"},
	{"label values with regex characters and quotes select themselves and nothing else", "TestDashboards/odd-values"},
	{"a busy GPU scales a Deployment up, an idle one does not: prometheus-adapter and HorizontalPodAutoscaler as shipped; KEDA's ScaledObject is accepted and asks for the same number", "TestAutoscaling"},
	{"one helm install → claim-labelled metrics in Prometheus by the chart's own monitors, no privilege, no write verb, helm test; an upgrade renames no series; uninstall leaves nothing; without the operator it says so; wrong values are refused by their key", "TestHelmInstall"},
	{"the API server accepts every manifest that is shipped, strictly: kustomizations, components, dashboards, examples, the chart with each of its values", "TestManifestsAccepted"},
	{"with --web.kubernetes-auth the API server decides who may read the metrics, and of which namespaces a reader sees claims", "TestKubernetesAuth"},
	{"each permission of both roles taken away → its families gone and no others, the metric and the log name it", "TestRBACRules"},
	{"the API server accepts the shipped PodMonitors and PrometheusRule by the operator's own definitions", "TestOperatorObjects"},
	{"every family of both roles' pages at a real OpenTelemetry Collector with equal values, units and start times, in both namings, by gRPC and by HTTP, also of another process", "TestOTLP/metrics"},
	{"the way of a pod's claim is one trace: its phases in order, as long as the histograms and our own eyes say, which the exemplars point to; delays, waits, failures and an end before the start are where they belong; nothing twice after a restart", "TestOTLP/traces"},
	{"collector killed for 60 s → the next push is the whole truth, traces that ended meanwhile arrive, memory stays, scraping goes on, one log line each way", "TestOTLP/outage"},
	{"the component otlp as shipped: both roles push to the collector that it names", "TestOTLP/component"},
	{"the images of the Dockerfile: as the shipped DaemonSet, with the driver's library and DCGM's own; as user nobody if the pod sets no user", "TestImage"},
	{"the agent sees GPUs and whose they are, without a privilege: through a host engine on its node, without any device", "TestAccess/dcgm"},
	{"likewise through NVIDIA's own container runtime and its RuntimeClass", "TestAccess/runtime-class"},
	{"likewise through NVIDIA's own plugin of containerd and a CDI spec; the annotation cdi.k8s.io on a pod does nothing", "TestAccess/cdi"},
	{"likewise through a claim by admin access, which holds nothing, and which a NoExecute taint evicts only without its toleration", "TestAccess/claim"},
	{"a driver upgrade with NVIDIA's operator (imitated): the agent's pod goes when its label is paused, and is back with the new library", "TestRelease/driver-upgrade"},
	{"a GPU reset while the release file exists: refused before, the claim on another GPU loses nothing, no alert", "TestRelease/host/reset"},
	{"a change of the MIG mode while the node's label is paused: refused before, the claim on another GPU loses nothing, no alert", "TestRelease/host/mig-mode"},
	{"passthrough to a virtual machine (NVIDIA's wait imitated): the agent lets go before the driver gives up, and reads the other GPUs once it is bound", "TestRelease/passthrough"},
	{"the chart's access mode auto takes what the cluster has at the first installation, and nothing flips it later", "TestAccessAuto"},
	{"check in the agent's container takes over its flags and finds nothing wrong; without permissions it names each", "TestCheck"},
}

// coreTests returns the tests that also run on the oldest supported release of
// Kubernetes: those whose result depends on the release, and not on other
// programs.
func coreTests() []string {
	return []string{
		"TestFeatures", "TestExclusiveClaim", "TestTwoRequests", "TestSharedClaim", "TestConsumableCapacity",
		"TestAdminAccess", "TestPrioritizedList", "TestExtendedResource", "TestImplicitExtendedResource", "TestPartitions", "TestInitContainer",
		"TestKubeletKilled", "TestPodsAPI", "TestIdleDevices", "TestClusterPending", "TestClusterPhases",
		"TestClusterSupply", "TestClusterTaintRules", "TestClusterEvictionProgress", "TestClusterSkippedPreparation",
		"TestResourcePoolStatus", "TestClusterUnhealthy", "TestFit", "TestWorkloads", "TestClusterDeployment",
	}
}

// selectTests selects the tests of a set (DRA_E2E_SET), unless -run selects some.
func selectTests(set string) error {
	flag.Parse()
	run := flag.Lookup("test.run")
	switch {
	case set == "" || set == "all" || run.Value.String() != "":
		return nil
	case set == "core":
		return run.Value.Set("^(" + strings.Join(coreTests(), "|") + ")$")
	}
	return fmt.Errorf("DRA_E2E_SET is %q, not all or core", set)
}

// outcomes has the outcome of each test of a requirement.
var outcomes struct {
	sync.Mutex
	of     map[string]releases.Outcome
	absent map[string]bool // tests that assert that the release lacks a feature
}

// covers must be called first by a test of requirements. It records the
// outcome.
func covers(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		outcomes.Lock()
		defer outcomes.Unlock()
		outcome := releases.Passed
		switch {
		case t.Failed():
			outcome = releases.Failed
		case t.Skipped():
			outcome = releases.Skipped
		case outcomes.absent[t.Name()]:
			outcome = releases.Absent
		}
		if outcomes.of == nil {
			outcomes.of = map[string]releases.Outcome{}
		}
		outcomes.of[t.Name()] = outcome
	})
}

// selected reports whether -run selects a test. A pattern for subtests selects
// none for sure.
func selected(test string) bool {
	pattern := flag.Lookup("test.run").Value.String()
	name, _, _ := strings.Cut(test, "/")
	found, err := regexp.MatchString(pattern, name)
	return err == nil && found && !strings.Contains(pattern, "/")
}

// reportRequirements prints a line for each item, saves the result if
// DRA_E2E_RESULTS names a folder, and reports whether no test failed, was skipped
// or is missing. It leaves out those that -run excluded.
func reportRequirements() (bool, error) {
	outcomes.Lock()
	defer outcomes.Unlock()
	all := true
	result := releases.Result{Kubernetes: shared.Version(), Features: features.found, Tests: map[string]releases.Outcome{}}
	for _, row := range requirements {
		outcome, ran := outcomes.of[row.test]
		switch {
		case !ran && !selected(row.test):
			continue
		case !ran:
			outcome = releases.NotRun
		}
		all = all && (outcome == releases.Passed || outcome == releases.Absent)
		result.Tests[row.test] = outcome
		fmt.Printf("shown: %s — %s — %s\n", row.item, row.test, outcome)
	}
	if folder := os.Getenv("DRA_E2E_RESULTS"); folder != "" {
		return all, result.Save(folder)
	}
	return all, nil
}
