package demo

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// nodeFixture is a node without a scenario: tests take single steps.
type nodeFixture struct {
	*Simulation
	lister         podresourcesv1.PodResourcesListerClient
	core, resource rest.Interface
}

func newNodeFixture(t *testing.T) *nodeFixture {
	t.Helper()
	s, err := Start(context.Background(), Options{Dir: t.TempDir(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	channel, err := grpc.NewClient("unix:"+s.KubeletSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = channel.Close() })
	return &nodeFixture{
		Simulation: s,
		lister:     podresourcesv1.NewPodResourcesListerClient(channel),
		core:       restClient(t, s.Config(), "/api", corev1.SchemeGroupVersion),
		resource:   restClient(t, s.Config(), "/apis", resourcev1.SchemeGroupVersion),
	}
}

func restClient(t *testing.T, config *rest.Config, path string, group schema.GroupVersion) rest.Interface {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, resourcev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	config.APIPath, config.GroupVersion = path, &group
	config.QPS = -1 // as fast as the tests can
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Client.CloseIdleConnections)
	return client
}

// row finds a workload of the scenario.
func row(t *testing.T, name string) workload {
	t.Helper()
	for _, w := range scenario() {
		if w.name == name {
			return w
		}
	}
	t.Fatalf("there is no workload %s", name)
	return workload{}
}

// describe returns one line with all that is visible of an instance.
func (s *nodeFixture) describe(t *testing.T, i *instance) string {
	t.Helper()
	file := "no CDI"
	if _, err := os.Stat(s.cdi.file(i.claim.UID)); err == nil {
		file = "CDI"
	}
	return strings.Join([]string{s.pod(t, i), s.claim(t, i), s.listing(t), file, s.load(i)}, ", ")
}

func (s *nodeFixture) pod(t *testing.T, i *instance) string {
	t.Helper()
	list := &corev1.PodList{}
	if err := s.core.Get().Namespace(i.row.namespace).Resource("pods").Do(t.Context()).Into(list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return "no pod"
	}
	pod := list.Items[0]
	words := []string{string(pod.Status.Phase)}
	if pod.Spec.NodeName != "" {
		words = append(words, "bound")
	}
	for _, gate := range pod.Spec.SchedulingGates {
		words = append(words, gate.Name)
	}
	for _, condition := range pod.Status.Conditions {
		switch {
		case condition.Type == corev1.PodReadyToStartContainers:
			words = append(words, "sandbox")
		case condition.Type == corev1.DisruptionTarget:
			words = append(words, condition.Reason)
		case condition.Status == corev1.ConditionFalse:
			words = append(words, condition.Reason)
		}
	}
	if pod.DeletionTimestamp != nil {
		words = append(words, "deleted")
	}
	for _, status := range append(slices.Clone(pod.Status.InitContainerStatuses), pod.Status.ContainerStatuses...) {
		switch {
		case status.State.Running != nil:
			words = append(words, status.Name)
		case status.State.Terminated != nil:
			words = append(words, status.Name+" done")
		}
	}
	if len(pod.Status.ResourceClaimStatuses) > 0 && *pod.Status.ResourceClaimStatuses[0].ResourceClaimName == i.claim.Name {
		words = append(words, "names claim")
	}
	return strings.Join(words, " ")
}

func (s *nodeFixture) claim(t *testing.T, i *instance) string {
	t.Helper()
	list := &resourcev1.ResourceClaimList{}
	if err := s.resource.Get().Namespace(i.row.namespace).Resource("resourceclaims").Do(t.Context()).Into(list); err != nil {
		t.Fatal(err)
	}
	switch {
	case len(list.Items) == 0:
		return "no claim"
	case list.Items[0].Status.Allocation == nil:
		return "claim"
	default:
		said := fmt.Sprintf("claim of %s for %d", list.Items[0].Status.Allocation.Devices.Results[0].Device, len(list.Items[0].Status.ReservedFor))
		for _, device := range list.Items[0].Status.Devices {
			said += " " + device.Conditions[0].Type
		}
		return said
	}
}

func (s *nodeFixture) listing(t *testing.T) string {
	t.Helper()
	answer, err := s.lister.List(t.Context(), &podresourcesv1.ListPodResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.GetPodResources()) == 0 {
		return "not listed"
	}
	words := []string{"listed"}
	for _, container := range answer.GetPodResources()[0].GetContainers() {
		words = append(words, container.GetName())
		for _, claim := range container.GetDynamicResources() {
			words = append(words, "claim")
			for _, device := range claim.GetClaimResources() {
				words = append(words, device.GetDeviceName())
			}
		}
	}
	return strings.Join(words, " ")
}

func (s *nodeFixture) load(i *instance) string {
	s.activity.mu.Lock()
	defer s.activity.mu.Unlock()
	return fmt.Sprintf("load %g", s.activity.load(i.row.usedBy(0)[0]))
}

// history runs all steps and describes the state after each.
func (s *nodeFixture) history(t *testing.T, w workload) []string {
	t.Helper()
	i := newInstance(w, 0, 1, time.Unix(0, 0))
	var lines []string
	for _, next := range append(s.lifecycles.startSteps(w), s.lifecycles.endSteps(w)...) {
		if next.ready != nil && !next.ready(i) {
			t.Fatal("devices are taken on an empty node")
		}
		if err := next.run(i); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s: %s", next.at, s.describe(t, i)))
	}
	return lines
}

func TestLifecycleOfJobClaim(t *testing.T) {
	expect(t, newNodeFixture(t).history(t, row(t, "finetune")), `
0s: Pending, no claim, not listed, no CDI, load 0
5ms: Pending names claim, claim, not listed, no CDI, load 0
22ms: Pending names claim, claim of gpu-2 for 1, not listed, no CDI, load 0
26ms: Pending bound names claim, claim of gpu-2 for 1, not listed, no CDI, load 0
41ms: Pending bound names claim, claim of gpu-2 for 1, listed train claim, no CDI, load 0
342ms: Pending bound names claim, claim of gpu-2 for 1, listed train claim, CDI, load 0
351ms: Pending bound names claim, claim of gpu-2 for 1, listed train claim gpu-2, CDI, load 0
482ms: Pending bound sandbox names claim, claim of gpu-2 for 1, listed train claim gpu-2, CDI, load 0
599ms: Pending bound sandbox download names claim, claim of gpu-2 for 1, listed train claim gpu-2, CDI, load 0.004
5.599s: Running bound sandbox download done train names claim, claim of gpu-2 for 1, listed train claim gpu-2, CDI, load 0.9
0s: Succeeded bound sandbox download done train done names claim, claim of gpu-2 for 1, listed train claim gpu-2, CDI, load 0
90ms: Succeeded bound sandbox download done train done names claim, claim of gpu-2 for 1, not listed, no CDI, load 0
130ms: Succeeded bound sandbox download done train done names claim, claim, not listed, no CDI, load 0
150ms: Succeeded bound sandbox download done train done names claim, no claim, not listed, no CDI, load 0
3s: no pod, no claim, not listed, no CDI, load 0`)
}

func TestLifecycleOfNamedClaim(t *testing.T) {
	const device = "gpu-5-mig-1g10gb-19-6"
	expect(t, newNodeFixture(t).history(t, row(t, "scratch")), strings.ReplaceAll(`
0s: Pending, claim, not listed, no CDI, load 0
5ms: Pending, claim, not listed, no CDI, load 0
22ms: Pending, claim of DEVICE for 1, not listed, no CDI, load 0
26ms: Pending bound, claim of DEVICE for 1, not listed, no CDI, load 0
41ms: Pending bound, claim of DEVICE for 1, listed jupyter claim, no CDI, load 0
342ms: Pending bound, claim of DEVICE for 1, listed jupyter claim, CDI, load 0
351ms: Pending bound, claim of DEVICE for 1, listed jupyter claim DEVICE, CDI, load 0
482ms: Pending bound sandbox, claim of DEVICE for 1, listed jupyter claim DEVICE, CDI, load 0
599ms: Running bound sandbox jupyter, claim of DEVICE for 1, listed jupyter claim DEVICE, CDI, load 0.35
0s: Running bound sandbox deleted jupyter, claim of DEVICE for 1, listed jupyter claim DEVICE, CDI, load 0.35
500ms: Running bound sandbox deleted jupyter done, claim of DEVICE for 1, listed jupyter claim DEVICE, CDI, load 0
590ms: Running bound sandbox deleted jupyter done, claim of DEVICE for 1, not listed, no CDI, load 0
640ms: no pod, claim of DEVICE for 1, not listed, no CDI, load 0
670ms: no pod, claim, not listed, no CDI, load 0
690ms: no pod, no claim, not listed, no CDI, load 0`, "DEVICE", device))
}

func expect(t *testing.T, got []string, want string) {
	t.Helper()
	if text := "\n" + strings.Join(got, "\n"); text != want {
		t.Errorf("got:%s\nwant:%s", text, want)
	}
}

func TestClaimWaitsForDevice(t *testing.T) {
	s := newNodeFixture(t)
	first, second := newInstance(row(t, "finetune"), 0, 1, time.Unix(0, 0)), newInstance(row(t, "evaluate"), 0, 1, time.Unix(0, 0))
	if !s.lifecycles.reservations.reserve(first) || s.lifecycles.reservations.reserve(second) {
		t.Fatal("two claims have one GPU")
	}
	turns, refused := 0, 0
	steps := []step{{
		onWait: func(*instance) error { refused++; return nil },
		ready: func(i *instance) bool {
			if turns++; turns == 3 {
				s.lifecycles.reservations.release(first)
			}
			return s.lifecycles.reservations.reserve(i)
		},
		run: func(*instance) error { return nil },
	}}
	if err := runSteps(t.Context(), scenarioClock{time.Now(), 100}, second, steps); err != nil || turns != 3 || refused != 1 {
		t.Errorf("took the GPU at turn %d, refused %d times: %v", turns, refused, err)
	}
}
