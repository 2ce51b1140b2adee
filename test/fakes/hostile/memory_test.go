package hostile

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
)

// memoryMark is the placeholder of an object's number in its bytes: all objects
// of a collection have the same length, so that one can be derived from
// another.
const memoryMark = "0000000"

// memoryNumber is a number as long as the mark.
func memoryNumber(i int) string { return fmt.Sprintf("9%06d", i) }

// memoryCollection is a collection of count objects that differ in their
// number alone. No more than one is held at a time.
type memoryCollection struct {
	kind   schema.GroupVersionKind
	count  int
	object []byte // as it is in a list
	event  []byte // as it is in a watch
}

// memoryServer is an API server that writes large collections as it makes
// them: over a real socket, in protobuf, as streamed lists or in pages. All
// other collections are empty.
type memoryServer struct {
	streams  bool // lists by watch
	paths    map[string]*memoryCollection
	kinds    map[string]schema.GroupVersionKind
	codec    runtime.SerializerInfo
	paged    func(path string, limit, bytes, objects int) // is called before each page is written; optional
	listener net.Listener
}

// startMemoryServer serves until the test ends. It has no objects yet.
func startMemoryServer(t *testing.T, streams bool) *memoryServer {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, resourcev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codec, _ := runtime.SerializerInfoForMediaType(serializer.NewCodecFactory(scheme).SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	core, dra := corev1.SchemeGroupVersion, resourcev1.SchemeGroupVersion
	s := &memoryServer{streams: streams, codec: codec, paths: map[string]*memoryCollection{}, kinds: map[string]schema.GroupVersionKind{
		memoryNodes: core.WithKind("Node"), memoryPods: core.WithKind("Pod"), "/api/v1/events": core.WithKind("Event"),
		memoryClasses: dra.WithKind("DeviceClass"), memorySlices: dra.WithKind("ResourceSlice"),
		"/apis/resource.k8s.io/v1/devicetaintrules": dra.WithKind("DeviceTaintRule"),
		memoryClaims: dra.WithKind("ResourceClaim"), memoryTemplates: dra.WithKind("ResourceClaimTemplate"),
	}}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listener = listener
	serving := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = serving.Serve(listener) }()
	t.Cleanup(func() { _ = serving.Close() })
	return s
}

// Paths of collections.
const (
	memoryNodes     = "/api/v1/nodes"
	memoryPods      = "/api/v1/pods"
	memoryClasses   = "/apis/resource.k8s.io/v1/deviceclasses"
	memorySlices    = "/apis/resource.k8s.io/v1/resourceslices"
	memoryClaims    = "/apis/resource.k8s.io/v1/resourceclaims"
	memoryTemplates = "/apis/resource.k8s.io/v1/resourceclaimtemplates"
)

func (s *memoryServer) url() string { return "http://" + s.listener.Addr().String() }

type memoryObject interface {
	runtime.Object
	Marshal() ([]byte, error)
}

// add creates a collection of this many objects. It must be called before the
// first request.
func (s *memoryServer) add(t *testing.T, path string, object memoryObject, count int) {
	t.Helper()
	kind := s.kinds[path]
	bare, err := object.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	object.GetObjectKind().SetGroupVersionKind(kind)
	s.paths[path] = &memoryCollection{kind: kind, count: count, object: bare, event: s.frame("ADDED", object)}
}

// frame is one event of a watch.
func (s *memoryServer) frame(event string, object runtime.Object) []byte {
	var body, enveloped, framed bytes.Buffer
	if err := s.codec.Serializer.Encode(object, &body); err != nil {
		panic(err)
	}
	if err := s.codec.StreamSerializer.Encode(&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: body.Bytes()}}, &enveloped); err != nil {
		panic(err)
	}
	if _, err := s.codec.StreamSerializer.NewFrameWriter(&framed).Write(enveloped.Bytes()); err != nil {
		panic(err)
	}
	return framed.Bytes()
}

// ServeHTTP implements http.Handler.
func (s *memoryServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, known := s.kinds[r.URL.Path]
	query := r.URL.Query()
	switch {
	case !known:
		http.NotFound(w, r)
	case query.Get("watch") == "":
		s.list(w, r, kind)
	case query.Get("sendInitialEvents") == "true" && !s.streams:
		s.refuseStream(w)
	default:
		s.watch(w, r, kind)
	}
}

// refuseStream answers as an API server before Kubernetes 1.32 does.
func (s *memoryServer) refuseStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = s.codec.Serializer.Encode(&metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity,
		Message: "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
	}, w)
}

func (s *memoryServer) watch(w http.ResponseWriter, r *http.Request, kind schema.GroupVersionKind) {
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
	w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(w).Flush()
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		out := bufio.NewWriterSize(w, 1<<16)
		if all := s.paths[r.URL.Path]; all != nil {
			for i := range all.count {
				if _, err := out.Write(bytes.ReplaceAll(all.event, []byte(memoryMark), []byte(memoryNumber(i)))); err != nil {
					return
				}
			}
		}
		end := &metav1.PartialObjectMetadata{}
		end.ResourceVersion, end.Annotations = "1", map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		end.SetGroupVersionKind(kind)
		_, _ = out.Write(s.frame("BOOKMARK", end))
		_ = out.Flush()
		_ = http.NewResponseController(w).Flush()
	}
	<-r.Context().Done()
}

// list writes a page: the serializer's envelope, then one object after the
// other.
func (s *memoryServer) list(w http.ResponseWriter, r *http.Request, kind schema.GroupVersionKind) {
	query := r.URL.Query()
	limit, _ := strconv.Atoi(query.Get("limit"))
	first, _ := strconv.Atoi(query.Get("continue"))
	all := s.paths[r.URL.Path]
	if all == nil {
		all = &memoryCollection{}
	}
	last := all.count
	if limit > 0 {
		last = min(last, first+limit)
	}
	about := metav1.ListMeta{ResourceVersion: "1"}
	if last < all.count {
		about.Continue = strconv.Itoa(last)
	}
	metadata, _ := about.Marshal()
	head := memoryField(1, len(metadata))
	head = append(head, metadata...)
	each := memoryField(2, len(all.object))
	raw := len(head) + (last-first)*(len(each)+len(all.object))
	typed, _ := (&runtime.TypeMeta{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind + "List"}).Marshal()
	envelope := append([]byte("k8s\x00"), memoryField(1, len(typed))...)
	envelope = append(append(envelope, typed...), memoryField(2, raw)...)
	if s.paged != nil {
		s.paged(r.URL.Path, limit, raw, last-first)
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	w.Header().Set("Content-Length", strconv.Itoa(len(envelope)+raw))
	out := bufio.NewWriterSize(w, 1<<16)
	_, _ = out.Write(append(envelope, head...))
	for i := first; i < last; i++ {
		_, _ = out.Write(each)
		if _, err := out.Write(bytes.ReplaceAll(all.object, []byte(memoryMark), []byte(memoryNumber(i)))); err != nil {
			return
		}
	}
	_ = out.Flush()
}

// memoryField returns the tag and length of a length-delimited protobuf field.
func memoryField(number, length int) []byte {
	return binary.AppendUvarint([]byte{byte(number<<3 | 2)}, uint64(length))
}

// memoryClaim returns a claim with selectors of this many bytes in total,
// different for each claim.
func memoryClaim(size int) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: "claim-" + memoryMark, UID: types.UID("claim-uid-" + memoryMark), ResourceVersion: "1",
		CreationTimestamp: metav1.Unix(1_800_000_000, 0),
	}}
	claim.Spec.Devices.Requests = memoryRequests(size)
	return claim
}

// memoryTemplate returns a template with the same specification.
func memoryTemplate(size int) *resourcev1.ResourceClaimTemplate {
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: "template-" + memoryMark, UID: types.UID("template-uid-" + memoryMark), ResourceVersion: "1",
	}}
	template.Spec.Spec.Devices.Requests = memoryRequests(size)
	return template
}

// memoryMetadata adds metadata of this many bytes that the owner of an object
// can set: half in finalizers, the rest in owner references and annotations.
func memoryMetadata(into *metav1.ObjectMeta, size int) {
	into.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: memoryMark + strings.Repeat("a", size/6), "other": strings.Repeat("b", size/6)}
	for i := range size / 2 / 300 {
		into.Finalizers = append(into.Finalizers, fmt.Sprintf("example.com/%s-%d-%s", memoryMark, i, strings.Repeat("f", 280)))
	}
	yes := true
	into.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: memoryMark + strings.Repeat("o", size/12), UID: types.UID(memoryMark + strings.Repeat("u", size/12)), Controller: &yes}}
}

// memoryPodOfManyClaims references as many claims as fit into this many bytes.
func memoryPodOfManyClaims(size int) *corev1.Pod {
	pod := memoryPod()
	for i := range size / 600 {
		claim := fmt.Sprintf("claim-%s-%d-%s", memoryMark, i, strings.Repeat("c", 200))
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprintf("%s-%d-%s", memoryMark, i, strings.Repeat("n", 40)), ResourceClaimName: &claim})
		resource := corev1.ResourceName(fmt.Sprintf("example.com/%s-%d-%s", memoryMark, i, strings.Repeat("r", 150)))
		amounts := corev1.ResourceList{resource: *apiresource.NewQuantity(1, apiresource.DecimalSI)}
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts}})
	}
	return pod
}

// addSupply adds a node with eight devices of a class.
func (s *memoryServer) addSupply(t *testing.T) {
	t.Helper()
	node := "node-a"
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice", ResourceVersion: "1"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}, NodeName: &node,
	}}
	for i := range 8 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i)})
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.example.com", ResourceVersion: "1"}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}
	s.add(t, memorySlices, slice, 1)
	s.add(t, memoryClasses, class, 1)
	s.add(t, memoryNodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node, UID: "node-uid", ResourceVersion: "1"}}, 1)
}

// memoryRequests returns 32 requests, the most that a claim may have.
func memoryRequests(size int) []resourcev1.DeviceRequest {
	const long = 9 << 10 // the limit of an expression is 10 KiB
	requests := make([]resourcev1.DeviceRequest, 32)
	for i := range requests {
		requests[i] = resourcev1.DeviceRequest{Name: fmt.Sprintf("r%d", i), Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com", Count: 1}}
		for left := size / 32; left > 0; left -= long {
			text := strings.Repeat("x", max(min(left, long)-120, 1))
			requests[i].Exactly.Selectors = append(requests[i].Exactly.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf(`device.driver != "%s%d-%d-%s"`, memoryMark, i, left, text),
			}})
		}
	}
	return requests
}

// memoryPod returns a pod that is pending for the claim of its number.
func memoryPod() *corev1.Pod {
	claim := "claim-" + memoryMark
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "tenant", Name: "pod-" + memoryMark, UID: types.UID("pod-uid-" + memoryMark), ResourceVersion: "1",
		CreationTimestamp: metav1.Unix(1_800_000_000, 0),
	}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "cannot allocate all claims"}}
	return pod
}

// memoryGet reads a page of the exporter.
func memoryGet(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", url, answer.Status)
	}
	return string(text), err
}
