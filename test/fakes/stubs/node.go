package stubs

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// seenAfter is longer than the stubs go without looking at their files: what
// a method has changed is seen by every call that begins after it returned.
const seenAfter = 8 * time.Millisecond

// Node is a machine with scripted GPUs: a folder that the stub libraries look
// into. Any number of processes may look at once. The keys that can be set,
// with their units, are in README.md beside this file. Its methods are safe
// for concurrent use; they end the test where they fail.
type Node struct {
	Dir string

	t    testing.TB
	lock sync.Mutex
	conf map[string]string
}

// NewNode makes a node with so many H100s, in a folder that goes with the
// test.
func NewNode(t testing.TB, gpus int) *Node {
	t.Helper()
	n := &Node{Dir: t.TempDir(), t: t, conf: map[string]string{
		"node.gpus":  strconv.Itoa(gpus),
		"node.epoch": strconv.FormatFloat(float64(time.Now().UnixMilli())/1000, 'f', 3, 64),
	}}
	if err := os.Chmod(n.Dir, 0o755); err != nil {
		t.Fatalf("open the node's folder to all: %v", err)
	}
	if err := n.makeDeviceFiles(gpus); err != nil {
		t.Fatalf("make the device files: %v", err)
	}
	n.write()
	return n
}

// makeDeviceFiles makes the files that a process which uses a GPU holds open. A
// library makes those that are missing.
func (n *Node) makeDeviceFiles(gpus int) error {
	folder := filepath.Join(n.Dir, "dev")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		return err
	}
	names := []string{"nvidiactl"}
	for gpu := range gpus {
		names = append(names, "nvidia"+strconv.Itoa(gpu))
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Env returns the environment variables by which the stub libraries find the
// node.
func (n *Node) Env() []string { return []string{"DRA_STUB_HARDWARE=" + n.Dir} }

// Set scripts a value of a GPU: a number, a counter "start+rate/s", a text,
// or "none" where the GPU is to have no such thing.
func (n *Node) Set(gpu int, key, value string) {
	n.t.Helper()
	n.set(fmt.Sprintf("gpu.%d.%s", gpu, key), value)
}

// Script scripts many values of a GPU at once, as Set does for each.
func (n *Node) Script(gpu int, values map[string]string) {
	n.t.Helper()
	n.lock.Lock()
	defer n.lock.Unlock()
	for key, value := range values {
		n.conf[fmt.Sprintf("gpu.%d.%s", gpu, key)] = value
	}
	n.write()
}

// Unset gives a value of a GPU its default back.
func (n *Node) Unset(gpu int, key string) {
	n.t.Helper()
	n.unset(fmt.Sprintf("gpu.%d.%s", gpu, key))
}

// SetNode scripts a value of the node as a whole, such as the version of its
// driver or a fault of a function that is of no GPU.
func (n *Node) SetNode(key, value string) {
	n.t.Helper()
	n.set("node."+key, value)
}

// UnsetNode gives a value of the node its default back.
func (n *Node) UnsetNode(key string) {
	n.t.Helper()
	n.unset("node." + key)
}

func (n *Node) set(key, value string) {
	n.t.Helper()
	n.lock.Lock()
	defer n.lock.Unlock()
	n.conf[key] = value
	n.write()
}

func (n *Node) unset(key string) {
	n.t.Helper()
	n.lock.Lock()
	defer n.lock.Unlock()
	delete(n.conf, key)
	n.write()
}

// write replaces hardware.conf as a whole, so that no stub ever reads half of
// it.
func (n *Node) write() {
	n.t.Helper()
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(n.conf)) {
		fmt.Fprintf(&text, "%s = %s\n", key, n.conf[key])
	}
	draft := filepath.Join(n.Dir, "hardware.draft")
	if err := os.WriteFile(draft, []byte(text.String()), 0o644); err != nil {
		n.t.Fatalf("write the scripted hardware: %v", err)
	}
	if err := os.Rename(draft, filepath.Join(n.Dir, "hardware.conf")); err != nil {
		n.t.Fatalf("put the scripted hardware in its place: %v", err)
	}
	time.Sleep(seenAfter)
}

// ReloadDriver loads the driver again: event sets from before report nothing but
// an error from then on.
func (n *Node) ReloadDriver() {
	n.t.Helper()
	n.lock.Lock()
	loads, _ := strconv.Atoi(n.conf["node.driver_loads"])
	n.lock.Unlock()
	n.SetNode("driver_loads", strconv.Itoa(loads+1))
}

// UpgradeDriver loads another version of the driver. Processes that have opened
// the library before have one that belongs to the version before.
func (n *Node) UpgradeDriver(version string) {
	n.t.Helper()
	n.SetNode("driver_upgraded", "1")
	n.SetNode("driver_version", version)
}

// XID makes the driver report an error of a GPU as a whole. It reports
// nothing else: a GPU whose XID says that it has gone is lost only once that
// is set.
func (n *Node) XID(gpu, code int) {
	n.t.Helper()
	n.XIDOn(gpu, -1, -1, code)
}

// XIDOn makes the driver report an error of a MIG instance; -1 is none.
func (n *Node) XIDOn(gpu, gi, ci, code int) {
	n.t.Helper()
	n.appendLine("xids", fmt.Sprintf("%d %d %d %d", gpu, code, gi, ci))
}

// appendLine adds what happens now to a file of the node.
func (n *Node) appendLine(name, text string) {
	n.t.Helper()
	file, err := os.OpenFile(filepath.Join(n.Dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		n.t.Fatalf("open the %s: %v", name, err)
	}
	defer file.Close()
	now := float64(time.Now().UnixMicro()) / 1e6
	if _, err := fmt.Fprintf(file, "%.6f %s\n", now, text); err != nil {
		n.t.Fatalf("write the %s: %v", name, err)
	}
}

// Live counts the open objects of libnvidia-ml in a process.
type Live struct {
	Sessions        int // initializations without their shutdown
	EventSets       int
	GPMSamples      int
	SystemEventSets int
}

// Live returns the sum of the open objects of the stub libnvidia-ml in all
// running processes.
func (n *Node) Live() Live {
	n.t.Helper()
	var sum Live
	files, err := filepath.Glob(filepath.Join(n.Dir, "live.*"))
	if err != nil {
		n.t.Fatalf("list what is open: %v", err)
	}
	for _, file := range files {
		if _, err := os.Stat("/proc/" + strings.TrimPrefix(filepath.Ext(file), ".")); err != nil {
			continue
		}
		text, err := os.ReadFile(file)
		for err == nil && len(text) == 0 { // it is being written
			text, err = os.ReadFile(file)
		}
		if err != nil {
			n.t.Fatalf("read what is open: %v", err)
		}
		var one Live
		if _, err := fmt.Sscan(string(text), &one.Sessions, &one.EventSets, &one.GPMSamples, &one.SystemEventSets); err != nil {
			n.t.Fatalf("read what is open from %q: %v", text, err)
		}
		sum.Sessions += one.Sessions
		sum.EventSets += one.EventSets
		sum.GPMSamples += one.GPMSamples
		sum.SystemEventSets += one.SystemEventSets
	}
	return sum
}

// Settings are what programs have set on the GPUs, in order, as lines of
// hardware.conf; none where all have only looked.
func (n *Node) Settings() []string {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.Dir, "settings"))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatalf("read what has been set: %v", err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[:strings.Count(string(text), "\n")]
}

// CreateMIG makes a GPU instance of a profile (1g.10gb) at a placement, -1
// for the first that is free, with one compute instance that has it all, or
// the part that the profile names (1c.3g.40gb). It switches the GPU to MIG
// mode.
func (n *Node) CreateMIG(gpu int, profile string, placement int) (gi, ci int) {
	n.t.Helper()
	out := n.mig("create", strconv.Itoa(gpu), profile, strconv.Itoa(placement))
	if _, err := fmt.Sscan(out, &gi, &ci); err != nil {
		n.t.Fatalf("read the instances of a MIG device from %q: %v", out, err)
	}
	return gi, ci
}

// AddCompute makes one more compute instance, of so many slices, in a GPU
// instance that has room for it.
func (n *Node) AddCompute(gpu, gi, slices int) (ci int) {
	n.t.Helper()
	out := n.mig("compute", strconv.Itoa(gpu), strconv.Itoa(gi), strconv.Itoa(slices))
	if _, err := fmt.Sscan(out, &ci); err != nil {
		n.t.Fatalf("read a compute instance from %q: %v", out, err)
	}
	return ci
}

// DestroyMIG removes a GPU instance and what is in it.
func (n *Node) DestroyMIG(gpu, gi int) {
	n.t.Helper()
	n.mig("destroy", strconv.Itoa(gpu), strconv.Itoa(gi))
}

// SetMIGMode switches a GPU to MIG mode and back. There must be no instances.
func (n *Node) SetMIGMode(gpu int, on bool) {
	n.t.Helper()
	mode := "0"
	if on {
		mode = "1"
	}
	n.mig("mode", strconv.Itoa(gpu), mode)
}

func (n *Node) mig(arguments ...string) string {
	n.t.Helper()
	tool := exec.Command(Build(n.t).migTool, arguments...)
	tool.Env = append(os.Environ(), n.Env()...)
	var complaint bytes.Buffer
	tool.Stderr = &complaint
	out, err := tool.Output()
	if err != nil {
		n.t.Fatalf("change MIG instances: %v: %v: %s", arguments, err, complaint.String())
	}
	time.Sleep(seenAfter)
	return string(out)
}
