package apiserver

import (
	"fmt"
	"reflect"
	"regexp"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// checkText fails if a string anywhere in the value is not valid UTF-8.
func checkText(t *testing.T, value any) {
	t.Helper()
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			if !utf8.ValidString(v.String()) {
				t.Errorf("%q is not UTF-8 in %+v", v.String(), value)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				walk(key)
				walk(v.MapIndex(key))
			}
		}
	}
	walk(reflect.ValueOf(value))
}

func FuzzOpaqueJSON(f *testing.F) {
	for _, seed := range []string{
		`{"sharing":{"strategy":"MPS"}}`, `{"uuid":"GPU-1","pciAddress":"0000:c1:00.0"}`,
		`{"uuid":{"string":"a"},"pciBusID":{"string":"c1:00.0"}}`, `null`, `[]`, `{"uuid":"` + "\xff" + `"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		switch strategy := sharingStrategy(data); strategy {
		case "", "time_slicing", "mps":
		default:
			t.Errorf("strategy %q", strategy)
		}
		uuid, address := identityIn(data)
		checkText(t, uuid)
		if address != "" && pciAddress(address) != address {
			t.Errorf("address %q is not spelled as addresses are", address)
		}
	})
}

func FuzzNames(f *testing.F) {
	for _, seed := range []string{"0000:c1:00.0", "00000000:CA:1f.7", "gpu-0-mig-1g10gb-19-4", "gpu-1-mig-1c2g20gb-me-14-2", "gpu-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if address := pciAddress(name); address != "" && pciAddress(address) != address {
			t.Errorf("address %q becomes %q, which is not stable", name, address)
		}
		profile, placement := migName(name)
		if placement < -1 || placement == -1 && profile != "" {
			t.Errorf("%q has profile %q and placement %d", name, profile, placement)
		}
	})
}

// FuzzObjects feeds protobuf, whose strings nobody has checked.
func FuzzObjects(f *testing.F) {
	for _, name := range moments() {
		captured := readMoment(f, name)
		for i := range captured.pods {
			f.Add(marshal(f, &captured.pods[i]))
		}
		for i := range captured.claims {
			f.Add(marshal(f, &captured.claims[i]))
		}
		for i := range captured.slices {
			f.Add(marshal(f, &captured.slices[i]))
		}
	}
	// Kubernetes itself takes minutes to parse 1e-99999999, so no API server
	// would ever have taken it.
	minute := regexp.MustCompile(`[eE]-?[0-9]{4}`)
	f.Fuzz(func(t *testing.T, data []byte) {
		if minute.Match(data) {
			t.Skip()
		}
		if pod := (&corev1.Pod{}); pod.Unmarshal(data) == nil {
			checkText(t, decodePod(pod, "team"))
			whole, _ := recordPod(pod, "team")
			light, _ := recordPod(stripPod(pod, "team").(*corev1.Pod), "team")
			if fmt.Sprint(whole) != fmt.Sprint(light) {
				t.Errorf("stripped, the pod decodes to %+v, not %+v", light, whole)
			}
		}
		if claim := (&resourcev1.ResourceClaim{}); claim.Unmarshal(data) == nil {
			checkText(t, decodeClaim(claim))
		}
		if slice := (&resourcev1.ResourceSlice{}); slice.Unmarshal(data) == nil {
			checkText(t, decodeSlice(slice))
		}
	})
}

func marshal(f *testing.F, object interface{ Marshal() ([]byte, error) }) []byte {
	f.Helper()
	data, err := object.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	return data
}
