package clusterread_test

import (
	"encoding/json"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"
)

func TestSpecOf(t *testing.T) {
	for name, test := range map[string]struct{ manifest, want string }{
		"as little as can be": {
			`devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}`,
			`{"requests":[{"name":"gpu","deviceClass":"gpu.example.com","count":1}]}`,
		},
		"all of a node, by an administrator": {
			`devices: {requests: [{name: all, exactly: {deviceClassName: gpu.example.com, allocationMode: All, adminAccess: true}}]}`,
			`{"requests":[{"name":"all","deviceClass":"gpu.example.com","all":true,"adminAccess":true}]}`,
		},
		"everything": {
			`devices:
  requests:
  - name: gpu
    exactly:
      deviceClassName: gpu.example.com
      allocationMode: ExactCount
      count: 2
      selectors: [{cel: {expression: "true"}}, {}]
      tolerations: [{key: a, operator: Exists, effect: NoSchedule}, {key: b, value: c}, {operator: Exists}]
      capacity: {requests: {memory: 10Gi}}
  - name: nic
    firstAvailable:
    - {name: fast, deviceClassName: fast.example.com, count: 1, allocationMode: ExactCount}
    - {name: slow, deviceClassName: slow.example.com, allocationMode: All}
  constraints:
  - {requests: [gpu, nic], matchAttribute: resource.kubernetes.io/pcieRoot}
  - {distinctAttribute: example.com/socket}`,
			`{"requests":[` +
				`{"name":"gpu","deviceClass":"gpu.example.com","count":2,"selectors":["true"],"tolerations":["a:NoSchedule","b=c:*","*:*"],"capacity":{"memory":"10Gi"}},` +
				`{"name":"nic","firstAvailable":[{"name":"nic/fast","deviceClass":"fast.example.com","count":1},{"name":"nic/slow","deviceClass":"slow.example.com","all":true}]}],` +
				`"constraints":[{"requests":["gpu","nic"],"matchAttribute":"resource.kubernetes.io/pcieRoot"},{"distinctAttribute":"example.com/socket"}]}`,
		},
	} {
		var spec resourcev1.ResourceClaimSpec
		if err := yaml.UnmarshalStrict([]byte(test.manifest), &spec); err != nil {
			t.Fatal(name, err)
		}
		got, err := json.Marshal(clusterread.NewSpec(&spec))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
	broken := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "a\xff", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "\xfe"}}}}}
	if request := clusterread.NewSpec(&broken).Requests[0]; request.Name != "a\uFFFD" || request.DeviceClass != "\uFFFD" {
		t.Errorf("bytes that are not UTF-8 came through: %+v", request)
	}
}
