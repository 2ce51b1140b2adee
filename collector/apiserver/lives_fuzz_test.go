package apiserver

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// FuzzLives feeds protobuf, whose strings nobody has checked, to all decoders
// of the cluster role. Sharing words must change nothing, and the lighter
// objects must say the same of what is used. However large an object is, what is
// kept of it is within the limits.
func FuzzLives(f *testing.F) {
	for _, name := range moments() {
		captured := readMoment(f, name)
		for i := range captured.pods {
			f.Add(marshal(f, &captured.pods[i]))
		}
		for i := range captured.claims {
			f.Add(marshal(f, &captured.claims[i]))
		}
	}
	f.Add(marshal(f, &corev1.Event{Reason: reasonCreation, Message: "\xff", Count: -1, InvolvedObject: corev1.ObjectReference{Name: "\xff"}}))
	f.Add(marshal(f, node("\xff", "v1.36.0")))
	f.Add(marshal(f, &schedulingv1beta1.PodGroup{Spec: schedulingv1beta1.PodGroupSpec{ResourceClaims: []schedulingv1beta1.PodGroupResourceClaim{{Name: "\xff"}}}}))
	f.Add(marshal(f, &resourcev1alpha3.DeviceTaintRule{Spec: resourcev1alpha3.DeviceTaintRuleSpec{DeviceSelector: &resourcev1alpha3.DeviceTaintSelector{}}}))
	long := strings.Repeat("l", 5000)
	heavy := realClaim(1)
	heavy.Annotations[resourcev1.PodResourceClaimAnnotation] = long
	heavy.OwnerReferences[0].Name, heavy.OwnerReferences[0].UID = long, types.UID(long)
	heavy.Finalizers = append(slices.Repeat([]string{long}, 20), resourcev1.Finalizer)
	for i := range 12 {
		heavy.Spec.Devices.Requests = append(heavy.Spec.Devices.Requests, resourcev1.DeviceRequest{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: strconv.Itoa(i)}})
	}
	f.Add(marshal(f, heavy))
	f.Add(marshal(f, pendingPod("a", "b", 200)))
	f.Add(marshal(f, &corev1.Event{Reason: reasonCreation, Message: long, InvolvedObject: corev1.ObjectReference{Name: long, UID: types.UID(long)}}))
	minute := regexp.MustCompile(`[eE][-+]?[0-9]{4}`) // see FuzzObjects
	f.Fuzz(func(t *testing.T, data []byte) {
		if minute.Match(data) {
			t.Skip()
		}
		fuzzClaimLife(t, data)
		fuzzPodLife(t, data)
		if event := (&corev1.Event{}); event.Unmarshal(data) == nil {
			if trouble, ok := decodeTrouble(event); ok && trouble.Count < 1 {
				t.Errorf("it happened %d times", trouble.Count)
			} else {
				if len(trouble.Message) > 3*maxMessage || len(trouble.Pod.Name) > 3*maxName || len(trouble.PodUID) > 3*maxUID {
					t.Errorf("long texts are kept: %+v", trouble)
				}
				checkText(t, trouble)
			}
		}
		if group := (&schedulingv1beta1.PodGroup{}); group.Unmarshal(data) == nil {
			checkText(t, decodeGroup(group))
		}
		if node := (&corev1.Node{}); node.Unmarshal(data) == nil {
			checkText(t, decodeNodeLife(node))
			if !reflect.DeepEqual(decodeNodeLife(node), decodeNodeLife(lightNode(node, true))) {
				t.Error("lighter, the node is another")
			}
		}
		if rule := (&resourcev1alpha3.DeviceTaintRule{}); rule.Unmarshal(data) == nil {
			_, _ = convertRule(rule)
		}
	})
}

func fuzzClaimLife(t *testing.T, data []byte) {
	t.Helper()
	claim := &resourcev1.ResourceClaim{}
	if claim.Unmarshal(data) != nil {
		return
	}
	life := decodeClaimLife(claim)
	checkText(t, life)
	shared := decodeClaimLife(claim)
	newWords().claim(&shared)
	if !reflect.DeepEqual(life, shared) {
		t.Errorf("with shared words it is %+v, not %+v", shared, life)
	}
	light := decodeClaimLife(lightClaim(claim, true))
	if !reflect.DeepEqual(life.Results, light.Results) || !reflect.DeepEqual(life.ReservedFor, light.ReservedFor) {
		t.Errorf("lighter, it is %+v, not %+v", light, life)
	}
	_ = life.Class()
	// Bytes that are no UTF-8 become three each.
	switch {
	case len(life.Finalizers) > maxFinalizers, len(life.Classes) > maxClasses:
		t.Errorf("%d finalizers and %d classes are kept", len(life.Finalizers), len(life.Classes))
	case len(life.PodClaim) > 3*maxName, len(life.MadeFor.Name) > 3*maxName, len(life.MadeFor.UID) > 3*maxUID:
		t.Errorf("long texts are kept: %+v", life)
	case slices.Contains(claim.Finalizers, resourcev1.Finalizer) != slices.Contains(life.Finalizers, resourcev1.Finalizer):
		t.Errorf("finalizers %q became %q", claim.Finalizers, life.Finalizers)
	}
}

func fuzzPodLife(t *testing.T, data []byte) {
	t.Helper()
	pod := &corev1.Pod{}
	if pod.Unmarshal(data) != nil {
		return
	}
	life := decodePodLife(pod)
	checkText(t, life)
	for name, amount := range life.Extended {
		if amount <= 0 || !isExtended(name) {
			t.Errorf("it asks for %d of %q", amount, name)
		}
	}
	if len(life.Claims) > maxReferences || len(life.Extended) > maxExtended || len(life.Unschedulable) > 3*maxMessage {
		t.Errorf("%d claims, %d extended resources and %d bytes of the scheduler are kept", len(life.Claims), len(life.Extended), len(life.Unschedulable))
	}
	shared := decodePodLife(pod)
	newWords().pod(&shared)
	if !reflect.DeepEqual(life, shared) {
		t.Errorf("with shared words it is %+v, not %+v", shared, life)
	}
}

// TestWordsDoNotPileUp has more words than are to be known at one time.
func TestWordsDoNotPileUp(t *testing.T) {
	known := newWords()
	for i := range 5 * vocabulary {
		life := dra.NodeLife{Name: string(metav1.Unix(int64(i), 0).UTC().AppendFormat(nil, "20060102150405"))}
		known.share(&life.Name)
		if again := known.word(life.Name); again != life.Name {
			t.Fatalf("%q became %q", life.Name, again)
		}
	}
	if have := len(known.young) + len(known.old); have > 2*vocabulary {
		t.Errorf("%d words are known", have)
	}
}
