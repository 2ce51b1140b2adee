package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/config"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/check"
	"github.com/dra-exporter/dra-exporter/internal/demo"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
	kubelets "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// checkResult is the output of a run of check.
type checkResult struct {
	Failures int             `json:"failures"`
	Findings []check.Finding `json:"findings"`

	code   int
	stderr string
}

// runCheck runs the program as a user does, and checks what applies to every
// report.
func runCheck(t *testing.T, environment []string, args ...string) checkResult {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	command := program(ctx, append(append([]string{"check"}, args...), "--output=json")...)
	command.Env = append(append(command.Env, "KUBERNETES_SERVICE_HOST=", "KUBECONFIG=/does/not/exist", "HOME=/does/not/exist", "NODE_NAME="), environment...)
	return reportOf(t, command)
}

func reportOf(t *testing.T, command *exec.Cmd) checkResult {
	t.Helper()
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	_ = command.Run() // its exit code is checked
	found := checkResult{code: command.ProcessState.ExitCode(), stderr: stderr.String()}
	if err := json.Unmarshal(stdout.Bytes(), &found); err != nil {
		t.Fatalf("exit code %d, no report: %v\n%s%s", found.code, err, stdout.String(), found.stderr)
	}
	if strings.Contains(found.stderr, "goroutine ") {
		t.Errorf("a stack trace:\n%s", found.stderr)
	}
	if lines := strings.Count(found.stderr, "\n"); lines > 4 { // one for each wait, and the number of failed checks
		t.Errorf("%d lines beside the report:\n%s", lines, found.stderr)
	}
	if want := min(found.Failures, 1); found.code != want {
		t.Errorf("exit code %d with %d failures", found.code, found.Failures)
	}
	for _, finding := range found.Findings {
		if (finding.Outcome == check.Failure || finding.Outcome == check.Warning) && (finding.Remedy == "" || finding.Page == "") {
			t.Errorf("no remedy: %+v", finding)
		}
	}
	return found
}

// expectFinding fails the test without such a finding: area, subject, outcome
// and part of its text or remedy.
func (c checkResult) expectFinding(t *testing.T, area, subject string, outcome check.Outcome, words string) {
	t.Helper()
	for _, f := range c.Findings {
		if f.Area == area && f.Subject == subject && f.Outcome == outcome && strings.Contains(f.Text+" "+f.Remedy, words) {
			return
		}
	}
	text, err := json.MarshalIndent(c.Findings, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	t.Errorf("no %s of %s, %s, with %q:\n%s", outcome, area, subject, words, text)
}

// checkFixture is a node with one GPU that one claim holds, as a process sees
// it from outside: sockets, files and an API server.
type checkFixture struct {
	server  *apiserver.Server
	kubelet *kubelets.Kubelet
	config  *rest.Config
	dir     string
	args    []string

	upstream *url.URL
	mu       sync.Mutex
	version  string   // of the API server
	denied   []string // VERB RESOURCE
}

// serve sets the API server's version.
func (s *checkFixture) serve(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

func (s *checkFixture) served() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// deny sets the permissions that are denied.
func (s *checkFixture) deny(denied ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.denied = denied
}

func (s *checkFixture) deniesAny(fits func(denied string) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.denied, fits)
}

func newCheckFixture(t *testing.T) *checkFixture {
	t.Helper()
	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	s := &checkFixture{server: server, dir: t.TempDir(), version: "v1.37.1"}
	if s.upstream, err = url.Parse(server.Config().Host); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.config = &rest.Config{Host: front.URL}
	s.put(t)
	socket := filepath.Join(s.dir, "kubelet.sock")
	pod := kubelets.Pod{Namespace: "lab", Name: "train", Containers: []kubelets.Container{{Name: "main", Uses: []kubelets.Use{{Claim: "gpu"}}}},
		Claims: []kubelets.Claim{{Name: "gpu", Devices: []kubelets.Device{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: "n", Name: "gpu-0"}}}}}
	if s.kubelet, err = kubelets.Start(t.Context(), socket, kubelets.Options{Pods: []kubelets.Pod{pod}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kubelet.Close)
	kubeconfig := filepath.Join(s.dir, "kubeconfig")
	if err := demo.WriteKubeconfig(kubeconfig, s.config); err != nil {
		t.Fatal(err)
	}
	s.args = []string{"--node.name=n", "--kubeconfig=" + kubeconfig, "--kubelet.pod-resources-socket=" + socket, "--cdi.dir=" + filepath.Join(s.dir, "cdi"),
		"--device.source=simulated", "--simulated.config=" + s.file(t, "gpu.yaml", oneGPU), "--device.interval=100ms"}
	return s
}

const oneGPU = `
devices:
- uuid: GPU-0
  vendor: nvidia
  model: NVIDIA H100
  driverVersion: 580.65.06
  quantities: {utilization: 0.5, memory_used: 1e9, memory_size: 80e9, power: 300, energy: {rate: 300}, temperature: {gpu: 60, memory: 60}}
`

func (s *checkFixture) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// put creates the node, its pod, the pod's claim and the driver's slice.
func (s *checkFixture) put(t *testing.T) {
	t.Helper()
	uuid, node, claimName := "GPU-0", "n", "gpu"
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	slice.Spec.Driver, slice.Spec.NodeName = "gpu.nvidia.com", &node
	slice.Spec.Pool = resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
	slice.Spec.Devices = []resourcev1.Device{{Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "train", UID: "u"}}
	pod.Spec.NodeName = node
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claimName}}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}}
	pod.Status.Phase = corev1.PodRunning
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: claimName, UID: "c"}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: node, Device: "gpu-0"}}}}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "train", UID: "u"}}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	if err := s.server.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, pod, claim, slice, class); err != nil {
		t.Fatal(err)
	}
}

// ServeHTTP is the API server with two things that the simulated one lacks:
// access reviews, which it obeys, and another version.
func (s *checkFixture) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/version":
		parts := strings.Split(strings.TrimPrefix(s.served(), "v"), ".")
		_ = json.NewEncoder(w).Encode(map[string]string{"gitVersion": s.served(), "major": parts[0], "minor": parts[1] + "+"})
	case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.Method != http.MethodPost {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		requested := review.Spec.ResourceAttributes
		review.Status.Allowed = !s.deniesAny(func(denied string) bool { return denied == requested.Verb+" "+requested.Resource })
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	case s.isDenied(r):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "forbidden to all"})
	case s.served() == "v1.33.0" && strings.HasPrefix(r.URL.Path, "/apis/resource.k8s.io"):
		http.NotFound(w, r)
	default:
		(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(s.upstream) }, FlushInterval: -1}).ServeHTTP(w, r)
	}
}

func (s *checkFixture) isDenied(r *http.Request) bool {
	return s.deniesAny(func(denied string) bool {
		_, resource, _ := strings.Cut(denied, " ")
		return strings.Contains(r.URL.Path, "/"+resource)
	})
}

func TestCheckOfHealthyNode(t *testing.T) {
	t.Parallel()
	s := newCheckFixture(t)
	found := runCheck(t, nil, append([]string{"node"}, s.args...)...)
	if found.Failures > 0 {
		t.Errorf("a well node fails: %+v", found.Findings)
	}
	found.expectFinding(t, "kubelet", "PodResources", check.OK, "1 pod, 1 claim with 1 device")
	found.expectFinding(t, "API server", "version", check.OK, "v1.37.1")
	found.expectFinding(t, "API server", "permissions", check.OK, "7 of 7")
	found.expectFinding(t, "API server", "node name", check.OK, "n")
	found.expectFinding(t, "devices", "simulated", check.OK, "1 × NVIDIA H100 (driver 580.65.06)")
	found.expectFinding(t, "devices", "quantities", check.OK, "simulated, NVIDIA H100")
	found.expectFinding(t, "matching", "gpu.nvidia.com", check.OK, "1 of 1 device matched by uuid")
}

// A laptop has no sources, and the report states this.
func TestCheckOnLaptop(t *testing.T) {
	t.Parallel()
	found := runCheck(t, nil, "--kubelet.pod-resources-socket=/does/not/exist/kubelet.sock", "--cdi.dir=/does/not/exist", "--path.sysfs=/does/not/exist")
	found.expectFinding(t, "this host", "place", check.Warning, "kubectl exec")
	found.expectFinding(t, "this host", "sysfs", check.Warning, "--path.sysfs")
	found.expectFinding(t, "kubelet", "socket", check.Failure, "does not exist")
	found.expectFinding(t, "API server", "connection", check.Failure, "--kubeconfig")
	found.expectFinding(t, "devices", "hardware", check.Skipped, "none")
}

func TestCheckWithoutPermissions(t *testing.T) {
	t.Parallel()
	s := newCheckFixture(t)
	s.deny("list pods", "watch pods", "get resourceclaims")
	found := runCheck(t, nil, append([]string{"node"}, s.args...)...)
	found.expectFinding(t, "API server", "list pods", check.Failure, "dra-exporter-node")
	found.expectFinding(t, "API server", "get resourceclaims.resource.k8s.io", check.Failure, "classes")
	found.expectFinding(t, "API server", "permissions", check.OK, "4 of 7")
	found.expectFinding(t, "matching", "gpu.nvidia.com", check.OK, "1 of 1")
}

func TestCheckOfBrokenNode(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(t *testing.T, s *checkFixture)
		args   []string
		says   [][4]string
	}{
		"a hung kubelet": {
			change: func(t *testing.T, s *checkFixture) { addFault(t, s, kubelets.Hang) },
			says:   [][4]string{{"kubelet", "PodResources", "failure", "does not answer"}, {"API server", "version", "ok", ""}, {"matching", "gpu.nvidia.com", "ok", ""}},
		},
		"a kubelet that is gone": {
			change: func(t *testing.T, s *checkFixture) { addFault(t, s, kubelets.Killed) },
			says:   [][4]string{{"kubelet", "PodResources", "failure", "that the kubelet runs"}},
		},
		"no socket": {
			change: func(t *testing.T, s *checkFixture) { addFault(t, s, kubelets.SocketMissing) },
			says:   [][4]string{{"kubelet", "socket", "failure", "is not in it"}},
		},
		"an unreachable API server": {
			args: []string{"--kubeconfig=UNREACHABLE"},
			says: [][4]string{{"API server", "connection", "failure", "connection refused"}, {"kubelet", "PodResources", "ok", ""}, {"devices", "simulated", "ok", ""}},
		},
		"an old API server": {
			change: func(_ *testing.T, s *checkFixture) { s.serve("v1.33.0") },
			says:   [][4]string{{"API server", "version", "failure", "too old"}, {"API server", "resource.k8s.io", "failure", "is not served"}},
		},
		"another node's name": {
			args: []string{"--node.name=other"},
			says: [][4]string{{"API server", "node name", "failure", `no node "other"`}},
		},
		"no node's name": {
			args: []string{"--node.name="},
			says: [][4]string{{"API server", "node name", "failure", "NODE_NAME"}},
		},
		"hardware without a source": {
			args: []string{"--simulated.config=OTHERGPU"},
			says: [][4]string{{"matching", "gpu.nvidia.com", "failure", "of which claims hold 1"}, {"matching", "hardware", "skipped", "GPU-7"}},
		},
		"a GPU that hangs": {
			args: []string{"--simulated.config=HUNGGPU"},
			says: [][4]string{{"devices", "simulated", "failure", ""}, {"kubelet", "PodResources", "ok", ""}},
		},
		"wrong settings": {
			args: []string{"--cost.prices=/does/not/exist", "--otlp.endpoint=http://127.0.0.1:1", "--web.config.file=/does/not/exist"},
			says: [][4]string{{"settings", "price list", "failure", "/does/not/exist"}, {"settings", "web configuration", "failure", "/does/not/exist"},
				{"OTLP", "metrics", "failure", "127.0.0.1:1"}, {"devices", "simulated", "ok", ""}},
		},
		"a wrong flag": {
			args: []string{"--device.interval=1ms"},
			says: [][4]string{{"settings", "flags", "failure", "--device.interval"}},
		},
		"a wrong endpoint": {
			args: []string{"--otlp.endpoint=http://collector:0:0"},
			says: [][4]string{{"OTLP", "settings", "failure", "--otlp.endpoint"}},
		},
		"a wrong host engine": {
			args: []string{"--device.source=dcgm", "--dcgm.host-engine=http://engine:5555"},
			says: [][4]string{{"devices", "flags", "failure", "--dcgm.host-engine"}, {"kubelet", "PodResources", "ok", ""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCheckFixture(t)
			if test.change != nil {
				test.change(t, s)
			}
			found := runCheck(t, nil, s.with(t, test.args)...)
			if slow := strings.Contains(name, "hung") || strings.Contains(name, "hangs"); slow && !strings.Contains(found.stderr, "still reading: ") {
				t.Errorf("progress is shown: %q", found.stderr)
			}
			for _, says := range test.says {
				found.expectFinding(t, says[0], says[1], check.Outcome(says[2]), says[3])
			}
		})
	}
}

func addFault(t *testing.T, s *checkFixture, fault kubelets.Fault) {
	t.Helper()
	if err := s.kubelet.AddFaults(fault); err != nil {
		t.Fatal(err)
	}
}

// with returns the command line with some flags replaced.
func (s *checkFixture) with(t *testing.T, other []string) []string {
	t.Helper()
	args := append([]string{"node"}, s.args...)
	for _, flag := range other {
		name, value, _ := strings.Cut(flag, "=")
		switch value {
		case "OTHERGPU":
			flag = name + "=" + s.file(t, "other.yaml", strings.ReplaceAll(oneGPU, "GPU-0", "GPU-7"))
		case "HUNGGPU":
			flag = name + "=" + s.file(t, "hung.yaml", oneGPU+"  faults: [{kind: hang}]\n")
		case "UNREACHABLE":
			path := filepath.Join(s.dir, "unreachable")
			if err := demo.WriteKubeconfig(path, &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
				t.Fatal(err)
			}
			flag = name + "=" + path
		}
		kept := args[:0:0]
		for _, arg := range args {
			if !strings.HasPrefix(arg, name+"=") {
				kept = append(kept, arg)
			}
		}
		args = append(kept, flag)
	}
	return args
}

func TestCheckOfCluster(t *testing.T) {
	t.Parallel()
	s := newCheckFixture(t)
	kubeconfig := filepath.Join(s.dir, "kubeconfig")
	for name, environment := range map[string][]string{"by its flag": {}, "as kubectl": {"KUBECONFIG=" + kubeconfig}} {
		args := []string{"cluster"}
		if len(environment) == 0 {
			args = append(args, "--kubeconfig="+kubeconfig)
		}
		found := runCheck(t, environment, args...)
		if found.Failures > 0 {
			t.Errorf("%s: a well cluster fails: %+v", name, found.Findings)
		}
		found.expectFinding(t, "API server", "permissions", check.OK, "26 of 26")
		found.expectFinding(t, "cluster", "gpu.nvidia.com", check.OK, "1 device in 1 pool on 1 node")
		found.expectFinding(t, "cluster", "device classes", check.OK, "1")
		found.expectFinding(t, "cluster", "instances", check.Skipped, "no pod")
	}
	s.deny("list resourceslices", "list podgroups")
	found := runCheck(t, nil, "cluster", "--kubeconfig="+kubeconfig)
	found.expectFinding(t, "API server", "list resourceslices.resource.k8s.io", check.Failure, "dra-exporter-cluster")
	found.expectFinding(t, "API server", "list podgroups.scheduling.k8s.io", check.Skipped, "not needed")
	found.expectFinding(t, "cluster", "drivers", check.Skipped, "cannot be read")
	s.deny()
	for _, pod := range []string{"a", "b"} {
		twin := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: pod, Labels: map[string]string{"app.kubernetes.io/name": "dra-exporter", "app.kubernetes.io/component": "cluster"}}}
		if err := s.server.Put(twin); err != nil {
			t.Fatal(err)
		}
	}
	found = runCheck(t, nil, "cluster", "--kubeconfig="+kubeconfig)
	found.expectFinding(t, "cluster", "instances", check.Failure, "2 pods")
}

// clusterWithBug is what check prints about a cluster of Kubernetes 1.37.1 in which a
// taint does not evict the pod of an extended resource.
const clusterWithBug = `API server
  ok   version            v1.37.1 at http://kubernetes
  ok   resource.k8s.io    served as v1
  ok   permissions        26 of 26 are granted

Cluster
  ok   gpu.nvidia.com     1 device in 1 pool on 1 node
  ok   device classes     1
  ok   taint rules        DeviceTaintRule is served
  ok   times              the scheduler writes the time of the allocation, the kubelet the time when
                          the sandbox is ready
  skip instances          no pod with the labels of the cluster role runs

Known bugs
  WARN kubernetes#141290  pod lab/train keeps device gpu.nvidia.com/n/gpu-0 with the taint
                          gpu.nvidia.com/gpu-lost:NoExecute. Kubernetes v1.37.1 has this bug
                          -> Delete the pod: ` + "`NoExecute`" + ` does not evict it. Upgrade the control
                             plane.
                             https://github.com/kubernetes/kubernetes/issues/141290

7 checks passed, 1 warning, 1 skipped.
`

// A sign of a known bug is a warning with the link of the bug, as long as the control
// plane has it.
func TestCheckFindsKnownBug(t *testing.T) {
	t.Parallel()
	s := newCheckFixture(t)
	kubeconfig := filepath.Join(s.dir, "kubeconfig")
	s.putUnevicted(t)
	command := program(t.Context(), "check", "cluster", "--kubeconfig="+kubeconfig)
	text, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(string(text), s.config.Host, "http://kubernetes"); got != clusterWithBug {
		t.Errorf("printed\n%s\nwant\n%s", got, clusterWithBug)
	}
	for version, outcome := range map[string]check.Outcome{"v1.37.1+k3s1": check.Warning, "v1.36.4-gke.100": check.Warning, "v1.37.2": check.OK} {
		s.serve(version)
		subject := "kubernetes#141290"
		if outcome == check.OK {
			subject = "signs"
		}
		runCheck(t, nil, "cluster", "--kubeconfig="+kubeconfig).expectFinding(t, "known bugs", subject, outcome, "")
	}
	s.deny("list pods")
	runCheck(t, nil, "cluster", "--kubeconfig="+kubeconfig).expectFinding(t, "known bugs", "signs", check.Skipped, "pods")
}

// putUnevicted makes the claim one of an extended resource, and taints its device.
func (s *checkFixture) putUnevicted(t *testing.T) {
	t.Helper()
	uuid, node := "GPU-0", "n"
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	slice.Spec.Driver, slice.Spec.NodeName = "gpu.nvidia.com", &node
	slice.Spec.Pool = resourcev1.ResourcePool{Name: node, Generation: 2, ResourceSliceCount: 1}
	slice.Spec.Devices = []resourcev1.Device{{
		Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}},
		Taints: []resourcev1.DeviceTaint{{Key: "gpu.nvidia.com/gpu-lost", Effect: resourcev1.DeviceTaintEffectNoExecute}},
	}}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "gpu", UID: "c", Annotations: map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}}}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: node, Device: "gpu-0"}}}}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "train", UID: "u"}}
	if err := s.server.Put(slice, claim); err != nil {
		t.Fatal(err)
	}
}

func TestCheckOfAgents(t *testing.T) {
	t.Parallel()
	s := newCheckFixture(t)
	s.kubelet.Set(nil)
	address := serve(t, testFlags(), role.NodeOptions{Name: "n", Socket: filepath.Join(s.dir, "kubelet.sock"), CDIDirs: []string{filepath.Join(s.dir, "cdi")}})
	eventually(t, address+"/metrics", "dra_exporter_source_up{source=\"podresources\"} 1")
	found := runCheck(t, nil, "agent", address, strings.TrimPrefix(address, "http://"))
	if found.Failures > 0 || len(found.Findings) != 2 {
		t.Errorf("a well agent: %+v", found.Findings)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + listener.Addr().String()
	listener.Close()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	found = runCheck(t, nil, "agent", closed, other.URL, "http://exporter.invalid:9420", address+"/api/v1/claims", address+"/nowhere")
	for _, path := range []string{"/api/v1/claims", "/nowhere"} {
		found.expectFinding(t, address+path, "exporter", check.Failure, "a node agent has its page at /metrics")
	}
	found.expectFinding(t, closed+"/metrics", "exporter", check.Failure, "connection refused")
	found.expectFinding(t, other.URL+"/metrics", "exporter", check.Failure, "404")
	found.expectFinding(t, "http://exporter.invalid:9420/metrics", "exporter", check.Failure, "find the address of exporter.invalid")
}

// The name of a headless Service resolves to several exporters, each of which
// is checked at its own address.
func TestCheckOfEachAddressOfName(t *testing.T) {
	t.Parallel()
	answer := func(version string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.Host, "exporters.lab:") {
				t.Errorf("the host of the request is %s", r.Host)
			}
			_, _ = w.Write([]byte(`dra_exporter_build_info{version="` + version + `"} 1` + "\n"))
		})
	}
	first, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(first.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	second, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	for version, listener := range map[string]net.Listener{"one": first, "two": second} {
		server := &http.Server{Handler: answer(version)}
		go func() { _ = server.Serve(listener) }() // until it is closed
		t.Cleanup(func() { _ = server.Close() })
	}
	reader := check.AgentReader{
		HTTP:     config.DefaultHTTPClientConfig,
		Resolve:  func(context.Context, string) ([]string, error) { return []string{"127.0.0.2", "::1", "127.0.0.1"}, nil },
		Clock:    clock.System(),
		Progress: terminal.Progress{To: io.Discard},
	}
	agents, err := reader.Read(t.Context(), []string{"exporters.lab:" + port})
	if err != nil {
		t.Fatal(err)
	}
	report := check.Report{}
	report.Add(check.Agents(agents)...)
	found := checkResult{Findings: report.Findings}
	found.expectFinding(t, "http://exporters.lab:"+port+"/metrics", "127.0.0.1", check.OK, "version one")
	found.expectFinding(t, "http://exporters.lab:"+port+"/metrics", "127.0.0.2", check.OK, "version two")
	found.expectFinding(t, "versions", "versions", check.Warning, "one (1), two (1)")
	if report.Count(check.Failure) > 0 || len(report.Findings) != 3 {
		t.Errorf("%+v", report.Findings)
	}
}
