package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// moment is a step in a pod's life that a phase begins or ends with.
type moment int

const (
	waiting   moment = iota // both the pod and its claim exist
	allocated               // so is its claim
	attached                // all binding conditions are true
	bound                   // to a node
	sandbox                 // its sandbox is ready
	started                 // its first container
	moments   int    = iota
)

// life is when each moment was seen; the zero time: not yet. A moment that was
// seen only together with a later one has the same time.
type life [moments]time.Time

// chronicle watches pods and claims of a namespace itself, so that what the
// exporter says can be compared with when this process saw it happen.
type chronicle struct {
	mu     sync.Mutex
	pods   map[string]*life
	claims map[string]*life  // what their claims went through
	users  map[string]string // claim → pod
	broken error
}

// chronicleOf watches a namespace until the test ends.
func chronicleOf(t *testing.T, namespace string) *chronicle {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	c := &chronicle{pods: map[string]*life{}, claims: map[string]*life{}, users: map[string]string{}}
	pods, err := shared.Client().CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := shared.Client().ResourceV1().ResourceClaims(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go c.follow(ctx, pods)
	go c.follow(ctx, claims)
	return c
}

func (c *chronicle) follow(ctx context.Context, events watch.Interface) {
	defer events.Stop()
	for event := range events.ResultChan() {
		now := time.Now()
		c.mu.Lock()
		switch object := event.Object.(type) {
		case *corev1.Pod:
			c.pod(now, object)
		case *resourceapi.ResourceClaim:
			c.claim(now, object)
		default:
			c.broken = fmt.Errorf("the watch says %v", event)
		}
		c.mu.Unlock()
	}
	if ctx.Err() == nil {
		c.mu.Lock()
		c.broken = fmt.Errorf("the watch ended")
		c.mu.Unlock()
	}
}

// at notes the first time that something was so.
func (l *life) at(m moment, now time.Time, is bool) {
	if is && l[m].IsZero() {
		l[m] = now
	}
}

func of(lives map[string]*life, name string) *life {
	if lives[name] == nil {
		lives[name] = &life{}
	}
	return lives[name]
}

func (c *chronicle) pod(now time.Time, pod *corev1.Pod) {
	for _, status := range pod.Status.ResourceClaimStatuses {
		if status.ResourceClaimName != nil {
			c.users[*status.ResourceClaimName] = pod.Name
		}
	}
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.ResourceClaimName != nil {
			c.users[*claim.ResourceClaimName] = pod.Name
		}
	}
	l := of(c.pods, pod.Name)
	l.at(waiting, now, true)
	l.at(bound, now, pod.Spec.NodeName != "")
	l.at(sandbox, now, slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReadyToStartContainers && condition.Status == corev1.ConditionTrue
	}))
	l.at(started, now, slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.State.Running != nil || status.State.Terminated != nil
	}))
}

func (c *chronicle) claim(now time.Time, claim *resourceapi.ResourceClaim) {
	l := of(c.claims, claim.Name)
	l.at(waiting, now, true)
	if claim.Status.Allocation == nil {
		return
	}
	l.at(allocated, now, true)
	l.at(attached, now, hasAll(claim))
}

// hasAll: each binding condition of each device is true.
func hasAll(claim *resourceapi.ResourceClaim) bool {
	for _, result := range claim.Status.Allocation.Devices.Results {
		var conditions []metav1.Condition
		for _, status := range claim.Status.Devices {
			if status.Driver == result.Driver && status.Pool == result.Pool && status.Device == result.Device {
				conditions = status.Conditions
			}
		}
		for _, condition := range result.BindingConditions {
			if !meta.IsStatusConditionTrue(conditions, condition) {
				return false
			}
		}
	}
	return true
}

// lifeOf is a pod's, with what its only claim went through.
func (c *chronicle) lifeOf(t *testing.T, pod string) life {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != nil {
		t.Fatal(c.broken)
	}
	l := *of(c.pods, pod)
	for claim, user := range c.users {
		if user != pod {
			continue
		}
		of := of(c.claims, claim)
		l[allocated], l[attached] = of[allocated], of[attached]
		if of[waiting].After(l[waiting]) {
			l[waiting] = of[waiting]
		}
	}
	return l
}

// phases are what the histograms are to say, in seconds.
func (l life) phases(hasConditions bool) map[string]float64 {
	between := func(from, to moment) float64 { return l[to].Sub(l[from]).Seconds() }
	phases := map[string]float64{"allocation": between(waiting, allocated), "scheduling": between(attached, bound)}
	if hasConditions {
		phases["binding"] = between(allocated, attached)
	}
	if shared.Minor() >= 36 {
		phases["preparation"], phases["start"] = between(bound, sandbox), between(sandbox, started)
	} else {
		phases["preparation_start"] = between(bound, started)
	}
	return phases
}
