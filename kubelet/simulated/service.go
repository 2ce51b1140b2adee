package simulated

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// service handles the calls of the agent. GetAllocatableResources, which the agent does
// not call and which has no claims, returns Unimplemented.
type service struct {
	podresourcesv1.UnimplementedPodResourcesListerServer
	kubelet *Kubelet
}

func (s *service) List(ctx context.Context, _ *podresourcesv1.ListPodResourcesRequest) (*podresourcesv1.ListPodResourcesResponse, error) {
	turn := s.kubelet.begin()
	defer s.kubelet.end()
	pods, set, err := s.kubelet.admit(ctx)
	if err != nil {
		return nil, err
	}
	return answer(pods, set, turn), nil
}

func (s *service) Get(ctx context.Context, request *podresourcesv1.GetPodResourcesRequest) (*podresourcesv1.GetPodResourcesResponse, error) {
	pods, set, err := s.kubelet.admit(ctx)
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		if pod.Namespace == request.GetPodNamespace() && pod.Name == request.GetPodName() {
			return &podresourcesv1.GetPodResourcesResponse{PodResources: describe(pod, set, false)}, nil
		}
	}
	return nil, status.Errorf(codes.Unknown, "pod %s in namespace %s not found", request.GetPodName(), request.GetPodNamespace())
}

// admit returns the pods and faults of a call, or its error.
func (k *Kubelet) admit(ctx context.Context) ([]Pod, faults, error) {
	k.mu.Lock()
	pods, set, emptyUntil := k.pods, k.faults, k.emptyUntil
	k.mu.Unlock()
	switch {
	case set.has(Hang):
		<-ctx.Done()
		return nil, nil, ctx.Err()
	case set.has(RateLimited):
		return nil, nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
	case set.has(EmptyAfterRestart) && time.Now().Before(emptyUntil):
		return nil, set, nil
	}
	return pods, set, nil
}

// begin counts a List and returns the number of Lists so far.
func (k *Kubelet) begin() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls.Lists++
	k.calls.InFlight++
	k.calls.MostInFlight = max(k.calls.MostInFlight, k.calls.InFlight)
	return k.calls.Lists
}

func (k *Kubelet) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls.InFlight--
}
