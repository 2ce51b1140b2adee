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

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// podStep is a step at which a phase of a pod begins or ends.
type podStep int

const (
	pending   podStep = iota // both the pod and its claim exist
	allocated                // the claim is allocated
	attached                 // all binding conditions are true
	bound                    // the pod is bound to a node
	sandbox                  // the pod's sandbox is ready
	started                  // the first container has started
	stepCount int     = iota
)

// stepTimes is when each step was first observed; the zero time: not yet. A
// step that was observed only together with a later one has the same time.
type stepTimes [stepCount]time.Time

// podHistory watches pods and claims of a namespace itself, so that the
// exporter's durations can be compared with those that this process observed.
// The watches append to it concurrently.
type podHistory struct {
	mu      sync.Mutex
	pods    map[string]*stepTimes
	claims  map[string]*stepTimes // by claim name: steps of the claims
	users   map[string]string     // claim → pod
	failure error
}

// watchHistory watches a namespace until the test ends.
func watchHistory(t *testing.T, namespace string) *podHistory {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	c := &podHistory{pods: map[string]*stepTimes{}, claims: map[string]*stepTimes{}, users: map[string]string{}}
	pods, err := shared.Client().CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := shared.Client().ResourceV1().ResourceClaims(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go c.record(ctx, pods)
	go c.record(ctx, claims)
	return c
}

func (c *podHistory) record(ctx context.Context, events watch.Interface) {
	defer events.Stop()
	for event := range events.ResultChan() {
		now := time.Now()
		c.mu.Lock()
		switch object := event.Object.(type) {
		case *corev1.Pod:
			c.recordPod(now, object)
		case *resourceapi.ResourceClaim:
			c.recordClaim(now, object)
		default:
			c.failure = fmt.Errorf("the watch says %v", event)
		}
		c.mu.Unlock()
	}
	if ctx.Err() == nil {
		c.mu.Lock()
		c.failure = fmt.Errorf("the watch ended")
		c.mu.Unlock()
	}
}

// record records the first time at which a condition was true.
func (l *stepTimes) record(m podStep, now time.Time, is bool) {
	if is && l[m].IsZero() {
		l[m] = now
	}
}

func timesFor(all map[string]*stepTimes, name string) *stepTimes {
	if all[name] == nil {
		all[name] = &stepTimes{}
	}
	return all[name]
}

func (c *podHistory) recordPod(now time.Time, pod *corev1.Pod) {
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
	l := timesFor(c.pods, pod.Name)
	l.record(pending, now, true)
	l.record(bound, now, pod.Spec.NodeName != "")
	l.record(sandbox, now, slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReadyToStartContainers && condition.Status == corev1.ConditionTrue
	}))
	l.record(started, now, slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		return status.State.Running != nil || status.State.Terminated != nil
	}))
}

func (c *podHistory) recordClaim(now time.Time, claim *resourceapi.ResourceClaim) {
	l := timesFor(c.claims, claim.Name)
	l.record(pending, now, true)
	if claim.Status.Allocation == nil {
		return
	}
	l.record(allocated, now, true)
	l.record(attached, now, bindingConditionsTrue(claim))
}

// bindingConditionsTrue reports whether each binding condition of each device
// is true.
func bindingConditionsTrue(claim *resourceapi.ResourceClaim) bool {
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

// timesOf returns the times of a pod, merged with those of its only claim.
func (c *podHistory) timesOf(t *testing.T, pod string) stepTimes {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		t.Fatal(c.failure)
	}
	l := *timesFor(c.pods, pod)
	for claim, user := range c.users {
		if user != pod {
			continue
		}
		of := timesFor(c.claims, claim)
		l[allocated], l[attached] = of[allocated], of[attached]
		if of[pending].After(l[pending]) {
			l[pending] = of[pending]
		}
	}
	return l
}

// phases returns the durations that the histograms must have, in seconds.
func (l stepTimes) phases(hasConditions bool) map[string]float64 {
	between := func(from, to podStep) float64 { return l[to].Sub(l[from]).Seconds() }
	phases := map[string]float64{"allocation": between(pending, allocated), "scheduling": between(attached, bound)}
	if hasConditions {
		phases["binding"] = between(allocated, attached)
	}
	if shared.Has(releases.PromptSandboxes) {
		phases["preparation"], phases["start"] = between(bound, sandbox), between(sandbox, started)
	} else {
		phases["preparation_start"] = between(bound, started)
	}
	return phases
}
