package helm

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// roles are the objects of both roles, in the namespace dra-exporter.
func roles() map[string]string {
	return map[string]string{"node": "DaemonSet/dra-exporter/dra-exporter-node", "cluster": "Deployment/dra-exporter/dra-exporter-cluster"}
}

// TestProbeTimings: timings replace the defaults one by one, and the type of the
// probes stays the chart's.
func TestProbeTimings(t *testing.T) {
	for role, key := range roles() {
		container := render(t, install{values: role + ": {livenessProbe: {periodSeconds: 60, terminationGracePeriodSeconds: 1}, readinessProbe: {successThreshold: 3, timeoutSeconds: null}}"}).need(t, key).container(t)
		for probe, want := range map[string]map[string]any{
			"livenessProbe": {
				"httpGet":             map[string]any{"path": "/-/healthy", "port": "metrics"},
				"initialDelaySeconds": 10.0, "periodSeconds": 60.0, "timeoutSeconds": 5.0, "failureThreshold": 4.0, "terminationGracePeriodSeconds": 1.0,
			},
			"readinessProbe": {
				"httpGet":       map[string]any{"path": "/-/ready", "port": "metrics"},
				"periodSeconds": 5.0, "successThreshold": 3.0,
			},
		} {
			if got := container[probe]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the %s is %v, not %v", role, probe, got, want)
			}
		}
		container = render(t, install{values: "{web: {probes: tcp}, " + role + ": {livenessProbe: null}}"}).need(t, key).container(t)
		if got, want := container["livenessProbe"], map[string]any{"tcpSocket": map[string]any{"port": "metrics"}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: without timings the probe is %v", role, got)
		}
	}
}

// TestMoreContainers: the user's containers are beside the exporter's, in the pod
// of their role alone.
func TestMoreContainers(t *testing.T) {
	const own = ": {extraContainers: [{name: second, image: a}, {name: third, image: b}], extraInitContainers: [{name: first, image: c, restartPolicy: Always}]}"
	for role := range roles() {
		out := render(t, install{values: role + own})
		for other, key := range roles() {
			pod := out.need(t, key).pod()
			containers, init := []string{"dra-exporter"}, []string(nil)
			if other == role {
				containers, init = append(containers, "second", "third"), []string{"first"}
			}
			if got := names(pod["containers"]); !slices.Equal(got, containers) {
				t.Errorf("%s: the containers of %s are %v", role, other, got)
			}
			if got := names(pod["initContainers"]); !slices.Equal(got, init) {
				t.Errorf("%s: the init containers of %s are %v", role, other, got)
			}
			if other == role && named(pod["initContainers"], "first").text("restartPolicy") != "Always" {
				t.Errorf("%s: the init container is %v", role, pod["initContainers"])
			}
		}
	}
}

// names returns the names of a list.
func names(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		all = append(all, object(item.(map[string]any)).text("name"))
	}
	return all
}

// TestUpdateStrategies: both roles have the strategy of their values.
func TestUpdateStrategies(t *testing.T) {
	strategies := func(values string) [2]string {
		out := render(t, install{values: values})
		return [2]string{fmt.Sprint(out.need(t, roles()["node"]).at("spec", "updateStrategy")), fmt.Sprint(out.need(t, roles()["cluster"]).at("spec", "strategy"))}
	}
	const rolling, recreate = "map[rollingUpdate:map[maxUnavailable:10%] type:RollingUpdate]", "map[type:Recreate]"
	for values, want := range map[string][2]string{
		"{}": {rolling, recreate},
		"{node: {updateStrategy: {type: OnDelete}}, cluster: {updateStrategy: null}}":                             {"map[type:OnDelete]", recreate},
		"node: {updateStrategy: {rollingUpdate: {maxUnavailable: 1}}}":                                            {"map[rollingUpdate:map[maxUnavailable:1] type:RollingUpdate]", recreate},
		"cluster: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0}}}":                          {rolling, "map[rollingUpdate:map[maxSurge:0] type:RollingUpdate]"},
		"cluster: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0%, maxUnavailable: '100%'}}}": {rolling, "map[rollingUpdate:map[maxSurge:0% maxUnavailable:100%] type:RollingUpdate]"},
	} {
		if got := strategies(values); got != want {
			t.Errorf("%s: %v", values, got)
		}
	}
}

// TestServices: the Service of the agents has no address, and that of the cluster
// role has the type of its value. A port of the nodes leads to the agent of the
// node alone.
func TestServices(t *testing.T) {
	for values, want := range map[string]map[string]string{
		"{}":                                                                     {"node": "clusterIP:None", "cluster": "clusterIP:None"},
		"cluster: {service: {clusterIP: ''}}":                                    {"cluster": ""},
		"cluster: {service: {clusterIP: null}}":                                  {"cluster": ""},
		"cluster: {service: {clusterIP: 10.96.0.7}}":                             {"cluster": "clusterIP:10.96.0.7"},
		"cluster: {service: {type: NodePort}}":                                   {"node": "clusterIP:None", "cluster": "type:NodePort"},
		"cluster: {service: {type: LoadBalancer, nodePort: 31000}}":              {"cluster": "nodePort:31000 type:LoadBalancer"},
		"node: {localService: {enabled: true}}":                                  {"node": "clusterIP:None", "node-local": "internalTrafficPolicy:Local"},
		"node: {localService: {enabled: true, type: NodePort}}":                  {"node-local": "externalTrafficPolicy:Local internalTrafficPolicy:Local type:NodePort"},
		"node: {localService: {enabled: true, type: NodePort, nodePort: 31001}}": {"node-local": "externalTrafficPolicy:Local internalTrafficPolicy:Local nodePort:31001 type:NodePort"},
	} {
		out := render(t, install{values: values})
		for name, text := range want {
			service := out.need(t, "Service/dra-exporter/dra-exporter-"+name)
			var got []string
			for _, field := range []string{"clusterIP", "externalTrafficPolicy", "internalTrafficPolicy", "type"} {
				if value := service.text("spec", field); value != "" {
					got = append(got, field+":"+value)
				}
			}
			port := object(service.at("spec", "ports").([]any)[0].(map[string]any))
			if port["nodePort"] != nil {
				got = append(got, fmt.Sprint("nodePort:", port["nodePort"]))
			}
			slices.Sort(got)
			if strings.Join(got, " ") != text || port.text("targetPort") != "metrics" {
				t.Errorf("%s: the Service %s has %v", values, name, got)
			}
		}
	}
	out := render(t, install{values: "{cluster: {service: {annotations: {a: b}}}, node: {localService: {enabled: true, annotations: {c: d}}}}"})
	for name, want := range map[string]string{"node": "<nil>", "cluster": "map[a:b]", "node-local": "map[c:d]"} {
		if got := fmt.Sprint(out.need(t, "Service/dra-exporter/dra-exporter-"+name).at("metadata", "annotations")); got != want {
			t.Errorf("the Service %s has the annotations %s", name, got)
		}
	}
}

// TestNamespaceOverride: all objects are in the other namespace, and so is all
// that refers to them.
func TestNamespaceOverride(t *testing.T) {
	for _, file := range valuesFiles(t) {
		in := install{file: file, namespace: "release-namespace", apis: []string{podMonitors, prometheusRules, constraints}}
		plain := render(t, in)
		in.values = "namespaceOverride: other"
		moved := render(t, in)
		var want []string
		for _, key := range plain.keys() {
			want = append(want, strings.Replace(key, "/release-namespace/", "/other/", 1))
		}
		// Objects of the user have the namespace that they name.
		if got := moved.keys(); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: there are %v", file, got)
		}
		text, err := yaml.Marshal(moved.objects)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "release-namespace") {
			t.Errorf("%s: an object names the namespace of the release:\n%s", file, text)
		}
		notes := moved.release.Info.Notes
		if strings.Contains(strings.ReplaceAll(notes, "helm test dra-exporter -n release-namespace", ""), "release-namespace") {
			t.Errorf("%s: the notes name the namespace of the release:\n%s", file, notes)
		}
	}
}

// TestExtraObjects: objects and text are rendered as templates, and belong to the
// release.
func TestExtraObjects(t *testing.T) {
	out := render(t, install{file: "everything-values.yaml"})
	if got := out.need(t, "ConfigMap/dra-exporter-claims-notes").text("data", "release"); got != "dra-exporter" {
		t.Errorf("the object is of the release %q", got)
	}
	out.need(t, "ConfigMap/text-dra-exporter")
	out = render(t, install{values: `extraObjects: ["{{ if .Values.node.enabled }}{apiVersion: v1, kind: Secret, metadata: {name: a, namespace: {{ include \"dra-exporter.namespace\" . }}}}{{ end }}", "{{ if .Values.node.hostPID }}{apiVersion: v1, kind: Secret, metadata: {name: b}}{{ end }}"]`})
	out.need(t, "Secret/dra-exporter/a")
	if out.objects["Secret/b"] != nil {
		t.Error("a condition has no effect")
	}
}
