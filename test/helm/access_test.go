package helm

import (
	"fmt"
	"strings"
	"testing"
)

// TestAccess: each way to the devices is the same by the chart as by Kustomize.
func TestAccess(t *testing.T) {
	const hostIP = "[{name: HOST_IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]" // the component's, for other engines
	for _, path := range []struct{ mode, values, folder, component string }{
		{"none", "", "deploy/kustomize/base", ""},
		{"dcgm", "env: " + hostIP, "deploy/kustomize/base", "dcgm"},
		{"runtimeClass", "", "deploy/kustomize/overlays/nvidia", ""},
		{"cdi", "", "deploy/kustomize/base", "cdi"},
		{"claim", "", "deploy/kustomize/base", "admin-access"},
	} {
		t.Run(path.mode, func(t *testing.T) {
			var components []string
			if path.component != "" {
				components = append(components, path.component)
			}
			want := agentsOwn(kustomized(t, path.folder, components...))
			values := fmt.Sprintf("node: {access: {mode: %s, dcgm: {hostEngine: 'nvidia-dcgm.gpu-operator.svc:5555'}}, %s}", path.mode, path.values)
			got := agentsOwn(render(t, install{values: values}).objects)
			if len(want) == 0 {
				t.Fatal("there is no agent")
			}
			same(t, got, want)
		})
	}
}

// agentsOwn are the objects that a way to the devices may change.
func agentsOwn(all map[string]object) map[string]object {
	own := map[string]object{}
	for key, one := range all {
		if strings.HasPrefix(key, "DaemonSet/") || strings.HasPrefix(key, "ResourceClaimTemplate/") {
			own[key] = one
		}
	}
	return own
}
