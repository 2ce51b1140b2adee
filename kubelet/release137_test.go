package kubelet

import (
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// answerOf137 is the encoded answer of a kubelet 1.37 whose pod has what is new:
//
//   - exclusive CPUs and memory of the whole pod (PodLevelResourceManagers), the
//     CPUs packed and one by one, and those of its container among them;
//   - a claim none of whose devices was prepared, because their drivers need no
//     preparation (DRAOptionalNodeOperations), and one of which a part was: in
//     GetDynamicResources such a claim has its name, and only prepared devices;
//   - fields that no release has yet, in the pod, the container and the claim.
func answerOf137() []byte {
	text := func(number byte, value string) []byte { return field(number, []byte(value)) }
	unknown := slices.Concat(text(14, "later"), []byte{15 << 3, 42})
	memory := slices.Concat(text(1, "memory"), []byte{2 << 3, 0x80, 0x01}, field(3, field(1, nil)))
	claim := func(name string, devices ...[]byte) []byte {
		return field(5, slices.Concat(text(2, name), text(3, "ml"), slices.Concat(devices...), unknown))
	}
	prepared := field(4, slices.Concat(field(1, text(1, "k8s.gpu.example.com/claim=uid-gpu-0")),
		text(2, "gpu.example.com"), text(3, "node-a"), text(4, "gpu-0")))
	container := slices.Concat(text(1, "main"), field(3, []byte{2, 3}), field(4, memory),
		claim("skipped"), claim("partly", prepared), unknown)
	pod := slices.Concat(text(1, "train"), text(2, "ml"), field(3, container),
		field(4, []byte{2, 3}), []byte{4 << 3, 4}, field(5, memory), unknown)
	return slices.Concat(field(1, pod), unknown)
}

// The answer is read over a socket, and has the same claims and devices as without
// what is new.
func TestAnswerOf137(t *testing.T) {
	client := New(Options{Socket: answering(t, answerOf137())})
	defer client.disconnect()
	answer, err := client.fetch(t.Context())
	must(t, err)
	pod := answer.GetPodResources()[0]
	if !slices.Equal(pod.GetCpuIds(), []int64{2, 3, 4}) || len(pod.GetMemory()) != 1 || len(pod.ProtoReflect().GetUnknown()) == 0 {
		t.Fatalf("the answer does not have what is new: %v", pod)
	}
	decoded := Decode(answer)
	checkInvariants(t, decoded)
	const want = "pod ml/train\n  main: claim ml/partly: gpu.example.com/node-a/gpu-0 share=\"\" cdi=[\"k8s.gpu.example.com/claim=uid-gpu-0\"]\n"
	if got := render(decoded); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if want := []dra.ClaimRef{{Namespace: "ml", Name: "skipped"}}; !slices.Equal(decoded.WithoutDevices, want) {
		t.Errorf("without devices are %v, want %v", decoded.WithoutDevices, want)
	}
}
