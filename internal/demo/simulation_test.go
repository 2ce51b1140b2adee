package demo_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/cdi"
	"github.com/dra-exporter/dra-exporter/collector/cgroup"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/internal/demo"
	"github.com/dra-exporter/dra-exporter/kubelet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent is the reading side: the clients of a real agent.
type agent struct {
	sampler *device.Sampler
	kubelet *kubelet.Client
	cdi     *cdi.Reader
	cgroup  *cgroup.Reader
	cluster *apiserver.NodeWatch
}

// observe runs real clients of a node until the test ends.
func observe(t *testing.T, s *demo.Simulation) *agent {
	t.Helper()
	now := clock.System()
	cluster, err := apiserver.New(apiserver.Options{Config: s.Config(), Node: s.NodeName(), Clock: now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{
		sampler: device.NewSampler(device.Options{Sources: []device.Source{s.Source()}, Interval: 20 * time.Millisecond, Clock: now}),
		kubelet: kubelet.New(kubelet.Options{Socket: s.KubeletSocket(), Interval: 50 * time.Millisecond, Clock: now}),
		cdi:     cdi.New(cdi.Options{Dirs: []string{s.CDIDir()}, Interval: 50 * time.Millisecond, Clock: now}),
		cluster: cluster,
	}
	a.cgroup = cgroup.New(cgroup.Options{Procfs: s.Procfs(), PIDs: a.pids, Clock: now})
	s.ListProcesses(func() bool { return true })
	run(t, a.sampler.Run, a.kubelet.Run, a.cdi.Run, a.cgroup.Run, cluster.Run)
	return a
}

// pids are the processes of the newest samples.
func (a *agent) pids() (seen []cgroup.Seen) {
	for _, s := range a.sampler.Latest() {
		for _, p := range s.Processes {
			seen = append(seen, cgroup.Seen{PID: p.PID, At: s.ProcessesAt})
		}
	}
	return seen
}

// run runs functions until the test ends.
func run(t *testing.T, functions ...func(context.Context)) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, f := range functions {
		running.Go(func() { f(ctx) })
	}
	t.Cleanup(func() { stop(); running.Wait() })
}

// playing starts a node on which the scenario is played at a speed.
func playing(t *testing.T, speed float64) *demo.Simulation {
	t.Helper()
	s, err := demo.Start(context.Background(), demo.Options{Dir: t.TempDir(), Seed: 1, Speed: speed})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	run(t, func(ctx context.Context) {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// eventually waits until nothing is missing.
func eventually(t *testing.T, missing func() string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		what := missing()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("missing after a minute: %s", what)
		}
	}
}

// eventuallyAll waits until lines has every wanted line.
func eventuallyAll(t *testing.T, lines func() []string, want ...string) {
	t.Helper()
	eventually(t, func() string {
		got := lines()
		for _, line := range want {
			if !slices.Contains(got, line) {
				return line + "\nin:\n" + strings.Join(got, "\n")
			}
		}
		return ""
	})
}

// allocations returns the devices of the claims that pods of the node use, each
// with its request and class, and its special attributes.
func (a *agent) allocations() []string {
	var lines []string
	for _, c := range a.cluster.Latest().Claims {
		for _, r := range c.Results {
			line := c.Ref.Namespace + " " + r.Request + " " + c.ClassOf(r.Request) + " " + r.Device.Name
			switch {
			case r.AdminAccess:
				line += " admin"
			case r.ShareID != "":
				line += " share"
			case c.Sharing != "":
				line += " " + c.Sharing
			case c.ExtendedResource:
				line += " extended"
			}
			lines = append(lines, line)
		}
	}
	return lines
}

// listed returns what the kubelet lists for containers.
func (a *agent) listed() []string {
	listing, _ := a.kubelet.Latest()
	var lines []string
	for _, l := range listing.Resources.Assignments {
		lines = append(lines, l.Pod.Namespace+" "+l.Container+" "+l.Device.Name)
	}
	for _, p := range listing.Resources.Plugins {
		lines = append(lines, p.Pod.Namespace+" "+p.Container+" "+p.Resource+" "+strings.Join(p.DeviceIDs, " "))
	}
	return lines
}

func (a *agent) owners() []string {
	var lines []string
	for _, p := range a.cluster.Latest().Pods {
		lines = append(lines, p.Ref.Namespace+" "+p.OwnerKind+" "+p.Node)
	}
	return lines
}

func TestClientsReadStaticObjects(t *testing.T) {
	a := observe(t, playing(t, 1))
	eventuallyAll(t, a.allocations,
		"ml-training rank-0 gpu.nvidia.com gpu-0",
		"ml-training rank-1 gpu.nvidia.com gpu-1",
		"search gpu gpu.nvidia.com gpu-3 share",
		"ranking gpu gpu.nvidia.com gpu-3 share",
		"chat gpu mig.nvidia.com gpu-6-mig-3g40gb-9-4 mps",
		"research gpu mig.nvidia.com gpu-5-mig-3g40gb-9-0",
		"vision gpu/partition mig.nvidia.com gpu-5-mig-2g20gb-14-4",
		"web container-0-request-0 mig-1g.nvidia.com gpu-6-mig-1g10gb-19-0 extended",
		"monitoring admin gpu.nvidia.com gpu-4 admin",
		"storage nic dra.net pci-0000-1c-00-0",
		"translation tpus tpu.google.com accel3",
		"captions gpu gpu.intel.com 0000-3a-00-0-0x0bda",
	)
	eventuallyAll(t, a.owners,
		"ml-training Job gpu-node-1", "search ReplicaSet gpu-node-1", "research StatefulSet gpu-node-1", "monitoring DaemonSet gpu-node-1")
	eventuallyAll(t, a.listed,
		"ml-training rank-0 gpu-1", // the kubelet lists all of the claim for each container
		"ml-training rank-1 gpu-0",
		"monitoring dcgm gpu-7",
		"web worker gpu-6-mig-1g10gb-19-0",
		"storage server pci-0000-1c-00-0",
		"translation server accel0",
		"legacy webui nvidia.com/gpu GPU-0937c5ea-6bf4-4d12-8c7f-e5a20d14b986::0",
		"legacy server nvidia.com/gpu GPU-0937c5ea-6bf4-4d12-8c7f-e5a20d14b986::1",
	)
	eventually(t, func() string {
		if twoPods := consumers(a, "assistant-gpu"); twoPods != 2 {
			return "two pods with one claim"
		}
		return ""
	})
}

// consumers is for how many pods a claim is reserved.
func consumers(a *agent, claim string) int {
	for _, c := range a.cluster.Latest().Claims {
		if c.Ref.Name == claim {
			return len(c.ReservedFor)
		}
	}
	return 0
}

func TestPublishedHardware(t *testing.T) {
	a := observe(t, playing(t, 1))
	eventually(t, func() string {
		if n := len(a.cluster.Latest().Published); n != 6+3+12+1+4+1 {
			return "published devices"
		}
		if len(a.sampler.Latest()) != 8+3+4+1 {
			return "samples"
		}
		return ""
	})
	uuids := make(map[string]device.Device)
	for _, s := range a.sampler.Latest() {
		uuids[s.Device.UUID] = s.Device
	}
	cut := make(map[string]bool)
	for _, p := range a.cluster.Latest().Published {
		parent, of := uuids[p.ParentUUID]
		switch {
		case p.ID.Driver == "dra.net":
			if p.PCIAddress != "0000:1c:00.0" || p.UUID != "" {
				t.Errorf("the adapter is published as %+v", p)
			}
		case p.ID.Driver == "tpu.google.com" || p.ID.Driver == "gpu.intel.com":
			if p.IsPartition() || p.ID.Driver == "gpu.intel.com" && p.PCIAddress != "0000:3a:00.0" {
				t.Errorf("%s is published as %+v", p.ID, p)
			}
		case p.UUID != "" && uuids[p.UUID].UUID == "":
			t.Errorf("%s has the UUID of no hardware", p.ID)
		case p.IsPartition() && (!of || p.Profile == "" || p.Placement < 0):
			t.Errorf("%s is nowhere: %+v", p.ID, p)
		case p.UUID == "":
			cut[parent.UUID] = true
		case !p.IsPartition() && (p.PCIAddress != uuids[p.UUID].PCIBusID || p.Version != "580.95.5" || p.Capacity["memory"] != 80<<30):
			t.Errorf("%s is published otherwise than it is: %+v", p.ID, p)
		}
		if shared := p.ID.Name == "gpu-3"; shared != p.MultipleAllocations {
			t.Errorf("%s: shared by several claims: %t", p.ID, p.MultipleAllocations)
		}
	}
	if len(cut) != 1 {
		t.Errorf("%d GPUs publish partitions without UUID, not one", len(cut))
	}
}

func TestClaimsComeAndGo(t *testing.T) {
	a := observe(t, playing(t, 15))
	scratch, jobs := make(map[string]bool), make(map[string]bool)
	gone := 0
	eventually(t, func() string {
		there := false
		for _, c := range a.cluster.Latest().Claims {
			switch {
			case c.Ref.Name == "scratch" && c.UID != "":
				scratch[c.UID] = true
			case c.Ref.Namespace == "ci":
				jobs[c.Ref.Name], there = true, true
			}
		}
		if len(jobs) > 0 && !there {
			gone++
		}
		switch {
		case len(scratch) < 2:
			return "a claim that is made again under its name"
		case len(jobs) < 2:
			return "a second job"
		case gone == 0:
			return "a time without jobs"
		}
		return ""
	})
	eventuallyAll(t, a.listed, "ml-training train gpu-2")
	eventuallyAll(t, a.listed, "ml-training evaluate gpu-2")
}

func TestCDIFilesFollowClaims(t *testing.T) {
	a := observe(t, playing(t, 15))
	names := func() []string {
		var lines []string
		for _, d := range a.cdi.Latest() {
			_, name, _ := strings.Cut(d.Name, "=")
			lines = append(lines, name[len("00000000-0000-4000-8000-000000000000-"):]+" "+strings.Join(d.Nodes, " "))
		}
		return lines
	}
	eventuallyAll(t, names, "gpu-0 /dev/nvidia0", "gpu-2 /dev/nvidia2",
		"gpu-5-mig-3g40gb-9-0 /dev/nvidia5 /dev/nvidia-caps/nvidia-cap696 /dev/nvidia-caps/nvidia-cap697")
	eventually(t, func() string {
		// The monitor's claim always has all GPUs.
		if n := strings.Count(strings.Join(names(), "\n"), "gpu-2 "); n != 1 {
			return "a time without a job on gpu-2"
		}
		return ""
	})
}

func TestDevicesAreBusyWhileHeld(t *testing.T) {
	a := observe(t, playing(t, 15))
	utilization := func(pciBusID, profile string, placement int) float64 {
		for _, s := range a.sampler.Latest() {
			if s.Device.PCIBusID == pciBusID && s.Device.Profile == profile && s.Device.Placement == placement {
				for _, r := range s.Readings {
					if r.Quantity == device.Utilization {
						return r.Value
					}
				}
			}
		}
		return -1
	}
	job := func() float64 { return utilization("0000:52:00.0", "", device.Unknown) }
	for _, busy := range []bool{true, false, true, false} {
		eventually(t, func() string {
			if now := job(); now < 0 || busy != (now > 0.3) || !busy && now != 0 {
				return "gpu-2 busy, or idle"
			}
			return ""
		})
	}
	if now := utilization("0000:1b:00.0", "", device.Unknown); now < 0.5 {
		t.Errorf("the GPU of a training job is busy for %g of the time", now)
	}
	for name, now := range map[string]float64{
		"gpu-4, which is not held":          utilization("0000:9d:00.0", "", device.Unknown),
		"a partition that is not held":      utilization("0000:d1:00.0", "2g.20gb", 2),
		"the partition of an idle notebook": utilization("0000:c3:00.0", "3g.40gb", 0),
	} {
		if now != 0 {
			t.Errorf("%s is busy for %g of the time", name, now)
		}
	}
}
