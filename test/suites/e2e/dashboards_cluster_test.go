package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// startClusterDashboards starts a Prometheus that scrapes the real cluster:
// the agent from the shipped manifests, a new cluster role, whose counters
// begin now, the kubelet and the control plane. As other clusters it scrapes
// an agent with prices and teams whose GPUs have faults of all kinds, one that
// cannot read the kubelet, and one that does not exist.
func startClusterDashboards(t *testing.T, rules []string) *dashboardServer {
	t.Helper()
	url, err := runClusterRole(t.Context(), "exporter-boards", clusterAccount)
	t.Cleanup(func() {
		if err := shared.EndProgram("exporter-boards"); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	jobs := []object{
		monitorJob(t, scraped), clusterJob(url, scraped),
		faultyJob(t), failingJob(t), absentJob(t),
		componentJob("kubelet", shared.KubeletURL()),
		componentJob("kube-scheduler", shared.SchedulerURL()),
		componentJob("kube-controller-manager", shared.ControllerManagerURL()),
	}
	g := startDashboards(t, "cluster", jobs, rules, shippedBoards)
	deployForBoards(t)
	return g
}

// componentJob scrapes a component of Kubernetes.
func componentJob(name, url string) object {
	return object{
		"job_name": name, "scheme": "https", "scrape_interval": scraped.String(), "scrape_timeout": scraped.String(),
		"tls_config":     object{"insecure_skip_verify": true},
		"static_configs": []object{{"targets": []string{strings.TrimPrefix(url, "https://")}}},
	}
}

// faultyJob scrapes an agent on the host whose GPUs have a fault of each kind
// that a dashboard about health shows.
func faultyJob(t *testing.T) object {
	t.Helper()
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte(priceList), 0o600); err != nil {
		t.Fatal(err)
	}
	return jobOf("faulty", flaggedAgent(t, faultyHardware(), "--cost.prices="+prices, "--labels.pod=team", "--device.slow-interval=2s"))
}

// failingJob scrapes an agent that cannot read the kubelet, and whose families
// are limited to few series.
func failingJob(t *testing.T) object {
	t.Helper()
	a := &hostAgent{name: "ailing", config: filepath.Join(t.TempDir(), "devices.yaml")}
	a.change(t, steadyHardware(0.5))
	a.launch(t, exec.Command(agentBinary(), "node", "--kubelet.pod-resources-socket="+unresponsiveKubelet(t),
		"--device.source=simulated", "--simulated.config="+a.config, "--metrics.max-series=5"))
	return jobOf("ailing", a)
}

// absentJob scrapes an agent that does not exist.
func absentJob(t *testing.T) object {
	t.Helper()
	return jobOf("dead", &hostAgent{url: "http://" + porttest.OneAddress(t) + "/"})
}

// jobOf scrapes an agent on the host as that of another cluster, although it
// runs on the same node as the shipped agent.
func jobOf(cluster string, a *hostAgent) object {
	job := hostJob(a, scraped)
	job["job_name"] = cluster
	static := job["static_configs"].([]object)[0]
	static["labels"] = merged(static["labels"].(object), object{"job": "dra-exporter", "cluster": cluster})
	return job
}

// faultyHardware is the hardware of the node with faults of all kinds, except
// for one GPU that is idle and one that is healthy until it reports an Xid.
func faultyHardware() *hardware {
	h := distinctHardware()
	idle, healthy := h.uuidOf("gpu.nvidia.com/gpu-0"), h.uuidOf("gpu.nvidia.com/gpu-1")
	for i, gpu := range h.Devices {
		addActivity(gpu, i)
		gpu.Faults = []fault{{Kind: "xid", After: "60s", Code: 79}, {Kind: "xid", After: "65s", Code: 31}}
		switch gpu.UUID {
		case idle:
			gpu.Quantities["utilization"] = 0
		case healthy:
			gpu.Quantities["memory_used"] = 79 << 30
			continue
		}
		addFaults(gpu)
	}
	return h
}

func grows(rate float64) object { return object{"rate": rate, "start": 10} }

// addActivity adds the readings of a busy GPU, which differ by i.
func addActivity(gpu *chip, i int) {
	for quantity, value := range map[string]any{
		"temperature":      object{"gpu": 60 + i, "memory": 70 + i},
		"energy":           grows(300 + float64(i)),
		"power_limit":      700,
		"clock":            object{"sm": 1.9e9, "memory": 2.6e9},
		"engine_active":    object{"graphics": 0.5, "sm": 0.4},
		"memory_reserved":  5e8,
		"nvlink_transmit":  grows(1e9),
		"nvlink_receive":   grows(1e9),
		"pcie_transmit":    grows(1e8),
		"pcie_receive":     grows(1e8),
		"network_transmit": grows(1e8),
		"network_receive":  grows(1e8),
	} {
		gpu.Quantities[quantity] = value
	}
}

func addFaults(gpu *chip) {
	for quantity, value := range map[string]any{
		"throttled":         object{"hw_thermal": grows(0.5), "power_cap": grows(0.2)},
		"ecc_errors":        object{"corrected": grows(0.1), "uncorrected": grows(0.05)},
		"remapped_rows":     object{"corrected": 1, "uncorrected": 1},
		"retired_pages":     object{"corrected": 1, "uncorrected": 0},
		"row_remap_pending": 1,
		"row_remap_failed":  1,
		"recovery_action":   object{"none": 0, "gpu_reset": 1},
		"pcie_replays":      grows(0.1),
		"nvlinks":           object{"active": 16, "inactive": 2},
		"nvlink_errors":     object{"crc_flit": grows(0.1), "replay": grows(0.1), "recovery_failed": grows(0.05)},
		"xgmi_errors":       object{"corrected": grows(0.1), "uncorrected": grows(0.05)},
		"fabric_state":      object{"success": 0, "failure": 1},
		"network_links":     object{"1": object{"active": 0, "down": 1}},
		"network_errors":    object{"symbol": grows(0.1)},
	} {
		gpu.Quantities[quantity] = value
	}
}
