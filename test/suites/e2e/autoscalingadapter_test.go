package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

const (
	adapterAccount  = "prometheus-adapter"
	adapterProcess  = "prometheus-adapter"
	customMetrics   = "/apis/custom.metrics.k8s.io/v1beta1"
	externalMetrics = "/apis/external.metrics.k8s.io/v1beta1"
)

// adapterPermissions are the permissions that the adapter's chart grants, for
// an account of the agent's namespace.
const adapterPermissions = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus-adapter, namespace: dra-exporter}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prometheus-adapter}
rules:
- {apiGroups: [""], resources: [nodes, namespaces, pods, services], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus-adapter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus-adapter}
subjects: [{kind: ServiceAccount, name: prometheus-adapter, namespace: dra-exporter}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus-adapter-delegates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:auth-delegator"}
subjects: [{kind: ServiceAccount, name: prometheus-adapter, namespace: dra-exporter}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: prometheus-adapter, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: prometheus-adapter, namespace: dra-exporter}]
`

// adapterService routes the API server to a process of the host. Its arguments
// are the port and the host's address on the pods' bridge.
const adapterService = `
apiVersion: v1
kind: Service
metadata: {name: prometheus-adapter, namespace: dra-exporter}
spec: {ports: [{name: https, port: 443, targetPort: %[1]s}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: prometheus-adapter-host
  namespace: dra-exporter
  labels: {kubernetes.io/service-name: prometheus-adapter}
addressType: IPv4
ports: [{name: https, port: %[1]s, protocol: TCP}]
endpoints: [{addresses: [%[2]q], conditions: {ready: true}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.custom.metrics.k8s.io}
spec:
  group: custom.metrics.k8s.io
  version: v1beta1
  service: {name: prometheus-adapter, namespace: dra-exporter}
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 100
  versionPriority: 100
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  group: external.metrics.k8s.io
  version: v1beta1
  service: {name: prometheus-adapter, namespace: dra-exporter}
  insecureSkipTLSVerify: true
  groupPriorityMinimum: 100
  versionPriority: 100
`

// startAdapter runs prometheus-adapter with the shipped rules, as an extension
// of the cluster's API, until the test ends.
func startAdapter(t *testing.T, s *prometheus) {
	t.Helper()
	folder := t.TempDir()
	applyFor(t, adapterPermissions)
	kubeconfig, err := accountKubeconfig(t.Context(), folder, adapterAccount)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(shared.GatewayIP(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	t.Cleanup(func() {
		if err := shared.EndProgram(adapterProcess); err != nil {
			t.Error(err)
		}
	})
	_, err = shared.StartProgram(t.Context(), adapterProcess, filepath.Join(os.Getenv("DRA_E2E_BIN"), "autoscaling", "adapter"), []string{
		"--config=" + shippedAdapterRules(t, folder), "--prometheus-url=" + s.url + "/",
		"--bind-address=" + host, "--secure-port=" + port, "--cert-dir=" + filepath.Join(folder, "certificates"),
		"--lister-kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--metrics-relist-interval=5s", "--metrics-max-age=1m",
	}, "https://"+net.JoinHostPort(host, port)+"/readyz")
	if err != nil {
		t.Fatal(err)
	}
	applyFor(t, fmt.Sprintf(adapterService, port, host))
	err = cluster.Eventually(t.Context(), "the adapter to be a part of the API", func(ctx context.Context) error {
		for _, path := range []string{customMetrics, externalMetrics} {
			if _, err := shared.Kubectl(ctx, "get", "--raw", path); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, shared.Process(adapterProcess).LogTail(40))
	}
}

// applyFor applies manifests until the test ends.
func applyFor(t *testing.T, manifests string) {
	t.Helper()
	t.Cleanup(func() {
		if err := shared.Delete(context.WithoutCancel(t.Context()), manifests); err != nil {
			t.Error(err)
		}
	})
	if err := shared.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
}

// adapterValues are shipped values of the adapter's chart.
type adapterValues struct {
	Prometheus object `json:"prometheus"`
	Rules      struct {
		Default  bool     `json:"default"`
		Custom   []object `json:"custom"`
		External []object `json:"external"`
	} `json:"rules"`
}

// shippedAdapterRules writes the adapter's own configuration, as its chart
// renders it from the shipped values. A cluster has one adapter, with the
// entries of all files.
func shippedAdapterRules(t *testing.T, folder string) string {
	t.Helper()
	var custom, external []object
	for _, name := range []string{"autoscaling", "conformance"} {
		text, err := os.ReadFile("../../../deploy/" + name + "/prometheus-adapter.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var values adapterValues
		if err := yaml.UnmarshalStrict(text, &values); err != nil {
			t.Fatal(err)
		}
		custom, external = append(custom, values.Rules.Custom...), append(external, values.Rules.External...)
	}
	text, err := yaml.Marshal(object{"rules": custom, "externalRules": external})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "adapter.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// podMetric reads a metric of all pods of a namespace from the cluster's API,
// by pod. It returns no error if there is none.
func podMetric(ctx context.Context, namespace, metric string) (map[string]float64, error) {
	answer, err := shared.Kubectl(ctx, "get", "--raw", customMetrics+"/namespaces/"+namespace+"/pods/*/"+metric)
	if err != nil {
		return nil, err
	}
	var list struct {
		Items []struct {
			DescribedObject struct{ Name string }
			Value           resource.Quantity
		}
	}
	if err := json.Unmarshal([]byte(answer), &list); err != nil {
		return nil, fmt.Errorf("read %s: %w", metric, err)
	}
	values := map[string]float64{}
	for _, item := range list.Items {
		values[item.DescribedObject.Name] = item.Value.AsApproximateFloat64()
	}
	return values, nil
}
