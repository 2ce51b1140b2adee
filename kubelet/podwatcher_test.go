package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// followedPods is a follower that keeps the pods it is called with.
type followedPods struct {
	mu    sync.Mutex
	pods  map[string]string // by UID: name and phase
	seen  map[string]bool
	fresh bool
	lost  int
}

func (r *followedPods) Begin() { r.mu.Lock(); r.seen = map[string]bool{}; r.mu.Unlock() }

func (r *followedPods) Pod(pod *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen != nil {
		r.seen[string(pod.UID)] = true
	}
	r.pods[string(pod.UID)] = strings.TrimRight(fmt.Sprintf("%s %s", pod.Name, pod.Status.Phase), " ")
}

func (r *followedPods) Ended(uid string) { r.mu.Lock(); delete(r.pods, uid); r.mu.Unlock() }

func (r *followedPods) Synced() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid := range r.pods {
		if !r.seen[uid] {
			delete(r.pods, uid)
		}
	}
	r.seen, r.fresh = nil, true
}

func (r *followedPods) Lost() { r.mu.Lock(); r.fresh, r.lost = false, r.lost+1; r.mu.Unlock() }

func (r *followedPods) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for uid, pod := range r.pods {
		all = append(all, uid+"="+pod)
	}
	slices.Sort(all)
	if !r.fresh {
		all = append(all, "(lost)")
	}
	return strings.Join(all, ", ")
}

// watchPods runs a watcher of the socket for the time of the test.
func watchPods(t *testing.T, options PodsOptions) (*PodWatcher, *followedPods) {
	t.Helper()
	followed := &followedPods{pods: map[string]string{}}
	options.To = followed
	if options.Renewal == 0 {
		options.Renewal = time.Hour
	}
	w := NewPodWatcher(options)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return w, followed
}

func podsServer(t *testing.T, pods ...*corev1.Pod) (*simulated.Pods, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "pods-api.sock")
	server, err := simulated.StartPods(socket, pods...)
	must(t, err)
	t.Cleanup(server.Stop)
	return server, socket
}

func newPod(uid, name string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(uid)}, Status: corev1.PodStatus{Phase: phase}}
}

func eventuallyIs(t *testing.T, followed *followedPods, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q, it is %q", want, followed), func() bool { return followed.String() == want })
}

func TestPodWatcherAppliesEvents(t *testing.T) {
	server, socket := podsServer(t, newPod("1", "train", "Running"))
	observed := make(chan float64, 8)
	w, followed := watchPods(t, PodsOptions{Socket: socket, Observe: func(s float64) { observed <- s }})
	eventuallyIs(t, followed, "1=train Running")
	server.Put(newPod("2", "infer", "Pending"))
	server.Put(newPod("2", "infer", "Running"), newPod("1", "train", "Succeeded"))
	eventuallyIs(t, followed, "1=train Succeeded, 2=infer Running")
	server.EndContainers(newPod("1", "train", ""))
	eventuallyIs(t, followed, "2=infer Running")
	before := w.Status()
	if !before.Up || before.Reason != source.ReasonNone || before.Name != "pods" || before.Errors != 0 || len(observed) != 1 || <-observed <= 0 {
		t.Errorf("status %+v", before)
	}
	if after := w.Status(); after.LastSuccess.Elapsed <= before.LastSuccess.Elapsed {
		t.Error("a watch without events does not count as a success")
	}
}

// TestPodWatcherKeepsEndedPodsEnded sends old states of ended pods: the kubelet sends
// from several goroutines.
func TestPodWatcherKeepsEndedPodsEnded(t *testing.T) {
	server, socket := podsServer(t, newPod("1", "train", "Running"))
	static := newPod("s", "etcd", "Running")
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	_, followed := watchPods(t, PodsOptions{Socket: socket})
	eventuallyIs(t, followed, "1=train Running")
	server.Put(static)
	server.EndContainers(static)
	server.EndContainers(newPod("1", "train", ""))
	server.SendLate(newPod("1", "train", "Running"))
	server.SendLate(static)
	eventuallyIs(t, followed, "s=etcd Running")
}

func TestPodWatcherReopens(t *testing.T) {
	rejected := newPod("2", "rejected", "Failed")
	server, socket := podsServer(t, newPod("1", "train", "Running"), rejected)
	_, followed := watchPods(t, PodsOptions{Socket: socket, Renewal: 50 * time.Millisecond})
	eventuallyIs(t, followed, "1=train Running, 2=rejected Failed")
	server.RemoveWithoutEvent(rejected)
	server.ChangeWithoutEvent(newPod("1", "renamed", "Running"))
	eventuallyIs(t, followed, "1=renamed Running")
	eventually(t, "one watch", func() bool { open, opened := server.Watches(); return open == 1 && opened > 3 })
	followed.mu.Lock()
	defer followed.mu.Unlock()
	if followed.lost != 0 {
		t.Errorf("the pods were lost %d times", followed.lost)
	}
}

func TestPodWatcherAcrossRestarts(t *testing.T) {
	server, socket := podsServer(t, newPod("1", "train", "Running"), newPod("2", "infer", "Running"))
	w, followed := watchPods(t, PodsOptions{Socket: socket})
	eventuallyIs(t, followed, "1=train Running, 2=infer Running")
	server.Stop()
	eventuallyIs(t, followed, "1=train Running, 2=infer Running, (lost)")
	eventually(t, "no socket", func() bool { return w.Status().Reason == source.ReasonNotFound })
	server.RemoveWithoutEvent(newPod("2", "", ""))
	server.SetStarting(true)
	must(t, server.Resume())
	eventually(t, "a kubelet that starts", func() bool {
		return w.Status().Reason == source.ReasonUnavailable && strings.Contains(w.Status().Message, "is starting")
	})
	eventuallyIs(t, followed, "1=train Running, 2=infer Running, (lost)")
	server.SetStarting(false)
	eventuallyIs(t, followed, "1=train Running")
	if !w.Status().Up {
		t.Errorf("status %+v", w.Status())
	}
}

// TestPodWatcherOfUnloadedKubelet: a kubelet of 1.36 that restarts serves an empty list
// at first. No pod is lost by that, and one that was deleted meanwhile is removed.
func TestPodWatcherOfUnloadedKubelet(t *testing.T) {
	const both = "1=train Running, 2=infer Running"
	for name, test := range map[string]struct {
		loads   bool // while the first watch is open
		removed bool // a pod, while the kubelet is down
		want    string
	}{
		"it loads its pods":                          {true, false, both},
		"it loads its pods, one has been deleted":    {true, true, "1=train Running"},
		"a second list has no pods either":           {false, false, ""},
		"the same, and one of them has been deleted": {false, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			server, socket := podsServer(t, newPod("1", "train", "Running"), newPod("2", "infer", "Running"))
			confirm := time.Hour
			if !test.loads || test.removed {
				confirm = 200 * time.Millisecond
			}
			w, followed := watchPods(t, PodsOptions{Socket: socket, Confirm: confirm})
			eventuallyIs(t, followed, both)
			server.Stop()
			eventuallyIs(t, followed, both+", (lost)")
			server.SetUnloaded(true)
			if test.removed {
				server.RemoveWithoutEvent(newPod("2", "", ""))
			}
			_, before := server.Watches()
			must(t, server.Resume())
			eventually(t, "another watch", func() bool { _, opened := server.Watches(); return opened > before })
			if test.loads {
				if got := followed.String(); !test.removed && got != both+", (lost)" {
					t.Errorf("before the pods are loaded there are %s", got)
				}
				server.SetUnloaded(false)
			}
			eventuallyIs(t, followed, test.want)
			if !w.Status().Up {
				t.Errorf("status %+v", w.Status())
			}
		})
	}
}

func TestPodWatcherOfHangingKubelet(t *testing.T) {
	server, socket := podsServer(t, newPod("1", "train", "Running"))
	w, followed := watchPods(t, PodsOptions{Socket: socket, Renewal: 30 * time.Millisecond, SyncTimeout: 200 * time.Millisecond})
	eventuallyIs(t, followed, "1=train Running")
	server.SetSilent(true)
	eventuallyIs(t, followed, "1=train Running, (lost)")
	status := w.Status()
	if status.Up || status.Reason != source.ReasonTimeout || status.HungSince.IsZero() || !strings.Contains(status.Message, "within 200ms") {
		t.Errorf("status %+v", status)
	}
	server.SetSilent(false)
	eventuallyIs(t, followed, "1=train Running")
	if status := w.Status(); !status.HungSince.IsZero() || !status.Up {
		t.Errorf("status %+v", status)
	}
}

// TestPodWatcherOfSilentSocket connects to a socket without a server behind it.
func TestPodWatcherOfSilentSocket(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "pods-api.sock")
	silent, err := net.Listen("unix", socket)
	must(t, err)
	t.Cleanup(func() { silent.Close() })
	w, _ := watchPods(t, PodsOptions{Socket: socket, SyncTimeout: 100 * time.Millisecond})
	eventually(t, "a timeout", func() bool { return w.Status().Reason == source.ReasonTimeout })
}

func TestPodWatcherOmitsInvalidPods(t *testing.T) {
	server, socket := podsServer(t, newPod("1", "train", "Running"), newPod("2", "", "Running"))
	w, followed := watchPods(t, PodsOptions{Socket: socket})
	eventuallyIs(t, followed, "1=train Running")
	impaired := func() bool { s := w.Status(); return s.Up && s.Reason == source.ReasonInvalid }
	eventually(t, "the message", impaired)
	server.SendInvalid()
	server.Put(newPod("3", "infer", "Running"))
	eventuallyIs(t, followed, "1=train Running, 3=infer Running")
	if s := w.Status(); !impaired() || !strings.Contains(s.Message, "2 pods") || !strings.Contains(s.Message, socket) {
		t.Errorf("status %+v", s)
	}
}

// TestPodWatcherWithoutPodsAPI has no socket, as before Kubernetes 1.37, and the socket
// of PodResources, which does not serve pods.
func TestPodWatcherWithoutPodsAPI(t *testing.T) {
	w, followed := watchPods(t, PodsOptions{Socket: freshSocket(t)})
	eventually(t, "an error", func() bool { return w.Status().Reason == source.ReasonNotFound })
	for _, part := range []string{"1.37", "feature gate PodsAPI", "--kubelet.pods-api", "remove that flag", "lists and watches pods", "mount"} {
		if !strings.Contains(w.Status().Message, part) {
			t.Errorf("%q does not say %q", w.Status().Message, part)
		}
	}
	if followed.String() != "(lost)" {
		t.Errorf("followed %s", followed)
	}
	_, socket := start(t, simulated.Options{})
	w, _ = watchPods(t, PodsOptions{Socket: socket})
	eventually(t, "an error", func() bool { return w.Status().Reason == source.ReasonUnsupported })
}

// TestSlowFollower has a watch that the kubelet ends because it lags, and that is
// reopened.
func TestSlowFollower(t *testing.T) {
	server, socket := podsServer(t, newPod("1", "train", "Running"))
	followed := &slowFollower{followedPods: followedPods{pods: map[string]string{}}, gate: make(chan struct{})}
	w := NewPodWatcher(PodsOptions{Socket: socket, To: followed})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	eventually(t, "a sync", func() bool { return w.Status().Up })
	large := newPod("2", "large", "Running")
	large.Annotations = map[string]string{"text": strings.Repeat("x", 1<<16)}
	eventually(t, "the end of the watch", func() bool {
		for range 200 {
			server.Put(large)
		}
		open, _ := server.Watches()
		return open == 0
	})
	close(followed.gate)
	eventually(t, "all pods", func() bool { return followed.String() == "1=train Running, 2=large Running" && w.Status().Errors > 0 })
}

// slowFollower blocks from the second pod on until its gate is closed.
type slowFollower struct {
	followedPods
	first sync.Once
	gate  chan struct{}
}

func (r *slowFollower) Pod(pod *corev1.Pod) {
	first := false
	r.first.Do(func() { first = true })
	if !first {
		<-r.gate
	}
	r.followedPods.Pod(pod)
}

func TestExplainPods(t *testing.T) {
	for _, test := range []struct {
		err    error
		reason source.Reason
		remedy string
	}{
		{errSyncTimeout, source.ReasonTimeout, "within 5s"},
		{grpc.ErrServerStopped, source.ReasonOther, "see its log"},
	} {
		err := explainPods(test.err, nil, "/socket", 5*time.Second)
		if source.ReasonOf(err) != test.reason || !strings.Contains(err.Error(), test.remedy) || !errors.Is(err, test.err) {
			t.Errorf("%v: %v", test.err, err)
		}
	}
}
