// Package sets says which dashboards, alerts and recording rules belong together. The
// set core is always installed, the others by choice.
package sets

import (
	"bytes"
	"fmt"
)

// Core is the set that all others rely on.
const Core = "core"

// Set is a part of the dashboards and rules that is installed as a whole.
type Set struct {
	Name string
	// Answers is what it is for, for documents.
	Answers    string
	Dashboards []string // files without .json
	Alerts     []string
	// Records are patterns of recorded names that something else reads: a command, an
	// autoscaler, a query of a document. What dashboards and alerts need is computed.
	Records []string
}

// All returns the sets. This is the one place that says where something belongs.
func All() []Set {
	return []Set{
		{
			Name:       Core,
			Answers:    "claims, devices and workloads: what waits, fails, is idle or unhealthy, and what it costs",
			Dashboards: []string{"overview", "claims", "claim", "allocation", "health", "node", "workload", "efficiency"},
			Alerts: []string{
				"DRAClaimPendingTooLong", "DRAAllocationFailing", "DRAPreparationStuck", "DRAClaimIdle", "DRAClaimStuckTerminating",
				"DRAPodStuckTerminating", "DRAClaimOrphaned", "DRADeviceXIDFatal", "DRADeviceUnhealthy", "DRADeviceECCUncorrected",
				"DRADeviceForeignProcesses", "DRAWorkloadStraggler", "DRAWorkloadHung", "DRAPoolIncomplete", "DRAClassExhausted",
				"DRAExporterDown", "DRAExporterSourceDown", "DRAExporterReleased", "DRAExporterUnmatchedDevices",
			},
			Records: []string{"namespace_class:dra_namespace_energy_joules:increase5m", "namespace_class:dra_claim_shared_devices:sum"},
		},
		{
			Name:       "capacity",
			Answers:    "how much more fits, what limits it, stranded devices, idle nodes",
			Dashboards: []string{"capacity"},
			Alerts:     []string{"DRAClassHeadroomLow", "DRADevicesStranded", "DRAPoolShrunk"},
		},
		{
			Name:       "reliability",
			Answers:    "incidents, mean times between them, error budgets, devices that fail often",
			Dashboards: []string{"reliability"},
			Alerts:     []string{"DRAClassErrorBudgetBurn", "DRADeviceLemon", "DRADeviceHealthDisagreement", "DRADeviceRowRemapPending", "DRADeviceThrottled", "DRANVLinkErrors"},
		},
		{
			Name:       "rightsizing",
			Answers:    "what would be enough: the history for dra-exporter advise and for autoscalers",
			Dashboards: []string{"rightsizing"},
			Alerts:     []string{"DRAMemoryNearlyFull", "DRAClaimMisaligned"},
			Records:    []string{"requester:*", "pod:dra_pod_utilization_ratio:avg"},
		},
		{
			Name:       "workloads",
			Answers:    "all jobs and deployments, their interruptions, ComputeDomains",
			Dashboards: []string{"workloads"},
			Alerts:     []string{"DRAWorkloadInterrupted", "DRAComputeDomainNotReady", "DRAComputeDomainDegraded"},
		},
		{
			Name:       "kubernetes",
			Answers:    "the way of a claim through scheduler, kubelet and driver, by phase",
			Dashboards: []string{"allocation-kubernetes"},
			Alerts:     []string{"DRAAllocationSlow", "DRABindingStuck", "DRAStartStuck"},
		},
		{
			Name:       "exporter",
			Answers:    "the exporter itself: its pages, reads, pushes and access",
			Dashboards: []string{"exporter"},
			Alerts: []string{
				"DRAExporterStale", "DRAExporterPushFailing", "DRAExporterReloadFailed", "DRAExporterOversizedClaims", "DRAExporterSeriesDropped",
			},
		},
	}
}

// Kustomization makes ConfigMaps of the set's dashboards.
func (s Set) Kustomization() []byte {
	var text bytes.Buffer
	fmt.Fprintf(&text, `# Dashboards of the set %[1]s as ConfigMaps for the sidecar of Grafana's Helm charts, which
# imports what has the label grafana_dashboard. Into the namespace that it watches:
#
#   kubectl kustomize dashboards/%[1]s | kubectl apply --server-side -n monitoring -f -
#
# make dashboards writes this file.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
generatorOptions:
  disableNameSuffixHash: true
  labels:
    app.kubernetes.io/name: dra-exporter
    grafana_dashboard: "1"
  annotations:
    grafana_folder: DRA
configMapGenerator:
`, s.Name)
	for _, name := range s.Dashboards {
		fmt.Fprintf(&text, "  - {name: dra-exporter-%[1]s, files: [%[1]s.json]}\n", name)
	}
	return text.Bytes()
}
