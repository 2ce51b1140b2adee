package kubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

func TestDecodeEvent(t *testing.T) {
	whole, err := newPod("1", "train", "Running").Marshal()
	must(t, err)
	nameless, err := newPod("1", "", "Running").Marshal()
	must(t, err)
	for _, test := range []struct {
		kind  podsv1alpha1.EventType
		bytes []byte
		want  podEvent
		fails bool
	}{
		{podsv1alpha1.EventType_ADDED, whole, podPresent, false},
		{podsv1alpha1.EventType_MODIFIED, whole, podPresent, false},
		{podsv1alpha1.EventType_DELETED, whole, podEnded, false},
		{podsv1alpha1.EventType_UNSPECIFIED, whole, podUnknown, false},
		{99, []byte{0xff}, podUnknown, false},
		{podsv1alpha1.EventType_ADDED, nil, podUnknown, true},
		{podsv1alpha1.EventType_ADDED, nameless, podUnknown, true},
		{podsv1alpha1.EventType_DELETED, whole[:len(whole)-1], podUnknown, true},
	} {
		got, pod, err := decodeEvent(&podsv1alpha1.WatchPodsEvent{Type: test.kind, Pod: test.bytes})
		if got != test.want || (err != nil) != test.fails || (got != podUnknown) != (pod != nil) {
			t.Errorf("%v of %q: %v, %v, %v", test.kind, test.bytes, got, pod, err)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	static := newPod("1", "train", "Running")
	static.Annotations = map[string]string{sourceAnnotation: "file"}
	for _, pod := range []*corev1.Pod{newPod("1", "train", "Running"), static, {}} {
		bytes, err := pod.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(int32(podsv1alpha1.EventType_ADDED), bytes)
		f.Add(int32(podsv1alpha1.EventType_DELETED), bytes[:len(bytes)/2])
	}
	f.Fuzz(func(t *testing.T, kind int32, bytes []byte) {
		got, pod, err := decodeEvent(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType(kind), Pod: bytes})
		switch {
		case got == podUnknown && pod != nil, err != nil && got != podUnknown:
			t.Errorf("an unknown event with the pod %v (%v)", pod, err)
		case got != podUnknown && (pod.Namespace == "" || pod.Name == "" || pod.UID == ""):
			t.Errorf("a pod without a name: %v", pod)
		case pod != nil:
			isStatic(pod)
		}
	})
}
