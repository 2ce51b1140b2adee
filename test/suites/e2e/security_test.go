package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	authenticationapi "k8s.io/api/authentication/v1"
	authorizationapi "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestPodSecurity checks the agent's process as reported by the kernel, and
// its service account as reported by the API server.
func TestPodSecurity(t *testing.T) {
	covers(t)
	t.Run("process", testProcess)
	t.Run("file systems", testFileSystems)
	t.Run("permissions", testPermissions)
}

func agentPID(t *testing.T) int {
	t.Helper()
	pod, err := agentPod(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid, err := shared.ContainerPID(pod, agentContainer)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func testProcess(t *testing.T) {
	unprivileged(t, agentPID(t), "net", "pid", "ipc", "mnt", "uts")
}

// unprivileged fails the test unless the process has no privilege, and these
// namespaces are not the host's.
func unprivileged(t *testing.T, pid int, apart ...string) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		got[name] = strings.TrimSpace(value)
	}
	const none = "0000000000000000"
	for name, want := range map[string]string{
		"CapInh": none, "CapPrm": none, "CapEff": none, "CapBnd": none, "CapAmb": none,
		"NoNewPrivs": "1", "Seccomp": "2",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, namespace := range apart {
		own, errOwn := os.Readlink("/proc/self/ns/" + namespace)
		agents, errAgents := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, namespace))
		if errOwn != nil || errAgents != nil || own == agents {
			t.Errorf("the %s namespace is %s, the host's %s (%v, %v)", namespace, agents, own, errAgents, errOwn)
		}
	}
}

// testFileSystems: no file system from a disk is mounted writable.
func testFileSystems(t *testing.T) {
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", agentPID(t)))
	if err != nil {
		t.Fatal(err)
	}
	readOnly := map[string]bool{}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line) // id, parent, device, root, mount point, options …
		readOnly[fields[4]] = slices.Contains(strings.Split(fields[5], ","), "ro")
	}
	for _, path := range []string{"/", "/var/lib/kubelet/pod-resources", "/var/run/cdi", "/run/dra-exporter-release", "/etc/cdi", "/etc/dra-exporter", "/var/run/secrets/kubernetes.io/serviceaccount"} {
		if ro, there := readOnly[path]; !ro && (there || path == "/") {
			t.Errorf("%s can be written", path)
		} else if !there && !readOnly["/run"+strings.TrimPrefix(path, "/var/run")] {
			t.Errorf("%s is not mounted read-only: %v", path, slices.Sorted(maps.Keys(readOnly)))
		}
	}
}

// testPermissions compares the permissions of the agent's service account with
// those of every service account, as reported by the API server.
func testPermissions(t *testing.T) {
	everybody := permissions(t, "default", "default")
	var additional []string
	for _, rule := range permissions(t, agentNamespace, agentAccount) {
		if !slices.Contains(everybody, rule) {
			additional = append(additional, rule)
		}
	}
	want := []string{
		"get resource.k8s.io/resourceclaims",
		"list /nodes", "list /pods", "list resource.k8s.io/resourceslices",
		"watch /nodes", "watch /pods", "watch resource.k8s.io/resourceslices",
	}
	if !slices.Equal(additional, want) {
		t.Errorf("the agent may %q, want %q", additional, want)
	}
}

// permissions returns a service account's permissions, each as verb
// group/resource, sorted.
func permissions(t *testing.T, namespace, account string) []string {
	t.Helper()
	config := rest.AnonymousClientConfig(shared.RESTConfig())
	config.BearerToken = token(t, namespace, account)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	review := &authorizationapi.SelfSubjectRulesReview{Spec: authorizationapi.SelfSubjectRulesReviewSpec{Namespace: "default"}}
	review, err = client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if review.Status.Incomplete {
		t.Fatalf("the review is incomplete: %s", review.Status.EvaluationError)
	}
	var rules []string
	for _, rule := range review.Status.ResourceRules {
		for _, verb := range rule.Verbs {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					rules = append(rules, strings.TrimSpace(verb+" "+group+"/"+resource+" "+strings.Join(rule.ResourceNames, ",")))
				}
			}
		}
	}
	for _, rule := range review.Status.NonResourceRules {
		rules = append(rules, fmt.Sprint(rule.Verbs, rule.NonResourceURLs))
	}
	slices.Sort(rules)
	return slices.Compact(rules)
}

// token returns a new token of a service account.
func token(t *testing.T, namespace, account string) string {
	t.Helper()
	request, err := shared.Client().CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationapi.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}
