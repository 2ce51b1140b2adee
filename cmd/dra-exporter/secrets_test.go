package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	kubelets "github.com/dra-exporter/dra-exporter/kubelet/simulated"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// planted is part of every secret of this test, and of nothing else.
const planted = "pl4nted"

// secretFixture is a cluster with secrets in all places where users put them,
// and a collector that needs one.
type secretFixture struct {
	dir, kubeconfig, socket string
	collector               *otelcollector.Collector
	tokens                  atomic.Int64 // requests to the API server with the token
}

func newSecretFixture(t *testing.T) *secretFixture {
	t.Helper()
	v := &secretFixture{dir: t.TempDir()}
	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if err := server.Put(secretObjects()...); err != nil {
		t.Fatal(err)
	}
	upstream, err := url.Parse(server.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(upstream)
	proxy.FlushInterval = -1
	front := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), planted+"-token") {
			v.tokens.Add(1)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	v.kubeconfig = v.file(t, "kubeconfig", fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n"+
		"clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: u, user: {token: %s-token}}]\n", front.URL, planted))
	if v.collector, err = otelcollector.Start(otelcollector.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.collector.Close)
	v.socket = filepath.Join(v.dir, "kubelet.sock")
	kubelet, err := kubelets.Start(t.Context(), v.socket, kubelets.Options{Pods: []kubelets.Pod{{Namespace: "lab", Name: "train",
		Containers: []kubelets.Container{{Name: "main", Uses: []kubelets.Use{{Claim: "gpu"}}}},
		Claims:     []kubelets.Claim{{Name: "gpu", Devices: []kubelets.Device{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: "n", Name: "gpu-0"}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelet.Close)
	return v
}

func (v *secretFixture) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(v.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// secretObjects returns a running pod with a claim, a pod that is pending for a
// class that does not exist, and the objects that belong to them.
func secretObjects() []apiserver.Object {
	opaque := &resourcev1.OpaqueDeviceConfiguration{Driver: "gpu.nvidia.com", Parameters: runtime.RawExtension{
		Raw: []byte(`{"sharing":{"strategy":"MPS"},"password":"` + planted + `-opaque"}`)}}
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-" + "0f3c2a51",
			Annotations: map[string]string{"vault": planted + "-annotation"}, Labels: map[string]string{"team": "a", "hidden": planted + "-label"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: planted + "-manager"}}}
	}
	uuid, node, claimName, missing := "GPU-0", "n", "gpu", "none"
	requests := []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}
	result := resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.nvidia.com", Pool: "n", Device: "gpu-0"}
	claim := &resourcev1.ResourceClaim{ObjectMeta: meta("lab", "gpu")}
	claim.Spec.Devices = resourcev1.DeviceClaim{Requests: requests, Config: []resourcev1.DeviceClaimConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: opaque}}}}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{result},
		Config: []resourcev1.DeviceAllocationConfiguration{{Source: resourcev1.AllocationConfigSourceClaim, DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: opaque}}}}}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "train", UID: claim.UID}}
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "gpu.nvidia.com", Pool: "n", Device: "gpu-0", Data: &runtime.RawExtension{Raw: []byte(`{"key":"` + planted + `-status"}`)}}}
	pending := &resourcev1.ResourceClaim{ObjectMeta: meta("lab", "none")}
	pending.Spec = claim.Spec
	pending.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "missing"}}}
	class := &resourcev1.DeviceClass{ObjectMeta: meta("", "gpu")}
	class.Spec.Config = []resourcev1.DeviceClassConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: opaque}}}
	slice := &resourcev1.ResourceSlice{ObjectMeta: meta("", "s")}
	slice.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: "n", Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}}}}}
	spec := corev1.PodSpec{NodeName: "n", ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claimName}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: planted + "-volume"}}}},
		Containers: []corev1.Container{{Name: "main", Image: planted + "-image", Command: []string{planted + "-command"}, Args: []string{"--password=" + planted + "-arg"},
			Env:       []corev1.EnvVar{{Name: "PASSWORD", Value: planted + "-env"}},
			Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}}}
	train := &corev1.Pod{ObjectMeta: meta("lab", "train"), Spec: spec}
	train.Status = corev1.PodStatus{Phase: corev1.PodRunning, Message: planted + "-status",
		ContainerStatuses: []corev1.ContainerStatus{{Name: "main", LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: planted + "-termination"}},
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}
	queued := &corev1.Pod{ObjectMeta: meta("lab", "queued"), Spec: spec}
	queued.UID = "uid-queued"
	queued.Spec.NodeName, queued.Spec.ResourceClaims = "", []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &missing}}
	queued.Status.Phase = corev1.PodPending
	return []apiserver.Object{&corev1.Node{ObjectMeta: meta("", "n")}, claim, pending, class, slice, train, queued}
}

// logBuffer is the output of a process, readable while it runs.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// role runs the program as a role with all flags that could expose secrets, and
// returns its address and its log. It ends with the test.
func (v *secretFixture) role(t *testing.T, args ...string) (address string, log *logBuffer) {
	t.Helper()
	log = &logBuffer{}
	web := v.file(t, "web.yaml", "basic_auth_users: {scraper: \"$2a$04$rPtQxd9njQK4VTYEp0hTX.2FtqxZALuzoSFuX5ka4DKdgOEE/Ux4O\"}\n")
	ctx, cancel := context.WithCancel(context.Background())
	command := program(ctx, append(args, "--log.level=debug", "--kubeconfig="+v.kubeconfig, "--web.listen-address=127.0.0.1:0",
		"--web.config.file="+web, "--web.enable-pprof", "--otlp.endpoint=http://"+v.collector.HTTP(), "--otlp.interval=1s")...)
	command.Env = append(command.Env, "OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer "+planted+"-header", "UNRELATED="+planted+"-environment")
	command.Stdout, command.Stderr = log, log
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = command.Wait() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, after, found := strings.Cut(log.String(), "address=127.0.0.1:"); found && strings.ContainsAny(after, " \n") {
			return "http://127.0.0.1:" + after[:strings.IndexAny(after, " \n")], log
		}
		if time.Now().After(deadline) {
			t.Fatalf("it never listens:\n%s", log)
		}
	}
}

// read returns the response to the scraper.
func read(t *testing.T, address, accept string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("scraper", "secret")
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// expectNoSecret checks that a text contains the wanted text and no secret.
func expectNoSecret(t *testing.T, name, text, wanted string) {
	t.Helper()
	if !strings.Contains(text, wanted) {
		t.Errorf("%s has no %q, so that it shows nothing:\n%.2000s", name, wanted, text)
	}
	for _, secret := range []string{planted, "$2a$04$", "rPtQxd9nj", "c2NyYXBlcjpzZWNyZXQ"} {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("%s has a secret: …%s…", name, text[max(0, at-80):min(len(text), at+80)])
		}
	}
}

// Secrets in pods, claims, classes, annotations, the kubeconfig, the web
// configuration and the environment appear nowhere in what the roles and the
// commands show, log or push, at any log level.
func TestSecretsAreNotExposed(t *testing.T) {
	v := newSecretFixture(t)
	node := []string{"node", "--node.name=n", "--kubelet.pod-resources-socket=" + v.socket, "--cdi.dir=" + v.dir, "--labels.pod=team",
		"--device.source=simulated", "--simulated.config=" + v.file(t, "gpu.yaml", oneGPU), "--device.interval=100ms"}
	for name, test := range map[string]struct {
		args  []string
		paths map[string]string // wanted content by path
	}{
		"node":    {node, map[string]string{"/": "train", "/metrics": `pod="train"`, "/api/v1/claims": "train", "/api/v1/namespaces": "lab"}},
		"cluster": {[]string{"cluster"}, map[string]string{"/": "queued", "/metrics": `pod="queued"`, "/api/v1/pending": "queued"}},
	} {
		t.Run(name, func(t *testing.T) {
			address, log := v.role(t, test.args...)
			for deadline := time.Now().Add(time.Minute); !strings.Contains(read(t, address+"/metrics", ""), test.paths["/metrics"]); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("the page never has %s:\n%s", test.paths["/metrics"], log)
				}
			}
			for path, wanted := range test.paths {
				expectNoSecret(t, path, read(t, address+path, ""), wanted)
			}
			expectNoSecret(t, "OpenMetrics", read(t, address+"/metrics", "application/openmetrics-text;version=1.0.0"), "# EOF")
			for profile, wanted := range map[string]string{"goroutine?debug=2": "main.", "heap?debug=1": "heap profile", "allocs?debug=1": "heap profile"} {
				expectNoSecret(t, profile, read(t, address+"/debug/pprof/"+profile, ""), wanted)
			}
			expectNoSecret(t, "the command line", read(t, address+"/debug/pprof/cmdline", ""), "Unknown profile")
			patience, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			if !v.collector.Await(patience, func(c *otelcollector.Collector) bool { return len(c.Requests()) > 0 }) {
				t.Error("nothing was pushed")
			}
			for _, pushed := range v.collector.Requests() {
				if got := pushed.Header.Get("Authorization"); !strings.Contains(got, planted+"-header") {
					t.Errorf("the collector was given %q", got)
				}
			}
			expectNoSecret(t, "the push", fmt.Sprint(v.collector.Metrics()), "dra_")
			expectNoSecret(t, "the log", log.String(), "level=")
			v.collector.Forget()
		})
	}
	if v.tokens.Load() == 0 {
		t.Error("the token was never used")
	}
	v.commands(t, node[1:])
}

// commands runs the commands that users run.
func (v *secretFixture) commands(t *testing.T, node []string) {
	t.Helper()
	for name, test := range map[string]struct {
		args   []string
		wanted string
	}{
		"check node":            {append([]string{"check", "node", "-o", "json", "--log.level=debug", "--kubeconfig=" + v.kubeconfig}, node...), "outcome"},
		"check cluster":         {[]string{"check", "cluster", "--kubeconfig=" + v.kubeconfig}, "checks passed"},
		"explain":               {[]string{"explain", "--kubeconfig=" + v.kubeconfig, "pod", "lab/queued"}, "missing"},
		"help":                  {[]string{"node", "--help"}, "--otlp.endpoint"},
		"a password in a URL":   {append([]string{"node", "--kubeconfig=" + v.kubeconfig, "--otlp.endpoint=http://me:" + planted + "-url@collector:99999"}, node...), "otlp"},
		"a wrong host engine":   {append([]string{"node", "--kubeconfig=" + v.kubeconfig, "--dcgm.host-engine=http://me:" + planted + "-url@engine:1"}, node...), "host-engine"},
		"a broken kubeconfig":   {append([]string{"node", "--kubeconfig=" + v.file(t, "broken", "users: [{name: u, user: {token: "+planted+"-broken}}\n")}, node...), "kubeconfig"},
		"a broken web config":   {append([]string{"node", "--kubeconfig=" + v.kubeconfig, "--web.config.file=" + v.file(t, "broken.yaml", "basic_auth_users: {scraper: "+planted+"-clear}\n")}, node...), "web.config.file"},
		"headers that are none": {append([]string{"node", "--kubeconfig=" + v.kubeconfig, "--otlp.endpoint=http://127.0.0.1:1"}, node...), "HEADERS"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			command := program(ctx, test.args...)
			command.Env = append(command.Env, "DRA_EXPORTER_OTLP_CLUSTER_NAME="+planted+"-variable")
			if name == "headers that are none" {
				command.Env = append(command.Env, "OTEL_EXPORTER_OTLP_HEADERS="+planted+"-no-equals-sign")
			}
			output, _ := command.CombinedOutput() // its output is checked
			expectNoSecret(t, name, string(output), test.wanted)
		})
	}
}
