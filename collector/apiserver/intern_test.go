package apiserver

import (
	"reflect"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// TestInternerIsLimited interns more strings than the limit.
func TestInternerIsLimited(t *testing.T) {
	known := newInterner()
	for i := range 5 * maxInterned {
		node := dra.Node{Name: string(metav1.Unix(int64(i), 0).UTC().AppendFormat(nil, "20060102150405"))}
		again := node.Name
		if known.share(&node.Name, &again); again != node.Name {
			t.Fatalf("%q became %q", node.Name, again)
		}
	}
	if have := len(known.texts.young) + len(known.texts.old); have > 2*maxInterned {
		t.Errorf("%d strings are kept", have)
	}
}

// FuzzIntern: values with shared strings are equal to those without.
func FuzzIntern(f *testing.F) {
	for _, name := range snapshots() {
		captured := readSnapshot(f, name)
		for i := range captured.pods {
			data, _ := captured.pods[i].Marshal()
			f.Add(data)
		}
		for i := range captured.claims {
			data, _ := captured.claims[i].Marshal()
			f.Add(data)
		}
	}
	slow := regexp.MustCompile(`[eE][-+]?[0-9]{4}`) // Kubernetes takes minutes to parse 1e-99999999
	workloads := decode.DefaultWorkloads()
	f.Fuzz(func(t *testing.T, data []byte) {
		if slow.Match(data) {
			t.Skip()
		}
		if claim := (&resourcev1.ResourceClaim{}); claim.Unmarshal(data) == nil {
			lifecycle, shared := decode.ClaimLifecycle(claim), decode.ClaimLifecycle(claim)
			if newInterner().claim(&shared); !reflect.DeepEqual(lifecycle, shared) {
				t.Errorf("with shared strings it is %+v, not %+v", shared, lifecycle)
			}
		}
		if pod := (&corev1.Pod{}); pod.Unmarshal(data) == nil {
			lifecycle, shared := decode.PodLifecycle(pod, workloads), decode.PodLifecycle(pod, workloads)
			if newInterner().pod(&shared); !reflect.DeepEqual(lifecycle, shared) {
				t.Errorf("with shared strings it is %+v, not %+v", shared, lifecycle)
			}
		}
	})
}
