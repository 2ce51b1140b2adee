package objectfields_test

import (
	"strconv"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/objectfields"
)

// TestFieldsOfLargeSlice checks that a large valid object is far below the limit, and
// that text does not count as messages.
func TestFieldsOfLargeSlice(t *testing.T) {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"long": strings.Repeat("The quick brown fox. ", 10_000)}}}
	for i := range 128 {
		device := resourcev1.Device{Name: "gpu-" + strconv.Itoa(i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
		for j := range 32 {
			value := strings.Repeat("v", 60)
			device.Attributes[resourcev1.QualifiedName("attribute-"+strconv.Itoa(j))] = resourcev1.DeviceAttribute{StringValue: &value}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, device)
	}
	raw, err := slice.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if got := objectfields.Count(raw, objectfields.Max); got < 128*32*3 || got > objectfields.Max/8 {
		t.Errorf("%d bytes have %d fields", len(raw), got)
	}
}
