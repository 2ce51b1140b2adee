package demo

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	procfs "github.com/dra-exporter/dra-exporter/collector/cgroup/simulated"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// cgroups are those of the processes in procfs that have started since the
// node has.
func (s *nodeFixture) cgroups(t *testing.T) map[int]string {
	t.Helper()
	entries, err := os.ReadDir(s.Procfs())
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[int]string)
	for _, entry := range entries {
		pid := 0
		if _, err := fmt.Sscan(entry.Name(), &pid); err != nil || pid <= firstPID {
			continue
		}
		text, err := os.ReadFile(filepath.Join(s.Procfs(), entry.Name(), "cgroup"))
		if err != nil {
			t.Fatal(err)
		}
		found[pid] = strings.TrimSpace(strings.TrimPrefix(string(text), "0::"))
	}
	return found
}

// listed returns the driver's list of a device's processes; nil: none.
func (s *nodeFixture) listed(t *testing.T, uuid string) []device.Process {
	t.Helper()
	s.ListProcesses(func() bool { return true })
	readers, err := s.Source().Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, reader := range readers {
		observations, err := reader.Read(t.Context(), device.Fast)
		if err != nil {
			t.Fatal(err)
		}
		if observations[0].Device.UUID == uuid {
			return observations[0].Processes
		}
	}
	t.Fatalf("there is no device %s", uuid)
	return nil
}

func (s *nodeFixture) uuid(t *testing.T, name string) string {
	t.Helper()
	found, there := s.cdi.hardware.byName(name)
	if !there {
		t.Fatalf("there is no device %s", name)
	}
	return found.UUID
}

// The processes of a lifecycle: those of the init container, then those of the
// main one, then none; their container ids are those of the pod's status.
func TestProcessesOfLifecycle(t *testing.T) {
	s := newNodeFixture(t)
	i := newInstance(row(t, "finetune"), 0, 1, time.Unix(0, 0))
	pod := i.pods[0]
	uuid := s.uuid(t, "gpu-2")
	var got []string
	for _, next := range append(s.lifecycles.startSteps(i.row), s.lifecycles.endSteps(i.row)...) {
		if next.ready != nil && !next.ready(i) {
			t.Fatal("the GPU is taken")
		}
		if err := next.run(i); err != nil {
			t.Fatal(err)
		}
		var words []string
		for pid, path := range s.cgroups(t) {
			known := slices.ContainsFunc(s.listed(t, uuid), func(p device.Process) bool { return p.PID == pid })
			words = append(words, fmt.Sprintf("%s %t", containerOf(t, pod, path), known))
		}
		if line := strings.Join(words, ", "); len(got) == 0 || got[len(got)-1] != line {
			got = append(got, line)
		}
	}
	if want := []string{"", "download true", "train true", ""}; !slices.Equal(got, want) {
		t.Errorf("processes %q, want %q", got, want)
	}
}

// containerOf returns the container of a control group's path, by the ids in a
// pod's status.
func containerOf(t *testing.T, pod *corev1.Pod, path string) string {
	t.Helper()
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		id, is := strings.CutPrefix(status.ContainerID, "containerd://")
		if is && path == procfs.InContainer(string(pod.UID), id) {
			return status.Name
		}
	}
	t.Fatalf("%s is in no container of %s", path, pod.Name)
	return ""
}

// Containers that wait have no id yet.
func TestContainersHaveIDsOnceTheyAreCreated(t *testing.T) {
	i := newInstance(row(t, "finetune"), 0, 1, time.Unix(0, 0))
	pod := i.pods[0]
	ids := func() (all []string) {
		i.identify(pod)
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			all = append(all, status.ContainerID)
		}
		return all
	}
	bind(pod, nodeName, time.Unix(0, 0))
	if got := ids(); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("before they are created they have the ids %q", got)
	}
	startInit(pod, time.Unix(0, 0))
	if got := ids(); len(got[0]) != len("containerd://")+64 || got[1] != "" {
		t.Errorf("while the first runs they have the ids %q", got)
	}
	startMain(pod, time.Unix(0, 0))
	first := ids()
	end(pod, corev1.PodSucceeded, time.Unix(0, 0))
	if last := ids(); !slices.Equal(first, last) || first[0] == first[1] {
		t.Errorf("they have the ids %q, and in the end %q", first, last)
	}
}

// Another run has other containers, and no pid is reused.
func TestEachRunHasItsProcesses(t *testing.T) {
	s := newNodeFixture(t)
	seen := make(map[int]bool)
	paths := make(map[string]bool)
	for run := range 3 {
		i := newInstance(row(t, "finetune"), run, 1, time.Unix(0, 0))
		s.setLoad(t, i, 0.5)
		for pid, path := range s.cgroups(t) {
			if seen[pid] || paths[path] {
				t.Errorf("run %d has process %d in %s, which an earlier one had", run, pid, path)
			}
			seen[pid], paths[path] = true, true
		}
		if err := s.activity.set(i, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 3 || len(s.cgroups(t)) != 0 {
		t.Errorf("there were %d processes, and %d are left", len(seen), len(s.cgroups(t)))
	}
}

// What the processes of a shared GPU do adds up to nearly what it does.
func TestSharesOfSharedGPU(t *testing.T) {
	s := newNodeFixture(t)
	if err := s.activity.begin(processesOfHost(hostProcesses())); err != nil {
		t.Fatal(err)
	}
	embedder, reranker := newInstance(row(t, "embedder"), 0, 1, time.Unix(0, 0)), newInstance(row(t, "reranker"), 0, 1, time.Unix(0, 0))
	s.setLoad(t, embedder, embedder.row.load)
	s.setLoad(t, reranker, reranker.row.load)
	uuid := s.uuid(t, "gpu-3")
	whole, cgroups := s.reading(t, uuid, device.Utilization), s.cgroups(t)
	shares := make(map[string]float64)
	for _, p := range s.listed(t, uuid) {
		name := "unattributed"
		for _, i := range []*instance{embedder, reranker} {
			if strings.Contains(cgroups[p.PID], strings.ReplaceAll(string(i.pods[0].UID), "-", "_")) {
				name = i.row.name
			}
		}
		shares[name] = p.Utilization / whole
	}
	for name, want := range map[string]float64{"embedder": 0.6, "reranker": 0.25, "unattributed": 0.15} {
		if got := shares[name]; math.Abs(got-want) > 0.03 { // the curves go on between the two readings
			t.Errorf("%s does %g of what the GPU does, want about %g: %v", name, got, want, shares)
		}
	}
	if stray := s.listed(t, s.uuid(t, "gpu-4")); len(stray) != 1 || stray[0].Memory < 3e9 || stray[0].Utilization != 0 {
		t.Errorf("the free GPU has the processes %+v", stray)
	}
}

// Every whole GPU has a list, which may be empty; other devices have none.
func TestProcessLists(t *testing.T) {
	s := newNodeFixture(t)
	for _, gpu := range s.cdi.hardware.gpus {
		listed := s.listed(t, gpu.UUID)
		if whole := !s.cdi.hardware.partitioned(gpu.Minor); whole != (listed != nil) || len(listed) > 0 {
			t.Errorf("gpu-%d lists %v", gpu.Minor, listed)
		}
	}
}

// Several containers and pods share what their workload does.
func TestProcessesOfWorkload(t *testing.T) {
	loads := func(name string) map[string]string {
		found := make(map[string]string)
		for n, p := range newInstance(row(t, name), 0, 1, time.Unix(0, 0)).processes(false, 0.8) {
			for _, of := range p.uses {
				found[fmt.Sprint(n, " ", p.command)] += fmt.Sprintf("%s %g ", of.device, of.load)
			}
		}
		return found
	}
	for name, want := range map[string]map[string]string{
		"llama-pretrain": {"0 rank-0": "gpu-0 0.8 ", "1 rank-1": "gpu-1 0.8 "},
		"assistant":      {"0 server": "gpu-6-mig-3g40gb-9-4 0.4 ", "1 server": "gpu-6-mig-3g40gb-9-4 0.4 "},
		"captioner":      {"0 server": "gpu-7 0.8 "},
		"thumbnails":     {"0 worker": "gpu-6-mig-1g10gb-19-0 0.8 "},
		"dcgm":           {},
		"kube-proxy":     {},
	} {
		if got := loads(name); !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestTeams(t *testing.T) {
	teams := make(map[string]bool)
	for _, w := range scenario() {
		team := newInstance(w, 0, 1, time.Unix(0, 0)).pods[0].Labels["team"]
		if ours := w.node == "" && w.namespace != "kube-system" && w.namespace != "monitoring"; ours && team == "" {
			t.Errorf("%s/%s belongs to no team", w.namespace, w.name)
		}
		teams[team] = true
	}
	if len(teams) < 4 {
		t.Errorf("only %d teams", len(teams))
	}
}
