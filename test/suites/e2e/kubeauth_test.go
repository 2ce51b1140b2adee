package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	authenticationapi "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// readerAccounts are a Prometheus, a team of one namespace, an administrator
// of all, and an account that has no role.
const readerAccounts = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: dra-exporter}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kubeauth-metrics-reader}
rules: [{nonResourceURLs: [/metrics], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubeauth-metrics-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeauth-metrics-reader}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: dra-exporter}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: team, namespace: dra-exporter}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kubeauth-claims-reader}
rules: [{apiGroups: [resource.k8s.io], resources: [resourceclaims], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: kubeauth-team, namespace: exclusive}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeauth-claims-reader}
subjects: [{kind: ServiceAccount, name: team, namespace: dra-exporter}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: kubeauth-team, namespace: pending-quota}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeauth-claims-reader}
subjects: [{kind: ServiceAccount, name: team, namespace: dra-exporter}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: admin, namespace: dra-exporter}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubeauth-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeauth-claims-reader}
subjects: [{kind: ServiceAccount, name: admin, namespace: dra-exporter}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: unprivileged, namespace: dra-exporter}
`

// reviewRights are the permissions that the chart grants with
// web.kubernetesAuth.
const reviewRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kubeauth-reviews}
rules:
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubeauth-reviews}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubeauth-reviews}
subjects:
- {kind: ServiceAccount, name: dra-exporter-node, namespace: dra-exporter}
- {kind: ServiceAccount, name: dra-exporter-cluster, namespace: dra-exporter}
`

// TestKubernetesAuth: the API server decides who may read the metrics, and for
// which namespaces each reader gets claims on the pages.
func TestKubernetesAuth(t *testing.T) {
	covers(t)
	deploy(t, "exclusive")
	deploy(t, "shared-claim")
	deploy(t, "pending")
	deploy(t, "pending-quota")
	running(t, "exclusive", "train")
	running(t, "shared-claim", "shared-0")
	applyFor(t, readerAccounts)
	node, clusterRole := startAuthRole(t, "node", agentAccount), startAuthRole(t, "cluster", clusterAccount)
	tokens := map[string]string{"unknown token": "made-up"}
	for _, account := range []string{"prometheus", "team", "admin", "unprivileged"} {
		tokens[account] = tokenOf(t, account)
	}

	for _, role := range []*authRole{node, clusterRole} {
		role.waitStatus(t, "prometheus", tokens["prometheus"], "metrics", http.StatusServiceUnavailable)
		if log := role.logTail(t); !strings.Contains(log, "tokenreviews") {
			t.Errorf("the log of the %s role does not say what it lacks:\n%s", role.name, log)
		}
	}
	applyFor(t, reviewRights)
	for _, role := range []*authRole{node, clusterRole} {
		role.waitStatus(t, "prometheus", tokens["prometheus"], "metrics", http.StatusOK)
		role.waitStatus(t, "no token", "", "metrics", http.StatusUnauthorized)
		role.waitStatus(t, "unknown token", tokens["unknown token"], "metrics", http.StatusUnauthorized)
		role.waitStatus(t, "team", tokens["team"], "metrics", http.StatusForbidden)
		role.waitStatus(t, "no token", "", "-/ready", http.StatusOK)
		role.waitStatus(t, "no token", "", "", http.StatusUnauthorized)
		role.waitStatus(t, "team", tokens["team"], "", http.StatusOK)
	}
	for reader, want := range map[string][]string{"team": {"exclusive"}, "admin": {"exclusive", "shared-claim"}, "unprivileged": nil, "prometheus": nil} {
		node.waitNamespaces(t, reader, tokens[reader], "api/v1/claims", want)
	}
	for reader, want := range map[string][]string{"team": {"pending-quota"}, "admin": {"pending", "pending-quota"}, "unprivileged": nil} {
		clusterRole.waitNamespaces(t, reader, tokens[reader], "api/v1/pending", want)
	}
}

// authRole is a role of the exporter with --web.kubernetes-auth.
type authRole struct{ name, url, log string }

func startAuthRole(t *testing.T, role, account string) *authRole {
	t.Helper()
	folder, address := t.TempDir(), porttest.OneAddress(t)
	kubeconfig, err := accountKubeconfig(t.Context(), folder, account)
	if err != nil {
		t.Fatal(err)
	}
	args := []string{role, "--kubeconfig=" + kubeconfig, "--web.listen-address=" + address, "--web.kubernetes-auth"}
	if role == "node" {
		config := filepath.Join(folder, "devices.yaml")
		if err := os.WriteFile(config, []byte(steadyHardware(0.5).yaml()), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--device.source=simulated", "--simulated.config="+config,
			"--kubelet.pod-resources-socket="+shared.KubeletSocket(), "--node.name="+shared.NodeName(), "--cdi.dir="+shared.CDIDir())
	}
	g := &authRole{name: role, url: "http://" + address + "/", log: filepath.Join(folder, "log")}
	log, err := os.Create(g.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	process := exec.Command(agentBinary(), args...)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait() // it was killed, so that an error is expected
		if t.Failed() {
			t.Logf("the log of the %s role:\n%s", role, g.logTail(t))
		}
	})
	return g
}

func (g *authRole) logTail(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(g.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func tokenOf(t *testing.T, account string) string {
	t.Helper()
	request, err := shared.Client().CoreV1().ServiceAccounts(agentNamespace).CreateToken(t.Context(), account, &authenticationapi.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

// get returns the status and body at a path, with a token unless it is empty.
func (g *authRole) get(ctx context.Context, token, path string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
	if err != nil {
		return 0, nil, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, body, err
}

// waitStatus waits until a reader gets this status. Permissions that were just
// granted reach the API server's authorizer with a delay.
func (g *authRole) waitStatus(t *testing.T, reader, token, path string, want int) {
	t.Helper()
	err := cluster.Eventually(t.Context(), fmt.Sprintf("%s to get %d of the %s role's /%s", reader, want, g.name, path), func(ctx context.Context) error {
		status, body, err := g.get(ctx, token, path)
		if err == nil && status != want {
			err = fmt.Errorf("%d: %.200s", status, body)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// waitNamespaces waits until a reader gets the claims of exactly these
// namespaces, of those that the test has.
func (g *authRole) waitNamespaces(t *testing.T, reader, token, path string, want []string) {
	t.Helper()
	err := cluster.Eventually(t.Context(), fmt.Sprintf("%s to see the claims of %q", reader, want), func(ctx context.Context) error {
		status, body, err := g.get(ctx, token, path)
		if err != nil {
			return err
		}
		var shown struct{ Claims, Pending []struct{ Namespace string } }
		if err := json.Unmarshal(body, &shown); err != nil || status != http.StatusOK {
			return fmt.Errorf("%d: %.200s: %w", status, body, err)
		}
		var found []string
		for _, one := range append(shown.Claims, shown.Pending...) {
			if slices.Contains([]string{"exclusive", "shared-claim", "pending", "pending-quota"}, one.Namespace) {
				found = append(found, one.Namespace)
			}
		}
		slices.Sort(found)
		if found = slices.Compact(found); !slices.Equal(found, want) {
			return fmt.Errorf("they are %q", found)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
