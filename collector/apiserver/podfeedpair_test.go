package apiserver

import (
	"context"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/kubelet"
	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// nodePair is two nodes of the same API server: one watches its pods there, the
// other may not, and gets them from a kubelet's Pods API.
type nodePair struct {
	*nodeTest
	kubelet *simulated.Pods
	watcher *kubelet.PodWatcher
	fed     *NodeWatch
	pods    map[types.UID]*corev1.Pod
	claims  map[string]*resourcev1.ResourceClaim
}

func startNodePair(t *testing.T) *nodePair {
	t.Helper()
	t.Cleanup(func() {
		goleak.VerifyNone(t, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
	})
	w := &nodePair{nodeTest: startNodeTest(t, nil), pods: map[types.UID]*corev1.Pod{}, claims: map[string]*resourcev1.ResourceClaim{}}
	socket := filepath.Join(t.TempDir(), "pods-api.sock")
	var err error
	if w.kubelet, err = simulated.StartPods(socket); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kubelet.Stop)
	w.fed, err = New(Options{
		Config: w.server.Config(), Node: "node-a", Clock: clock.System(), PodLabels: []string{"team"}, PodsFed: true,
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.watcher = kubelet.NewPodWatcher(kubelet.PodsOptions{Socket: socket, To: w.fed.PodFeed(), Renewal: time.Hour})
	ctx, cancel := context.WithCancel(t.Context())
	nodeDone, watcherDone := make(chan struct{}), make(chan struct{})
	go func() { w.fed.Run(ctx); close(nodeDone) }()
	go func() { w.watcher.Run(ctx); close(watcherDone) }()
	t.Cleanup(func() { cancel(); <-nodeDone; <-watcherDone })
	return w
}

// run adds pods to the API server and to the kubelet.
func (w *nodePair) run(pods ...*corev1.Pod) {
	w.Helper()
	for _, pod := range pods {
		w.put(pod)
		w.pods[pod.UID] = pod
	}
	w.kubelet.Put(pods...)
}

func (w *nodePair) createClaims(claims ...*resourcev1.ResourceClaim) {
	w.Helper()
	for _, claim := range claims {
		w.put(claim)
		w.claims[claim.Namespace+"/"+claim.Name] = claim
	}
}

// end terminates and deletes a pod.
func (w *nodePair) end(pod *corev1.Pod) {
	w.Helper()
	w.delete(pod)
	delete(w.pods, pod.UID)
	w.kubelet.EndContainers(pod)
	w.kubelet.RemoveWithoutEvent(pod)
}

// list passes the kubelet's listing to the fed node: each device of a claim for
// each container that uses it, without init containers.
func (w *nodePair) list() {
	var listed []dra.Assignment
	for _, pod := range w.pods {
		decoded := decode.Pod(pod, decode.PodFields{Workloads: decode.DefaultWorkloads()})
		for _, container := range decoded.Containers {
			init := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container.Name && c.RestartPolicy == nil })
			for _, use := range container.Uses {
				claim := w.claims[pod.Namespace+"/"+use.Claim]
				if claim == nil || init || decoded.Terminal {
					continue
				}
				for _, result := range decode.Claim(claim).Results {
					listed = append(listed, dra.Assignment{Pod: decoded.Ref, Container: container.Name, Claim: decode.Claim(claim).Ref, Device: result.Device})
				}
			}
		}
	}
	w.fed.PodFeed().Listed(listed)
}

// untilEqual waits until both nodes have the same facts of pods that have not
// ended.
func (w *nodePair) untilEqual(what string) NodeFacts {
	w.Helper()
	want := NodeFacts{}
	w.until(what, func(usual NodeFacts) bool {
		w.list() // as after a Refresh, and then every ten seconds
		want = runningPods(usual)
		return usual.PodsFresh && len(usual.Unread) == 0 && len(usual.Pods)+len(usual.PluginPods) == w.watched() && reflect.DeepEqual(runningPods(w.fed.Latest()), want)
	})
	return want
}

// watched returns how many pods the API server's watch reports.
func (w *nodePair) watched() (n int) {
	for _, pod := range w.pods {
		record, keep := decode.NewPodRecord(pod, decode.PodFields{Workloads: decode.DefaultWorkloads()})
		if keep && (record.UsingClaims() != nil || record.UsingPlugins() != nil) {
			n++
		}
	}
	return n
}

// runningPods returns the facts of pods that have not ended.
func runningPods(f NodeFacts) NodeFacts {
	f.Pods = slices.DeleteFunc(slices.Clone(f.Pods), func(p dra.Pod) bool { return p.Terminal })
	if len(f.Pods) == 0 {
		f.Pods = nil
	}
	return f
}

// ofTemplate changes the pod's claim to one of a template, with its name in the
// status.
func ofTemplate(pod *corev1.Pod, within, claim string) *corev1.Pod {
	template := "of-" + within
	for i := range pod.Spec.ResourceClaims {
		if pod.Spec.ResourceClaims[i].Name == within {
			pod.Spec.ResourceClaims[i].ResourceClaimName, pod.Spec.ResourceClaims[i].ResourceClaimTemplateName = nil, &template
		}
	}
	pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: within, ResourceClaimName: &claim})
	return pod
}

// ownedBy sets the owner for which the controller manager, or the scheduler,
// created a claim.
func ownedBy(claim *resourcev1.ResourceClaim, kind, name, uid, within string) *resourcev1.ResourceClaim {
	controller := true
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(uid), Controller: &controller}}
	claim.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: within}
	if within == "" {
		claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	}
	return claim
}
