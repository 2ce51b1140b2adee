package helm

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestNothingIsPrivileged: with any values, except for those that request it
// by name.
func TestNothingIsPrivileged(t *testing.T) {
	for _, file := range valuesFiles(t) {
		requested := file == "everything-values.yaml"
		out := render(t, install{file: file, apis: []string{podMonitors, constraints}})
		for key, one := range out.objects {
			pod := one.pod()
			if pod == nil || one.text("kind") == "DaemonSet" && requested {
				continue
			}
			security := object(one.container(t)["securityContext"].(map[string]any))
			for field, want := range map[string]any{"privileged": false, "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true} {
				if security[field] != want {
					t.Errorf("%s: %s: %s is %v", file, key, field, security[field])
				}
			}
			if drop := texts(security.at("capabilities", "drop")); !slices.Equal(drop, []string{"ALL"}) || security.at("capabilities", "add") != nil {
				t.Errorf("%s: %s has capabilities %v", file, key, security["capabilities"])
			}
			if pod.text("securityContext", "seccompProfile", "type") != "RuntimeDefault" {
				t.Errorf("%s: %s has no seccomp profile", file, key)
			}
			for _, field := range []string{"hostNetwork", "hostIPC"} {
				if pod[field] == true {
					t.Errorf("%s: %s has %s", file, key, field)
				}
			}
			if pod["hostPID"] == true && file != "kustomize-values.yaml" {
				t.Errorf("%s: %s has hostPID", file, key)
			}
			mounts, _ := one.container(t)["volumeMounts"].([]any)
			for _, mount := range mounts {
				if mount.(map[string]any)["readOnly"] != true {
					t.Errorf("%s: %s can write to %v", file, key, mount)
				}
			}
		}
	}
}

// TestOnlyReading: no rule of any release has a verb that writes, or a
// wildcard. Reviews are the exception: objects that are created but not
// stored.
func TestOnlyReading(t *testing.T) {
	reviews := []string{"tokenreviews", "subjectaccessreviews"}
	for _, file := range valuesFiles(t) {
		for key, one := range render(t, install{file: file}).objects {
			rules, _ := one["rules"].([]any)
			for _, rule := range rules {
				table := object(rule.(map[string]any))
				for _, verb := range texts(table["verbs"]) {
					review := verb == "create" && len(texts(table["resources"])) == 1 && slices.Contains(reviews, texts(table["resources"])[0]) && file == "kubernetes-auth-values.yaml"
					if !slices.Contains([]string{"get", "list", "watch"}, verb) && !review {
						t.Errorf("%s: %s may %s %v", file, key, verb, table["resources"])
					}
				}
				if resources := texts(table["resources"]); slices.Contains(resources, "*") || slices.Contains(resources, "secrets") {
					t.Errorf("%s: %s reads %v", file, key, resources)
				}
			}
		}
	}
}

// TestKubernetesAuth: both roles require tokens and have the permission to
// review them, and there is a role for scrapers.
func TestKubernetesAuth(t *testing.T) {
	out := render(t, install{file: "kubernetes-auth-values.yaml"})
	for _, key := range []string{"DaemonSet/dra-exporter/dra-exporter-node", "Deployment/dra-exporter/dra-exporter-cluster"} {
		args := texts(out.need(t, key).container(t)["args"])
		if !slices.Contains(args, "--web.kubernetes-auth") || !slices.Contains(args, "--web.kubernetes-audience=dra-exporter") {
			t.Errorf("%s has the arguments %v", key, args)
		}
	}
	subjects := fmt.Sprint(out.need(t, "ClusterRoleBinding/dra-exporter-reviews")["subjects"])
	for _, account := range []string{"name:dra-exporter-node", "name:dra-exporter-cluster"} {
		if !strings.Contains(subjects, account) {
			t.Errorf("reviews may be created by %s", subjects)
		}
	}
	if rules := fmt.Sprint(out.need(t, "ClusterRole/dra-exporter-metrics-reader")["rules"]); rules != "[map[nonResourceURLs:[/metrics] verbs:[get]]]" {
		t.Errorf("who scrapes may %s", rules)
	}
	for key := range render(t, install{}).objects {
		if strings.Contains(key, "reviews") || strings.Contains(key, "metrics-reader") {
			t.Errorf("there is %s without web.kubernetesAuth", key)
		}
	}
}

// TestWithoutAPI: an agent that needs no API server has neither permissions
// nor a token. One that reads pods from the kubelet may not list them.
func TestWithoutAPI(t *testing.T) {
	out := render(t, install{file: "least-values.yaml"})
	if want := []string{"DaemonSet/dra-exporter/dra-exporter-node", "Service/dra-exporter/dra-exporter-node", "ServiceAccount/dra-exporter/dra-exporter-node"}; !slices.Equal(out.keys(), want) {
		t.Errorf("there are %v", out.keys())
	}
	agent := out.need(t, "DaemonSet/dra-exporter/dra-exporter-node")
	if agent.pod()["automountServiceAccountToken"] != false {
		t.Error("the agent has a token")
	}
	if args := texts(agent.container(t)["args"]); !slices.Contains(args, "--kubernetes.disable") {
		t.Errorf("the agent has the arguments %v", args)
	}

	out = render(t, install{values: "node: {podsAPI: true, kubeletDir: /data/kubelet}"})
	for _, rule := range out.need(t, "ClusterRole/dra-exporter-node")["rules"].([]any) {
		if resources := texts(rule.(map[string]any)["resources"]); slices.Contains(resources, "pods") {
			t.Errorf("the agent may read %v", resources)
		}
	}
	agent = out.need(t, "DaemonSet/dra-exporter/dra-exporter-node")
	if socket := named(agent.container(t)["env"], "DRA_EXPORTER_KUBELET_PODS_API").text("value"); socket != "/var/lib/kubelet/pods-api/pods-api.sock" {
		t.Errorf("the socket is %q", socket)
	}
	for name, path := range map[string]string{"pods-api": "/data/kubelet/pods-api", "pod-resources": "/data/kubelet/pod-resources"} {
		if volume := named(agent.pod()["volumes"], name); volume.text("hostPath", "path") != path {
			t.Errorf("the volume %s is %v", name, volume)
		}
		if mount := named(agent.container(t)["volumeMounts"], name); mount.text("mountPath") != "/var/lib/kubelet/"+name {
			t.Errorf("%s is mounted %v", name, mount)
		}
	}
}

// TestSeriesDependOnNoName: two releases with other names, in other namespaces
// and with the other kind of monitor, have the same job and instances.
func TestSeriesDependOnNoName(t *testing.T) {
	relabelings := func(in install, kind, field string) map[string]any {
		in.apis = []string{podMonitors, serviceMonitors}
		found := map[string]any{}
		for _, one := range render(t, in).objects {
			if one.text("kind") == kind {
				endpoint := object(one.at("spec", field).([]any)[0].(map[string]any))
				role := one.text("metadata", "labels", "app.kubernetes.io/component")
				found[role] = []any{one.text("spec", "jobLabel"), endpoint["honorLabels"], endpoint["relabelings"], one.at("spec", "scrapeClassicHistograms")}
			}
		}
		return found
	}
	want := relabelings(install{}, "PodMonitor", "podMetricsEndpoints")
	if len(want) != 2 {
		t.Fatalf("monitors: %v", want)
	}
	for _, in := range []install{
		{release: "gpu-metrics", namespace: "kube-system"},
		{values: "{nameOverride: claims, fullnameOverride: other, commonLabels: {a: b}}"},
	} {
		if got := relabelings(in, "PodMonitor", "podMetricsEndpoints"); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %v, and not %v", in, got, want)
		}
		in.values = strings.Replace(or(in.values, "{}"), "{", "{monitoring: {kind: ServiceMonitor}, ", 1)
		if got := relabelings(in, "ServiceMonitor", "endpoints"); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %v, and not %v", in, got, want)
		}
		// The label from which Prometheus takes the job's name.
		for key, one := range render(t, in).objects {
			if name := one.at("metadata", "labels", "app.kubernetes.io/name"); name != "dra-exporter" {
				t.Errorf("%s is called %v", key, name)
			}
		}
	}
}

// TestWithoutHonorLabels: the exporter's own labels are renamed, and no rule
// or dashboard reads the claims' labels by their plain names.
func TestWithoutHonorLabels(t *testing.T) {
	out := render(t, install{values: "monitoring: {honorLabels: false}", apis: []string{podMonitors, prometheusRules}})
	if kinds := out.kinds(); kinds["PrometheusRule"] != 0 || kinds["ConfigMap"] != 0 || kinds["PodMonitor"] != 2 {
		t.Errorf("there are %v", kinds)
	}
	for _, role := range []string{"node", "cluster"} {
		endpoint := object(out.need(t, "PodMonitor/dra-exporter/dra-exporter-"+role).at("spec", "podMetricsEndpoints").([]any)[0].(map[string]any))
		text := fmt.Sprint(endpoint["relabelings"])
		if endpoint["honorLabels"] != false || strings.Contains(text, "namespace") || !strings.Contains(text, "regex:(endpoint|service)") {
			t.Errorf("%s is scraped by %v", role, endpoint)
		}
	}
}

// TestSelectors: selectors select only the pods of their own role and release,
// and a ServiceMonitor finds each of its instances through one Service.
func TestSelectors(t *testing.T) {
	for _, file := range valuesFiles(t) {
		pods, services := map[string]any{}, map[string]any{}
		var selecting []object
		for _, name := range []string{"a", "b"} {
			for key, one := range render(t, install{release: name, file: file, apis: []string{podMonitors, serviceMonitors}}).objects {
				switch one.text("kind") {
				case "DaemonSet", "Deployment":
					pods[key] = one.at("spec", "template", "metadata", "labels")
				case "Service":
					services[key] = one.at("metadata", "labels")
				}
				selecting = append(selecting, one)
			}
		}
		for _, one := range selecting {
			targets, selector := pods, one.at("spec", "selector", "matchLabels")
			switch one.text("kind") {
			case "Service":
				selector = one.at("spec", "selector")
			case "NetworkPolicy":
				selector = one.at("spec", "podSelector", "matchLabels")
			case "ServiceMonitor":
				targets = services
			}
			if selector == nil {
				continue
			}
			var found []string
			for key, labels := range targets {
				if matches(selector, labels) {
					found = append(found, key)
				}
			}
			slices.Sort(found)
			var want []string
			name := strings.TrimSuffix(one.text("metadata", "name"), "-local")
			for _, key := range slices.Sorted(maps.Keys(targets)) {
				_, other, _ := strings.Cut(key, "/dra-exporter/")
				managed := name+"-managed" == other && one.text("kind") != "DaemonSet"
				if strings.HasSuffix(key, "/"+name) || managed {
					want = append(want, key)
				}
			}
			if len(want) == 0 || !slices.Equal(found, want) {
				t.Errorf("%s: %s selects %v, not %v", file, one.key(), found, want)
			}
		}
	}
}

// TestSecondRelease: a release for nodes of another kind shares no object with
// the first, and has no object that a cluster may have only once.
func TestSecondRelease(t *testing.T) {
	apis := []string{podMonitors, prometheusRules, constraints}
	first := render(t, install{apis: apis})
	second := render(t, install{release: "amd", file: "nodes-values.yaml", apis: apis})
	for _, key := range second.keys() {
		if first.objects[key] != nil {
			t.Errorf("both have %s", key)
		}
	}
	kinds := second.kinds()
	if kinds["PrometheusRule"] != 0 || kinds["ConfigMap"] != 0 || kinds["Deployment"] != 0 {
		t.Errorf("the second has %v", kinds)
	}
	if kinds["DaemonSet"] != 1 || kinds["PodMonitor"] != 1 || kinds["SecurityContextConstraints"] != 1 {
		t.Errorf("the second has %v", kinds)
	}
}

// TestRollout: pods are replaced when their configuration changes, and only
// then.
func TestRollout(t *testing.T) {
	template := func(values string) any {
		return render(t, install{values: values}).need(t, "DaemonSet/dra-exporter/dra-exporter-node").at("spec", "template")
	}
	cheap, dear := "node: {prices: {currency: EUR, prices: [{perHour: 1}]}}", "node: {prices: {currency: EUR, prices: [{perHour: 2}]}}"
	if reflect.DeepEqual(template(cheap), template(dear)) {
		t.Error("another price list restarts nothing")
	}
	if !reflect.DeepEqual(template(dear), template(dear)) {
		t.Error("rendering twice is not the same")
	}
	for _, change := range []string{"dashboards: {enabled: false}", "monitoring: {interval: 15s}", "rules: {enabled: true}", "cluster: {goMemLimit: 1GiB}"} {
		if !reflect.DeepEqual(template("{}"), template(change)) {
			t.Errorf("%s restarts every agent", change)
		}
	}
}

// TestAllValues: everything that the long values file requests is rendered.
func TestAllValues(t *testing.T) {
	out := render(t, install{file: "everything-values.yaml", namespace: "gpu"})
	agent := out.need(t, "DaemonSet/gpu/dra-exporter-claims-node")
	for _, arg := range []string{
		"--device.nvlink-links", "--no-device.serial", "--device.source=nvml", "--device.source=rdma", "--metrics.dcgm=split",
		"--labels.pod=team", "--labels.pod=app.kubernetes.io/name", "--labels.workload=name=example.com/run", "--cost.prices=/etc/dra-exporter-prices/prices.yaml",
		"--cdi.dir=/etc/cdi", "--cdi.dir=/data/cdi", "--log.level=debug", "--log.format=json",
		"--web.config.file=/etc/dra-exporter-web/web.yaml", "--idle.threshold=0.05",
	} {
		if !slices.Contains(texts(agent.container(t)["args"]), arg) {
			t.Errorf("the agent lacks the argument %s", arg)
		}
	}
	env := agent.container(t)["env"]
	for name, value := range map[string]string{
		"GOMEMLIMIT": "200MiB", "OTEL_EXPORTER_OTLP_ENDPOINT": "https://$(HOST_IP):4318", "OTEL_METRIC_EXPORT_INTERVAL": "60000",
		"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "DRA_EXPORTER_OTLP_NAMING": "semconv", "DRA_EXPORTER_OTLP_CLUSTER_NAME": "production",
		"DRA_EXPORTER_DEVICE_PROFILING": "true",
	} {
		if got := named(env, name).text("value"); got != value {
			t.Errorf("%s is %q", name, got)
		}
	}
	var names []string
	for _, one := range env.([]any) {
		names = append(names, one.(map[string]any)["name"].(string))
	}
	if slices.Index(names, "HOST_IP") > slices.Index(names, "OTEL_EXPORTER_OTLP_ENDPOINT") || !slices.Contains(names, "HOST_IP") {
		t.Errorf("a variable is used before it is there: %v", names)
	}
	if sorted := slices.Sorted(slices.Values(names)); len(slices.Compact(sorted)) != len(names) {
		t.Errorf("variables are there twice: %v", names)
	}
	prices := parse(t, out.need(t, "ConfigMap/gpu/dra-exporter-claims-prices").text("data", "prices.yaml"))
	if fmt.Sprint(prices) != "map[currency:EUR prices:[map[model:NVIDIA H100* perHour:4.1] map[perHour:0.3]]]" {
		t.Errorf("prices are %v", prices)
	}
	if image := agent.container(t).text("image"); !strings.HasPrefix(image, "ghcr.io/dra-exporter/dra-exporter@sha256:01") {
		t.Errorf("the image is %s", image)
	}
	alerts := fmt.Sprint(out.need(t, "PrometheusRule/monitoring/dra-exporter-claims"))
	if strings.Contains(alerts, "alert:DRAClaimIdle ") || strings.Count(alerts, "team:platform]") < 10 || !strings.Contains(alerts, "severity:warning team:platform") {
		t.Error("alerts are not as asked for")
	}
	if key := "Pod/gpu/dra-exporter-claims-test"; out.objects[key] != nil {
		t.Errorf("%s asks without a password", key)
	}
	for _, role := range []string{"node", "cluster"} {
		endpoint := object(out.need(t, "ServiceMonitor/monitoring/dra-exporter-claims-"+role).at("spec", "endpoints").([]any)[0].(map[string]any))
		if endpoint.text("scheme") != "https" || endpoint.text("basicAuth", "username", "name") != "scraper" {
			t.Errorf("%s is scraped by %v", role, endpoint)
		}
	}
}

// TestOpenShift: OpenShift assigns the users, except that of the agent.
func TestOpenShift(t *testing.T) {
	out := render(t, install{apis: []string{constraints}})
	allowed := out.need(t, "SecurityContextConstraints/dra-exporter-node")
	if users := texts(allowed["users"]); !slices.Equal(users, []string{"system:serviceaccount:dra-exporter:dra-exporter-node"}) {
		t.Errorf("it is for %v", users)
	}
	for _, field := range []string{"allowPrivilegedContainer", "allowPrivilegeEscalation", "allowHostNetwork", "allowHostPID", "allowHostIPC", "allowHostPorts"} {
		if allowed[field] != false {
			t.Errorf("%s is %v", field, allowed[field])
		}
	}
	for key, one := range out.objects {
		user := one.pod().at("securityContext", "runAsUser")
		if one.pod() != nil && user != nil {
			t.Errorf("%s insists on the user %v", key, user)
		}
	}
}

// named returns the item of a list with a name.
func named(list any, name string) object {
	items, _ := list.([]any)
	for _, item := range items {
		if table, ok := item.(map[string]any); ok && table["name"] == name {
			return table
		}
	}
	return nil
}

// matches reports whether labels match a selector.
func matches(selector, labels any) bool {
	wanted, _ := selector.(map[string]any)
	have, _ := labels.(map[string]any)
	for key, value := range wanted {
		if have[key] != value {
			return false
		}
	}
	return len(wanted) > 0
}

// TestNetworkPolicy: only ingress is limited, to the port of the metrics. The
// pod of helm test is one of the allowed peers.
func TestNetworkPolicy(t *testing.T) {
	const peers = "networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {a: b}}}]}"
	for values, from := range map[string]int{"networkPolicy: {enabled: true}": 0, peers: 2, "{tests: {enabled: false}, " + peers + "}": 1} {
		out := render(t, install{values: values})
		for _, role := range []string{"node", "cluster"} {
			policy := out.need(t, "NetworkPolicy/dra-exporter/dra-exporter-"+role)
			rule := object(policy.at("spec", "ingress").([]any)[0].(map[string]any))
			sources, _ := rule["from"].([]any)
			if types := texts(policy.at("spec", "policyTypes")); !slices.Equal(types, []string{"Ingress"}) || fmt.Sprint(rule["ports"]) != "[map[port:metrics protocol:TCP]]" || len(sources) != from {
				t.Errorf("%s: %v", values, policy["spec"])
			}
			if from == 2 && !matches(object(sources[1].(map[string]any)).at("podSelector", "matchLabels"), out.need(t, "Pod/dra-exporter/dra-exporter-test").at("metadata", "labels")) {
				t.Errorf("helm test is kept out: %v", sources)
			}
		}
	}
}

// TestEgress: with limited egress, each role may connect to the endpoints of
// its values and to nothing else.
func TestEgress(t *testing.T) {
	const on = "networkPolicy: {enabled: true, egress: {enabled: true}}"
	const api, dns = "TCP/443 TCP/6443", "UDP/53 TCP/53"
	for values, want := range map[string]struct{ node, cluster []string }{
		"{node: {access: {mode: none}}, " + on + "}":                                 {[]string{api, dns}, []string{api, dns}},
		"{node: {access: {mode: none}, kubernetesAPI: false}, " + on + "}":           {[]string{dns}, []string{api, dns}},
		"{node: {access: {dcgm: {hostEngine: '$(HOST_IP):5555'}}}, " + on + "}":      {[]string{api, dns, "TCP/5555"}, []string{api, dns}},
		"{node: {access: {dcgm: {hostEngine: 'unix:///run/dcgm/a:1'}}}, " + on + "}": {[]string{api, dns}, []string{api, dns}},
		"{node: {access: {mode: none}, exporters: [{preset: furiosa, url: 'http://$(HOST_IP):6254/metrics'}, {preset: all-smi, url: 'unix:///run/a.sock'}]}, " + on + "}": {
			[]string{api, dns, "TCP/6254"}, []string{api, dns}},
		"{otlp: {endpoint: 'http://[2001:db8::1]:4317/v1'}, " + on + "}": {[]string{api, dns, "TCP/4317"}, []string{api, dns, "TCP/4317"}},
		"{otlp: {endpoint: 'http://collector/otlp'}, " + on + "}":        {[]string{api, dns, "TCP/80"}, []string{api, dns, "TCP/80"}},
		"{otlp: {endpoint: 'https://[2001:db8::1]'}, " + on + "}":        {[]string{api, dns, "TCP/443"}, []string{api, dns, "TCP/443"}},
		"{otlp: {endpoint: 'collector:4317'}, " + on + "}":               {[]string{api, dns, "TCP/4317"}, []string{api, dns, "TCP/4317"}},
		"{otlp: {endpoint: 'unix:///run/otel/c.sock'}, " + on + "}":      {[]string{api, dns}, []string{api, dns}},
		"{otlp: {endpoint: 'http://c:80'}, networkPolicy: {enabled: true, egress: {enabled: true, collector: {ports: [4318]}, extra: [{ports: [{port: 1, protocol: TCP}]}]}}}": {
			[]string{api, dns, "TCP/4318", "TCP/1"}, []string{api, dns, "TCP/4318", "TCP/1"}},
	} {
		out := render(t, install{values: values})
		for role, rules := range map[string][]string{"node": want.node, "cluster": want.cluster} {
			policy := out.need(t, "NetworkPolicy/dra-exporter/dra-exporter-"+role)
			if types := texts(policy.at("spec", "policyTypes")); !slices.Equal(types, []string{"Ingress", "Egress"}) {
				t.Errorf("%s: %s limits %v", values, role, types)
			}
			if got := egress(policy); !slices.Equal(got, rules) {
				t.Errorf("%s: %s may connect to %q, not %q", values, role, got, rules)
			}
		}
	}
	out := render(t, install{file: "everything-values.yaml", namespace: "gpu"})
	for _, role := range []string{"node", "cluster"} {
		var peers []string
		for _, rule := range out.need(t, "NetworkPolicy/gpu/dra-exporter-claims-"+role).at("spec", "egress").([]any) {
			peers = append(peers, fmt.Sprint(rule.(map[string]any)["to"]))
		}
		text := strings.Join(peers, " ")
		for _, peer := range []string{"10.0.0.1/32", "k8s-app:kube-dns", "name:observability", "192.0.2.0/24"} {
			want := map[string]int{"node": 5, "cluster": 4}[role] // the node also connects to exporters
			if strings.Count(text, peer) != 1 || len(peers) != want {
				t.Errorf("%s: peers %s lack %s", role, text, peer)
			}
		}
	}
}

// egress returns the ports of each egress rule of a NetworkPolicy.
func egress(policy object) []string {
	var out []string
	rules, _ := policy.at("spec", "egress").([]any)
	for _, rule := range rules {
		var ports []string
		for _, port := range rule.(map[string]any)["ports"].([]any) {
			one := port.(map[string]any)
			ports = append(ports, fmt.Sprintf("%v/%v", one["protocol"], one["port"]))
		}
		out = append(out, strings.Join(ports, " "))
	}
	return out
}

// TestAppArmor: only values request a profile, because the kubelet of a node
// without AppArmor refuses every pod with one.
func TestAppArmor(t *testing.T) {
	pods := func(in install) map[string]any {
		found := map[string]any{}
		for key, one := range render(t, in).objects {
			if kind := one.text("kind"); kind == "DaemonSet" || kind == "Deployment" {
				found[key] = one.pod().at("securityContext", "appArmorProfile")
			}
		}
		return found
	}
	for key, profile := range pods(install{}) {
		if profile != nil {
			t.Errorf("%s asks for %v", key, profile)
		}
	}
	got := pods(install{file: "everything-values.yaml", namespace: "gpu"})
	want := map[string]any{
		"DaemonSet/gpu/dra-exporter-claims-node":     map[string]any{"type": "Localhost", "localhostProfile": "dra-exporter"},
		"Deployment/gpu/dra-exporter-claims-cluster": map[string]any{"type": "RuntimeDefault"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("profiles are %v, not %v", got, want)
	}
}

// TestAcceptedValues: unusual but valid values are accepted: keys that are
// unset by null, the condition of a parent chart for this one, names that YAML
// would decode as numbers, durations with two units.
func TestAcceptedValues(t *testing.T) {
	for _, values := range []string{
		"enabled: true", "commonLabels: null",
		"node: {resources: null, nodeSelector: null, affinity: null, tolerations: null, podAnnotations: null, podLabels: null}",
		"node: {capabilities: null, seLinuxOptions: null, localService: null, env: null, extraArgs: null, prices: null, updateStrategy: null, appArmorProfile: null}",
		"node: {livenessProbe: null, readinessProbe: null, extraContainers: null, extraInitContainers: null}",
		"{cluster: {service: null, updateStrategy: null, livenessProbe: null, extraContainers: null}, extraObjects: null, namespaceOverride: null}",
		"cluster: {resources: null, nodeSelector: null, affinity: null, podAnnotations: null, podLabels: null}",
		"{otlp: {endpoint: null}, rules: {alertLabels: null, disabledAlerts: null}, dashboards: {labels: null, annotations: null}}",
		"monitoring: {labels: null, relabelings: null, interval: 1m30s, scrapeTimeout: 1m15s}",
		"{monitoring: {interval: 5m}, node: {extraArgs: [--ledger.grace=10m]}}",
		"{monitoring: {interval: 5m}, node: {env: [{name: DRA_EXPORTER_LEDGER_GRACE, value: 10m}]}}",
		"{monitoring: {interval: 5m}, node: {enabled: false}}",
		"cluster: {resources: {requests: {cpu: 1.5, memory: .5Gi}, limits: {cpu: '2', memory: 1e9, ephemeral-storage: 1Ei}}}",
		"serviceAccounts: {node: {create: false, name: default}}",
		"links: {grafana: null, runbooks: null, cluster: null}",
	} {
		if _, err := tryRender(t, install{values: values, apis: []string{podMonitors, prometheusRules}}); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
	out := render(t, install{release: "1234", namespace: "1e3", values: "{fullnameOverride: dra-exporter, networkPolicy: {enabled: true}, monitoring: {namespace: '777'}}", apis: []string{podMonitors, constraints}})
	for key, one := range out.objects {
		if namespace, there := one["metadata"].(map[string]any)["namespace"]; there {
			if _, ok := namespace.(string); !ok {
				t.Errorf("%s: the namespace is the number %v", key, namespace)
			}
		}
		if label := one.at("metadata", "labels", "app.kubernetes.io/instance"); label != "1234" {
			t.Errorf("%s: the instance is %T %v", key, label, label)
		}
	}
}

// TestVariablesInPlace: the user's HOST_IP comes before the variable that
// refers to it, as the chart's does.
func TestVariablesInPlace(t *testing.T) {
	out := render(t, install{values: "node: {access: {mode: dcgm, dcgm: {hostEngine: '$(HOST_IP):5555'}}, env: [{name: HOST_IP, value: 10.0.0.1}, {name: LAST, value: $(HOST_IP)}]}"})
	var names []string
	for _, one := range out.need(t, "DaemonSet/dra-exporter/dra-exporter-node").container(t)["env"].([]any) {
		names = append(names, one.(map[string]any)["name"].(string))
	}
	if want := []string{"NODE_NAME", "HOST_IP", "DRA_EXPORTER_DEVICE_RELEASE_FILE", "DRA_EXPORTER_ACCESS_MODE", "DRA_EXPORTER_DCGM_HOST_ENGINE", "LAST"}; !slices.Equal(names, want) {
		t.Errorf("variables are %v", names)
	}
}

// TestVolumesOfTheClusterRole: the user's volumes are added to those of the
// chart.
func TestVolumesOfTheClusterRole(t *testing.T) {
	const own = "cluster: {extraVolumes: [{name: ca, configMap: {name: ca}}], extraVolumeMounts: [{name: ca, mountPath: /etc/ssl/own}]}"
	for values, want := range map[string]int{own: 1, "{web: {configSecret: web}, " + own + "}": 2, "web: {configSecret: web}": 1, "{}": 0} {
		role := render(t, install{values: values}).need(t, "Deployment/dra-exporter/dra-exporter-cluster")
		volumes, _ := role.pod()["volumes"].([]any)
		mounts, _ := role.container(t)["volumeMounts"].([]any)
		if len(volumes) != want || len(mounts) != want {
			t.Errorf("%s: %v, %v", values, volumes, mounts)
		}
	}
}
