package demo

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	kubelet "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// lifecycles runs the steps of lifecycles. Its methods may be called by several
// goroutines, each with a different instance.
type lifecycles struct {
	server       *apiserver.Server
	nodes        map[string]*AgentNode // by name; workloads of other nodes are in the API server alone
	reservations *reservations
	clock        clock.Clock
	seed         uint64
	log          *slog.Logger
}

// createPods also creates the claim if it is not created by a controller.
func (l *lifecycles) createPods(i *instance) error {
	if i.claim != nil && i.claim.GenerateName == "" && !i.row.delayed.claimMissing {
		if err := l.server.Put(i.claim); err != nil {
			return err
		}
	}
	return l.putPods(i)
}

// createClaim creates the claim that is generated for the pod.
func (l *lifecycles) createClaim(i *instance) error {
	if i.claim == nil || i.claim.GenerateName == "" {
		return nil
	}
	if err := l.server.Put(i.claim); err != nil {
		return err
	}
	nameClaim(i.pods[0], i.row, i.claim.Name)
	return l.putPods(i)
}

func (l *lifecycles) allocate(i *instance) error {
	if i.claim == nil {
		return nil
	}
	allocate(i.claim, i.row, i.pods, l.now(), i.random)
	return l.server.Put(i.claim)
}

func (l *lifecycles) bind(i *instance) error {
	return l.changePods(i, func(pod *corev1.Pod) { bind(pod, i.row.on(), l.now()) })
}

// admit: the kubelet lists the pod, and names the claim without its devices.
func (l *lifecycles) admit(i *instance) error {
	l.nodes[i.row.on()].pods.put(i, kubelet.Named)
	return nil
}

// prepare: the driver writes the claim's CDI specification.
func (l *lifecycles) prepare(i *instance) error {
	if i.claim == nil {
		return nil
	}
	return l.nodes[i.row.on()].cdi.write(i.claim)
}

// list: the kubelet lists the devices, too.
func (l *lifecycles) list(i *instance) error {
	l.nodes[i.row.on()].pods.put(i, kubelet.Prepared)
	return nil
}

func (l *lifecycles) ready(i *instance) error {
	return l.changePods(i, func(pod *corev1.Pod) { ready(pod, l.now()) })
}

func (l *lifecycles) startInit(i *instance) error {
	if err := l.work(i, i.processes(true, min(initLoad, i.row.load))); err != nil {
		return err
	}
	return l.changePods(i, func(pod *corev1.Pod) { startInit(pod, l.now()) })
}

func (l *lifecycles) startMain(i *instance) error {
	if err := l.work(i, i.processes(false, i.row.load)); err != nil {
		return err
	}
	return l.changePods(i, func(pod *corev1.Pod) { startMain(pod, l.now()) })
}

// work sets the processes of an instance, if they can be seen.
func (l *lifecycles) work(i *instance, processes []process) error {
	node := l.nodes[i.row.on()]
	if node == nil {
		return nil
	}
	return node.activity.set(i, processes)
}

// succeed: the containers exit with success.
func (l *lifecycles) succeed(i *instance) error {
	if err := l.work(i, nil); err != nil {
		return err
	}
	return l.changePods(i, func(pod *corev1.Pod) { end(pod, corev1.PodSucceeded, l.now()) })
}

// terminate deletes the pods; their containers have a grace period.
func (l *lifecycles) terminate(i *instance) error {
	return l.changePods(i, func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(l.now())) })
}

// stop: the grace period is over.
func (l *lifecycles) stop(i *instance) error {
	if err := l.work(i, nil); err != nil {
		return err
	}
	return l.changePods(i, func(pod *corev1.Pod) { end(pod, corev1.PodRunning, l.now()) })
}

// unprepare: the kubelet no longer lists the pods, and the driver unprepares
// their claim.
func (l *lifecycles) unprepare(i *instance) error {
	node := l.nodes[i.row.on()]
	if node == nil {
		return nil
	}
	node.pods.remove(i)
	if i.claim == nil {
		return nil
	}
	return node.cdi.remove(i.claim)
}

func (l *lifecycles) deallocate(i *instance) error {
	l.reservations.release(i)
	if i.claim == nil {
		return nil
	}
	deallocate(i.claim)
	return l.server.Put(i.claim)
}

func (l *lifecycles) deleteClaim(i *instance) error {
	if i.claim == nil {
		return nil
	}
	return l.server.Delete(i.claim)
}

func (l *lifecycles) deletePods(i *instance) error {
	if err := l.server.Delete(i.events...); err != nil {
		return err
	}
	for _, pod := range i.pods {
		if err := l.server.Delete(pod); err != nil {
			return err
		}
	}
	return nil
}

func (l *lifecycles) changePods(i *instance, how func(*corev1.Pod)) error {
	for _, pod := range i.pods {
		how(pod)
		i.identify(pod)
	}
	return l.putPods(i)
}

func (l *lifecycles) putPods(i *instance) error {
	for _, pod := range i.pods {
		if err := l.server.Put(pod); err != nil {
			return err
		}
	}
	return nil
}

// delay keeps the pod from being scheduled, and writes the scheduler's condition.
// The scheduler writes none about a claim that does not exist.
func (l *lifecycles) delay(i *instance) error {
	rule := i.row.delayed.rule
	if rule == "" {
		return nil
	}
	if err := l.server.Put(i.rule()); err != nil {
		return err
	}
	return l.markUnschedulable(i)
}

// endDelay removes what keeps the pod from being scheduled.
func (l *lifecycles) endDelay(i *instance) error {
	delayed := i.row.delayed
	if delayed.rule != "" {
		return l.server.Delete(i.rule())
	}
	if delayed.claimMissing {
		i.claim.CreationTimestamp = metav1.NewTime(l.now())
		return l.server.Put(i.claim)
	}
	return l.changePods(i, func(pod *corev1.Pod) { ungate(pod) })
}

// markUnschedulable: the scheduler finds no node on which the devices are to be had.
func (l *lifecycles) markUnschedulable(i *instance) error {
	return l.changePods(i, func(pod *corev1.Pod) {
		setUnscheduled(pod, corev1.PodReasonUnschedulable, onEachNode(cannotAllocate), l.now())
	})
}

// attach: the devices can be bound now.
func (l *lifecycles) attach(i *instance) error {
	for _, result := range i.claim.Status.Allocation.Devices.Results {
		i.claim.Status.Devices = append(i.claim.Status.Devices, resourcev1.AllocatedDeviceStatus{
			Driver: result.Driver, Pool: result.Pool, Device: result.Device,
			Conditions: []metav1.Condition{{
				Type: conditionAttached, Status: metav1.ConditionTrue, Reason: "Attached", LastTransitionTime: metav1.NewTime(l.now()),
			}},
		})
	}
	return l.server.Put(i.claim)
}

// failPreparation: the driver does not answer in time, and the kubelet tries
// again.
func (l *lifecycles) failPreparation(i *instance) error {
	for _, pod := range i.pods {
		event := newEvent(pod, "FailedPrepareDynamicResources", "kubelet",
			fmt.Sprintf("Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed: rpc error: code = DeadlineExceeded desc = %s is restarting", driver), l.now())
		i.events = append(i.events, event)
		if err := l.server.Put(event); err != nil {
			return err
		}
	}
	return nil
}

// evict: a rule taints the device, and the pods that use it have to go.
func (l *lifecycles) evict(i *instance) error {
	if err := l.server.Put(i.rule()); err != nil {
		return err
	}
	return l.changePods(i, func(pod *corev1.Pod) { evict(pod, metav1.NewTime(l.now())) })
}

// reservations records which instance holds which device, as a scheduler does.
// It is safe for concurrent use.
type reservations struct {
	mu    sync.Mutex
	owner map[string]*instance // by pool and published name
}

func newReservations() *reservations { return &reservations{owner: make(map[string]*instance)} }

// reserve takes all devices that an instance needs for itself, unless another
// one has any of them.
func (o *reservations) reserve(user *instance) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	needed := user.exclusive()
	for _, name := range needed {
		if owner := o.owner[name]; owner != nil && owner != user {
			return false
		}
	}
	for _, name := range needed {
		o.owner[name] = user
	}
	return true
}

func (o *reservations) release(user *instance) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range user.exclusive() {
		if o.owner[name] == user {
			delete(o.owner, name)
		}
	}
}

// step is one step in the lifecycle of a claim and its pods, at a time after
// the first.
type step struct {
	at     time.Duration
	ready  func(*instance) bool  // condition that the step waits for; nil: none
	onWait func(*instance) error // what happens if it has to wait
	run    func(*instance) error
}

// retry is how often the condition of a step is checked.
const retry = 100 * time.Millisecond

// bindingPoll is how often the scheduler looks whether a device can be bound.
const bindingPoll = 5 * time.Second

// initLoad is how hard init containers work their devices: they hold them ready and
// compute nothing.
const initLoad = 0.004

// startSteps are the steps from the creation of the pods until they run, in the
// order and at the times of a real node (Kubernetes 1.37 and NVIDIA's driver:
// milliseconds after the pod's creation). The main containers start last.
func (l *lifecycles) startSteps(row workload) []step {
	const ms = time.Millisecond
	steps := []step{
		{at: 0, run: l.createPods},
		{at: 5 * ms, run: l.createClaim},
	}
	if row.delayed.lasts > 0 {
		steps = append(steps, step{at: 8 * ms, run: l.delay}, step{at: row.delayed.lasts, run: l.endDelay})
	}
	delay := row.delayed.lasts
	steps = append(steps, step{at: delay + 22*ms, ready: l.reservations.reserve, onWait: l.markUnschedulable, run: l.allocate})
	if row.binds > 0 {
		steps = append(steps, step{at: delay + 22*ms + row.binds, run: l.attach})
		delay += (row.binds/bindingPoll + 1) * bindingPoll
	}
	steps = append(steps, step{at: delay + 26*ms, run: l.bind})
	if l.nodes[row.on()] != nil { // the remote node has no kubelet, only its writes to the API server
		steps = append(steps,
			step{at: delay + 41*ms, run: l.admit},
			step{at: delay + 342*ms, run: l.prepare},
			step{at: delay + 351*ms, run: l.list})
	}
	if row.prepares > 0 {
		steps = append(steps, step{at: delay + row.prepares/2, run: l.failPreparation})
		delay += row.prepares
	}
	steps = append(steps, step{at: delay + 482*ms, run: l.ready})
	start := delay + 599*ms
	for _, c := range row.containers {
		if c.init > 0 {
			steps = append(steps, step{at: start, run: l.startInit})
			start += c.init
		}
	}
	return append(steps, step{at: start, run: l.startMain})
}

// endSteps returns the steps from the end of the work. Pods of jobs end by
// themselves, and are deleted when their claim has long been gone; others are
// deleted.
func (l *lifecycles) endSteps(row workload) []step {
	const ms = time.Millisecond
	if row.owner == ownedByJob {
		return []step{
			{at: 0, run: l.succeed},
			{at: 90 * ms, run: l.unprepare},
			{at: 130 * ms, run: l.deallocate},
			{at: 150 * ms, run: l.deleteClaim},
			{at: 3 * time.Second, run: l.deletePods},
		}
	}
	first := l.terminate
	if row.evicted {
		first = l.evict
	}
	return []step{
		{at: 0, run: first},
		{at: 500 * ms, run: l.stop},
		{at: 590 * ms, run: l.unprepare},
		{at: 640 * ms, run: l.deletePods},
		{at: 670 * ms, run: l.deallocate},
		{at: 690 * ms, run: l.deleteClaim},
	}
}

// run starts and ends a workload again and again until ctx ends.
func (l *lifecycles) run(ctx context.Context, t scenarioClock, row workload) error {
	for run := 0; t.until(ctx, row.starts+time.Duration(run)*row.every); run++ {
		i := newInstance(row, run, l.seed, l.now())
		log := l.log.With("namespace", row.namespace, "pod", i.pods[0].Name)
		log.Debug("a workload comes")
		if err := runSteps(ctx, t, i, l.startSteps(row)); err != nil {
			return fmt.Errorf("run %s/%s: %w", row.namespace, row.name, err)
		}
		if row.lasts == 0 || !t.until(ctx, t.now()+row.lasts) {
			return nil
		}
		log.Debug("a workload goes")
		if err := runSteps(ctx, t, i, l.endSteps(row)); err != nil {
			return fmt.Errorf("end %s/%s: %w", row.namespace, row.name, err)
		}
	}
	return nil
}

// runSteps runs steps until ctx ends.
func runSteps(ctx context.Context, t scenarioClock, i *instance, steps []step) error {
	began := t.now()
	for _, next := range steps {
		if !t.until(ctx, began+next.at) {
			return nil
		}
		for waited := false; next.ready != nil && !next.ready(i); waited = true {
			if !waited && next.onWait != nil {
				if err := next.onWait(i); err != nil {
					return err
				}
			}
			if !t.until(ctx, t.now()+retry) {
				return nil
			}
			began = t.now() - next.at // delays all later steps
		}
		if err := next.run(i); err != nil {
			return err
		}
	}
	return nil
}

// now is the wall's time in full seconds, as objects have it.
func (l *lifecycles) now() time.Time { return l.clock().Wall.Truncate(time.Second) }
