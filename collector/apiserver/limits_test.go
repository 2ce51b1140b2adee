package apiserver

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// hostileServer answers requests for pods by its handlers, and has no slices.
type hostileServer struct {
	list, watch http.HandlerFunc

	mu     sync.Mutex
	limits []string // of the lists
}

func (s *hostileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch {
	case !strings.HasSuffix(r.URL.Path, "/pods"):
		http.NotFound(w, r)
	case query.Get("watch") != "" && query.Get("sendInitialEvents") != "":
		http.Error(w, "no streams", http.StatusUnprocessableEntity)
	case query.Get("watch") != "":
		s.watch(w, r)
	default:
		s.mu.Lock()
		s.limits = append(s.limits, query.Get("limit"))
		s.mu.Unlock()
		s.list(w, r)
	}
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func emptyPods(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}})
}

// silentWatch sends nothing until it is closed.
func silentWatch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// podStatus runs a NodeWatch until the status of the pods is as wanted, and returns
// it with the bytes that were allocated meanwhile.
func (s *hostileServer) podStatus(t *testing.T, limits Limits, wanted func(source.Status) bool) (source.Status, *NodeWatch, uint64) {
	t.Helper()
	served := httptest.NewServer(s)
	n, err := New(Options{
		Config: &rest.Config{Host: served.URL}, Node: "node-a", Limits: limits,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Clock: clock.System(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	running.Go(func() { n.Run(ctx) })
	defer func() { cancel(); running.Wait(); served.CloseClientConnections(); served.Close() }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		status := n.Statuses()[0]
		if wanted(status) {
			runtime.ReadMemStats(&after)
			return status, n, after.TotalAlloc - before.TotalAlloc
		}
		if time.Now().After(deadline) {
			t.Fatalf("the pods are %+v", status)
		}
	}
}

func failed(status source.Status) bool { return status.Errors > 0 }

// A Status with a message of 64 MiB uses no more memory than the limit of such
// answers. The status code alone determines the reason.
func TestHugeFailure(t *testing.T) {
	huge := bytes.Repeat([]byte("A"), 64<<20)
	server := &hostileServer{list: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"`)
		_, _ = w.Write(huge)
		_, _ = io.WriteString(w, `"}`)
	}}
	status, _, allocated := server.podStatus(t, Limits{}, failed)
	if status.Reason != source.ReasonPermission || !strings.Contains(status.Message, "larger than the limit of 64 KiB") || len(status.Message) > 1024 {
		t.Errorf("%s: %.300s", status.Reason, status.Message)
	}
	if allocated > 8<<20 {
		t.Errorf("it took %d MiB", allocated>>20)
	}
}

// manyPods serves pods of some 10 KB each in pages, as an API server does.
func manyPods(number int) http.HandlerFunc {
	padding := strings.Repeat("x", 10<<10)
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		first, _ := strconv.Atoi(query.Get("continue"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		if query.Get("resourceVersion") == "0" || limit == 0 {
			limit = number // out of the cache, which has no pages
		}
		last := min(first+limit, number)
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
		for i := first; i < last; i++ {
			claim := "c" + strconv.Itoa(i)
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "p" + strconv.Itoa(i), UID: "u", Annotations: map[string]string{"padding": padding}}}
			pod.Spec.NodeName, pod.Spec.ResourceClaims = "node-a", []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
			list.Items = append(list.Items, pod)
		}
		if last < number {
			list.Continue = strconv.Itoa(last)
		}
		writeJSON(w, http.StatusOK, list)
	}
}

// A collection that is too large for one answer is read in pages.
func TestListBeyondTheLimitComesInPages(t *testing.T) {
	server := &hostileServer{list: manyPods(300), watch: silentWatch}
	_, n, _ := server.podStatus(t, Limits{List: 1 << 20}, func(status source.Status) bool { return status.Up })
	if pods := n.Latest().Pods; len(pods) != 300 {
		t.Errorf("%d pods are known, want 300", len(pods))
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if asked := strings.Join(server.limits, " "); asked != "500 62 50 50 50 50 50" {
		t.Errorf("the lists had the limits %s", asked)
	}
}

func TestListsBeyondLimits(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"`)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("1", 64<<10)); err != nil {
				return
			}
		}
	}
	for name, test := range map[string]struct {
		list   http.HandlerFunc
		limits Limits
		want   string
	}{
		"an endless page":          {endless, Limits{List: 256 << 10}, "the answer is larger than the limit of 256 KiB"},
		"more objects than can be": {manyPods(300), Limits{Objects: 200}, "there are more objects than the limit of 200"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &hostileServer{list: test.list, watch: silentWatch}
			status, _, allocated := server.podStatus(t, test.limits, failed)
			if status.Up || status.Reason != source.ReasonResourceExhausted || !strings.Contains(status.Message, test.want) {
				t.Errorf("%+v", status)
			}
			if allocated > 64<<20 {
				t.Errorf("it took %d MiB", allocated>>20)
			}
		})
	}
}

// An endless event, in JSON and in protobuf, fails the source at the limit,
// with the limit in the message.
func TestEventBeyondTheLimit(t *testing.T) {
	for kind, begin := range map[string][]byte{
		"application/json": []byte(`{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"`),
		"application/vnd.kubernetes.protobuf;stream=watch": binary.BigEndian.AppendUint32(nil, 2<<30-1),
	} {
		server := &hostileServer{list: emptyPods, watch: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(begin)
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("1", 64<<10)); err != nil {
					return
				}
			}
		}}
		status, _, allocated := server.podStatus(t, Limits{Event: 1 << 20}, failed)
		if status.Up || status.Reason != source.ReasonResourceExhausted || !strings.Contains(status.Message, "watch pods: an event of the watch is larger than the limit of 1 MiB") {
			t.Errorf("%s: %+v", kind, status)
		}
		if allocated > 32<<20 {
			t.Errorf("%s: it took %d MiB", kind, allocated>>20)
		}
	}
}

// Empty objects take a thousand times the memory once they are decoded: answers
// and events with too many are refused before.
func TestAnswersOfEmptyObjects(t *testing.T) {
	const fill = 6 << 20
	field := func(number byte, inner []byte) []byte {
		return append(protowire.AppendVarint([]byte{number<<3 | 2}, uint64(len(inner))), inner...)
	}
	kubernetes := func(kind string, raw []byte) []byte {
		about := append(field(1, []byte("v1")), field(2, []byte(kind))...)
		return append([]byte(objectfields.Magic), append(field(1, about), field(2, raw)...)...)
	}
	listMeta := field(1, field(2, []byte("1")))
	pods := bytes.Repeat(field(2, nil), fill/2)
	containers := field(2, field(2, bytes.Repeat(field(2, nil), fill/2)))
	for name, test := range map[string]struct {
		kind string
		list []byte
	}{
		"pods in protobuf":            {"application/vnd.kubernetes.protobuf", kubernetes("PodList", append(listMeta, pods...))},
		"pods and a fault":            {"application/vnd.kubernetes.protobuf", kubernetes("PodList", append(append(listMeta, pods...), 0xff))},
		"containers of a pod":         {"application/vnd.kubernetes.protobuf", kubernetes("PodList", append(listMeta, containers...))},
		"pods in JSON":                {"application/json", []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + strings.Repeat("{},", fill/3) + `{}]}`)},
		"pods that are null, in JSON": {"application/json", []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[` + strings.Repeat("null,", fill/5) + `null]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			server := &hostileServer{watch: silentWatch, list: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.kind)
				_, _ = w.Write(test.list)
			}}
			status, _, allocated := server.podStatus(t, Limits{}, failed)
			if status.Up || status.Reason != source.ReasonResourceExhausted || !strings.Contains(status.Message, "more fields than the limit of 250000") {
				t.Errorf("%+v", status)
			}
			if allocated > 600<<20 { // ten tries of a page, each half of the one before, take as many bytes each
				t.Errorf("it took %d MiB", allocated>>20)
			}
		})
	}
	server := &hostileServer{list: emptyPods, watch: func(w http.ResponseWriter, r *http.Request) {
		event := append(field(1, []byte("ADDED")), field(2, field(1, kubernetes("Pod", field(2, bytes.Repeat(field(2, nil), fill/2)))))...)
		w.Header().Set("Content-Type", "application/vnd.kubernetes.protobuf;stream=watch")
		_, _ = w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(event))))
		_, _ = w.Write(event)
		<-r.Context().Done()
	}}
	if status, _, allocated := server.podStatus(t, Limits{}, failed); !strings.Contains(status.Message, "an event of the watch has more fields") || allocated > 100<<20 {
		t.Errorf("an event: %+v, %d MiB", status, allocated>>20)
	}
}
