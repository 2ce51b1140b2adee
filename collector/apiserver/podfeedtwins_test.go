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

// twins are two nodes of the same API server: one watches its pods there, the
// other may not read any, and has them from a kubelet's Pods API.
type twins struct {
	*cluster
	kubelet *simulated.Pods
	watcher *kubelet.PodWatcher
	fed     *Node
	pods    map[types.UID]*corev1.Pod
	claims  map[string]*resourcev1.ResourceClaim
}

func startTwins(t *testing.T) *twins {
	t.Helper()
	t.Cleanup(func() {
		goleak.VerifyNone(t, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
	})
	w := &twins{cluster: startCluster(t, nil), pods: map[types.UID]*corev1.Pod{}, claims: map[string]*resourcev1.ResourceClaim{}}
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

// run has pods here, for the API server and for the kubelet alike.
func (w *twins) run(pods ...*corev1.Pod) {
	w.Helper()
	for _, pod := range pods {
		w.put(pod)
		w.pods[pod.UID] = pod
	}
	w.kubelet.Put(pods...)
}

func (w *twins) made(claims ...*resourcev1.ResourceClaim) {
	w.Helper()
	for _, claim := range claims {
		w.put(claim)
		w.claims[claim.Namespace+"/"+claim.Name] = claim
	}
}

// end has a pod end and go.
func (w *twins) end(pod *corev1.Pod) {
	w.Helper()
	w.delete(pod)
	delete(w.pods, pod.UID)
	w.kubelet.Finish(pod)
	w.kubelet.Forget(pod)
}

// list tells the fed node what the kubelet lists: each device of a claim for
// each container that uses it, but not for init containers.
func (w *twins) list() {
	var listed []dra.Assignment
	for _, pod := range w.pods {
		decoded := decode.Pod(pod)
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

// alike waits until both know the same of pods that have not ended.
func (w *twins) alike(what string) Facts {
	w.Helper()
	want := Facts{}
	w.until(what, func(usual Facts) bool {
		w.list() // as after a Poke, and then every ten seconds
		want = living(usual)
		return usual.PodsFresh && len(usual.Unread) == 0 && len(usual.Pods)+len(usual.PluginPods) == w.known() && reflect.DeepEqual(living(w.fed.Latest()), want)
	})
	return want
}

// known is how many pods the API server's watch has something to tell of.
func (w *twins) known() (n int) {
	for _, pod := range w.pods {
		record, keep := decode.NewPodRecord(pod)
		if keep && (record.UsingClaims() != nil || record.UsingPlugins() != nil) {
			n++
		}
	}
	return n
}

// living is what is known of pods that have not ended.
func living(f Facts) Facts {
	f.Pods = slices.DeleteFunc(slices.Clone(f.Pods), func(p dra.Pod) bool { return p.Terminal })
	if len(f.Pods) == 0 {
		f.Pods = nil
	}
	return f
}

// ofTemplate makes the pod's claim one of a template, whose name the status tells.
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

// ownedBy says for what the controller manager, or the scheduler, made a claim.
func ownedBy(claim *resourcev1.ResourceClaim, kind, name, uid, within string) *resourcev1.ResourceClaim {
	controller := true
	claim.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID(uid), Controller: &controller}}
	claim.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: within}
	if within == "" {
		claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	}
	return claim
}
