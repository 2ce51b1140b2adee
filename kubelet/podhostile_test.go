package kubelet

import (
	"bytes"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// scriptedPods is a kubelet whose Pods API sends the events of a function, one watch
// after another.
type scriptedPods struct {
	podsv1alpha1.UnimplementedPodsServer
	send atomic.Pointer[func(send func(kind podsv1alpha1.EventType, pod []byte) bool)]
}

func (s *scriptedPods) WatchPods(_ *podsv1alpha1.WatchPodsRequest, stream podsv1alpha1.Pods_WatchPodsServer) error {
	(*s.send.Load())(func(kind podsv1alpha1.EventType, pod []byte) bool {
		return stream.Send(&podsv1alpha1.WatchPodsEvent{Type: kind, Pod: pod}) == nil
	})
	<-stream.Context().Done()
	return nil
}

const (
	added    = podsv1alpha1.EventType_ADDED
	modified = podsv1alpha1.EventType_MODIFIED
	deleted  = podsv1alpha1.EventType_DELETED
	synced   = podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE
)

// startScripted serves on a socket until the test ends.
func startScripted(t *testing.T, send func(func(podsv1alpha1.EventType, []byte) bool)) (s *scriptedPods, socket string) {
	t.Helper()
	socket = freshSocket(t)
	listener, err := net.Listen("unix", socket)
	must(t, err)
	s = &scriptedPods{}
	s.send.Store(&send)
	server := grpc.NewServer(grpc.MaxSendMsgSize(64 << 20))
	podsv1alpha1.RegisterPodsServer(server, s)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return s, socket
}

func podBytes(t *testing.T, uid string) []byte {
	t.Helper()
	raw, err := newPod(uid, "pod-"+uid[:min(len(uid), 20)], "Running").Marshal()
	must(t, err)
	return raw
}

// TestPodOfEmptyEntries has a pod that would need gigabytes once it is decoded. It is
// omitted, with the limit in the message; the other pods are not.
func TestPodOfEmptyEntries(t *testing.T) {
	_, socket := startScripted(t, func(send func(podsv1alpha1.EventType, []byte) bool) {
		send(added, append(podBytes(t, "1"), field(2, bytes.Repeat(field(2, nil), 15<<19))...))
		send(added, podBytes(t, "2"))
		send(synced, nil)
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w, followed := watchPods(t, PodsOptions{Socket: socket})
	eventuallyIs(t, followed, "2=pod-2 Running")
	runtime.ReadMemStats(&after)
	eventually(t, "the message", func() bool { return w.Status().Reason == source.ReasonResourceExhausted })
	if s := w.Status(); !s.Up || !strings.Contains(s.Message, "250000 fields") {
		t.Errorf("status %+v", s)
	}
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 160 {
		t.Errorf("it allocated %d MiB", allocated)
	}
}

// TestPodLargerThanAMessage checks that an event above the size limit ends the watch.
func TestPodLargerThanAMessage(t *testing.T) {
	_, socket := startScripted(t, func(send func(podsv1alpha1.EventType, []byte) bool) {
		send(added, append(podBytes(t, "1"), field(2, make([]byte, 17<<20))...))
		send(synced, nil)
	})
	w, _ := watchPods(t, PodsOptions{Socket: socket})
	eventually(t, "the message", func() bool { return w.Status().Reason == source.ReasonResourceExhausted })
	if s := w.Status(); s.Up || !strings.Contains(s.Message, "16 MiB") {
		t.Errorf("status %+v", s)
	}
}

// TestPodsWithoutEnd checks that an endless list of pods is read up to the limit,
// however often the watch is reopened, and that later pods replace them.
func TestPodsWithoutEnd(t *testing.T) {
	kinds := map[string]podsv1alpha1.EventType{"of a list": added, "that come": modified, "that end": deleted}
	for what, kind := range kinds {
		t.Run(what, func(t *testing.T) {
			var named atomic.Int64
			flood := func(send func(podsv1alpha1.EventType, []byte) bool) {
				if kind != added && !send(synced, nil) {
					return
				}
				for send(kind, podBytes(t, fmt.Sprint(named.Add(1)))) {
				}
			}
			server, socket := startScripted(t, flood)
			w, followed := watchPods(t, PodsOptions{Socket: socket})
			eventually(t, "three watches are ended", func() bool {
				followed.mu.Lock()
				defer followed.mu.Unlock()
				if len(followed.pods) > maxPods {
					t.Fatalf("%d pods are known", len(followed.pods))
				}
				return w.Status().Errors >= 3
			})
			if s := w.Status(); s.Up || s.Reason != source.ReasonResourceExhausted || !strings.Contains(s.Message, "10000 pods") {
				t.Errorf("status %+v", s)
			}
			last := func(send func(podsv1alpha1.EventType, []byte) bool) {
				send(added, podBytes(t, "last"))
				send(synced, nil)
			}
			server.send.Store(&last)
			eventuallyIs(t, followed, "last=pod-last Running")
		})
	}
}

// TestPodsWithLongNames checks the limits of names and UIDs, which limit the memory of
// ten thousand pods.
func TestPodsWithLongNames(t *testing.T) {
	long := strings.Repeat("long-", 1<<18)
	_, socket := startScripted(t, func(send func(podsv1alpha1.EventType, []byte) bool) {
		send(added, podBytes(t, long))
		send(deleted, podBytes(t, long))
		send(added, podBytes(t, "1"))
		send(synced, nil)
	})
	w, followed := watchPods(t, PodsOptions{Socket: socket})
	eventuallyIs(t, followed, "1=pod-1 Running")
	eventually(t, "the message", func() bool { return w.Status().Reason == source.ReasonResourceExhausted })
	if s := w.Status(); !s.Up || !strings.Contains(s.Message, "2 pods") || !strings.Contains(s.Message, "128 bytes") {
		t.Errorf("status %+v", s)
	}
}

// TestListOfPodsThatDoesNotEnd checks that SyncTimeout ends a list that never
// completes.
func TestListOfPodsThatDoesNotEnd(t *testing.T) {
	_, socket := startScripted(t, func(send func(podsv1alpha1.EventType, []byte) bool) {
		for send(added, podBytes(t, "1")) {
			time.Sleep(time.Millisecond)
		}
	})
	w, _ := watchPods(t, PodsOptions{Socket: socket, SyncTimeout: 300 * time.Millisecond})
	eventually(t, "a timeout", func() bool { return w.Status().Reason == source.ReasonTimeout })
}

// TestChangesWithoutEnd checks that endless changes of one pod need no more memory.
func TestChangesWithoutEnd(t *testing.T) {
	var sent atomic.Int64
	_, socket := startScripted(t, func(send func(podsv1alpha1.EventType, []byte) bool) {
		send(synced, nil)
		for send(modified, podBytes(t, "1")) {
			sent.Add(1)
		}
	})
	w, followed := watchPods(t, PodsOptions{Socket: socket})
	eventuallyIs(t, followed, "1=pod-1 Running")
	use := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, from := use(), sent.Load()
	eventually(t, "20,000 changes", func() bool { return sent.Load() > from+20_000 })
	if after := use(); after > before+(8<<20) {
		t.Errorf("the heap grew from %d to %d KiB", before>>10, after>>10)
	}
	if s := w.Status(); !s.Up || s.Reason != source.ReasonNone {
		t.Errorf("status %+v", s)
	}
}
