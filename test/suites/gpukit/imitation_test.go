package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/load"
)

// imitation imitates what a driver reports of the loads that run. The stub does
// not know what its processes do.
type imitation struct {
	stub *stubs.Node // correct values
	// faulty is what the library reports to the agent, if it has faults, and
	// distort is the difference.
	faulty  *stubs.Node
	distort func(*driverReport)
	out     string // the folder of the run's report
	run     int    // pid of `gpukit run`, the parent of all loads

	copied     float64 // bytes so far
	copyRate   float64
	lastChange time.Time
	last       string
	faulted    bool
}

// driverReport is what a driver reports of the loads on GPU 0.
type driverReport struct {
	loads     []activeLoad // in the order in which they were started
	values    map[string]string
	processes []stubs.Process // one for each load
	received  [2]float64      // PCIe bytes: now, and per second
}

// What the imitated GPU uses without a load, and what each load needs besides
// what it holds.
const (
	idleMemory    = 2560 * mebibyte
	contextMemory = 500 * mebibyte
	power         = 400.0 // watts
	fp32PerBusy   = 0.77  // of what the SMs can do, by the stub's rate of threads
	fieldsOfStat  = 4
)

// activeLoad is a running load as its command line says.
type activeLoad struct {
	pid    int
	kind   load.Kind
	share  float64 // of the time in which it is busy
	memory int64
}

// follow changes the imitated hardware with the loads until the test is done.
func (i *imitation) follow(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(20 * time.Millisecond):
			i.apply(i.loads())
			i.fault()
		}
	}
}

// loads are the loads that run now.
func (i *imitation) loads() []activeLoad {
	var found []activeLoad
	children, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range children {
		stat, err := os.ReadFile(filepath.Join(folder, "stat"))
		if err != nil {
			continue
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < fieldsOfStat || string(fields[1]) != strconv.Itoa(i.run) || string(fields[0]) == "Z" {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		arguments := strings.Split(string(line), "\x00")
		if len(arguments) < 2 || arguments[1] != "load" {
			continue
		}
		l := activeLoad{}
		l.pid, _ = strconv.Atoi(filepath.Base(folder))
		for _, argument := range arguments {
			name, value, _ := strings.Cut(argument, "=")
			switch name {
			case "--kind":
				l.kind = load.Kind(value)
			case "--duty":
				duty, _ := strconv.Atoi(value)
				l.share = i.busy(l.pid, float64(duty)/100)
			case "--memory":
				l.memory, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		if l.share > 0 {
			found = append(found, l)
		}
	}
	slices.SortFunc(found, func(a, b activeLoad) int { return a.pid - b.pid })
	return found
}

// busy is the share of the time in which a load was busy between its last two
// events: on a machine without enough processors it is less than what was asked
// for.
func (i *imitation) busy(pid int, asked float64) float64 {
	files, _ := filepath.Glob(filepath.Join(i.out, "loads", "*.jsonl"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		var last [2]event
		for line := range strings.Lines(string(text)) {
			var e event
			if json.Unmarshal([]byte(line), &e) == nil && (e.Event == "ready" && e.PID == pid || last[1].Event != "") {
				last = [2]event{last[1], e}
			}
		}
		if elapsed := last[1].Elapsed - last[0].Elapsed; last[1].Event == "progress" && elapsed > 0 {
			return (last[1].Busy - last[0].Busy) / elapsed
		}
	}
	return asked
}

// apply scripts the GPU for loads. A counter goes on where it was.
func (i *imitation) apply(loads []activeLoad) {
	text := fmt.Sprint(loads)
	if text == i.last {
		return
	}
	i.last = text
	now := time.Now()
	i.copied += i.copyRate * now.Sub(i.lastChange).Seconds()
	i.copyRate, i.lastChange = 0, now
	for _, l := range loads {
		if l.kind == load.Copy {
			i.copyRate = copyRateOf(l.share)
		}
	}
	i.set(i.stub, i.report(loads), now)
	if i.faulty != nil {
		distorted := i.report(loads)
		i.distort(&distorted)
		i.set(i.faulty, distorted, now)
	}
}

// report is what a driver reports of loads.
func (i *imitation) report(loads []activeLoad) driverReport {
	r := driverReport{loads: loads, received: [2]float64{i.copied, i.copyRate}}
	ratios := map[string]float64{"profiling.sm": 0, "profiling.tensor": 0, "profiling.dram": 0, "profiling.fp32": 0, "utilization.memory": 0}
	sum, memory := 0, int64(idleMemory)
	for _, l := range loads {
		share, percent := l.share, int(math.Round(100*l.share))
		r.processes = append(r.processes, stubs.Process{PID: l.pid, Memory: l.memory + contextMemory, Utilization: percent})
		sum, memory = sum+percent, memory+l.memory+contextMemory
		switch l.kind {
		case load.Compute:
			ratios["profiling.sm"] += share
			ratios["profiling.fp32"] += fp32PerBusy * share
		case load.Tensor:
			ratios["profiling.sm"] += share
			ratios["profiling.tensor"] += share / 2
		case load.Memory:
			ratios["profiling.sm"] += share
			ratios["profiling.dram"] += share / 2
		}
	}
	r.values = map[string]string{"utilization.gpu": strconv.Itoa(min(sum, 100)), "memory.used": strconv.FormatInt(memory, 10)}
	for key, value := range ratios {
		r.values[key] = strconv.FormatFloat(value, 'f', 3, 64)
	}
	return r
}

func (i *imitation) set(stub *stubs.Node, r driverReport, now time.Time) {
	r.values["pcie.rx_bytes"] = i.counter(r.received[0], r.received[1], now)
	stub.Script(0, r.values)
	stub.SetProcesses(0, r.processes...)
}

// fault reports an Xid once the load of the phase xid has had its fault. What is
// reported is that another GPU had it.
func (i *imitation) fault() {
	text, _ := os.ReadFile(filepath.Join(i.out, "loads", "xid-0.jsonl"))
	if !i.faulted && bytes.Contains(text, []byte(`"event":"faulted"`)) {
		i.faulted = true
		i.stub.XID(0, 31)
		if i.faulty != nil {
			i.faulty.XID(1, 31)
		}
	}
}

// copyRateOf is what the stub copies in a share of the time, with the headers of
// packets: bytes per second.
func copyRateOf(share float64) float64 { return 1.05 * copyRate * share }

// counter scripts a counter that is at a value now and grows.
func (i *imitation) counter(value, rate float64, now time.Time) string {
	return fmt.Sprintf("%.0f+%.0f/s", value-rate*(float64(now.UnixMilli())/1000-i.epoch()), rate)
}

// epoch is when the counters of the stub begin: Unix seconds.
func (i *imitation) epoch() float64 {
	text, _ := os.ReadFile(filepath.Join(i.stub.Dir, "hardware.conf"))
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "node.epoch = "); found {
			epoch, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return epoch
		}
	}
	return 0
}

// imitate starts a run, and an imitation of its hardware.
func imitate(t *testing.T, r *kitRun, i *imitation) {
	t.Helper()
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	i.out, i.run, i.last, i.lastChange = r.out, r.command.Process.Pid, "nothing was applied", time.Now()
	done := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() { i.follow(done) })
	t.Cleanup(func() {
		_ = r.command.Process.Kill()
		close(done)
		following.Wait()
	})
}

const imitatedUUID = "GPU-4f03597e-9081-9ccf-8e2d-9eb6aaf1a724"

// newImitatedGPUs is a node with two GPUs, whose energy is the integral of their
// power. Loads run on the first.
func newImitatedGPUs(t *testing.T) *stubs.Node {
	t.Helper()
	stub := stubs.NewNode(t, 2)
	for gpu, uuid := range []string{imitatedUUID, gpuUUID(1)} {
		stub.Script(gpu, map[string]string{
			"uuid": uuid, "clocks.sm": "1980", "power.draw": fmt.Sprint(power), "energy": fmt.Sprintf("1000+%g/s", power),
		})
	}
	return stub
}

// nodeEpoch is when the counters of a node begin: Unix seconds.
func nodeEpoch(t *testing.T, stub *stubs.Node) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(stub.Dir, "hardware.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "node.epoch = "); found {
			return strings.TrimSpace(value)
		}
	}
	t.Fatal("the node has no epoch")
	return ""
}
