package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// serversPod is a pod with a claim.
func serversPod(name, version, claim string, phase corev1.PodPhase) corev1.Pod {
	pod := corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version},
	}
	pod.Spec.NodeName = "node-a"
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	pod.Status.Phase = phase
	return pod
}

func serversWrite(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func serversEvent(w http.ResponseWriter, kind string, object any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, raw)
	return err
}

// serversNode reads the node's pods from a server until the test ends.
func serversNode(t *testing.T, limits apiserver.Limits, pods http.HandlerFunc) *apiserver.NodeWatch {
	t.Helper()
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/pods") {
			http.NotFound(w, r)
			return
		}
		pods(w, r)
	}))
	n, err := apiserver.New(apiserver.Options{
		Config: &rest.Config{Host: served.URL}, Node: "node-a", Limits: limits,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: clock.System(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { n.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait(); served.CloseClientConnections(); served.Close() })
	return n
}

func serversUntil(t *testing.T, n *apiserver.NodeWatch, what string, is func(apiserver.NodeFacts, source.Status) bool) {
	t.Helper()
	var facts apiserver.NodeFacts
	var status source.Status
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if facts, status = n.Latest(), n.Statuses()[0]; is(facts, status) {
			return
		}
	}
	t.Fatalf("%s: %+v, %+v", what, status, facts.Pods)
}

// TestServersWatchInNoOrder: a watch whose events arrive in any order, are of
// objects that never existed, and never include a bookmark, is applied as it
// arrives. The next list corrects its errors.
func TestServersWatchInNoOrder(t *testing.T) {
	listed := corev1.PodList{
		TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "100"},
		Items: []corev1.Pod{serversPod("one", "90", "a", corev1.PodRunning)},
	}
	var lists, watches atomic.Int32
	n := serversNode(t, apiserver.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		switch query := r.URL.Query(); {
		case query.Get("sendInitialEvents") != "":
			http.Error(w, "no streams", http.StatusUnprocessableEntity)
		case query.Get("watch") == "":
			lists.Add(1)
			serversWrite(w, http.StatusOK, listed)
		case watches.Add(1) == 1:
			w.Header().Set("Content-Type", "application/json")
			_ = serversEvent(w, "DELETED", serversPod("ghost", "1", "x", corev1.PodRunning))
			_ = serversEvent(w, "MODIFIED", serversPod("two", "300", "b", corev1.PodSucceeded))
			_ = serversEvent(w, "ADDED", serversPod("two", "7", "b", corev1.PodPending))
			_ = serversEvent(w, "ADDED", serversPod("two", "7", "b", corev1.PodPending))
			_ = serversEvent(w, "MODIFIED", corev1.ConfigMap{TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}})
			_ = serversEvent(w, "DELETED", serversPod("one", "2", "a", corev1.PodRunning))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(1500 * time.Millisecond) // a shorter watch counts as one that failed to start
			_ = serversEvent(w, "UNKNOWN", serversPod("three", "8", "c", corev1.PodPending))
		case watches.Load() == 2:
			serversWrite(w, http.StatusGone, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonExpired, Code: 410})
		default:
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	serversUntil(t, n, "the objects of the watch", func(f apiserver.NodeFacts, _ source.Status) bool {
		return len(f.Pods) == 1 && f.Pods[0].Ref.Name == "two"
	})
	serversUntil(t, n, "the objects of the next list", func(f apiserver.NodeFacts, s source.Status) bool {
		return lists.Load() > 1 && s.Up && len(f.Pods) == 1 && f.Pods[0].Ref.Name == "one"
	})
}

// TestServersStreamWithoutEnd: a stream of initial events without its bookmark
// ends at the limit of objects. The list that replaces it has the same limit.
func TestServersStreamWithoutEnd(t *testing.T) {
	n := serversNode(t, apiserver.Limits{Objects: 2000}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sendInitialEvents") == "" {
			http.Error(w, "no lists", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		for i := 0; r.Context().Err() == nil; i++ {
			if serversEvent(w, "ADDED", serversPod(fmt.Sprintf("pod-%d", i), "5", "c", corev1.PodRunning)) != nil {
				return
			}
		}
	})
	serversUntil(t, n, "the stream", func(f apiserver.NodeFacts, s source.Status) bool {
		return !s.Up && s.Reason == source.ReasonResourceExhausted && strings.Contains(s.Message, "more objects than the limit of 2000") && len(f.Pods) == 0
	})
}

// TestServersHugeFailureOfAWatch: the status with which an API server closes a
// watch may have any length. It uses at most its limit.
func TestServersHugeFailureOfAWatch(t *testing.T) {
	huge := strings.Repeat("\x1b[31m\n", 4<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n := serversNode(t, apiserver.Limits{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			serversWrite(w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, huge)
	})
	serversUntil(t, n, "the watch", func(_ apiserver.NodeFacts, s source.Status) bool {
		return !s.Up && s.Errors > 1 && len(s.Message) <= 1024 && !strings.ContainsAny(s.Message, "\x1b\n")
	})
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 16 {
		t.Errorf("it took %d MiB", took)
	}
}
