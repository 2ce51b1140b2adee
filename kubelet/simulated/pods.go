package simulated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// Pods is the Pods API of a kubelet: a gRPC server on a real unix socket over the
// pods that the caller puts. It sends pods as the kubelet of Kubernetes 1.37 does:
// with the kubelet's own status, which names no claims. All methods are safe for
// concurrent use.
type Pods struct {
	socket string

	mu         sync.Mutex
	pods       map[types.UID]*corev1.Pod
	watches    map[chan *podsv1alpha1.WatchPodsEvent]bool
	opened     int
	starting   bool // it has not loaded its pods yet
	unloaded   bool // the same, but it serves its list, which is empty
	silent     bool // watches are accepted and nothing is sent
	fullStatus bool // statuses are those of the API server
	server     *grpc.Server
	done       chan struct{}
}

// watchBuffer is how many events a watch may lag behind, as in the kubelet
// (pkg/kubelet/apis/pods). One that lags further is ended.
const watchBuffer = 100

// StartPods serves on the socket until Stop.
func StartPods(socket string, pods ...*corev1.Pod) (*Pods, error) {
	p := &Pods{socket: socket, pods: make(map[types.UID]*corev1.Pod), watches: make(map[chan *podsv1alpha1.WatchPodsEvent]bool)}
	for _, pod := range pods {
		p.pods[pod.UID] = pod.DeepCopy()
	}
	return p, p.Resume()
}

// Resume serves again after Stop.
func (p *Pods) Resume() error {
	if err := removeSocket(p.socket); err != nil {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	listening, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen as the simulated kubelet: %w", err)
	}
	server, done := grpc.NewServer(), make(chan struct{})
	podsv1alpha1.RegisterPodsServer(server, &podsService{pods: p})
	p.mu.Lock()
	p.server, p.done = server, done
	p.mu.Unlock()
	go func() {
		defer close(done)
		_ = server.Serve(listening) // ends with an error only when it is stopped
	}()
	return nil
}

// Stop breaks all connections and removes the socket. The pods stay.
func (p *Pods) Stop() {
	p.mu.Lock()
	server, done := p.server, p.done
	p.server = nil
	p.mu.Unlock()
	if server != nil {
		server.Stop()
		<-done
	}
}

// Put adds or changes pods, and sends the events.
func (p *Pods) Put(pods ...*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, pod := range pods {
		kind := podsv1alpha1.EventType_MODIFIED
		if p.pods[pod.UID] == nil {
			kind = podsv1alpha1.EventType_ADDED
		}
		p.pods[pod.UID] = pod.DeepCopy()
		p.sendPod(kind, p.reported(pod))
	}
}

// ChangeWithoutEvent changes a pod without an event, as the kubelet does with labels.
func (p *Pods) ChangeWithoutEvent(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pods[pod.UID] = pod.DeepCopy()
}

// SendLate sends an old state of a pod late, as one of the kubelet's goroutines may.
func (p *Pods) SendLate(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sendPod(podsv1alpha1.EventType_MODIFIED, p.reported(pod))
}

// EndContainers reports that a pod's containers have ended. The pod exists until
// RemoveWithoutEvent.
func (p *Pods) EndContainers(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	minimal := &corev1.Pod{}
	minimal.Namespace, minimal.Name, minimal.UID = pod.Namespace, pod.Name, pod.UID
	p.sendPod(podsv1alpha1.EventType_DELETED, minimal)
}

// RemoveWithoutEvent removes a pod without an event.
func (p *Pods) RemoveWithoutEvent(pod *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.pods, pod.UID)
}

// SendInvalid sends a pod that cannot be decoded.
func (p *Pods) SendInvalid() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send(&podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_ADDED, Pod: []byte{0xff}})
}

// SetStarting sets whether the kubelet has not loaded its pods yet.
func (p *Pods) SetStarting(starting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting = starting
}

// SetUnloaded sets whether the kubelet serves before it has loaded its pods, as that of
// Kubernetes 1.36 does. When it has loaded them, it sends them to all watches.
func (p *Pods) SetUnloaded(unloaded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unloaded = unloaded
	if !unloaded {
		for _, pod := range p.pods {
			p.sendPod(podsv1alpha1.EventType_ADDED, p.reported(pod))
		}
	}
}

// SetSilent sets whether the kubelet accepts new watches and sends nothing.
func (p *Pods) SetSilent(silent bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = silent
}

// SetFullStatus sets whether statuses are those of the API server, as of a kubelet that
// has just started, or have no names of claims.
func (p *Pods) SetFullStatus(full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fullStatus = full
}

// Watches returns how many are open, and how many have been opened so far.
func (p *Pods) Watches() (open, opened int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watches), p.opened
}

// reported is the pod with the status that the kubelet sends.
func (p *Pods) reported(pod *corev1.Pod) *corev1.Pod {
	copied := pod.DeepCopy()
	if !p.fullStatus {
		copied.Status.ResourceClaimStatuses, copied.Status.ExtendedResourceClaimStatus = nil, nil
	}
	return copied
}

func (p *Pods) sendPod(kind podsv1alpha1.EventType, pod *corev1.Pod) {
	bytes, err := pod.Marshal()
	if err != nil {
		panic(err) // the caller's own pod
	}
	p.send(&podsv1alpha1.WatchPodsEvent{Type: kind, Pod: bytes})
}

func (p *Pods) send(event *podsv1alpha1.WatchPodsEvent) {
	for watch := range p.watches {
		select {
		case watch <- event:
		default:
			delete(p.watches, watch)
			close(watch)
		}
	}
}

// podsService handles the calls of the agent, which makes only one.
type podsService struct {
	podsv1alpha1.UnimplementedPodsServer
	pods *Pods
}

func (s *podsService) WatchPods(_ *podsv1alpha1.WatchPodsRequest, stream podsv1alpha1.Pods_WatchPodsServer) error {
	events, present, err := s.pods.open(stream.Context())
	if err != nil {
		return err
	}
	defer s.pods.close(events)
	for _, event := range append(present, &podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE}) {
		if err := stream.Send(event); err != nil {
			return err
		}
	}
	for {
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case event, ok := <-events:
			if !ok {
				return status.Error(codes.ResourceExhausted, "watch client channel closed")
			}
			if err := stream.Send(event); err != nil {
				return err
			}
		}
	}
}

// open begins a watch with all pods, in the order of their UIDs.
func (p *Pods) open(ctx context.Context) (events chan *podsv1alpha1.WatchPodsEvent, present []*podsv1alpha1.WatchPodsEvent, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opened++
	if p.starting {
		return nil, nil, status.Error(codes.FailedPrecondition, "Kubelet is initializing")
	}
	if p.silent {
		p.mu.Unlock()
		<-ctx.Done()
		p.mu.Lock()
		return nil, nil, ctx.Err()
	}
	events = make(chan *podsv1alpha1.WatchPodsEvent, watchBuffer)
	p.watches[events] = true
	if p.unloaded {
		return events, nil, nil
	}
	var uids []types.UID
	for uid := range p.pods {
		uids = append(uids, uid)
	}
	slices.Sort(uids)
	for _, uid := range uids {
		bytes, err := p.reported(p.pods[uid]).Marshal()
		if err != nil {
			return events, nil, errors.New("marshal a pod")
		}
		present = append(present, &podsv1alpha1.WatchPodsEvent{Type: podsv1alpha1.EventType_ADDED, Pod: bytes})
	}
	return events, present, nil
}

func (p *Pods) close(events chan *podsv1alpha1.WatchPodsEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watches, events)
}
