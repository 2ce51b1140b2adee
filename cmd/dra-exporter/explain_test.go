package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// runExplainCommand runs the program's explain command with all details, as a user
// does, and returns the exit code and the output.
func runExplainCommand(kubeconfig string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	args = append([]string{"explain", "--verbose", "--kubeconfig=" + kubeconfig}, args...)
	code = run(args, &out, &errs)
	return code, out.String(), errs.String()
}

// kubeconfigOf writes a kubeconfig with the server and a context of namespace
// team-a.
func kubeconfigOf(t *testing.T, host string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: %q}}]
users: [{name: me, user: {}}]
contexts: [{name: mine, context: {cluster: here, user: me, namespace: h-pending}}, {name: other, context: {cluster: here, user: me, namespace: i-noclass}}]
current-context: mine
`, host)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// snapshotServer serves the recorded objects of a real cluster, with its node,
// which the recording lacks.
func snapshotServer(t *testing.T, name string, options apiserver.Options) *apiserver.Server {
	t.Helper()
	server, err := apiserver.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	folder := filepath.Join("../../test/fakes/fixtures/moments", name)
	objects := []apiserver.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", Labels: map[string]string{"kubernetes.io/hostname": "node-a"}}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.37.1"}}}}
	objects = append(objects, recorded[resourcev1.ResourceSlice](t, folder, "resourceslices")...)
	objects = append(objects, recorded[resourcev1.ResourceClaim](t, folder, "resourceclaims")...)
	objects = append(objects, recorded[resourcev1.ResourceClaimTemplate](t, folder, "resourceclaimtemplates")...)
	objects = append(objects, recorded[resourcev1.DeviceClass](t, folder, "deviceclasses")...)
	objects = append(objects, recorded[corev1.Pod](t, folder, "pods")...)
	if err := server.Put(objects...); err != nil {
		t.Fatal(err)
	}
	return server
}

func recorded[T any, O interface {
	*T
	apiserver.Object
}](t *testing.T, folder, name string) []apiserver.Object {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []T `json:"items"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	objects := make([]apiserver.Object, 0, len(list.Items))
	for i := range list.Items {
		objects = append(objects, O(&list.Items[i]))
	}
	return objects
}

// The pending references of a real cluster are explained.
func TestExplainRealCluster(t *testing.T) {
	kubeconfig := kubeconfigOf(t, snapshotServer(t, "01-round1", apiserver.Options{}).Config().Host)
	for name, test := range map[string]struct {
		args []string
		code int
		want []string // of standard output, or of standard error where the code is 1
	}{
		"nine of eight":       {[]string{"claim", "h-pending/too-many"}, 0, []string{"insufficient_devices", "gpu: 9 devices of class gpu.nvidia.com", "pod wants-nine: pending since", "too few devices match request gpu, held or not: add 1 matching device"}},
		"its pod, in context": {[]string{"pod", "wants-nine"}, 0, []string{`Reference "gpu", ResourceClaim too-many: insufficient_devices`}},
		"missing":             {[]string{"pod", "h-pending/claim-missing"}, 0, []string{"claim_missing", "does-not-exist"}},
		"no class":            {[]string{"pod", "noclass", "-n", "i-noclass"}, 0, []string{"no_device_class", "create DeviceClass gpu.acme.com"}},
		"another context":     {[]string{"pod", "noclass", "--context=other"}, 0, []string{"no_device_class"}},
		"unused":              {[]string{"claim", "unused"}, 0, []string{"is unused", "no pod refers to it"}},
		"allocated":           {[]string{"pod", "a-exclusive/train"}, 0, []string{"runs on node-a", "gpu.nvidia.com/node-a/gpu-6"}},
		"a typing error":      {[]string{"claim", "h-pending/too-manny"}, 1, []string{"there is no ResourceClaim h-pending/too-manny; did you mean h-pending/too-many?"}},
		"two namespaces":      {[]string{"claim", "h-pending/too-many", "-n", "x"}, 2, []string{"--namespace=x"}},
		"an unknown context":  {[]string{"claim", "too-many", "--context=nowhere"}, 1, []string{"nowhere"}},
		"too short":           {[]string{"claim", "too-many", "--timeout=0s"}, 2, []string{"--timeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := runExplainCommand(kubeconfig, test.args...)
			text := stdout
			if test.code != 0 {
				text = stderr
			}
			if code != test.code {
				t.Errorf("exit code %d, want %d\n%s%s", code, test.code, stdout, stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
			t.Logf("\n%s%s", stdout, stderr)
		})
	}
}

// Without --verbose, the answer comes first and is short. Kinds have the names that
// kubectl has for them.
func TestExplainBriefly(t *testing.T) {
	kubeconfig := kubeconfigOf(t, snapshotServer(t, "01-round1", apiserver.Options{}).Config().Host)
	const conclusion = "Pod h-pending/wants-nine is pending since "
	for _, kind := range []string{"pod", "pods", "po"} {
		var out, errs bytes.Buffer
		code := run([]string{"explain", kind, "h-pending/wants-nine", "--kubeconfig=" + kubeconfig}, &out, &errs)
		lines := strings.Split(out.String(), "\n")
		if code != 0 || errs.Len() > 0 || !strings.HasPrefix(lines[0], conclusion) || !strings.HasSuffix(lines[0], ": the cluster has too few matching devices") {
			t.Errorf("%s: exit code %d\n%s%s", kind, code, out.String(), errs.String())
		}
		for _, want := range []string{"asked   9 devices of class gpu.nvidia.com", "  - too few devices match request gpu, held or not: add 1 matching device", "-v adds"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", kind, want, out.String())
			}
		}
		if len(lines) > 16 || strings.Contains(out.String(), "Devices after each stage") {
			t.Errorf("%s: not brief:\n%s", kind, out.String())
		}
	}
}

// The JSON document has the same content, and is the only text on standard
// output.
func TestExplainAsJSON(t *testing.T) {
	kubeconfig := kubeconfigOf(t, snapshotServer(t, "01-round1", apiserver.Options{}).Config().Host)
	code, stdout, stderr := runExplainCommand(kubeconfig, "claim", "too-many", "-o", "json")
	var report struct {
		APIVersion, Kind, Namespace, Name, State string
		Pending                                  []struct {
			Reason   string
			Pods     []string
			Requests []struct {
				Request string
				Asked   int64
				Left    map[string]int
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	if report.APIVersion != "v1" || report.Kind != "claim" || report.State != "pending" || len(report.Pending) != 1 || len(report.Pending[0].Requests) != 1 {
		t.Fatalf("%+v", report)
	}
	request := report.Pending[0].Requests[0]
	if request.Asked != 9 || request.Left["class"] != 8 || request.Left["selectors"] != 8 || request.Left["published"] < 8 {
		t.Errorf("the request says %+v", request)
	}
}

// As a plugin of kubectl, the program runs explain.
func TestPluginArguments(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/local/bin/dra-exporter":         "claim x",
		"/home/me/bin/kubectl-dra_explain":    "explain claim x",
		"kubectl-dra_explain.exe":             "explain claim x",
		"kubectl-dra_top":                     "top claim x",
		"kubectl-dra_topology":                "topology claim x",
		"kubectl-dra_node":                    "claim x",
		"/opt/kubectl-dra_explain/dra-export": "claim x",
	} {
		if got := strings.Join(arguments([]string{program, "claim", "x"}), " "); got != want {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}

// The help lists what can be explained in the same order each time.
func TestExplainHelpIsStable(t *testing.T) {
	for range 8 {
		output, err := program(t.Context(), "explain", "--help").CombinedOutput()
		claim, pod := strings.Index(string(output), "claim <NAME>"), strings.Index(string(output), "pod <NAME>")
		if err != nil || claim < 0 || pod < claim {
			t.Fatalf("%v: claim at %d, pod at %d in\n%s", err, claim, pod, output)
		}
	}
}

// Without a kubeconfig one sentence explains what to set.
func TestExplainWithoutKubeconfig(t *testing.T) {
	command := program(t.Context(), "explain", "claim", "a/b")
	command.Env = append(command.Env, "HOME="+t.TempDir(), "KUBECONFIG=", "KUBERNETES_SERVICE_HOST=")
	output, err := command.CombinedOutput()
	if command.ProcessState.ExitCode() != 1 || !strings.Contains(string(output), "set --kubeconfig") {
		t.Errorf("%v: %s", err, output)
	}
}

// $KUBECONFIG is used as by kubectl.
func TestExplainUsesKubeconfigVariable(t *testing.T) {
	command := program(t.Context(), "explain", "claim", "unused")
	command.Env = append(command.Env, "KUBECONFIG="+kubeconfigOf(t, snapshotServer(t, "01-round1", apiserver.Options{}).Config().Host))
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "h-pending/unused is unused") {
		t.Errorf("%v: %s", err, output)
	}
}
