package simulation

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/simulation/apiserver"
	kubelet "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// node is where the steps of lives happen. Its methods may be called by
// several goroutines, each with an instance of its own.
type node struct {
	server    *apiserver.Server
	pods      *podList
	cdi       cdiFolder
	activity  *activity
	occupancy *occupancy
	clock     clock.Clock
	seed      uint64
	log       *slog.Logger
}

// createPods also creates the claim if somebody makes it by hand.
func (n *node) createPods(i *instance) error {
	if i.claim != nil && i.claim.GenerateName == "" && !i.row.hindered.unmade {
		if err := n.server.Put(i.claim); err != nil {
			return err
		}
	}
	return n.putPods(i)
}

// createClaim creates the claim that is made for the pod.
func (n *node) createClaim(i *instance) error {
	if i.claim == nil || i.claim.GenerateName == "" {
		return nil
	}
	if err := n.server.Put(i.claim); err != nil {
		return err
	}
	nameClaim(i.pods[0], i.row, i.claim.Name)
	return n.putPods(i)
}

func (n *node) allocate(i *instance) error {
	if i.claim == nil {
		return nil
	}
	allocate(i.claim, i.row, i.pods, n.now(), i.random)
	return n.server.Put(i.claim)
}

func (n *node) bind(i *instance) error {
	return n.changePods(i, func(pod *corev1.Pod) { bind(pod, i.row.on(), n.now()) })
}

// admit: the kubelet lists the pod, and names the claim without its devices.
func (n *node) admit(i *instance) error {
	n.pods.put(i, kubelet.Named)
	return nil
}

// prepare: the driver writes the claim's CDI specification.
func (n *node) prepare(i *instance) error {
	if i.claim == nil {
		return nil
	}
	return n.cdi.write(i.claim)
}

// list: the kubelet lists the devices, too.
func (n *node) list(i *instance) error {
	n.pods.put(i, kubelet.Prepared)
	return nil
}

func (n *node) ready(i *instance) error {
	return n.changePods(i, func(pod *corev1.Pod) { ready(pod, n.now()) })
}

func (n *node) startInit(i *instance) error {
	if err := n.activity.set(i, i.processes(true, min(initLoad, i.row.load))); err != nil {
		return err
	}
	return n.changePods(i, func(pod *corev1.Pod) { startInit(pod, n.now()) })
}

func (n *node) startMain(i *instance) error {
	if err := n.activity.set(i, i.processes(false, i.row.load)); err != nil {
		return err
	}
	return n.changePods(i, func(pod *corev1.Pod) { startMain(pod, n.now()) })
}

// succeed: the containers have done their work.
func (n *node) succeed(i *instance) error {
	if err := n.activity.set(i, nil); err != nil {
		return err
	}
	return n.changePods(i, func(pod *corev1.Pod) { end(pod, corev1.PodSucceeded, n.now()) })
}

// terminate: somebody deletes the pods; their containers have some time left.
func (n *node) terminate(i *instance) error {
	return n.changePods(i, func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(n.now())) })
}

// stop: the time is over.
func (n *node) stop(i *instance) error {
	if err := n.activity.set(i, nil); err != nil {
		return err
	}
	return n.changePods(i, func(pod *corev1.Pod) { end(pod, corev1.PodRunning, n.now()) })
}

// unprepare: the kubelet lists the pods no more and has the driver take back
// what it prepared.
func (n *node) unprepare(i *instance) error {
	if i.row.node != "" {
		return nil
	}
	n.pods.remove(i)
	if i.claim == nil {
		return nil
	}
	return n.cdi.remove(i.claim)
}

func (n *node) deallocate(i *instance) error {
	n.occupancy.release(i)
	if i.claim == nil {
		return nil
	}
	deallocate(i.claim)
	return n.server.Put(i.claim)
}

func (n *node) deleteClaim(i *instance) error {
	if i.claim == nil {
		return nil
	}
	return n.server.Delete(i.claim)
}

func (n *node) deletePods(i *instance) error {
	if err := n.server.Delete(i.events...); err != nil {
		return err
	}
	for _, pod := range i.pods {
		if err := n.server.Delete(pod); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) changePods(i *instance, how func(*corev1.Pod)) error {
	for _, pod := range i.pods {
		how(pod)
		i.identify(pod)
	}
	return n.putPods(i)
}

func (n *node) putPods(i *instance) error {
	for _, pod := range i.pods {
		if err := n.server.Put(pod); err != nil {
			return err
		}
	}
	return nil
}
