package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
		decoded := decodePod(pod)
		for _, container := range decoded.Containers {
			init := slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container.Name && c.RestartPolicy == nil })
			for _, use := range container.Uses {
				claim := w.claims[pod.Namespace+"/"+use.Claim]
				if claim == nil || init || decoded.Terminal {
					continue
				}
				for _, result := range decodeClaim(claim).Results {
					listed = append(listed, dra.Assignment{Pod: decoded.Ref, Container: container.Name, Claim: decodeClaim(claim).Ref, Device: result.Device})
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
		record, keep := recordPod(pod)
		if keep && (record.claims() != nil || record.plugins() != nil) {
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

func TestFedPodsAreThoseOfARealCluster(t *testing.T) {
	for _, name := range moments() {
		t.Run(name, func(t *testing.T) {
			captured, w := readMoment(t, name), startTwins(t)
			for i := range captured.slices {
				w.put(&captured.slices[i])
			}
			for i := range captured.claims {
				w.made(&captured.claims[i])
			}
			for i := range captured.pods {
				if captured.pods[i].Spec.NodeName == "node-a" {
					w.run(&captured.pods[i])
				}
			}
			w.alike("both know the same")
		})
	}
}

func TestLearnsTheNamesOfTemplatesClaims(t *testing.T) {
	w := startTwins(t)
	pod := ofTemplate(user("train", "pod-1", ""), "gpu", "train-gpu-x7xvp")
	w.made(ownedBy(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"))
	w.run(pod)
	facts := w.alike("the claim is known")
	if len(facts.Claims) != 1 || facts.Pods[0].Claims[0] != (dra.PodClaim{Name: "gpu", Template: "of-gpu", Claim: "train-gpu-x7xvp"}) {
		t.Errorf("facts %+v", facts)
	}
	if n := w.asked("list resourceclaims"); n != 0 {
		t.Errorf("claims were listed %d times", n)
	}
	w.fed.PodFeed().Listed(nil)
	w.kubelet.Put(pod)
	if w.alike("a kubelet that has just started lists nothing"); len(w.fed.Latest().Claims) != 1 {
		t.Error("the claim is forgotten")
	}
	w.end(pod)
	if facts := w.alike("all is gone"); len(facts.Claims)+len(facts.Pods) != 0 {
		t.Errorf("facts %+v", facts)
	}
}

// TestTellsClaimsOfTheSameContainersApart: what is listed does not, and the
// names of both claims were cut short.
func TestTellsClaimsOfTheSameContainersApart(t *testing.T) {
	w := startTwins(t)
	pod := user("train", "pod-1", "")
	pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "nic"}, corev1.PodResourceClaim{Name: "disk"})
	pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: "nic"})
	pod.Spec.InitContainers = []corev1.Container{{Name: "sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
	pod.Spec.InitContainers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "disk"}}
	ofTemplate(ofTemplate(ofTemplate(pod, "gpu", "b"), "nic", "a"), "disk", "c")
	w.made(
		ownedBy(claim("b", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"),
		ownedBy(claim("a", "claim-2", "node-a", "nic-1", "pod-1"), "Pod", "train", "pod-1", "nic"),
		ownedBy(claim("c", "claim-3", "node-a", "disk-1", "pod-1"), "Pod", "train", "pod-1", "disk"),
	)
	w.run(pod)
	if facts := w.alike("each is known"); len(facts.Claims) != 3 {
		t.Errorf("facts %+v", facts)
	}
}

// TestFindsClaimsThatOnlyInitContainersUse: they are listed nowhere on the node.
func TestFindsClaimsThatOnlyInitContainersUse(t *testing.T) {
	w := startTwins(t)
	pod := hiding("train", "pod-1", "train-gpu-x7xvp")
	w.made(claim("another", "claim-2", "", ""))
	w.made(ownedBy(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"))
	w.run(pod)
	if facts := w.alike("the claim is known"); len(facts.Claims) != 1 {
		t.Errorf("facts %+v", facts)
	}
	w.fed.mu.Lock()
	defer w.fed.mu.Unlock()
	if open := len(w.fed.fed.hidden.pods); open != 0 {
		t.Errorf("the claim is known, and %d namespaces are still asked for", open)
	}
}

func TestSaysThatClaimsMayNotBeListed(t *testing.T) {
	w := startTwins(t)
	w.refuse("resourceclaims ", 403)
	pod := hiding("train", "pod-1", "train-gpu-x7xvp")
	w.run(pod)
	deadline := time.Now().Add(time.Minute)
	for {
		status := w.fed.Statuses()[0]
		if status.Up && status.Reason == "permission_denied" && strings.Contains(status.Message, "only init containers use") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("status %+v", status)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestLearnsTheClaimForExtendedResources(t *testing.T) {
	w := startTwins(t)
	pod := plugin("infer", "pod-1")
	pod.Spec.InitContainers = []corev1.Container{{Name: "none"}}
	special := ownedBy(claim("infer-extended-resources-2bq5d", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "infer", "pod-1", "")
	special.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "container-1-request-0", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}
	special.Status.Allocation.Devices.Results[0].Request = "container-1-request-0"
	pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: special.Name,
		RequestMappings:   []corev1.ContainerExtendedResourceRequest{{ContainerName: "main", ResourceName: "nvidia.com/gpu", RequestName: "container-1-request-0"}},
	}
	w.made(special)
	w.run(pod)
	if facts := w.alike("the claim is known"); len(facts.Claims) != 1 || len(facts.Pods[0].Containers[1].Uses) != 1 {
		t.Errorf("facts %+v", facts)
	}
}

func TestLearnsTheClaimOfAGroupOfPods(t *testing.T) {
	w := startTwins(t)
	group := "gang"
	shared := claim("gang-gpu-5xkzj", "claim-1", "node-a", "gpu-3", "pod-1", "pod-2")
	w.made(ownedBy(shared, "PodGroup", group, "group-1", "gpu"))
	for i, name := range []string{"a", "b"} {
		pod := hiding(name, fmt.Sprintf("pod-%d", i+1), shared.Name)
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
		w.run(pod)
	}
	w.alike("both have the claim")
}

// TestAKubeletThatHasJustStartedTellsNames: then nothing has to be learned, and
// what it says later does not take the names away.
func TestAKubeletThatHasJustStartedTellsNames(t *testing.T) {
	w := startTwins(t)
	pod := hiding("train", "pod-1", "train-gpu-x7xvp")
	w.refuse("resourceclaims ", 403)
	w.kubelet.Whole(true)
	w.made(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"))
	w.run(pod)
	w.alike("the claim is known")
	w.kubelet.Whole(false)
	labelled := pod.DeepCopy()
	labelled.Labels = map[string]string{"team": "vision"}
	w.run(labelled)
	w.alike("it still is")
}

// TestHoldsWithoutTheAPIServer: an agent that starts while it is away knows by
// the kubelet alone which pods have which claims.
func TestHoldsWithoutTheAPIServer(t *testing.T) {
	w := startTwins(t)
	w.refuse("resourceclaims", 503)
	w.made(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"))
	w.run(ofTemplate(user("train", "pod-1", ""), "gpu", "train-gpu-x7xvp"))
	w.until("the claim is named", func(Facts) bool {
		w.list()
		facts := w.fed.Latest()
		return facts.PodsFresh && len(facts.Pods) == 1 && facts.Pods[0].Claims[0].Claim == "train-gpu-x7xvp" &&
			slices.Equal(facts.Unread, []dra.ClaimRef{{Namespace: "lab", Name: "train-gpu-x7xvp"}})
	})
	w.fed.PodFeed().Listed(nil)
	w.fed.PodFeed().Pod(ofTemplate(user("train", "pod-1", ""), "gpu", "")) // some other change
	if facts := w.fed.Latest(); len(facts.Pods) != 1 || facts.Pods[0].Claims[0].Claim != "train-gpu-x7xvp" {
		t.Errorf("a kubelet that has just started lists nothing, and the name is lost: %+v", facts.Pods)
	}
}

// TestAPodMadeAgainUnderItsName: the old one, deleted by force, goes on for a
// while, and what was listed for it is not the new one's.
func TestAPodMadeAgainUnderItsName(t *testing.T) {
	w := startTwins(t)
	before := ofTemplate(user("train", "pod-1", ""), "gpu", "train-gpu-11111")
	before.CreationTimestamp = metav1.Unix(1_800_000_000, 0)
	w.made(ownedBy(claim("train-gpu-11111", "claim-1", "node-a", "gpu-1", "pod-1"), "Pod", "train", "pod-1", "gpu"))
	w.run(before)
	w.alike("the first is known")

	after := ofTemplate(user("train", "pod-2", ""), "gpu", "train-gpu-22222")
	after.CreationTimestamp = metav1.Unix(1_800_000_060, 0)
	w.put(after)
	w.kubelet.Put(after)
	w.kubelet.Put(before)
	w.until("the second counts", func(Facts) bool {
		facts := w.fed.Latest()
		return len(facts.Pods) == 1 && facts.Pods[0].UID == "pod-2" && facts.Pods[0].Claims[0].Claim == ""
	})
	delete(w.pods, "pod-1")
	w.kubelet.Finish(before)
	w.made(ownedBy(claim("train-gpu-22222", "claim-2", "node-a", "gpu-2", "pod-2"), "Pod", "train", "pod-2", "gpu"))
	w.run(after)
	if facts := w.alike("the second's claim is known"); len(facts.Claims) != 1 || facts.Claims[0].UID != "claim-2" {
		t.Errorf("facts %+v", facts)
	}
}

func TestFedStaticPodsAndPluginPods(t *testing.T) {
	w := startTwins(t)
	const static = "cfe2a1b09d8c7e6f5a4b3c2d1e0f9a8b"
	mirror := plugin("monitor-node-a", "pod-1")
	mirror.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: static, "kubernetes.io/config.source": "file"}
	own := mirror.DeepCopy()
	own.UID, own.Annotations = static, map[string]string{"kubernetes.io/config.source": "file"}
	labelled := plugin("a", "pod-2")
	labelled.Labels = map[string]string{"team": "vision"}
	w.put(mirror)
	w.pods[mirror.UID] = mirror
	w.kubelet.Put(own)
	w.run(labelled)
	if facts := w.alike("both are known"); len(facts.PluginPods) != 2 || facts.PluginPods[1].UID != static {
		t.Errorf("pods %+v", facts.PluginPods)
	}
}

// TestFedPodsOverARestart: what has gone meanwhile is gone, and until the
// kubelet is back all stays as it was, and is said to be old.
func TestFedPodsOverARestart(t *testing.T) {
	w := startTwins(t)
	one, two := user("one", "pod-1", "gpu"), user("two", "pod-2", "gpu")
	w.made(claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1", "pod-2"))
	w.run(one, two)
	w.alike("both are known")
	w.kubelet.Stop()
	w.until("the pods are old", func(Facts) bool { facts := w.fed.Latest(); return !facts.PodsFresh && len(facts.Pods) == 2 })
	w.kubelet.Forget(two)
	w.delete(two)
	delete(w.pods, two.UID)
	if err := w.kubelet.Resume(); err != nil {
		t.Fatal(err)
	}
	if facts := w.alike("one is gone"); len(facts.Pods) != 1 {
		t.Errorf("pods %+v", facts.Pods)
	}
	if _, is := slices.BinarySearch([]string{"resourceclaims", "resourceslices"}, w.fed.Statuses()[0].Name); !is || len(w.fed.Statuses()) != 2 {
		t.Errorf("statuses %+v", w.fed.Statuses())
	}
}

// TestNamesClaimsByWhatIsListed: nothing is guessed where two would fit.
func TestNamesClaimsByWhatIsListed(t *testing.T) {
	pod := func(more ...string) *corev1.Pod { // of one claim, and of others of the same container
		pod := ofTemplate(user("train", "pod-1", ""), "gpu", "")
		for _, name := range more {
			pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name})
			pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: name})
		}
		return pod
	}
	main, sidecar := []string{"main"}, pod()
	sidecar.Spec.InitContainers = []corev1.Container{{Name: "a-sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways), Resources: sidecar.Spec.Containers[0].Resources}}
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		listed listedClaims
		want   string
	}{
		"one":                             {pod(), listedClaims{"cut-short": main}, "cut-short"},
		"of other containers":             {pod(), listedClaims{"a": {"side"}, "b": {"main", "side"}}, ""},
		"of a sidecar too":                {sidecar, listedClaims{"a": main, "b": {"a-sidecar", "main"}}, "b"},
		"none":                            {pod(), nil, ""},
		"one of two, the other unlisted":  {pod("nic"), listedClaims{"cut-short": main}, ""},
		"two, by their names":             {pod("nic"), listedClaims{"train-gpu-1": main, "train-nic-1": main}, "train-gpu-1"},
		"two, both cut short":             {pod("nic"), listedClaims{"a": main, "b": main}, ""},
		"the other's name begins with it": {pod("gpu-more"), listedClaims{"train-gpu-more-1": main, "train-gpu-1": main}, ""},
		"one that is not the pod's":       {pod(), listedClaims{"a": main, "train-gpu-1": main}, "train-gpu-1"},
	} {
		if got, known := test.listed.of(test.pod, "gpu"); got != test.want || known != (test.want != "") {
			t.Errorf("%s: %q, %v", name, got, known)
		}
	}
}
