package helm

import (
	"os"
	"os/exec"
	"path/filepath"
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
		"price without hour":  {"node: {prices: {prices: [{model: H100}]}}", []string{"at '/node/prices/prices/0'", "perHour"}},
		"negative price":      {"node: {prices: {prices: [{perHour: -1}]}}", []string{"at '/node/prices/prices/0/perHour'"}},
		"severity":            {"rules: {alertLabels: {severity: page}}", []string{"rules.alertLabels", "severity"}},
		"CAP_":                {"node: {capabilities: {add: [CAP_SYS_ADMIN]}}", []string{"at '/node/capabilities/add/0'"}},

		"port as text":  {"networkPolicy: {egress: {dns: {ports: ['53']}}}", []string{"at '/networkPolicy/egress/dns/ports/0'", "want integer"}},
		"no API port":   {"networkPolicy: {egress: {apiServer: {ports: []}}}", []string{"at '/networkPolicy/egress/apiServer/ports'"}},
		"AppArmor type": {"node: {appArmorProfile: {type: runtime/default}}", []string{"at '/node/appArmorProfile/type'", "RuntimeDefault"}},

		"egress alone":       {"networkPolicy: {egress: {enabled: true}}", []string{"networkPolicy.egress.enabled", "networkPolicy.enabled=true"}},
		"profile, no name":   {"node: {appArmorProfile: {type: Localhost}}", []string{"node.appArmorProfile", "localhostProfile"}},
		"name of no profile": {"cluster: {appArmorProfile: {type: RuntimeDefault, localhostProfile: x}}", []string{"cluster.appArmorProfile", "localhostProfile"}},
		"profile, no type":   {"cluster: {appArmorProfile: {localhostProfile: x}}", []string{"cluster.appArmorProfile", "type"}},
		"nothing runs":       {"{node: {enabled: false}, cluster: {enabled: false}}", []string{"node.enabled", "cluster.enabled", "enable one of them"}},
		"hostPID alone":      {"node: {hostPID: true, kubernetesAPI: false}", []string{"node.hostPID", "node.kubernetesAPI"}},
		"no API and podsAPI": {"node: {podsAPI: true, kubernetesAPI: false}", []string{"node.podsAPI", "node.kubernetesAPI"}},
		"TLS of nothing":     {"web: {tls: true}", []string{"web.tls", "web.configSecret"}},
		"own label":          {"commonLabels: {app.kubernetes.io/name: x}", []string{"commonLabels", "app.kubernetes.io/name"}},
		"own pod label":      {"node: {podLabels: {app.kubernetes.io/component: x}}", []string{"node.podLabels", "app.kubernetes.io/component"}},
		"flag twice":         {"{log: {level: debug}, cluster: {extraArgs: [--log.level=warn]}}", []string{"cluster.extraArgs", "--log.level", "log.level"}},
		"no such alert":      {"rules: {enabled: true, disabledAlerts: [DRANothing]}", []string{"rules.disabledAlerts", "DRANothing"}},
		"rules of others":    {"{monitoring: {honorLabels: false}, rules: {enabled: true}}", []string{"rules.enabled", "monitoring.honorLabels", "make exported"}},
		"dcgm of nothing":    {"node: {access: {mode: dcgm}}", []string{"node.access.dcgm.hostEngine"}},
		"cdi of nothing":     {"node: {access: {mode: cdi, cdi: {devices: []}}}", []string{"node.access.cdi.devices"}},
		"static with GPUs":   {"{image: {tag: v0.1.0-static}, node: {access: {mode: runtimeClass}}}", []string{"image.tag", "node.access.mode=none"}},
		"labels, no API":     {"node: {showPodLabels: [team], kubernetesAPI: false}", []string{"node.showPodLabels", "node.kubernetesAPI"}},
		"everybody's rights": {"serviceAccounts: {cluster: {create: false}}", []string{"serviceAccounts.cluster.name", "every pod of the namespace"}},
		"one account twice":  {"serviceAccounts: {node: {name: a}, cluster: {name: a}}", []string{"serviceAccounts.node.name", "serviceAccounts.cluster.name"}},
		"slow scrape":        {"monitoring: {enabled: true, interval: 5s}", []string{"monitoring.scrapeTimeout (10s)", "monitoring.interval (5s)"}},
		"another port":       {"node: {extraArgs: ['--web.listen-address=:9500']}", []string{"node.extraArgs", "--web.listen-address"}},
		"another path":       {"cluster: {extraArgs: ['--web.telemetry-path=/m']}", []string{"cluster.extraArgs", "--web.telemetry-path"}},
		"Pods API by a flag": {"node: {extraArgs: ['--kubelet.pods-api=/x']}", []string{"node.extraArgs", "node.podsAPI=true"}},
		"auth by a flag":     {"node: {extraArgs: [--web.kubernetes-auth]}", []string{"node.extraArgs", "web.kubernetesAuth.enabled=true"}},
		"auth without API":   {"{web: {kubernetesAuth: {enabled: true}}, node: {kubernetesAPI: false}}", []string{"web.kubernetesAuth.enabled", "node.kubernetesAPI"}},
		"audience alone":     {"web: {kubernetesAuth: {audiences: [a]}}", []string{"web.kubernetesAuth.audiences", "web.kubernetesAuth.enabled=true"}},
		"no API by a flag":   {"node: {extraArgs: [--kubernetes.disable]}", []string{"node.extraArgs", "node.kubernetesAPI=false"}},
		"dotted name":        {"fullnameOverride: a.b", []string{"a.b", "fullnameOverride"}},
		"not taken":          {"enabled: false", []string{"at '/enabled'"}},
		"claim without API":  {"node: {access: {mode: claim}, kubernetesAPI: false}", []string{"node.access", "node.kubernetesAPI"}},
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
	program := os.Getenv("DRA_HELM")
	if program == "" {
		program = root + "/test/.bin/helm/helm"
	}
	program, err := filepath.Abs(program)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: run `make -C test helm`", err)
	}
	command := exec.Command(program, arguments...)
	command.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG=/dev/null")
	output, err := command.CombinedOutput()
	return string(output), err
}
