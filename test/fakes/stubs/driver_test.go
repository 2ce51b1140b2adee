//go:build cgo

package stubs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// held writes down which device files this process holds.
func held(n *Node) string {
	n.t.Helper()
	for _, holder := range n.Holders() {
		if holder.PID == os.Getpid() {
			return strings.Join(holder.Files, " ")
		}
	}
	return ""
}

// The files are open from the first initialization to the last shutdown, of
// the GPUs that the flags say.
func TestDeviceFilesAreHeld(t *testing.T) {
	n := NewNode(t, 2)
	n.Set(1, "minor", "7")
	library := load(t, n)
	expectHeld := func(when, want string) {
		t.Helper()
		if got := held(n); got != want {
			t.Errorf("%s: %q is held, not %q", when, got, want)
		}
	}
	expectHeld("before", "")
	must(t, library.Init())
	must(t, library.Init())
	expectHeld("initialized twice", "nvidia0 nvidia7 nvidiactl")
	must(t, library.Shutdown())
	expectHeld("shut down once", "nvidia0 nvidia7 nvidiactl")
	must(t, library.Shutdown())
	expectHeld("shut down", "")

	const nothing = nvml.INIT_FLAG_NO_GPUS | nvml.INIT_FLAG_NO_ATTACH
	must(t, library.InitWithFlags(nothing))
	expectHeld("initialized without GPUs", "nvidiactl")
	_, ret := library.DeviceGetCount()
	must(t, ret)
	expectHeld("counted", "nvidiactl")
	gpu(t, library, 1)
	expectHeld("found a GPU", "nvidia7 nvidiactl")
	must(t, library.Init())
	expectHeld("initialized again", "nvidia7 nvidiactl")
	must(t, library.InitWithFlags(nvml.INIT_FLAG_FORCE_INIT))
	expectHeld("forced", "nvidia0 nvidia7 nvidiactl")
	for range 3 {
		must(t, library.Shutdown())
	}
	expectHeld("in the end", "")
}

// A program that a process starts holds nothing.
func TestDeviceFilesAreNotInherited(t *testing.T) {
	n := NewNode(t, 1)
	open(t, n)
	pid, _ := sleeping(t)
	for _, holder := range n.Holders() {
		if holder.PID == pid {
			t.Errorf("the child holds %v", holder.Files)
		}
	}
}

// What the driver refuses while a process uses a GPU, it does afterwards.
func TestDriverRefusesWhileInUse(t *testing.T) {
	for name, operation := range map[string]func(*Node) error{
		"replace": func(n *Node) error { return n.ReplaceDriver("590.1") },
		"reset":   func(n *Node) error { return n.ResetGPU(0) },
		"MIG":     func(n *Node) error { return n.ChangeMIGMode(0, true) },
		"unbind": func(n *Node) error {
			ctx, end := context.WithTimeout(n.t.Context(), 50*time.Millisecond)
			defer end()
			return n.Unbind(ctx, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := NewNode(t, 2)
			n.Set(0, "pcie.tx_bytes", "5000+1000/s")
			library := load(t, n)
			must(t, library.Init())
			err := operation(n)
			must(t, library.Shutdown())
			if holder := fmt.Sprintf("nvidia0 by %d", os.Getpid()); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), holder) {
				t.Errorf("while GPU 0 is held: %v", err)
			}
			if err := operation(n); err != nil {
				t.Errorf("once nothing is held: %v", err)
			}
		})
	}
}

// A GPU that another process holds alone is no obstacle to a reset of another.
func TestResetIsOfOneGPU(t *testing.T) {
	n := NewNode(t, 2)
	library := load(t, n)
	must(t, library.InitWithFlags(nvml.INIT_FLAG_NO_ATTACH))
	gpu(t, library, 0)
	if err := n.ResetGPU(1); err != nil {
		t.Errorf("GPU 1, which nobody holds: %v", err)
	}
	if err := n.ResetGPU(0); !errors.Is(err, ErrInUse) {
		t.Errorf("GPU 0, which is held: %v", err)
	}
	must(t, library.Shutdown())
}

// Counters begin again at 0 with the rates that they had; what outlives a reset
// stays.
func TestResetClearsCounters(t *testing.T) {
	n := NewNode(t, 1)
	n.Script(0, map[string]string{
		"energy": "900000+200/s", "pcie.tx_bytes": "7000", "pcie.rx_bytes": "none", "lost": "1", "recovery_action": "1",
		"ecc.corrected": "12", "ecc.volatile.corrected": "12", "nvlink.0.errors.replay": "3", "nvlink.0.state": "0", "power.draw": "321",
	})
	began := time.Now()
	if err := n.ResetGPU(0); err != nil {
		t.Fatal(err)
	}
	device := gpu(t, open(t, n), 0)
	energy, ret := device.GetTotalEnergyConsumption()
	must(t, ret)
	if most := uint64(200*time.Since(began).Milliseconds()) + 1000; energy > most {
		t.Errorf("the energy is %d mJ, more than %d", energy, most)
	}
	before := energy
	waitUntil(t, func() bool {
		energy, ret = device.GetTotalEnergyConsumption()
		return ret == nvml.SUCCESS && energy > before
	})
	for key, want := range map[string]string{
		"pcie.tx_bytes": "0", "pcie.rx_bytes": "none", "ecc.corrected": "12", "ecc.volatile.corrected": "0",
		"nvlink.0.errors.replay": "0", "nvlink.0.state": "0", "power.draw": "321", "lost": "", "recovery_action": "",
	} {
		if got := n.conf["gpu.0."+key]; got != want {
			t.Errorf("%s is %q, not %q", key, got, want)
		}
	}
}

// A library that is initialized again after the driver was replaced belongs to
// the driver before; another process has the new one.
func TestReplacedDriverNeedsAnotherProcess(t *testing.T) {
	n := NewNode(t, 1)
	library := load(t, n)
	must(t, library.Init())
	must(t, library.Shutdown())
	if err := n.ReplaceDriver("590.1"); err != nil {
		t.Fatal(err)
	}
	expect(t, "the library of the driver before", library.Init(), nvml.ERROR_LIB_RM_VERSION_MISMATCH)
	if version := driverVersionElsewhere(t, n); version != "590.1" {
		t.Errorf("another process has driver %s", version)
	}
}

// driverVersionElsewhere returns what another process reads.
func driverVersionElsewhere(t *testing.T, n *Node) string {
	t.Helper()
	c := newRecordingClient(t)
	c.node = n
	out, _ := c.run(c.libraries.NVML, "version")
	return strings.TrimSpace(out)
}

// A GPU whose mode is changed by a reset is not changed while another process
// holds it. The caller's own handle does not count.
func TestMIGModeWhileInUse(t *testing.T) {
	n := NewNode(t, 1)
	n.SetNode("model", "A100")
	library := open(t, n)
	device := gpu(t, library, 0)
	holder := exec.Command("tail", "-f", n.DeviceFile(0))
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = holder.Process.Kill()
		_ = holder.Wait() // returns that it was killed
	}
	t.Cleanup(end)
	waitUntil(t, func() bool { return len(n.Holders()) == 2 })
	activation, ret := device.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	must(t, ret)
	expect(t, "the change of a GPU in use", activation, nvml.ERROR_IN_USE)
	activation, ret = device.SetMigMode(nvml.DEVICE_MIG_DISABLE)
	must(t, ret)
	expect(t, "no change of a GPU in use", activation, nvml.SUCCESS)
	end()
	activation, ret = device.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	must(t, ret)
	expect(t, "the change of a free GPU", activation, nvml.SUCCESS)
}

// A GPU whose link to the driver is gone is not counted.
func TestDriverLink(t *testing.T) {
	n := NewNode(t, 2)
	link := n.Dir + "/link"
	n.Set(1, "driver_link", link)
	for _, c := range []struct {
		change func() error
		want   int
	}{
		{func() error { return nil }, 1},
		{func() error { return os.Symlink("nowhere", link) }, 2},
		{func() error { return os.Remove(link) }, 1},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		library := load(t, n)
		must(t, library.Init())
		count, ret := library.DeviceGetCount()
		must(t, ret)
		if count != c.want {
			t.Errorf("%d GPUs are counted, not %d", count, c.want)
		}
		must(t, library.Shutdown())
	}
}
