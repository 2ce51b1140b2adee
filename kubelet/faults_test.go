package kubelet

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// faultyNode has pods and claims that every fault affects.
func faultyNode() []simulated.Pod {
	gpu := func(request, name string) simulated.Device {
		return simulated.Device{Request: request, Driver: "gpu.nvidia.com", Pool: "node-a", Name: name,
			CDI: []string{"k8s.gpu.nvidia.com/claim=uid-" + name}}
	}
	nic := simulated.Device{Request: "nic", Driver: "dra.net", Pool: "node-a", Name: "nic-0"}
	share := simulated.Device{Request: "part", Driver: "gpu.example.com", Pool: "node-a", Name: "gpu-0", ShareID: "share-1",
		CDI: []string{"k8s.gpu.example.com/gpu=common", "k8s.gpu.example.com/gpu=gpu-0-share-1"}}
	return []simulated.Pod{
		{Namespace: "ml", Name: "pair",
			Claims: []simulated.Claim{{Name: "gpus", Devices: []simulated.Device{gpu("left", "gpu-0"), gpu("right", "gpu-1"), nic}}},
			Containers: []simulated.Container{
				{Name: "init", Init: true, Uses: []simulated.Use{{Claim: "gpus"}}},
				{Name: "left", Uses: []simulated.Use{{Claim: "gpus", Request: "left"}}},
				{Name: "both", Uses: []simulated.Use{{Claim: "gpus", Request: "left"}, {Claim: "gpus", Request: "right"}}},
				{Name: "all", Uses: []simulated.Use{{Claim: "gpus"}}},
				{Name: "none"},
			}},
		{Namespace: "dev", Name: "notebook",
			Claims:     []simulated.Claim{{Name: "share", Devices: []simulated.Device{share}}},
			Containers: []simulated.Container{{Name: "main", Uses: []simulated.Use{{Claim: "share"}}}}},
		{Namespace: "ml", Name: "starting",
			Claims: []simulated.Claim{
				{Name: "ready", Devices: []simulated.Device{gpu("gpu", "gpu-2")}},
				{Name: "named", Stage: simulated.Named, Devices: []simulated.Device{gpu("gpu", "gpu-3")}},
				{Name: "unknown", Stage: simulated.Unknown, Devices: []simulated.Device{gpu("gpu", "gpu-4")}}},
			Containers: []simulated.Container{
				{Name: "soon", Uses: []simulated.Use{{Claim: "ready"}, {Claim: "named"}}},
				{Name: "late", Uses: []simulated.Use{{Claim: "ready"}, {Claim: "unknown"}}}}},
		{Namespace: "batch", Name: "plugin", Containers: []simulated.Container{{Name: "main",
			Plugins: []simulated.Plugin{{Resource: "nvidia.com/gpu", DeviceIDs: []string{"GPU-7"}}}}}},
	}
}

// TestFaultsInResponses lists the same node with each fault. Decode corrects those
// that are "corrected"; the golden files of the others show what only the pods and
// claims themselves can correct.
func TestFaultsInResponses(t *testing.T) {
	for name, test := range map[string]struct {
		faults    []simulated.Fault
		corrected bool
	}{
		"none":                   {nil, true},
		"cumulative-cdi":         {[]simulated.Fault{simulated.CumulativeCDI}, true},
		"changing-order":         {[]simulated.Fault{simulated.ChangingOrder}, true},
		"duplicates":             {[]simulated.Fault{simulated.DuplicateDevices}, true},
		"cumulative-duplicates":  {[]simulated.Fault{simulated.DuplicateDevices, simulated.CumulativeCDI, simulated.ChangingOrder}, true},
		"claim-before-devices":   {[]simulated.Fault{simulated.ClaimBeforeDevices}, true},
		"nameless":               {[]simulated.Fault{simulated.Nameless}, false},
		"every-device":           {[]simulated.Fault{simulated.EveryDevice}, false},
		"empty-while-unknown":    {[]simulated.Fault{simulated.EmptyWhileUnknown}, false},
		"init-containers-hidden": {[]simulated.Fault{simulated.InitContainersHidden}, false},
		"two-shares":             {[]simulated.Fault{simulated.TwoShares, simulated.CumulativeCDI}, false},
		"always":                 {simulated.Always(), false},
	} {
		t.Run(name, func(t *testing.T) {
			_, socket := start(t, simulated.Options{Pods: faultyNode(), Faults: test.faults})
			client := run(t, Options{Socket: socket})
			first := render(client.fresh(t).Resources)
			file := name
			if test.corrected {
				file = "none"
			}
			golden(t, filepath.Join("faults", file+".txt"), first)
			for range 2 {
				if next := render(client.fresh(t).Resources); next != first {
					t.Errorf("then\n%s", next)
				}
			}
		})
	}
}

// TestEmptyAfterRestart has an empty response after a restart. It is a success: only
// the pods of the API server show that it is wrong.
func TestEmptyAfterRestart(t *testing.T) {
	kubelet, socket := start(t, simulated.Options{Pods: onePod("train"), EmptyFor: testTimeout,
		Faults: []simulated.Fault{simulated.EmptyAfterRestart}})
	client := run(t, Options{Socket: socket})
	if got := render(client.fresh(t).Resources); got != "pod ml/train\n" {
		t.Errorf("before: %s", got)
	}
	must(t, kubelet.Restart())
	if got := render(client.fresh(t).Resources); strings.Contains(got, "pod") {
		t.Errorf("after the restart: %s", got)
	}
	must(t, kubelet.RemoveFaults(simulated.EmptyAfterRestart))
	if got := render(client.fresh(t).Resources); got != "pod ml/train\n" {
		t.Errorf("a while later: %s", got)
	}
}
