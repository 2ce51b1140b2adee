package node_test

import (
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/node"
)

// Facts of the hardware and of the API server come in, and rows come out: a claim holds
// a GPU, and the power that the GPU draws is the claim's.
func ExampleStep() {
	at := clock.Instant{Wall: time.Unix(1_800_000_000, 0), Elapsed: time.Hour}
	claim, pod := dra.ClaimRef{Namespace: "ml", Name: "train"}, dra.PodRef{Namespace: "ml", Name: "train-0"}
	name := dra.DeviceID{Driver: "gpu.nvidia.com", Pool: "node-a", Name: "gpu-0"}
	gpu := device.Device{UUID: "GPU-0", Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3"}
	facts := node.Facts{
		Samples: []device.Sample{{Device: gpu, Source: "nvml", At: at, Readings: []device.Reading{{Quantity: device.Power, Value: 412.5}}}},
		Cluster: node.APIFacts{
			Enabled: true, Fresh: true, SlicesFresh: true,
			Claims: []dra.Claim{{
				Ref: claim, UID: "1", Allocated: true, Node: "node-a",
				Requests:    []dra.Request{{Name: "gpu", DeviceClass: "gpu.nvidia.com"}},
				Results:     []dra.Result{{Request: "gpu", Device: name}},
				ReservedFor: []dra.Consumer{{Resource: "pods", Name: pod.Name, UID: "2"}},
			}},
			Pods:      []dra.Pod{{Ref: pod, UID: "2", Node: "node-a", Claims: []dra.PodClaim{{Name: "gpu", Claim: claim.Name}}}},
			Published: []dra.PublishedDevice{{ID: name, Node: "node-a", UUID: gpu.UUID, Placement: dra.PlacementUnknown}},
		},
	}
	_, snapshot, _ := node.Step(node.NewState(node.Config{Node: "node-a", Interval: time.Second}), facts, at)
	for _, row := range snapshot.Rows() {
		switch row.Family.Name {
		case "dra_device_power_watts", "dra_claim_held", "dra_claim_power_watts":
			fmt.Println(row.Family.Name, row.Labels.Get("uuid"), row.Labels.Get("resourceclaim"), row.Value)
		}
	}
	// Output:
	// dra_device_power_watts GPU-0  412.5
	// dra_claim_held GPU-0 train 1
	// dra_claim_power_watts GPU-0 train 412.5
}
