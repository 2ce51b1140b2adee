package helm

import (
	"strings"
	"testing"
)

// What clusters have, as the GPU operator 26.7 and Kubernetes make it.
const (
	runtimeClass = `
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: nvidia}
handler: nvidia
---
`
	clusterPolicy = `
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {cdi: {enabled: true}}
---
`
	gpuCluster = `
apiVersion: nvidia.com/v1alpha1
kind: GPUCluster
metadata: {name: gpu-cluster}
---
`
	hostEngine = `
apiVersion: v1
kind: Service
metadata: {name: nvidia-dcgm, namespace: gpu-operator}
spec: {internalTrafficPolicy: Local, clusterIP: 10.0.0.5, ports: [{name: dcgm, port: 5555}]}
---
`
	exporterSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-dcgm-exporter, namespace: gpu-operator}
spec: {template: {spec: {containers: [{name: nvidia-dcgm-exporter}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: nvidia-dcgm-exporter, namespace: gpu-operator}
spec: {internalTrafficPolicy: Cluster, clusterIP: 10.0.0.6, ports: [{name: gpu-metrics, port: 9400}]}
---
`
	devicePlugin = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: kube-system}
spec: {template: {spec: {containers: [{name: nvidia-device-plugin-ctr}]}}}
---
`
)

// local makes the Service of dcgm-exporter one that keeps to its node.
func local(text string) string { return strings.ReplaceAll(text, "Policy: Cluster", "Policy: Local") }

// generation renames dcgm-exporter as a GPUCluster does.
func generation(text string) string {
	return strings.ReplaceAll(text, "name: nvidia-dcgm-exporter,", "name: nvidia-dcgm-exporter-dra,")
}

// TestClusters: what auto chooses in which cluster, what is read twice, and that the value
// for clusters which cannot be queried chooses the same.
func TestClusters(t *testing.T) {
	const client, dra = "nvidia.com/gpu.deploy.client", "nvidia.com/gpu.deploy.dcgm-exporter-dra"
	const twice = "The GPUs are read twice"
	for name, test := range map[string]struct {
		objects      string
		value        string // of node.access.cluster
		mode, reason string
		exporter     string // its URL
		twice        bool
		label        string // nodeSelector of the second DaemonSet; empty: there is none
	}{
		"operator with dcgm":                  {clusterPolicy + runtimeClass + hostEngine + exporterSet, "operator-dcgm", "dcgm", "dcgm_service", "", false, ""},
		"operator without dcgm":               {clusterPolicy + runtimeClass + exporterSet, "operator", "runtimeClass", "runtime_class", "", true, client},
		"GPUCluster":                          {gpuCluster + generation(exporterSet), "gpucluster", "none", "exporter_not_local", "", false, ""},
		"plain driver":                        {runtimeClass, "driver", "runtimeClass", "runtime_class", "", false, client},
		"device plugin only":                  {devicePlugin, "plugin", "none", "nothing_found", "", false, ""},
		"nothing":                             {"", "none", "none", "nothing_found", "", false, ""},
		"GPUCluster with dcgm":                {gpuCluster + hostEngine + generation(exporterSet), "gpucluster-dcgm", "dcgm", "dcgm_service", "", false, ""},
		"GPUCluster with a runtime":           {gpuCluster + generation(exporterSet) + runtimeClass, "", "runtimeClass", "runtime_class", "", true, dra},
		"operator, exporter of the node":      {clusterPolicy + runtimeClass + local(exporterSet), "", "exporter", "dcgm_exporter", "http://10.0.0.6:9400/metrics", false, ""},
		"GPUCluster, exporter of the node":    {gpuCluster + local(generation(exporterSet)), "", "exporter", "dcgm_exporter", "http://10.0.0.6:9400/metrics", false, ""},
		"exporter in the network of nodes":    {runtimeClass + strings.ReplaceAll(exporterSet, "{spec: {cont", "{spec: {hostNetwork: true, cont"), "", "exporter", "dcgm_exporter", "http://$(HOST_IP):9400/metrics", false, ""},
		"exporter of the node, IPv6":          {strings.ReplaceAll(local(exporterSet), "10.0.0.6", "fd00::6"), "", "exporter", "dcgm_exporter", "http://[fd00::6]:9400/metrics", false, ""},
		"exporter without address":            {strings.ReplaceAll(local(exporterSet), "10.0.0.6", "None"), "", "none", "exporter_not_local", "", false, ""},
		"engine of any node":                  {runtimeClass + strings.ReplaceAll(hostEngine, "Local", "Cluster"), "", "runtimeClass", "runtime_class", "", false, client},
		"plugin of another namespace":         {strings.ReplaceAll(clusterPolicy, "enabled: true", "nriPluginEnabled: true"), "", "none", "nothing_found", "", false, ""},
		"recorded by an earlier chart":        {recorded("runtimeClass", "") + hostEngine, "", "runtimeClass", "recorded", "", false, client},
		"recorded as none":                    {recorded("none", "nothing_found") + runtimeClass, "", "runtimeClass", "runtime_class", "", false, client},
		"recorded, and an exporter that went": {recorded("exporter", "dcgm_exporter") + hostEngine, "", "exporter", "dcgm_exporter", "http://10.0.0.6:9400/metrics", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, notes := renderIn(t, parseCluster(t, test.objects), "")
			agent := out.need(t, "DaemonSet/dra-exporter/dra-exporter-node")
			env := agent.container(t)["env"]
			if got := named(env, "DRA_EXPORTER_ACCESS_MODE").text("value"); got != test.mode {
				t.Errorf("the mode is %s", got)
			}
			if got := named(env, "DRA_EXPORTER_ACCESS_REASON").text("value"); got != test.reason {
				t.Errorf("the reason is %s", got)
			}
			annotations := object(agent.at("metadata", "annotations").(map[string]any))
			if annotations.text("dra-exporter.github.io/access") != test.mode || annotations.text("dra-exporter.github.io/access-reason") != test.reason {
				t.Errorf("recorded is %v", annotations)
			}
			if got := annotations.text("dra-exporter.github.io/access-exporter"); got != test.exporter {
				t.Errorf("the exporter is %q", got)
			}
			if config := out.objects["ConfigMap/dra-exporter/dra-exporter-exporters"]; test.exporter != "" && !strings.Contains(config.text("data", "exporters.yaml"), "url: "+test.exporter) {
				t.Errorf("the agent reads %v", config)
			}
			if strings.Contains(notes, twice) != test.twice || !strings.Contains(notes, "Access to the devices: "+test.mode+" (") {
				t.Error(notes)
			}
			checkManaged(t, out, test.label)
			if test.value != "" {
				same, notes := renderIn(t, nil, "node: {access: {cluster: "+test.value+"}}")
				agent := same.need(t, "DaemonSet/dra-exporter/dra-exporter-node")
				if got := named(agent.container(t)["env"], "DRA_EXPORTER_ACCESS_MODE").text("value"); got != test.mode || agent.at("metadata", "annotations") != nil {
					t.Errorf("by the value %s the mode is %s", test.value, got)
				}
				if strings.Contains(notes, twice) != test.twice {
					t.Error(notes)
				}
				checkManaged(t, same, test.label)
			}
		})
	}
}

// recorded is the DaemonSet of a release that has chosen.
func recorded(mode, reason string) string {
	annotations := "dra-exporter.github.io/access: " + mode
	if reason != "" {
		annotations += ", dra-exporter.github.io/access-reason: " + reason + ", dra-exporter.github.io/access-exporter: 'http://10.0.0.6:9400/metrics'"
	}
	return `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: dra-exporter-node, namespace: dra-exporter, annotations: {` + annotations + `}}
---
`
}

// checkManaged fails the test unless the second DaemonSet has this label in its selector of
// nodes; empty: there must be no second one.
func checkManaged(t *testing.T, out rendered, label string) {
	t.Helper()
	managed := out.objects["DaemonSet/dra-exporter/dra-exporter-node-managed"]
	if label == "" {
		if managed != nil {
			t.Errorf("there is a second DaemonSet, for %v", managed.pod()["nodeSelector"])
		}
		return
	}
	if selector := object(managed.pod().at("nodeSelector").(map[string]any)); selector.text(label) != "true" {
		t.Errorf("the nodes of the second DaemonSet are %v", selector)
	}
}

// TestExplicitModeQueriesNothing: a user who may not look at other namespaces can install.
func TestExplicitModeQueriesNothing(t *testing.T) {
	for _, values := range []string{
		"access: {mode: none}", "access: {mode: runtimeClass}", "access: {mode: exporter}", "access: {cluster: operator}",
		"access: {dcgm: {hostEngine: 'a:1'}}", "access: {exporter: {url: 'http://10.0.0.1:9400/metrics'}}", "access: {exporter: {url: 'http://nvidia-dcgm-exporter.gpu-operator.svc:9400/metrics'}}",
	} {
		if _, err := renderFiles(t, forbidden{}, cluster{}.apis(), "node: {"+values+"}"); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
	if _, err := renderFiles(t, forbidden{}, cluster{}.apis(), ""); err == nil {
		t.Error("auto queries nothing")
	}
}
