package helm

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRefusals: wrong values are refused before anything is created, and
// Helm's message to the user names the key.
func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		values string
		says   []string // all of them are in the message
	}{
		"misspelt":            {"nod: {enabled: true}", []string{"'nod' not allowed"}},
		"misspelt below":      {"node: {acess: {mode: none}}", []string{"at '/node'", "'acess' not allowed"}},
		"misspelt label":      {"rules: {labls: {a: b}}", []string{"at '/rules'", "'labls' not allowed"}},
		"unknown mode":        {"node: {access: {mode: magic}}", []string{"at '/node/access/mode'", "runtimeClass"}},
		"text for a switch":   {"node: {hostPID: 'yes'}", []string{"at '/node/hostPID'", "want boolean"}},
		"number for a label":  {"commonLabels: {tier: 1}", []string{"at '/commonLabels/tier'", "want string"}},
		"number for auto":     {"monitoring: {enabled: 1}", []string{"at '/monitoring/enabled'", "'auto'"}},
		"kind":                {"monitoring: {kind: Probe}", []string{"at '/monitoring/kind'", "'ServiceMonitor'"}},
		"interval":            {"monitoring: {interval: often}", []string{"at '/monitoring/interval'"}},
		"push interval":       {"otlp: {interval: 500ms}", []string{"at '/otlp/interval'"}},
		"relative folder":     {"node: {kubeletDir: var/lib/kubelet}", []string{"at '/node/kubeletDir'"}},
		"flag without dashes": {"node: {extraArgs: [log.level=debug]}", []string{"at '/node/extraArgs/0'"}},
		"variable, no name":   {"cluster: {env: [{value: x}]}", []string{"at '/cluster/env/0'", "name"}},
		"digest":              {"image: {digest: latest}", []string{"at '/image/digest'"}},
		"memory limit of Go":  {"node: {goMemLimit: 128Mi}", []string{"at '/node/goMemLimit'"}},
		"prices as text":      {"node: {prices: 'currency: EUR'}", []string{"at '/node/prices'", "want object"}},
		"link without scheme": {"links: {cluster: dra.example}", []string{"at '/links/cluster'"}},
		"password in a link":  {"links: {grafana: 'https://me:secret@grafana.example'}", []string{"at '/links/grafana'"}},
		"password of a push":  {"otlp: {endpoint: 'https://me:secret@collector:4318'}", []string{"at '/otlp/endpoint'"}},
		"price without hour":  {"node: {prices: {prices: [{model: H100}]}}", []string{"at '/node/prices/prices/0'", "perHour"}},
		"negative price":      {"node: {prices: {prices: [{perHour: -1}]}}", []string{"at '/node/prices/prices/0/perHour'"}},
		"severity":            {"rules: {alertLabels: {severity: page}}", []string{"rules.alertLabels", "severity"}},
		"CAP_":                {"node: {capabilities: {add: [CAP_SYS_ADMIN]}}", []string{"at '/node/capabilities/add/0'"}},

		"probe type":          {"node: {livenessProbe: {httpGet: {path: /}}}", []string{"at '/node/livenessProbe'", "'httpGet' not allowed"}},
		"probe period":        {"cluster: {readinessProbe: {periodSeconds: 0}}", []string{"at '/cluster/readinessProbe/periodSeconds'", "minimum"}},
		"live twice":          {"node: {livenessProbe: {successThreshold: 2}}", []string{"'successThreshold' not allowed"}},
		"container, no name":  {"node: {extraContainers: [{image: x}]}", []string{"at '/node/extraContainers/0'", "name"}},
		"strategy":            {"node: {updateStrategy: {type: Recreate}}", []string{"at '/node/updateStrategy/type'", "OnDelete"}},
		"two at a time":       {"cluster: {updateStrategy: {type: RollingUpdate}}", []string{"cluster.updateStrategy", "rollingUpdate.maxSurge=0", "twice"}},
		"surge":               {"cluster: {updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}}", []string{"rollingUpdate.maxSurge=0"}},
		"no rolling":          {"cluster: {updateStrategy: {rollingUpdate: {maxSurge: 0}}}", []string{"cluster.updateStrategy", "RollingUpdate"}},
		"service type":        {"cluster: {service: {type: ExternalName}}", []string{"at '/cluster/service/type'", "LoadBalancer"}},
		"local service":       {"node: {localService: {type: LoadBalancer}}", []string{"at '/node/localService/type'", "NodePort"}},
		"port of no node":     {"cluster: {service: {nodePort: 30000}}", []string{"cluster.service.nodePort", "cluster.service.type=NodePort"}},
		"object as number":    {"extraObjects: [1]", []string{"at '/extraObjects/0'", "want string or object"}},
		"namespace":           {"namespaceOverride: GPU", []string{"at '/namespaceOverride'"}},
		"unknown alert":       {"rules: {thresholds: {DRANothing: {after: 1h}}}", []string{"at '/rules/thresholds'", "'DRANothing' not allowed"}},
		"unknown threshold":   {"rules: {thresholds: {DRAClaimIdle: {before: 1h}}}", []string{"at '/rules/thresholds/DRAClaimIdle'", "'before' not allowed"}},
		"threshold as number": {"rules: {thresholds: {DRAClaimIdle: {after: 7200}}}", []string{"at '/rules/thresholds/DRAClaimIdle/after'", "want string"}},
		"no duration":         {"rules: {thresholds: {DRAClaimIdle: {after: 0m}}}", []string{"at '/rules/thresholds/DRAClaimIdle/after'"}},
		"percent":             {"rules: {thresholds: {DRAMemoryNearlyFull: {share: 95}}}", []string{"at '/rules/thresholds/DRAMemoryNearlyFull/share'"}},
		"share of text":       {"rules: {thresholds: {DRAMemoryNearlyFull: {share: '0.9'}}}", []string{"want number"}},
		"part of an error":    {"rules: {thresholds: {DRANVLinkErrors: {others: 0.5}}}", []string{"want integer"}},
		"threshold unset":     {"rules: {enabled: true, thresholds: {DRAClaimIdle: {after: null}}}", []string{"rules.thresholds.DRAClaimIdle.after is empty", "rules.disabledAlerts"}},

		"pull secrets":    {"imagePullSecrets: [{name: x}]", []string{"imagePullSecrets is not a value of this chart: set image.pullSecrets"}},
		"service monitor": {"serviceMonitor: {enabled: true}", []string{"serviceMonitor is not a value of this chart: set monitoring, with kind=ServiceMonitor"}},
		"sidecars":        {"node: {sidecars: []}", []string{"node.sidecars is not a value of this chart: set extraContainers of the same role"}},
		"replicas":        {"cluster: {replicas: 2}", []string{"cluster.replicas is not a value of this chart: set cluster.enabled alone", "twice"}},
		"registry":        {"image: {registry: ghcr.io}", []string{"image.registry is not a value of this chart: set image.repository"}},

		"port as text":  {"networkPolicy: {egress: {dns: {ports: ['53']}}}", []string{"at '/networkPolicy/egress/dns/ports/0'", "want integer"}},
		"no API port":   {"networkPolicy: {egress: {apiServer: {ports: []}}}", []string{"at '/networkPolicy/egress/apiServer/ports'"}},
		"AppArmor type": {"node: {appArmorProfile: {type: runtime/default}}", []string{"at '/node/appArmorProfile/type'", "RuntimeDefault"}},

		"egress alone":         {"networkPolicy: {egress: {enabled: true}}", []string{"networkPolicy.egress.enabled", "networkPolicy.enabled=true"}},
		"profile, no name":     {"node: {appArmorProfile: {type: Localhost}}", []string{"node.appArmorProfile", "localhostProfile"}},
		"name of no profile":   {"cluster: {appArmorProfile: {type: RuntimeDefault, localhostProfile: x}}", []string{"cluster.appArmorProfile", "localhostProfile"}},
		"profile, no type":     {"cluster: {appArmorProfile: {localhostProfile: x}}", []string{"cluster.appArmorProfile", "type"}},
		"nothing runs":         {"{node: {enabled: false}, cluster: {enabled: false}}", []string{"node.enabled", "cluster.enabled", "enable one of them"}},
		"hostPID alone":        {"node: {hostPID: true, kubernetesAPI: false}", []string{"node.hostPID", "node.kubernetesAPI"}},
		"no API and podsAPI":   {"node: {podsAPI: true, kubernetesAPI: false}", []string{"node.podsAPI", "node.kubernetesAPI"}},
		"TLS of nothing":       {"web: {tls: true}", []string{"web.tls", "web.configSecret"}},
		"own label":            {"commonLabels: {app.kubernetes.io/name: x}", []string{"commonLabels", "app.kubernetes.io/name"}},
		"own pod label":        {"node: {podLabels: {app.kubernetes.io/component: x}}", []string{"node.podLabels", "app.kubernetes.io/component"}},
		"flag twice":           {"{log: {level: debug}, cluster: {extraArgs: [--log.level=warn]}}", []string{"cluster.extraArgs", "--log.level", "log.level"}},
		"no such alert":        {"rules: {enabled: true, disabledAlerts: [DRANothing]}", []string{"rules.disabledAlerts", "DRANothing"}},
		"rules of others":      {"{monitoring: {honorLabels: false}, rules: {enabled: true}}", []string{"rules.enabled", "monitoring.honorLabels", "make exported"}},
		"dcgm of nothing":      {"node: {access: {mode: dcgm}}", []string{"node.access.dcgm.hostEngine"}},
		"cdi of nothing":       {"node: {access: {mode: cdi, cdi: {devices: []}}}", []string{"node.access.cdi.devices"}},
		"static with GPUs":     {"{image: {tag: v0.1.0-static}, node: {access: {mode: runtimeClass}}}", []string{"image.tag", "node.access.mode=none"}},
		"labels, no API":       {"node: {showPodLabels: [team], kubernetesAPI: false}", []string{"node.showPodLabels", "node.kubernetesAPI"}},
		"topology of nothing":  {"cluster: {topologyLabels: [row=example.com/row]}", []string{"topologyLabels"}},
		"workloads of nothing": {"{workloadLabels: [team]}", []string{"workloadLabels"}},
		"everybody's rights":   {"serviceAccounts: {cluster: {create: false}}", []string{"serviceAccounts.cluster.name", "every pod of the namespace"}},
		"one account twice":    {"serviceAccounts: {node: {name: a}, cluster: {name: a}}", []string{"serviceAccounts.node.name", "serviceAccounts.cluster.name"}},
		"slow scrape":          {"monitoring: {enabled: true, interval: 5s}", []string{"monitoring.scrapeTimeout (10s)", "monitoring.interval (5s)"}},
		"rare scrape":          {"monitoring: {enabled: true, interval: 5m}", []string{"monitoring.interval (5m)", "--ledger.grace"}},
		"memory in words":      {"node: {resources: {limits: {memory: 192 MB}}}", []string{"at '/node/resources/limits/memory'"}},
		"kind of resources":    {"cluster: {resources: {memory: 1Gi}}", []string{"at '/cluster/resources'", "memory"}},
		"another port":         {"node: {extraArgs: ['--web.listen-address=:9500']}", []string{"node.extraArgs", "--web.listen-address"}},
		"another path":         {"cluster: {extraArgs: ['--web.telemetry-path=/m']}", []string{"cluster.extraArgs", "--web.telemetry-path"}},
		"Pods API by a flag":   {"node: {extraArgs: ['--kubelet.pods-api=/x']}", []string{"node.extraArgs", "node.podsAPI=true"}},
		"auth by a flag":       {"node: {extraArgs: [--web.kubernetes-auth]}", []string{"node.extraArgs", "web.kubernetesAuth.enabled=true"}},
		"auth without API":     {"{web: {kubernetesAuth: {enabled: true}}, node: {kubernetesAPI: false}}", []string{"web.kubernetesAuth.enabled", "node.kubernetesAPI"}},
		"audience alone":       {"web: {kubernetesAuth: {audiences: [a]}}", []string{"web.kubernetesAuth.audiences", "web.kubernetesAuth.enabled=true"}},
		"no API by a flag":     {"node: {extraArgs: [--kubernetes.disable]}", []string{"node.extraArgs", "node.kubernetesAPI=false"}},
		"dotted name":          {"fullnameOverride: a.b", []string{"a.b", "fullnameOverride"}},
		"not taken":            {"enabled: false", []string{"at '/enabled'"}},
		"own role":             {"node: {podLabels: {dra-exporter.github.io/role: x}}", []string{"node.podLabels", "dra-exporter.github.io/role"}},
		"nodes without agents": {"node: {access: {mode: runtimeClass}, nodeSelector: {nvidia.com/gpu.deploy.client: 'false'}}", []string{"node.nodeSelector", "nvidia.com/gpu.deploy.client=false", "node.release.label"}},
		"release by a flag":    {"node: {extraArgs: ['--device.release-file=/x']}", []string{"node.extraArgs", "node.release.file"}},
		"relative file":        {"node: {release: {file: run/release}}", []string{"at '/node/release/file'"}},
		"file of the root":     {"node: {release: {file: /release}}", []string{"at '/node/release/file'"}},
		"two labels":           {"node: {release: {label: 'a=b'}}", []string{"at '/node/release/label'"}},
		"name of an exporter":  {"node: {access: {exporter: {url: 'http://nvidia-dcgm-exporter.gpu-operator:9400/metrics'}}}", []string{"at '/node/access/exporter/url'"}},
		"unknown cluster":      {"node: {access: {cluster: k3s}}", []string{"at '/node/access/cluster'", "gpucluster"}},
		"claim without API":    {"node: {access: {mode: claim}, kubernetesAPI: false}", []string{"node.access", "node.kubernetesAPI"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tryRender(t, install{values: test.values})
			if err == nil {
				t.Fatal("it is taken")
			}
			for _, part := range test.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		})
	}
}

// TestAliases: the schema lets the names of other charts pass, and no others, so
// that the message says what to set instead: a key that exists, in most cases.
func TestAliases(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join(chart, "values.schema.json"))), &schema); err != nil {
		t.Fatal(err)
	}
	of := func(schema map[string]any) map[string]any { return schema["properties"].(map[string]any) }
	tables := map[string]map[string]any{"": of(schema)}
	for name, one := range of(schema) {
		if properties, ok := one.(map[string]any)["properties"].(map[string]any); ok {
			tables[name] = properties
		}
	}
	text := read(t, filepath.Join(chart, "templates", "_aliases.tpl"))
	count := 0
	for parent, properties := range tables {
		for name, one := range properties {
			if one.(map[string]any)["$ref"] != "#/definitions/alias" {
				continue
			}
			count++
			key := strings.TrimPrefix(parent+"."+name, ".")
			values := "{" + name + ": x}"
			if parent != "" {
				values = "{" + parent + ": " + values + "}"
			}
			_, err := tryRender(t, install{values: values})
			if err == nil {
				t.Errorf("%s is taken", key)
				continue
			}
			_, instead, found := strings.Cut(err.Error(), key+" is not a value of this chart: set ")
			if !found {
				t.Errorf("%s: %v", key, err)
				continue
			}
			for _, path := range regexp.MustCompile(`\b[a-z][A-Za-z]+(\.[a-z][A-Za-z]+)+\b`).FindAllString(instead, -1) {
				if !exists(parse(t, read(t, filepath.Join(chart, "values.yaml"))), path) {
					t.Errorf("%s: there is no %s", key, path)
				}
			}
		}
	}
	if lines := regexp.MustCompile(`(?m)^  \w+: `).FindAllString(text, -1); count < len(lines) {
		t.Errorf("the table has %d names, the schema %d", len(lines), count)
	}
}

// exists reports whether values have a key.
func exists(values map[string]any, path string) bool {
	for name := range strings.SplitSeq(path, ".") {
		value, ok := values[name]
		if !ok {
			return false
		}
		values, _ = value.(map[string]any)
	}
	return true
}

// TestRefusalByTheBinary: the binary prints the same message, and has an exit
// status.
func TestRefusalByTheBinary(t *testing.T) {
	output, err := helm(t, "template", "x", chart, "--kube-version", "v1.37.1", "--set", "node.acess.mode=none")
	if err == nil || !strings.Contains(output, "at '/node'") || !strings.Contains(output, "'acess' not allowed") {
		t.Errorf("%v: %s", err, output)
	}
}

// TestOldKubernetes: the chart is refused if resource.k8s.io/v1 is not served.
func TestOldKubernetes(t *testing.T) {
	for version, accepted := range map[string]bool{"v1.33.9": false, "v1.34.0": true, "v1.34.4-gke.1000": true, "v1.36.3+k3s1": true} {
		output, err := helm(t, "template", "x", chart, "--kube-version", version)
		if accepted != (err == nil) {
			t.Errorf("%s: %v", version, err)
		}
		if !accepted && !strings.Contains(output, "requires kubeVersion") {
			t.Errorf("%s: %s", version, output)
		}
	}
}

// TestLint: Helm's linter reports nothing, whatever the values.
func TestLint(t *testing.T) {
	for _, file := range valuesFiles(t) {
		if output, err := helm(t, "lint", "--strict", "--kube-version", "v1.37.1", "-f", filepath.Join(chart, "ci", file), chart); err != nil ||
			strings.Contains(output, "[WARNING]") {
			t.Errorf("%s: %v: %s", file, err, output)
		}
	}
}

// helm runs the binary, and returns both of its outputs.
func helm(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	output, err := program(t, "helm", arguments...).CombinedOutput()
	return string(output), err
}

// program returns a command of a program that `make -C test helm` builds.
func program(t *testing.T, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "test", ".bin", "helm", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run `make -C test helm`", err)
	}
	command := exec.Command(path, arguments...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG=/dev/null")
	return command
}
