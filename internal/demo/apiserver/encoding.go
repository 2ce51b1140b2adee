package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
)

// encoding is a format of bodies.
type encoding struct {
	info runtime.SerializerInfo
}

// encodings are the formats, the default first.
func encodings() ([]encoding, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register core/v1: %w", err)
	}
	if err := resourcev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register resource.k8s.io/v1: %w", err)
	}
	if err := schedulingv1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register scheduling.k8s.io/v1beta1: %w", err)
	}
	for group, add := range customresource.Groups() {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register %s: %w", group, err)
		}
	}
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)
	var all []encoding
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
		if !ok || info.StreamSerializer == nil {
			return nil, fmt.Errorf("encode %s: not supported", media)
		}
		all = append(all, encoding{info: info})
	}
	return all, nil
}

// accepted is the first encoding that the request accepts, or the default.
func accepted(r *http.Request, all []encoding) encoding {
	for media := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		media, _, _ = strings.Cut(media, ";")
		for _, candidate := range all {
			if strings.TrimSpace(media) == candidate.info.MediaType {
				return candidate
			}
		}
	}
	return all[0]
}

// write sends one object as the response.
func (e encoding) write(w http.ResponseWriter, status int, object runtime.Object) {
	var body bytes.Buffer
	if err := e.info.Serializer.Encode(object, &body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", e.info.MediaType)
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // an error means that the client has left
}

// frame writes one event of a watch.
func (e encoding) frame(w io.Writer, next event) error {
	var body, frame bytes.Buffer
	if err := e.info.Serializer.Encode(next.object, &body); err != nil {
		return fmt.Errorf("encode a watched object: %w", err)
	}
	enveloped := &metav1.WatchEvent{Type: string(next.kind), Object: runtime.RawExtension{Raw: body.Bytes()}}
	if err := e.info.StreamSerializer.Encode(enveloped, &frame); err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	_, err := e.info.StreamSerializer.NewFrameWriter(w).Write(frame.Bytes())
	return err
}
