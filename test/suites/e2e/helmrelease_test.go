package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

const (
	chartFolder   = "../../../deploy/helm/dra-exporter"
	helmRelease   = "tryout"
	helmNamespace = "helm-tryout"
)

// helm runs the real helm against the cluster, with a state of its own, and
// returns its output, also if it fails.
func helm(ctx context.Context, args ...string) (string, error) {
	home := filepath.Join(shared.Dir(), "helm")
	command := exec.CommandContext(ctx, filepath.Join(os.Getenv("DRA_E2E_BIN"), "helm", "helm"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+shared.Kubeconfig(),
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// release is an installation of the chart in a namespace of the tests.
type release struct{ name, namespace string }

// run runs a helm command on the release, which must succeed.
func (r release) run(t *testing.T, command string, args ...string) string {
	t.Helper()
	began := time.Now()
	output, err := helm(t.Context(), append([]string{command, r.name, "--namespace=" + r.namespace, "--timeout=2m"}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.describePods(t.Context()))
	}
	t.Logf("helm %s took %s", command, time.Since(began).Round(100*time.Millisecond))
	return output
}

// install installs the chart of the checkout. It waits until all pods are ready,
// and returns the chart's notes.
func (r release) install(t *testing.T, values ...object) string {
	t.Helper()
	return r.installChart(t, []string{chartFolder}, values...)
}

// installChart is install with a chart that these arguments of helm name.
func (r release) installChart(t *testing.T, chart []string, values ...object) string {
	t.Helper()
	t.Cleanup(func() {
		if _, err := helm(context.WithoutCancel(t.Context()), "uninstall", r.name, "--namespace="+r.namespace, "--ignore-not-found", "--wait"); err != nil {
			t.Error(err)
		}
	})
	return r.run(t, "install", slices.Concat(valueFlags(t, values), chart, []string{"--wait"})...)
}

// describePods describes the release's pods, for the report of a failure.
func (r release) describePods(ctx context.Context) string {
	pods, _ := shared.Kubectl(ctx, "describe", "pods", "--namespace", r.namespace)
	logs, _ := shared.Kubectl(ctx, "logs", "--namespace", r.namespace, "--selector", "app.kubernetes.io/instance="+r.name, "--tail", "60", "--prefix")
	return pods + "\n" + logs
}

// valueFlags returns helm's flags for values. Later values take precedence.
func valueFlags(t *testing.T, values []object) (flags []string) {
	t.Helper()
	for _, part := range values {
		text, err := yaml.Marshal(part)
		if err != nil {
			t.Fatal(err)
		}
		flags = append(flags, "--values="+written(t, string(text)))
	}
	return flags
}

// machineValues are the values that every release on this machine needs: the
// source of the image, this kubelet's folders, and the simulated devices,
// which are in a ConfigMap of its namespace.
func machineValues() object {
	return object{
		"image": object{"repository": "localhost/dra-exporter", "tag": "e2e", "pullPolicy": "Never"},
		"node": object{
			"kubeletDir":    shared.KubeletDir(),
			"deviceSources": []string{"simulated"},
			"cdiDirs":       []string{shared.CDIDir()},
			"extraArgs":     []string{"--simulated.config=/etc/dra-exporter/devices.yaml"},
			"extraVolumes": []object{
				{"name": "simulated-devices", "configMap": object{"name": "simulated-devices"}},
			},
			"extraVolumeMounts": []object{
				{"name": "simulated-devices", "mountPath": "/etc/dra-exporter", "readOnly": true},
			},
		},
	}
}

// newRelease creates the release's namespace with the simulated devices until
// the test ends.
func newRelease(t *testing.T) release {
	t.Helper()
	devices, err := yaml.Marshal(object{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": "simulated-devices", "namespace": helmNamespace},
		"data": object{"devices.yaml": steadyHardware(0.5).yaml()},
	})
	if err != nil {
		t.Fatal(err)
	}
	applyFor(t, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n---\n%s", helmNamespace, devices))
	return release{name: helmRelease, namespace: helmNamespace}
}

// withOperator installs the Prometheus operator's definitions until the test
// ends.
func withOperator(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"podmonitors", "prometheusrules", "servicemonitors"} {
		withDefinition(t, kind+".monitoring.coreos.com", operatorFile(t, "monitoring.coreos.com_"+kind+".yaml"))
	}
}

// withOtherOperators installs the definitions of the operators of VictoriaMetrics and
// Grafana that the chart has objects for, until the test ends.
func withOtherOperators(t *testing.T) {
	t.Helper()
	withDefinition(t, "grafanadashboards.grafana.integreatly.org", operatorFile(t, "grafana.integreatly.org_grafanadashboards.yaml"))
	for definition := range strings.SplitSeq(operatorFile(t, "operator.victoriametrics.com.yaml"), "\n---\n") {
		for _, name := range []string{"vmpodscrapes.operator.victoriametrics.com", "vmrules.operator.victoriametrics.com"} {
			if strings.Contains(definition, "\n  name: "+name+"\n") {
				withDefinition(t, name, definition)
			}
		}
	}
}

func operatorFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("DRA_E2E_BIN"), "operator", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withDefinition installs a kind until the test ends. It then waits until the
// kind is gone, because the next test may install it again.
func withDefinition(t *testing.T, name, definition string) {
	t.Helper()
	name = "customresourcedefinition/" + name
	t.Cleanup(func() {
		if _, err := shared.Kubectl(context.WithoutCancel(t.Context()), "wait", "--for=delete", "--timeout=180s", name); err != nil {
			t.Error(err)
		}
	})
	applyFor(t, definition)
	err := cluster.Eventually(t.Context(), name+" established", func(ctx context.Context) error {
		_, err := shared.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", name)
		return err // at once if it has no conditions yet
	})
	if err != nil {
		t.Fatal(err)
	}
}
