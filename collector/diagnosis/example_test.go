package diagnosis_test

import (
	"context"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// A claim asks for two devices of a class, and the driver publishes one.
func ExampleDiagnoser() {
	node := "node-a"
	known := inventory.New()
	known.ApplyNode(node, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
	known.ApplyClass("gpu", &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
		{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}},
	}}})
	known.ApplySlice("node-a-gpus", &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "gpu-0"}},
	}})
	known.ApplyClaim("team-a", "gpus", &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2,
		}}},
	}}})

	diagnoser := diagnosis.New(diagnosis.Options{Inventory: known, Clock: clock.System(), Log: slog.New(slog.DiscardHandler), Budget: 1})
	pod := dra.PodRef{Namespace: "team-a", Name: "train-0"}
	question := dra.Question{Pod: pod, PodUID: "uid-1", Refs: []dra.PendingRef{{PodClaim: "gpus", Claim: "gpus"}}}
	for _, answer := range diagnoser.Explain(context.Background(), question) {
		fmt.Println(answer.Pod.Name, answer.Reason)
		fmt.Println(answer.Message)
	}
	// Output:
	// train-0 insufficient_devices
	// request gpu asks for 2 devices, and only 1 of the 1 published matches
}
