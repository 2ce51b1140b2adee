package apiserver

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	simulated "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// recordingKeeper is a Keeper that records its objects, by kind and name.
type recordingKeeper struct {
	mu      sync.Mutex
	objects map[string]any
	calls   map[string]int

	cpu  map[string]int64 // by node
	pods map[string]int
}

func newRecordingKeeper() *recordingKeeper {
	return &recordingKeeper{objects: make(map[string]any), calls: make(map[string]int), cpu: make(map[string]int64), pods: make(map[string]int)}
}

func (s *recordingKeeper) put(name string, object any, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[name]++
	if gone {
		delete(s.objects, name)
		return
	}
	s.objects[name] = object
}

func (s *recordingKeeper) ApplySlice(name string, o *resourcev1.ResourceSlice) {
	s.put("slice "+name, o, o == nil)
}
func (s *recordingKeeper) ApplyClass(name string, o *resourcev1.DeviceClass) {
	s.put("class "+name, o, o == nil)
}
func (s *recordingKeeper) ApplyRule(name string, o *resourcev1.DeviceTaintRule) {
	s.put("rule "+name, o, o == nil)
}
func (s *recordingKeeper) ApplyNode(name string, o *corev1.Node) { s.put("node "+name, o, o == nil) }
func (s *recordingKeeper) ApplyClaim(ns, name string, o *resourcev1.ResourceClaim) {
	s.put("claim "+ns+"/"+name, o, o == nil)
}
func (s *recordingKeeper) ApplyTemplate(ns, name string, o *resourcev1.ResourceClaimTemplate) {
	s.put("template "+ns+"/"+name, o, o == nil)
}

// ApplyPodRequests adds up the CPU that pods take of nodes, and how many there are.
func (s *recordingKeeper) ApplyPodRequests(before, after *dra.PodRequests) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before != nil {
		s.cpu[before.Node] -= before.CPU
		s.pods[before.Node]--
	}
	if after != nil {
		s.cpu[after.Node] += after.CPU
		s.pods[after.Node]++
	}
}

// taken returns the CPU that pods take of a node, and how many there are.
func (s *recordingKeeper) taken(node string) (cpu int64, pods int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cpu[node], s.pods[node]
}

// content returns the sorted names of all objects.
func (s *recordingKeeper) content() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(s.objects)), ", ")
}

func (s *recordingKeeper) get(name string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[name]
}

func (s *recordingKeeper) times(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[name]
}

// clusterTest is a simulated API server with a ClusterWatch that reads from it.
type clusterTest struct {
	*testing.T
	server  *simulated.Server
	cluster *ClusterWatch
	keeper  *recordingKeeper
	stop    func()

	changes []Change          // all changes so far
	state   map[string]string // objects after all changes

	mu       sync.Mutex
	log      bytes.Buffer
	refusals map[string]int // by resource
	requests map[string]int // by verb and resource
}

func startClusterTest(t *testing.T, refusals map[string]int, objects ...simulated.Object) *clusterTest {
	t.Helper()
	f := &clusterTest{T: t, keeper: newRecordingKeeper(), state: make(map[string]string), refusals: maps.Clone(refusals), requests: make(map[string]int)}
	if f.refusals == nil {
		f.refusals = make(map[string]int)
	}
	var err error
	if f.server, err = simulated.Start(t.Context(), simulated.Options{Intercept: f.intercept}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.server.Stop)
	f.put(objects...)
	f.start(f.server.Config(), "")
	return f
}

func (f *clusterTest) start(config *rest.Config, namespace string) {
	f.Helper()
	var err error
	f.cluster, err = NewClusterWatch(ClusterWatchOptions{
		Config: config, Namespace: namespace, Keeper: f.keeper, Clock: clock.System(), Log: slog.New(slog.NewTextHandler(f, nil)),
	})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan struct{})
	go func() { f.cluster.Run(ctx); close(done) }()
	f.stop = sync.OnceFunc(func() { cancel(); <-done })
	f.Cleanup(f.stop)
}

func (f *clusterTest) intercept(r simulated.Request) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests[r.Verb+" "+r.Resource]++
	return f.refusals[r.Resource]
}

func (f *clusterTest) refuse(resource string, status int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals[resource] = status
}

func (f *clusterTest) times(request string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests[request]
}

// Write receives the log.
func (f *clusterTest) Write(line []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(line)
}

func (f *clusterTest) logged(text string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Count(f.log.String(), text)
}

func (f *clusterTest) put(objects ...simulated.Object) {
	f.Helper()
	if err := f.server.Put(objects...); err != nil {
		f.Fatal(err)
	}
}

func (f *clusterTest) delete(objects ...simulated.Object) {
	f.Helper()
	if err := f.server.Delete(objects...); err != nil {
		f.Fatal(err)
	}
}

// subject returns the name and UID of a change's object.
func subject(change Change) (name, uid string) {
	switch {
	case change.Claim != nil:
		return "claim " + change.Claim.Ref.String(), change.Claim.UID
	case change.Pod != nil:
		return "pod " + change.Pod.Ref.String(), change.Pod.UID
	case change.Group != nil:
		return "group " + change.Group.Ref.String(), change.Group.UID
	case change.KueueWorkload != nil:
		return "workload " + change.KueueWorkload.Ref.String(), change.KueueWorkload.UID
	case change.ComputeDomain != nil:
		return "domain " + change.ComputeDomain.Ref.String(), change.ComputeDomain.UID
	case change.Node != nil:
		return "node " + change.Node.Name, ""
	case change.Autoscaling != nil:
		return "autoscaling " + change.Autoscaling.Name, string(change.Autoscaling.State)
	default:
		return "warning " + change.Warning.Name, ""
	}
}

// applyChanges applies new changes to the state. The deletion of an unknown
// object is an error, and so is another UID without a deletion before.
func (f *clusterTest) applyChanges() {
	f.Helper()
	for _, change := range f.cluster.Drain() {
		name, uid := subject(change)
		have, there := f.state[name]
		switch {
		case change.Gone && (!there || have != uid):
			f.Errorf("%s (%s) is gone, and was %v, %s", name, uid, there, have)
		case !change.Gone && there && have != uid:
			f.Errorf("%s is %s now, and %s is not gone", name, uid, have)
		}
		if change.Gone {
			delete(f.state, name)
		} else {
			f.state[name] = uid
		}
		if count := len(f.changes); count > 0 && change.At.Elapsed < f.changes[count-1].At.Elapsed {
			f.Errorf("%s was reported before the previous change", name)
		}
		f.changes = append(f.changes, change)
	}
}

func (f *clusterTest) until(what string, is func() bool) {
	f.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		f.applyChanges()
		if is() {
			return
		}
		if time.Now().After(deadline) {
			f.Fatalf("never: %s; state %v, shelf %s, synced %+v, sources %+v", what, f.state, f.keeper.content(), f.cluster.Synced(), f.cluster.Statuses())
		}
		select {
		case <-f.cluster.Changed():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// since returns the changes after the first n.
func (f *clusterTest) since(n int) []string {
	var lines []string
	for _, change := range f.changes[n:] {
		name, _ := subject(change)
		line := name
		if change.Live {
			line += " live"
		}
		if change.Gone {
			line += " gone"
		}
		lines = append(lines, line)
	}
	return lines
}

func (f *clusterTest) status(name string) (source.Status, bool) {
	for _, status := range f.cluster.Statuses() {
		if status.Name == name {
			return status, true
		}
	}
	return source.Status{}, false
}

func all() Synced {
	return Synced{Claims: true, Pods: true, Slices: true, Classes: true, Nodes: true, Events: true}
}

func (f *clusterTest) untilSynced() {
	f.Helper()
	f.until("all is synced", func() bool { return f.cluster.Synced() == all() && f.cluster.Settled() })
}

func node(name, kubelet string) *corev1.Node {
	made := &corev1.Node{}
	made.Name, made.Status.NodeInfo.KubeletVersion = name, kubelet
	return made
}

func deviceClass(name, extended string) *resourcev1.DeviceClass {
	made := &resourcev1.DeviceClass{}
	made.Name = name
	if extended != "" {
		made.Spec.ExtendedResourceName = &extended
	}
	return made
}

func event(name, reason, pod string) *corev1.Event {
	made := &corev1.Event{Reason: reason, Message: "why", Count: 2}
	made.Namespace, made.Name = "lab", name
	made.InvolvedObject = corev1.ObjectReference{Kind: "Pod", Namespace: "lab", Name: pod, UID: "pod-1"}
	return made
}
