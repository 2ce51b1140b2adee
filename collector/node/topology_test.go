package node

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// bruteBest is the nearest that any choice of as many devices of each model as needed, and
// of as many adapters of each, is to each other; without adapters, of the devices alone.
func bruteBest(devices, adapters []modelPlace, need, needAdapters map[string]int) dra.Alignment {
	best := dra.Crossing
	chooseModels(devices, need, func(picked []dra.Location) {
		if len(needAdapters) == 0 {
			best = min(best, dra.AlignmentOf(picked))
			return
		}
		chooseModels(adapters, needAdapters, func(near []dra.Location) {
			best = min(best, dra.AlignmentWithNearest(picked, near))
		})
	})
	return best
}

// modelPlace is a device of a model at a place.
type modelPlace struct {
	model string
	at    dra.Location
}

// chooseModels calls a function with each choice of as many devices of each model.
func chooseModels(of []modelPlace, need map[string]int, each func([]dra.Location)) {
	total := 0
	for _, count := range need {
		total += count
	}
	choose(len(of), total, func(chosen []int) {
		counts, picked := map[string]int{}, []dra.Location(nil)
		for _, i := range chosen {
			counts[of[i].model]++
			picked = append(picked, of[i].at)
		}
		if maps.Equal(counts, need) {
			each(picked)
		}
	})
}

func choose(of, count int, each func([]int)) {
	for bits := range 1 << of {
		var chosen []int
		for i := range of {
			if bits>>i&1 == 1 {
				chosen = append(chosen, i)
			}
		}
		if len(chosen) == count {
			each(chosen)
		}
	}
}

// On random nodes where everything is known, the ratings and what would be best are
// those of all choices of devices and adapters of the same models.
func TestBestAlignmentIsThatOfAllChoices(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]int{}
	for range 3000 {
		draw := func(most, models int, link bool) []modelPlace {
			var all []modelPlace
			for range 1 + random.IntN(most) {
				root := random.IntN(4)
				one := modelPlace{fmt.Sprint("model-", random.IntN(models)), dra.Location{Root: fmt.Sprintf("pci0000:%d0", root), NUMA: fmt.Sprint(root / 2)}}
				if link && random.IntN(2) == 0 {
					one.at.Link = fmt.Sprint("domain-", random.IntN(2))
				}
				all = append(all, one)
			}
			return all
		}
		// needs is what a claim has that holds some of the devices.
		needs := func(of []modelPlace) map[string]int {
			need := map[string]int{}
			for _, i := range random.Perm(len(of))[:1+random.IntN(len(of))] {
				need[of[i].model]++
			}
			return need
		}
		kinds := func(driver string, need map[string]int) map[deviceKind]int {
			counts := map[deviceKind]int{}
			for model, count := range need {
				counts[deviceKind{driver: driver, model: model}] = count
			}
			return counts
		}
		devices, adapters := draw(6, 3, random.IntN(2) == 0), draw(4, 2, false)
		all := &places{}
		for _, one := range devices {
			all.add(&dra.PublishedDevice{ID: dra.DeviceID{Driver: "gpu.nvidia.com"}, Model: one.model}, one.at, false)
		}
		for _, one := range adapters {
			all.add(&dra.PublishedDevice{ID: dra.DeviceID{Driver: "dra.net"}, Model: one.model}, one.at, true)
		}
		need, needAdapters := needs(devices), needs(adapters)
		if len(need) > 1 || slices.Max(slices.Collect(maps.Values(need))) > 1 {
			got, want := all.best(kinds("gpu.nvidia.com", need)), bruteBest(devices, nil, need, nil)
			if got != want {
				t.Fatalf("%v of %v: %s, want %s", need, devices, got, want)
			}
			seen["devices "+got.String()]++
		}
		got := all.bestNetwork(kinds("gpu.nvidia.com", need), kinds("dra.net", needAdapters))
		if want := bruteBest(devices, adapters, need, needAdapters); got != want {
			t.Fatalf("%v of %v with %v of %v: %s, want %s", need, devices, needAdapters, adapters, got, want)
		}
		seen["network "+got.String()]++
	}
	for _, one := range []string{"devices link", "devices pcie_root", "devices numa_node", "devices crossing", "network pcie_root", "network numa_node", "network crossing"} {
		if seen[one] < 20 {
			t.Errorf("%s was %d times best of all", one, seen[one])
		}
	}
}

// Many adapters at many places are not searched forever.
func TestBestAlignmentOfManyAdapters(t *testing.T) {
	all, rare := &places{}, deviceKind{driver: "gpu.nvidia.com", model: "rare"}
	for i := range 60 {
		at := dra.Location{Root: fmt.Sprint("root-", i), NUMA: fmt.Sprint(i / 30)}
		all.add(&dra.PublishedDevice{ID: dra.DeviceID{Driver: "gpu.nvidia.com"}, Model: "often"}, at, false)
		all.add(&dra.PublishedDevice{ID: dra.DeviceID{Driver: "dra.net"}}, at, true)
	}
	all.add(&dra.PublishedDevice{ID: dra.DeviceID{Driver: rare.driver}, Model: rare.model}, dra.Location{Root: "root-60", NUMA: "1"}, false)
	need := map[deviceKind]int{rare: 1, {driver: rare.driver, model: "often"}: 30}
	if got := all.bestNetwork(need, map[deviceKind]int{{driver: "dra.net"}: 30}); got != dra.AlignedNUMA {
		t.Errorf("%s, want %s", got, dra.AlignedNUMA)
	}
}

// topologyOf returns the rows of the topology of claims on a node.
func topologyOf(facts Facts) []string {
	state := NewState(Config{Node: sceneNode, Interval: 1e9, Grace: 1e9})
	_, snapshot, _ := Step(state, facts, origin())
	var found []string
	for _, row := range snapshot.Rows() {
		switch row.Family.Name {
		case metric.DeviceTopologyInfo, metric.ClaimTopologyInfo, metric.PodTopologyInfo:
			text := strings.TrimSuffix(strings.TrimPrefix(row.Family.Name, "dra_"), "_topology_info")
			for name, value := range row.Labels.Each {
				if name != "node" && name != "namespace" && value != "" {
					text += " " + name + "=" + value
				}
			}
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return found
}

func TestTopologyRows(t *testing.T) {
	id := func(driver, name string) dra.DeviceID {
		return dra.DeviceID{Driver: driver, Pool: sceneNode, Name: name}
	}
	gpu := func(i int, domain string) device.Sample {
		d := unidentified()
		d.UUID, d.Vendor, d.PCIBusID, d.LinkDomain = fmt.Sprintf("GPU-%d", i), "nvidia", fmt.Sprintf("0000:%d0:00.0", i), domain
		return device.Sample{Device: d}
	}
	facts := Facts{
		Samples: []device.Sample{gpu(1, ""), gpu(2, ""), gpu(8, ""), gpu(9, "pair")},
		// The first GPU's place is known by its slice, that of the others by sysfs.
		Locations: device.NewLocations(map[string]device.Location{
			"0000:20:00.0": {PCIeRoot: "pci0000:20", NUMANode: "0"}, "0000:80:00.0": {PCIeRoot: "pci0000:80", NUMANode: "1"},
			"0000:90:00.0": {PCIeRoot: "pci0000:90", NUMANode: "1"}, "0000:81:00.0": {PCIeRoot: "pci0000:80", NUMANode: "1"},
		}),
	}
	facts.Cluster = APIFacts{Enabled: true, Fresh: true, SlicesFresh: true, Published: []dra.PublishedDevice{
		{ID: id("gpu.nvidia.com", "gpu-1"), UUID: "GPU-1", PCIeRoot: "pci0000:10", NUMANode: "0", Placement: dra.PlacementUnknown},
		{ID: id("gpu.nvidia.com", "gpu-2"), UUID: "GPU-2", Placement: dra.PlacementUnknown},
		{ID: id("gpu.nvidia.com", "gpu-8"), UUID: "GPU-8", Placement: dra.PlacementUnknown},
		{ID: id("gpu.nvidia.com", "gpu-9"), UUID: "GPU-9", Placement: dra.PlacementUnknown},
		{ID: id("dra.net", "nic-8"), PCIAddress: "0000:81:00.0", Placement: dra.PlacementUnknown},
		{ID: id("compute-domain.nvidia.com", "channel-0"), Placement: dra.PlacementUnknown},
	}}
	hold := func(claim, pod string, devices ...dra.DeviceID) {
		made := dra.Claim{Ref: dra.ClaimRef{Namespace: "a", Name: claim}, UID: claim, Allocated: true, ReservedFor: []dra.Consumer{{Resource: "pods", Name: pod, UID: pod}}}
		for _, d := range devices {
			made.Results = append(made.Results, dra.Result{Request: "r", Device: d, AdminAccess: claim == "monitor"})
		}
		facts.Cluster.Claims = append(facts.Cluster.Claims, made)
		ref := dra.PodRef{Namespace: "a", Name: pod}
		for i := range facts.Cluster.Pods {
			if facts.Cluster.Pods[i].Ref == ref {
				facts.Cluster.Pods[i].Claims = append(facts.Cluster.Pods[i].Claims, dra.PodClaim{Name: claim, Claim: claim})
				return
			}
		}
		facts.Cluster.Pods = append(facts.Cluster.Pods, dra.Pod{Ref: ref, UID: pod, Node: sceneNode, Claims: []dra.PodClaim{{Name: claim, Claim: claim}}})
	}
	gpus := "gpu.nvidia.com"
	hold("two", "far", id(gpus, "gpu-1"), id(gpus, "gpu-8"))
	hold("gpu", "near", id(gpus, "gpu-8"))
	hold("nic", "near", id("dra.net", "nic-8"), id("compute-domain.nvidia.com", "channel-0"))
	hold("elsewhere", "apart", id(gpus, "gpu-2"), id("dra.net", "nic-8"))
	hold("unknown", "lost", id(gpus, "gpu-2"), id(gpus, "gone"))
	hold("monitor", "watcher", id(gpus, "gpu-1"), id(gpus, "gpu-8"))
	want := []string{
		"claim alignment=crossing best=numa_node between=devices resourceclaim=two",
		"claim alignment=crossing best=pcie_root between=network resourceclaim=elsewhere",
		"claim alignment=unknown best=numa_node between=devices resourceclaim=unknown",
		"device link_domain=pair numa_node=1 pcie_root=pci0000:90 uuid=GPU-9",
		"device numa_node=0 pcie_root=pci0000:10 uuid=GPU-1",
		"device numa_node=0 pcie_root=pci0000:20 uuid=GPU-2",
		"device numa_node=1 pcie_root=pci0000:80 uuid=GPU-8",
		"device numa_node=1 pcie_root=pci0000:80 uuid=node-a/dra.net/node-a/nic-8",
		"pod alignment=crossing best=numa_node between=devices pod=far",
		"pod alignment=crossing best=pcie_root between=network pod=apart",
		"pod alignment=pcie_root best=pcie_root between=network pod=near",
		"pod alignment=unknown best=numa_node between=devices pod=lost",
	}
	if got := topologyOf(facts); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	facts.Locations = nil
	if got := topologyOf(facts); slices.Contains(got, want[5]) || !slices.Contains(got, want[4]) {
		t.Errorf("without sysfs:\n%s", strings.Join(got, "\n"))
	}
}

// GPUs whose NVLinks are up, of which no source says whom they reach, as with DCGM
// alone: they may well be connected.
func TestLinksToUnknownDevices(t *testing.T) {
	facts := Facts{Locations: device.NewLocations(map[string]device.Location{
		"0000:10:00.0": {PCIeRoot: "pci0000:10", NUMANode: "0"}, "0000:90:00.0": {PCIeRoot: "pci0000:90", NUMANode: "1"},
	})}
	facts.Cluster = APIFacts{Enabled: true, Fresh: true, SlicesFresh: true}
	made := dra.Claim{Ref: dra.ClaimRef{Namespace: "a", Name: "two"}, UID: "two", Allocated: true, ReservedFor: []dra.Consumer{{Resource: "pods", Name: "p", UID: "p"}}}
	for i, address := range []string{"0000:10:00.0", "0000:90:00.0"} {
		d, id := unidentified(), dra.DeviceID{Driver: "gpu.nvidia.com", Pool: sceneNode, Name: fmt.Sprint("gpu-", i)}
		d.UUID, d.Vendor, d.PCIBusID = fmt.Sprint("GPU-", i), "nvidia", address
		facts.Samples = append(facts.Samples, device.Sample{Device: d, At: origin(), Readings: []device.Reading{
			{Quantity: device.NVLinks, Details: [2]string{"active"}, Value: 18}, {Quantity: device.NVLinks, Details: [2]string{"inactive"}},
		}})
		facts.Cluster.Published = append(facts.Cluster.Published, dra.PublishedDevice{ID: id, UUID: d.UUID, Placement: dra.PlacementUnknown})
		made.Results = append(made.Results, dra.Result{Request: "r", Device: id})
	}
	facts.Cluster.Claims = []dra.Claim{made}
	facts.Cluster.Pods = []dra.Pod{{Ref: dra.PodRef{Namespace: "a", Name: "p"}, UID: "p", Node: sceneNode, Claims: []dra.PodClaim{{Name: "two", Claim: "two"}}}}
	state, now := NewState(Config{Node: sceneNode, Interval: 1e9, Grace: 1e9}), origin()
	step := func() string {
		var snapshot Snapshot
		for range 2 { // the links are read after the claims are joined
			now = now.Add(1e9)
			state, snapshot, _ = Step(state, facts, now)
		}
		text := ""
		for _, row := range snapshot.Rows() {
			if row.Family.Name == metric.ClaimTopologyInfo || row.Family.Name == metric.DeviceTopologyInfo {
				text += " " + row.Labels.Get("link_domain") + row.Labels.Get("alignment")
			}
		}
		return text
	}
	if got := step(); got != " unknown unknown unknown" {
		t.Errorf("with links:%s", got)
	}
	for i := range facts.Samples {
		facts.Samples[i].At, facts.Samples[i].Readings = now.Add(1e9), []device.Reading{{Quantity: device.NVLinks, Details: [2]string{"active"}}}
	}
	if got := step(); got != "   crossing" {
		t.Errorf("without active links:%s", got)
	}
}
