package stubs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrInUse is why the driver refuses what needs a GPU for itself: a process has
// it open.
var ErrInUse = errors.New("in use by another client")

// Holder is a process that has device files of the node open.
type Holder struct {
	PID   int
	Files []string // their names in dev/, such as nvidia0, in order
}

// Holders returns the processes that have device files of the node open, by
// pid. It looks through /proc, as fuser does, so it sees those of every
// container.
func (n *Node) Holders() []Holder {
	n.t.Helper()
	files, err := n.deviceFiles()
	if err != nil {
		n.t.Fatalf("list the device files: %v", err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		n.t.Fatalf("list the processes: %v", err)
	}
	var holders []Holder
	for _, process := range processes {
		pid, err := strconv.Atoi(filepath.Base(process))
		if err != nil {
			continue
		}
		if open := heldFiles(process, files); len(open) > 0 {
			holders = append(holders, Holder{PID: pid, Files: open})
		}
	}
	slices.SortFunc(holders, func(a, b Holder) int { return a.PID - b.PID })
	return holders
}

// deviceFiles returns the files of dev/ by name.
func (n *Node) deviceFiles() (map[string]os.FileInfo, error) {
	entries, err := os.ReadDir(filepath.Join(n.Dir, "dev"))
	if err != nil {
		return nil, err
	}
	files := make(map[string]os.FileInfo)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, err
		}
		files[entry.Name()] = info
	}
	return files, nil
}

// heldFiles returns the names of the files that a process has open. A process
// that ends meanwhile has none.
func heldFiles(process string, files map[string]os.FileInfo) []string {
	descriptors, _ := filepath.Glob(process + "/fd/*")
	var names []string
	for _, descriptor := range descriptors {
		info, err := os.Stat(descriptor)
		if err != nil {
			continue
		}
		for name, file := range files {
			if os.SameFile(info, file) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// refuse returns ErrInUse with the holders of any of the files; without names
// of any file at all.
func (n *Node) refuse(names ...string) error {
	n.t.Helper()
	var reasons []string
	for _, holder := range n.Holders() {
		for _, name := range holder.Files {
			if len(names) == 0 || slices.Contains(names, name) {
				reasons = append(reasons, fmt.Sprintf("%s by %d", name, holder.PID))
			}
		}
	}
	if reasons == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrInUse, strings.Join(reasons, ", "))
}

// DeviceFile returns the path of a GPU's device file.
func (n *Node) DeviceFile(gpu int) string {
	return filepath.Join(n.Dir, "dev", n.deviceName(gpu))
}

func (n *Node) deviceName(gpu int) string {
	n.lock.Lock()
	defer n.lock.Unlock()
	if minor, ok := n.conf[fmt.Sprintf("gpu.%d.minor", gpu)]; ok {
		return "nvidia" + minor
	}
	return "nvidia" + strconv.Itoa(gpu)
}

// ReplaceDriver unloads the driver and loads another version, as an upgrade in
// place does. It returns ErrInUse while any process has a device file open. The
// counters of all GPUs begin again. Processes that have opened the library
// before have one that belongs to the version before.
func (n *Node) ReplaceDriver(version string) error {
	n.t.Helper()
	if err := n.refuse(); err != nil {
		return fmt.Errorf("unload the driver: %w", err)
	}
	n.lock.Lock()
	for gpu := range n.gpus() {
		n.clearCounters(gpu)
	}
	n.lock.Unlock()
	n.ReloadDriver()
	n.UpgradeDriver(version)
	return nil
}

// ResetGPU resets a GPU as `nvidia-smi --gpu-reset` does. It returns ErrInUse
// while any process has the GPU's device file open. The GPU's counters begin
// again, and it is neither lost nor in need of a recovery.
func (n *Node) ResetGPU(gpu int) error {
	n.t.Helper()
	if err := n.refuse(n.deviceName(gpu)); err != nil {
		return fmt.Errorf("reset GPU %d: %w", gpu, err)
	}
	n.lock.Lock()
	defer n.lock.Unlock()
	n.clearCounters(gpu)
	for _, key := range []string{"lost", "recovery_action"} {
		delete(n.conf, fmt.Sprintf("gpu.%d.%s", gpu, key))
	}
	n.write()
	return nil
}

// ChangeMIGMode switches a GPU to MIG mode and back by a reset, as `nvidia-smi
// --multi-instance-gpu` does. It returns ErrInUse while any process has the
// GPU's device file open. There must be no instances.
func (n *Node) ChangeMIGMode(gpu int, on bool) error {
	n.t.Helper()
	if err := n.refuse(n.deviceName(gpu)); err != nil {
		return fmt.Errorf("change the MIG mode of GPU %d: %w", gpu, err)
	}
	n.lock.Lock()
	n.clearCounters(gpu)
	n.lock.Unlock()
	n.SetMIGMode(gpu, on)
	return nil
}

// Unbind takes a GPU away from the driver, as writing to its `unbind` does: the
// driver announces it, and then waits until no process has the GPU's device
// file open. The kernel waits for ever; this returns ErrInUse when ctx ends.
func (n *Node) Unbind(ctx context.Context, gpu int) error {
	n.t.Helper()
	n.announce(gpu, 0)
	for {
		err := n.refuse(n.deviceName(gpu))
		if err == nil {
			n.Set(gpu, "absent", "1")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("unbind GPU %d: %w", gpu, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Bind gives a GPU back to the driver. Its counters begin again.
func (n *Node) Bind(gpu int) {
	n.t.Helper()
	n.lock.Lock()
	n.clearCounters(gpu)
	n.lock.Unlock()
	n.Unset(gpu, "absent")
	n.announce(gpu, 1)
}

// announce makes the driver report that a GPU is bound or about to be unbound.
func (n *Node) announce(gpu, bound int) {
	n.t.Helper()
	n.appendLine("bindings", fmt.Sprintf("%d %d", gpu, bound))
}

func (n *Node) gpus() int {
	count, err := strconv.Atoi(n.conf["node.gpus"])
	if err != nil {
		n.t.Fatalf("read the number of GPUs: %v", err)
	}
	return count
}

// volatileCounters are the beginnings of the keys of what a GPU counts since it
// was initialized.
var volatileCounters = []string{
	"energy", "throttle.", "pcie.tx_bytes", "pcie.rx_bytes", "pcie.replays", "nvlink.", "ecc.volatile.",
}

// clearCounters lets what a GPU counts begin again at 0, at the same rates. The
// caller holds the lock, and writes.
func (n *Node) clearCounters(gpu int) {
	n.t.Helper()
	prefix := fmt.Sprintf("gpu.%d.", gpu)
	if _, ok := n.conf[prefix+"energy"]; !ok {
		n.conf[prefix+"energy"] = "0"
	}
	for name, value := range n.conf {
		if key, ok := strings.CutPrefix(name, prefix); ok && counts(key) {
			n.conf[name] = n.fromNow(value)
		}
	}
}

// counts reports whether a key is of a counter that does not outlive a reset.
func counts(key string) bool {
	if strings.HasPrefix(key, "nvlink.") {
		return strings.HasSuffix(key, "_bytes") || strings.Contains(key, ".errors.")
	}
	return slices.ContainsFunc(volatileCounters, func(beginning string) bool { return strings.HasPrefix(key, beginning) })
}

// fromNow returns a counter with the rate of another that is 0 now.
func (n *Node) fromNow(value string) string {
	n.t.Helper()
	_, rate, ok := strings.Cut(value, "+")
	if value == "none" || !ok {
		return map[bool]string{true: "none", false: "0"}[value == "none"]
	}
	perSecond, err := strconv.ParseFloat(strings.TrimSuffix(rate, "/s"), 64)
	if err != nil {
		n.t.Fatalf("read the counter %q: %v", value, err)
	}
	epoch, err := strconv.ParseFloat(n.conf["node.epoch"], 64)
	if err != nil {
		n.t.Fatalf("read when counters begin: %v", err)
	}
	elapsed := float64(time.Now().UnixMilli())/1000 - epoch
	return fmt.Sprintf("%.3f+%s", -perSecond*elapsed, rate)
}
