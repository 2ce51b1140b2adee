package simulated

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testTimeout = 30 * time.Second

func start(t *testing.T, options Options) *Kubelet {
	t.Helper()
	folder, err := os.MkdirTemp("", "simulated")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	kubelet, err := Start(t.Context(), filepath.Join(folder, "kubelet.sock"), options)
	must(t, err)
	t.Cleanup(kubelet.Close)
	return kubelet
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// call makes one call over a connection of its own.
func call[T any](t *testing.T, k *Kubelet, limit time.Duration, make func(context.Context, podresourcesv1.PodResourcesListerClient) (T, error)) (T, error) {
	t.Helper()
	channel, err := grpc.NewClient("unix:"+k.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer func() { _ = channel.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	return make(ctx, podresourcesv1.NewPodResourcesListerClient(channel))
}

func list(t *testing.T, k *Kubelet, limit time.Duration) (*podresourcesv1.ListPodResourcesResponse, error) {
	t.Helper()
	return call(t, k, limit, func(ctx context.Context, lister podresourcesv1.PodResourcesListerClient) (*podresourcesv1.ListPodResourcesResponse, error) {
		return lister.List(ctx, &podresourcesv1.ListPodResourcesRequest{})
	})
}

// summary renders a response in its own order, one line for each pod:
// name{container[claim(device:share:cdi ...)]}.
func summary(answer *podresourcesv1.ListPodResourcesResponse) string {
	var text strings.Builder
	for _, pod := range answer.GetPodResources() {
		text.WriteString(pod.GetName() + "{")
		for _, container := range pod.GetContainers() {
			text.WriteString(container.GetName() + "[")
			for _, claim := range container.GetDynamicResources() {
				text.WriteString(claim.GetClaimName() + "(")
				for _, device := range claim.GetClaimResources() {
					text.WriteString(device.GetDeviceName() + ":" + device.GetShareId() + ":")
					for _, cdi := range device.GetCdiDevices() {
						text.WriteString(cdi.GetName() + ",")
					}
					text.WriteString(" ")
				}
				text.WriteString(")")
			}
			text.WriteString("]")
		}
		text.WriteString("}\n")
	}
	return text.String()
}

// pair is a pod with an init container and one container for the first of
// two requests; its claim spans two drivers.
func pair(stage Stage) Pod {
	return Pod{Namespace: "ml", Name: "pair",
		Claims: []Claim{{Name: "gpus", Stage: stage, Devices: []Device{
			{Request: "left/big", Driver: "a", Name: "gpu-0", ShareID: "s", CDI: []string{"cdi-0-s"}},
			{Request: "left/big", Driver: "a", Name: "gpu-1", CDI: []string{"cdi-1"}},
			{Request: "right", Driver: "b", Name: "nic-0", CDI: []string{"cdi-2"}}}}},
		Containers: []Container{
			{Name: "init", Init: true, Uses: []Use{{Claim: "gpus"}}},
			{Name: "left", Uses: []Use{{Claim: "gpus", Request: "left"}}}}}
}

func TestFaultsInResponses(t *testing.T) {
	const left, right = "gpu-0:s:cdi-0-s, gpu-1::cdi-1, ", "nic-0::cdi-2, "
	const init = "init[gpus(" + left + right + ")]"
	for _, test := range []struct {
		faults []Fault
		stage  Stage
		want   string
	}{
		{nil, Prepared, "pair{" + init + "left[gpus(" + left + ")]}\n"},
		{nil, Named, "pair{init[]left[]}\n"},
		{nil, Unknown, "pair{init[]left[]}\n"},
		{[]Fault{EveryDevice}, Prepared, "pair{" + init + "left[gpus(" + left + right + ")]}\n"},
		{[]Fault{InitContainersHidden}, Prepared, "pair{left[gpus(" + left + ")]}\n"},
		{[]Fault{ClaimBeforeDevices}, Named, "pair{init[gpus()]left[gpus()]}\n"},
		{[]Fault{EmptyWhileUnknown}, Unknown, "pair{init[]left[]}\n"},
		{[]Fault{CumulativeCDI, InitContainersHidden}, Prepared, "pair{left[gpus(gpu-0:s:cdi-0-s, gpu-1::cdi-0-s,cdi-1, )]}\n"},
		{[]Fault{DuplicateDevices, InitContainersHidden}, Prepared, "pair{left[gpus(" + left + left + ")]}\n"},
		{[]Fault{TwoShares, InitContainersHidden}, Prepared, "pair{left[gpus(gpu-0:s:cdi-0-s, gpu-0:s-second:cdi-0-s-second, gpu-1::cdi-1, )]}\n"},
		{[]Fault{DuplicateDevices, CumulativeCDI, InitContainersHidden}, Prepared,
			"pair{left[gpus(gpu-0:s:cdi-0-s, gpu-1::cdi-0-s,cdi-1, gpu-0:s:cdi-0-s,cdi-1,cdi-0-s, gpu-1::cdi-0-s,cdi-1,cdi-0-s,cdi-1, )]}\n"},
	} {
		k := start(t, Options{Pods: []Pod{pair(test.stage)}, Faults: test.faults})
		answer, err := list(t, k, testTimeout)
		if got := summary(answer); err != nil || got != test.want {
			t.Errorf("%q: got %q, %v\nwant %q", test.faults, got, err, test.want)
		}
	}
}

// TestEmptyWhileUnknown omits a prepared claim because of an unknown one.
func TestEmptyWhileUnknown(t *testing.T) {
	pod := Pod{Name: "p", Claims: []Claim{{Name: "ready"}, {Name: "late", Stage: Unknown}},
		Containers: []Container{{Name: "c", Uses: []Use{{Claim: "ready"}, {Claim: "late"}}}}}
	k := start(t, Options{Pods: []Pod{pod}})
	for _, want := range []string{"p{c[ready()]}\n", "p{c[]}\n"} {
		if answer, err := list(t, k, testTimeout); err != nil || summary(answer) != want {
			t.Errorf("got %q, %v, want %q", summary(answer), err, want)
		}
		must(t, k.AddFaults(EmptyWhileUnknown))
	}
}

func TestChangingOrder(t *testing.T) {
	k := start(t, Options{Pods: []Pod{{Name: "a"}, {Name: "b"}}, Faults: []Fault{ChangingOrder}})
	for _, want := range []string{"a{}\nb{}\n", "b{}\na{}\n", "a{}\nb{}\n"} {
		if answer, err := list(t, k, testTimeout); err != nil || summary(answer) != want {
			t.Errorf("got %q, %v, want %q", summary(answer), err, want)
		}
	}
}

func TestFailures(t *testing.T) {
	for fault, code := range map[Fault]codes.Code{
		RateLimited:   codes.ResourceExhausted,
		Oversized:     codes.ResourceExhausted,
		Killed:        codes.Unavailable,
		SocketMissing: codes.Unavailable,
		Truncated:     codes.Internal,
		InvalidUTF8:   codes.Internal,
		Hang:          codes.DeadlineExceeded,
		Silent:        codes.DeadlineExceeded,
	} {
		t.Run(string(fault), func(t *testing.T) {
			k := start(t, Options{Pods: []Pod{{Name: "p"}}})
			must(t, k.AddFaults(fault))
			limit := testTimeout
			if code == codes.DeadlineExceeded {
				limit = 50 * time.Millisecond
			}
			if _, err := list(t, k, limit); status.Code(err) != code {
				t.Errorf("got %v, want %v", err, code)
			}
			must(t, k.RemoveFaults(fault))
			if answer, err := list(t, k, testTimeout); err != nil || summary(answer) != "p{}\n" {
				t.Errorf("after the fault: %q, %v", summary(answer), err)
			}
		})
	}
}

func TestTruncatedWithoutPods(t *testing.T) {
	k := start(t, Options{Faults: []Fault{Truncated}})
	if _, err := list(t, k, testTimeout); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
}

func TestEmptyAfterRestart(t *testing.T) {
	k := start(t, Options{Pods: []Pod{{Name: "p"}}, Faults: []Fault{EmptyAfterRestart}, EmptyFor: 100 * time.Millisecond})
	answer, err := list(t, k, testTimeout)
	if err != nil || len(answer.GetPodResources()) != 1 {
		t.Errorf("before: %v, %v", answer, err)
	}
	must(t, k.Restart())
	for deadline := time.Now().Add(testTimeout); ; {
		answer, err = list(t, k, testTimeout)
		must(t, err)
		if len(answer.GetPodResources()) == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("empty for ever")
		}
	}
	k.emptyFor = time.Hour
	must(t, k.Restart())
	if answer, err = list(t, k, testTimeout); err != nil || len(answer.GetPodResources()) != 0 {
		t.Errorf("after: %v, %v", answer, err)
	}
}

func TestGet(t *testing.T) {
	k := start(t, Options{Pods: []Pod{pair(Prepared)}, Faults: []Fault{InitContainersHidden}})
	get := func(namespace, name string) (*podresourcesv1.GetPodResourcesResponse, error) {
		return call(t, k, testTimeout, func(ctx context.Context, lister podresourcesv1.PodResourcesListerClient) (*podresourcesv1.GetPodResourcesResponse, error) {
			return lister.Get(ctx, &podresourcesv1.GetPodResourcesRequest{PodNamespace: namespace, PodName: name})
		})
	}
	if answer, err := get("ml", "pair"); err != nil || len(answer.GetPodResources().GetContainers()) != 1 {
		t.Errorf("got %v, %v", answer, err)
	}
	if _, err := get("ml", "missing"); status.Code(err) != codes.Unknown {
		t.Errorf("got %v", err)
	}
	_, err := call(t, k, testTimeout, func(ctx context.Context, lister podresourcesv1.PodResourcesListerClient) (*podresourcesv1.AllocatableResourcesResponse, error) {
		return lister.GetAllocatableResources(ctx, &podresourcesv1.AllocatableResourcesRequest{})
	})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}

func TestSocketOnDisk(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	must(t, os.WriteFile(file, []byte("precious"), 0o600))
	if _, err := Start(t.Context(), file, Options{}); err == nil {
		t.Error("a file was used as a socket")
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file is removed: %v", err)
	}
	k := start(t, Options{})
	must(t, k.AddFaults(Killed))
	again, err := Start(t.Context(), k.socket, Options{Pods: []Pod{{Name: "p"}}})
	must(t, err)
	if answer, err := list(t, again, testTimeout); err != nil || summary(answer) != "p{}\n" {
		t.Errorf("got %v, %v", answer, err)
	}
	again.Close()
	again.Close()
	if _, err := os.Lstat(k.socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}
	if again.Restart() == nil {
		t.Error("started again after Close")
	}
}

func TestContextEndsTheKubelet(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	k, err := Start(ctx, start(t, Options{Faults: []Fault{SocketMissing}}).socket, Options{Faults: []Fault{Hang}})
	must(t, err)
	failed := make(chan error, 1)
	go func() {
		_, err := list(t, k, testTimeout)
		failed <- err
	}()
	for deadline := time.Now().Add(testTimeout); k.Calls().InFlight == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no call arrived")
		}
	}
	cancel()
	if err := <-failed; status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	k.Close()
}
