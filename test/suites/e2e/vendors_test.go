package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// sysfsNode is a node on which an agent reads a fixture of /sys, with claims
// of the devices in it.
type sysfsNode struct {
	sysfs string
	agent *hostAgent
}

// TestOtherVendors: the devices of gpu.amd.com, gpu.intel.com and dra.net have no
// UUID and are matched by their PCI addresses, although gpu.nvidia.com has a
// device with the address of the first.
func TestOtherVendors(t *testing.T) {
	n := &sysfsNode{sysfs: sysfstest.Plant(t, "amdgpu", "intel", "rdma").Root}
	for _, driver := range []string{"gpu.amd.com", "gpu.intel.com", "dra.net"} {
		startOther(t, driver)
	}
	n.agent = &hostAgent{name: "sysfs"}
	n.agent.launch(t, exec.Command(agentBinary(), "node", "--kubelet.pod-resources-socket="+shared.KubeletSocket(),
		"--device.source=amdgpu", "--device.source=intel", "--device.source=rdma", "--path.sysfs="+n.sysfs))
	deploy(t, "vendors")
	running(t, "vendors", "amd")
	running(t, "vendors", "intel")
	running(t, "vendors", "network")
	t.Run("amd", n.testAMD)
	t.Run("intel", n.testIntel)
	t.Run("network", n.testNetwork)
}

// startOther runs a driver that publishes the devices of its file, until the
// test ends.
func startOther(t *testing.T, driver string) {
	t.Helper()
	devices, err := filepath.Abs("testdata/" + driver + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	startShapesFor(t, driver, devices)
}

// startShapesFor runs a driver of drivers/shapes that publishes the devices of a
// file, until the test ends.
func startShapesFor(t *testing.T, driver, devices string) {
	t.Helper()
	process, err := shared.StartShapesDriver(t.Context(), driver, devices)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.Retire(context.WithoutCancel(t.Context()), driver, process); err != nil {
			t.Error(err)
		}
	})
}

// testAMD: the claim has the card's values, also after they have changed.
func (n *sysfsNode) testAMD(t *testing.T) {
	covers(t)
	const card = "bus/pci/devices/0000:c1:00.0/"
	gpu := scrape.Labels{"namespace": "vendors", "resourceclaim": "amd", "uuid": shared.NodeName() + "/pci-0000:c1:00.0"}
	for _, percent := range []string{"87", "12"} {
		n.write(t, card+"gpu_busy_percent", percent)
		p := n.agent.eventually(t, "the claim of gpu.amd.com", func(p *scrape.Page) error {
			return errors.Join(
				claimHas(p, "dra_claim_utilization_ratio", with(gpu, "attribution", "exclusive"), n.read(t, card+"gpu_busy_percent")/100),
				claimHas(p, "dra_claim_memory_used_bytes", with(gpu, "attribution", "exclusive"), n.read(t, card+"mem_info_vram_used")),
				claimHas(p, "dra_claim_held", gpu, 1),
				claimHas(p, "dra_claim_device_info", with(gpu, "driver", "gpu.amd.com", "device", "gpu-1-128", "deviceclass", "gpu.amd.com"), 1),
				checkInvariants(p))
		})
		checkInjected(t, p, "vendors")
	}
}

// testIntel: the claim has the energy that the card has used from its start. The
// counter is in microjoules.
func (n *sysfsNode) testIntel(t *testing.T) {
	const counter = "bus/pci/devices/0000:18:00.0/hwmon/hwmon3/energy1_input"
	gpu := scrape.Labels{"namespace": "vendors", "resourceclaim": "intel", "uuid": shared.NodeName() + "/pci-0000:18:00.0"}
	n.agent.eventually(t, "the claim of gpu.intel.com", func(p *scrape.Page) error {
		return errors.Join(
			claimHas(p, "dra_claim_held", gpu, 1),
			claimHas(p, "dra_claim_device_info", with(gpu, "driver", "gpu.intel.com", "device", "0000-18-00-0-0xe211", "deviceclass", "gpu.intel.com"), 1),
			claimHas(p, "dra_claim_energy_joules_total", with(gpu, "attribution", "exclusive"), 0))
	})
	n.write(t, counter, strconv.FormatFloat(n.read(t, counter)+2_500_000, 'f', 0, 64))
	n.agent.eventually(t, "the claim's energy", func(p *scrape.Page) error {
		return errors.Join(claimHas(p, "dra_claim_energy_joules_total", with(gpu, "attribution", "exclusive"), 2.5), checkInvariants(p))
	})
}

// testNetwork: the claim has what the adapter sends and receives from its
// start. The counters are in words of four bytes.
func (n *sysfsNode) testNetwork(t *testing.T) {
	covers(t)
	const counters = "class/infiniband/mlx5_0/ports/1/counters/"
	nic := scrape.Labels{"namespace": "vendors", "resourceclaim": "network", "uuid": shared.NodeName() + "/pci-0000:81:00.0"}
	n.agent.eventually(t, "the claim of dra.net", func(p *scrape.Page) error {
		return errors.Join(
			claimHas(p, "dra_claim_held", nic, 1),
			claimHas(p, "dra_claim_device_info", with(nic, "driver", "dra.net", "device", "pci-0000-81-00-0", "deviceclass", "dranet"), 1),
			claimHas(p, "dra_claim_network_transmit_bytes_total", with(nic, "attribution", "exclusive"), 0),
			claimHas(p, "dra_claim_network_receive_bytes_total", with(nic, "attribution", "exclusive"), 0))
	})
	for name, count := range map[string]float64{"port_xmit_data": 1000, "port_rcv_data": 250} {
		n.write(t, counters+name, strconv.FormatFloat(n.read(t, counters+name)+count, 'f', 0, 64))
	}
	n.agent.eventually(t, "the claim's traffic", func(p *scrape.Page) error {
		return errors.Join(
			claimHas(p, "dra_claim_network_transmit_bytes_total", with(nic, "attribution", "exclusive"), 4000),
			claimHas(p, "dra_claim_network_receive_bytes_total", with(nic, "attribution", "exclusive"), 1000))
	})
}

// read returns the number in a file of the fixture.
func (n *sysfsNode) read(t *testing.T, path string) float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.sysfs, path))
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// write replaces a file of the fixture atomically.
func (n *sysfsNode) write(t *testing.T, path, text string) {
	t.Helper()
	target := filepath.Join(n.sysfs, path)
	if err := os.WriteFile(target+".draft", []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(target+".draft", target); err != nil {
		t.Fatal(err)
	}
}
