package helm

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notesCase is an install, and what its notes must and must not contain.
type notesCase struct {
	in            install
	contains, not []string
}

// TestNotes: the notes name what was installed and what was not, and why.
func TestNotes(t *testing.T) {
	operator := []string{podMonitors, prometheusRules}
	for name, test := range notesCases(operator) {
		t.Run(name, func(t *testing.T) {
			notes := render(t, test.in).release.Info.Notes
			for _, part := range test.contains {
				if !strings.Contains(notes, part) {
					t.Errorf("it does not say %q", part)
				}
			}
			for _, part := range test.not {
				if strings.Contains(notes, part) {
					t.Errorf("it says %q", part)
				}
			}
			if t.Failed() {
				t.Log(notes)
			}
		})
	}
}

func notesCases(operator []string) map[string]notesCase {
	return map[string]notesCase{
		"with the operator": {install{apis: operator, values: "dashboards: {enabled: true}"},
			[]string{"PodMonitors are in the namespace dra-exporter", "--set monitoring.labels.release=", "PrometheusRule dra-exporter in dra-exporter", "--set rules.labels.release=", "grafana_dashboard=1", "violates PodSecurity", "enforce=privileged", "set node.kubeletDir", "helm test dra-exporter -n dra-exporter"},
			[]string{"There is no", "There are no", "pushed", "hostPID", "rbac.create"}},
		"without the operator": {install{},
			[]string{"There is no PodMonitor: the cluster did not have", "monitoring.enabled=true", "#prometheus-without-the-operator", "There are no rules and alerts: the cluster did not have", "tree/main/alerts"},
			[]string{"PodMonitors are", "--set"}},
		"switched off": {install{values: "{monitoring: {enabled: false}, rules: {enabled: false}, dashboards: {enabled: false}, tests: {enabled: false}}", apis: operator},
			[]string{"There is no PodMonitor: monitoring.enabled is false", "no rules and alerts: rules.enabled is false", "no dashboards: dashboards.enabled is false"},
			[]string{"did not have", "sidecar of", "helm test"}},
		"no Grafana known": {install{apis: operator},
			[]string{"There are no dashboards: dashboards.labels and dashboards.namespace are not set", "dashboards.enabled=true"}, []string{"grafana_dashboard"}},
		"Grafana's namespace": {install{values: "dashboards: {namespace: monitoring}"},
			[]string{"Dashboards are ConfigMaps in monitoring, labelled grafana_dashboard=1"}, []string{"no dashboards"}},
		"Grafana's labels": {install{values: "dashboards: {labels: {board: dra}}"},
			[]string{"Dashboards are ConfigMaps in dra-exporter, labelled board=dra."}, nil},
		"labelled": {install{values: "{monitoring: {labels: {release: kps}}, rules: {labels: {release: kps, a: b}}}", apis: operator},
			[]string{"podMonitorSelector requires no more than release=kps.", "ruleSelector requires no more than a=b, release=kps."}, []string{"--set"}},
		"ServiceMonitors elsewhere": {install{values: "monitoring: {kind: ServiceMonitor, namespace: observability}", apis: []string{serviceMonitors}},
			[]string{"ServiceMonitors are in the namespace observability", "serviceMonitorSelector"}, []string{"PodMonitor"}},
		"nodes alone": {install{file: "nodes-values.yaml", release: "amd", apis: operator},
			[]string{"DaemonSet amd-dra-exporter-node", "Rules and alerts belong to the release", "Dashboards belong to the release"},
			[]string{"Deployment", "9421", "PrometheusRule"}},
		"cluster alone": {install{values: "node: {enabled: false}"},
			[]string{"Deployment dra-exporter-cluster"}, []string{"DaemonSet", "GPUs", "Mind", "dra-exporter top", "9420"}},
		"pushed": {install{values: "otlp: {endpoint: 'http://collector:4317'}"},
			[]string{"All metrics, and a trace of each claim, are pushed to http://collector:4317"}, nil},
		"pushed by nodes": {install{values: "{otlp: {endpoint: 'http://collector:4317'}, cluster: {enabled: false}}"},
			[]string{"All metrics are pushed to http://collector:4317"}, []string{"trace"}},
		"guarded": {install{values: "web: {configSecret: web, tls: true}", apis: operator},
			[]string{"https://localhost:9420", "-u with a password", "set monitoring.tlsConfig", "set web.probes=tcp"},
			[]string{"helm test", "http://localhost", "dra-exporter top"}},
		"guarded and configured": {install{values: "{web: {configSecret: web, tls: true, probes: tcp}, monitoring: {tlsConfig: {insecureSkipVerify: true}}}", apis: operator},
			nil, []string{"set monitoring.tlsConfig", "set web.probes"}},
		"more than the least": {install{file: "everything-values.yaml"},
			[]string{"node.hostPID: the agent sees", "capabilities SYS_ADMIN", "node.podsAPI"}, []string{"OpenShift"}},
		"without the API server": {install{file: "least-values.yaml"},
			[]string{"node.kubernetesAPI is false"}, []string{"rbac.create"}},
		"without rights": {install{values: "rbac: {create: false}"},
			[]string{"rbac.create is false"}, nil},
		"labels not honoured": {install{values: "monitoring: {honorLabels: false}", apis: operator},
			[]string{"PodMonitors are", "no rules and alerts, because monitoring.honorLabels is false", "no dashboards, because monitoring.honorLabels is false"},
			[]string{"Recording rules and alerts are", "sidecar"}},
		"a mode that wants labelled nodes": {install{values: "node: {access: {mode: runtimeClass}}"},
			[]string{"kubectl get nodes -l nvidia.com/gpu.present=true", "node.access.mode=none", "pod rejected"}, nil},
		"nodes that are chosen": {install{values: "node: {access: {mode: runtimeClass}, nodeSelector: {a: b}}"},
			nil, []string{"gpu.present", "node.access.mode=none"}},
		"OpenShift": {install{apis: []string{constraints}},
			[]string{"node.seLinuxOptions.type=spc_t"}, nil},
	}
}

// TestNotesNameExistingObjects: each object in the notes was created, in every
// case.
func TestNotesNameExistingObjects(t *testing.T) {
	named := regexp.MustCompile(`(?i)\b(daemonset|deployment|prometheusrule)[ /]([a-z0-9-]+)`)
	for _, file := range valuesFiles(t) {
		for _, apis := range [][]string{nil, {podMonitors, prometheusRules, serviceMonitors}} {
			out := render(t, install{release: "r", namespace: "ns", file: file, apis: apis})
			notes := out.release.Info.Notes
			var made []string
			for _, one := range out.objects {
				made = append(made, strings.ToLower(one.text("kind"))+"/"+one.text("metadata", "name"))
			}
			for _, match := range named.FindAllStringSubmatch(notes, -1) {
				if key := strings.ToLower(match[1]) + "/" + match[2]; !slices.Contains(made, key) {
					t.Errorf("%s: it names %s, and there is none", file, key)
				}
			}
			for _, kind := range []string{"PodMonitor", "ServiceMonitor"} {
				if (out.kinds()[kind] > 0) != strings.Contains(notes, kind+"s are in the namespace") {
					t.Errorf("%s: %d %ss, and it says\n%s", file, out.kinds()[kind], kind, notes)
				}
			}
			if (out.kinds()["PrometheusRule"] > 0) != strings.Contains(notes, "Recording rules and alerts are the PrometheusRule") {
				t.Errorf("%s: %d rules, and it says\n%s", file, out.kinds()["PrometheusRule"], notes)
			}
			if strings.Contains(notes, "<no value>") || strings.Contains(notes, "<nil>") {
				t.Errorf("%s: %s", file, notes)
			}
		}
	}
}
