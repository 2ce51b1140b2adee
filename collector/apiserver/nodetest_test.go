package apiserver

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
	simulated "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nodeTest is a simulated API server with a NodeWatch that reads from it.
type nodeTest struct {
	*testing.T
	server *simulated.Server
	node   *NodeWatch
	stop   func() // stops the node and waits for it

	mu       sync.Mutex
	log      bytes.Buffer
	refusals map[string]int // by resource, or resource and name: the status to answer
	requests map[string]int // by verb, resource and name
}

// startNodeTest puts the objects into a new server and starts a NodeWatch.
func startNodeTest(t *testing.T, refusals map[string]int, objects ...simulated.Object) *nodeTest {
	t.Helper()
	c := &nodeTest{T: t, refusals: maps.Clone(refusals), requests: make(map[string]int)}
	if c.refusals == nil {
		c.refusals = make(map[string]int)
	}
	var err error
	c.server, err = simulated.Start(t.Context(), simulated.Options{Intercept: c.intercept})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.server.Stop)
	c.put(objects...)
	c.node, err = New(Options{
		Config: c.server.Config(), Node: "node-a", Clock: clock.System(), PodLabels: []string{"team"},
		Log: slog.New(slog.NewTextHandler(c, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.node.Run(ctx); close(done) }()
	c.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(c.stop)
	return c
}

func (c *nodeTest) intercept(r simulated.Request) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[strings.TrimRight(r.Verb+" "+r.Resource+" "+r.Name, " ")]++
	if status := c.refusals[r.Resource+" "+r.Name]; status != 0 {
		return status
	}
	return c.refusals[r.Resource]
}

func (c *nodeTest) refuse(what string, status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refusals[what] = status
}

// Write receives the log.
func (c *nodeTest) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.log.Write(line)
}

// logged counts the lines of the log that contain all the texts.
func (c *nodeTest) logged(texts ...string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	lines := 0
	for line := range strings.Lines(c.log.String()) {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			lines++
		}
	}
	return lines
}

func (c *nodeTest) requestCount(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.requests[what]
}

func (c *nodeTest) put(objects ...simulated.Object) {
	c.Helper()
	if err := c.server.Put(objects...); err != nil {
		c.Fatal(err)
	}
}

func (c *nodeTest) delete(objects ...simulated.Object) {
	c.Helper()
	if err := c.server.Delete(objects...); err != nil {
		c.Fatal(err)
	}
}

// until waits for a condition on the facts.
func (c *nodeTest) until(what string, is func(NodeFacts) bool) NodeFacts {
	c.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		facts := c.node.Latest()
		if is(facts) {
			return facts
		}
		if time.Now().After(deadline) {
			c.Fatalf("never: %s; facts are %+v, sources %+v", what, facts, c.node.Statuses())
		}
		select {
		case <-c.node.Changed():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *nodeTest) status(name string) source.Status {
	for _, status := range c.node.Statuses() {
		if status.Name == name {
			return status
		}
	}
	c.Fatalf("there is no source %s", name)
	return source.Status{}
}

// podWithClaim returns a running pod of node-a that uses a claim by name.
func podWithClaim(name, uid, claim string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(uid)},
		Spec: corev1.PodSpec{
			NodeName:       "node-a",
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}},
			Containers:     []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// claim returns a ResourceClaim that is allocated a device, and reserved for
// pods.
func claim(name, uid, pool, device string, pods ...string) *resourcev1.ResourceClaim {
	made := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID(uid)}}
	if device != "" {
		made.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: pool, Device: device}},
		}}
	}
	for _, pod := range pods {
		made.Status.ReservedFor = append(made.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", UID: types.UID(pod)})
	}
	return made
}

// publish returns a slice of a pool; without a node it is network-attached.
func publish(name, node, pool string, generation, count int64, devices ...string) *resourcev1.ResourceSlice {
	made := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made.Spec.Driver = "gpu.nvidia.com"
	made.Spec.Pool = resourcev1.ResourcePool{Name: pool, Generation: generation, ResourceSliceCount: count}
	if node != "" {
		made.Spec.NodeName = &node
	}
	for _, device := range devices {
		made.Spec.Devices = append(made.Spec.Devices, resourcev1.Device{Name: device})
	}
	return made
}

func hasClaim(uid string) func(NodeFacts) bool {
	return func(f NodeFacts) bool {
		for _, claim := range f.Claims {
			if claim.UID == uid {
				return true
			}
		}
		return false
	}
}

func podNames(f NodeFacts) string {
	var all []string
	for _, pod := range f.Pods {
		all = append(all, pod.Ref.Name)
	}
	return strings.Join(all, " ")
}

func pods(want string) func(NodeFacts) bool {
	return func(f NodeFacts) bool { return f.PodsFresh && podNames(f) == want }
}

func published(want string) func(NodeFacts) bool {
	return func(f NodeFacts) bool { return names(f.Published) == want }
}

// podChanged waits for a change of the pods that PodChanged reports.
func (c *nodeTest) podChanged() bool {
	select {
	case <-c.node.PodChanged():
		return true
	case <-time.After(30 * time.Second):
		return false
	}
}

// noPodChange reports whether PodChanged reports nothing for a while.
func (c *nodeTest) noPodChange() bool {
	select {
	case <-c.node.PodChanged():
		return false
	case <-time.After(300 * time.Millisecond):
		return true
	}
}
