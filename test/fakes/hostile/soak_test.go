package hostile

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	kubelets "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// soakVariable is the duration of TestSoak. The default is long enough for
// leaks of every fault, and too short for slow leaks.
const soakVariable = "DRA_EXPORTER_SOAK"

// A round is a time with faults, and a time without, at the end of which the
// test measures.
const (
	soakFaults = 5 * time.Second
	soakCalm   = 4 * time.Second
	soakRounds = 4 // at least; the first one warms up
)

// TestSoak runs both roles, built with the race detector, with all faults at
// the same time: pods and claims that are created and deleted, an API server
// that is restarted, expires and ends watches, a kubelet that is restarted and
// gives wrong answers, devices that hang and fail, signals, and clients that
// scrape, stall and disconnect. Descriptors, goroutines and memory must not
// grow from round to round.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	rounds := soakRounds
	if text := os.Getenv(soakVariable); text != "" {
		length, err := time.ParseDuration(text)
		if err != nil {
			t.Fatalf("%s: %v", soakVariable, err)
		}
		rounds = max(rounds, int(length/(soakFaults+soakCalm)))
	}
	s := startSoak(t)
	for round := range rounds {
		s.injectFaults(t, soakFaults)
		s.recover(t)
		for _, role := range s.roles {
			role.measure(t, round)
		}
	}
	for _, role := range s.roles {
		role.checkTrends(t)
	}
}

// soak is the environment of the two roles.
type soak struct {
	api     *apiserver.Server
	kubelet *kubelets.Kubelet
	devices string // path of the simulated devices
	roles   []*role
	random  *rand.Rand
	pods    []int // numbers of the existing pods
	next    int
}

// role is a role under test.
type role struct {
	name, url string
	process   *exec.Cmd
	log       string
	measured  []footprint
}

// footprint is what a process uses at a time.
type footprint struct {
	descriptors, threads, goroutines int
	memory                           int // of Go's runtime, in KiB
	anonymous                        int // private memory of the process, in KiB; that of the race detector always grows
}

func (f footprint) String() string {
	return fmt.Sprintf("%d descriptors, %d threads, %d goroutines, %d MiB of Go, %d MiB anonymous", f.descriptors, f.threads, f.goroutines, f.memory>>10, f.anonymous>>10)
}

const soakDevices = 8

func startSoak(t *testing.T) *soak {
	t.Helper()
	folder, err := os.MkdirTemp("", "soak") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	s := &soak{devices: filepath.Join(folder, "devices.yaml"), random: rand.New(rand.NewPCG(17, 17))}
	if s.api, err = apiserver.Start(t.Context(), apiserver.Options{BookmarkEvery: time.Second}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(folder, "kubelet.sock")
	if s.kubelet, err = kubelets.Start(t.Context(), socket, kubelets.Options{}); err != nil {
		t.Fatal(err)
	}
	s.put(t, soakNode(), soakClass(), soakSlice())
	s.writeDevices(t, "[]")
	config := clientcmdapi.NewConfig()
	config.Clusters["soak"] = &clientcmdapi.Cluster{Server: s.api.Config().Host}
	config.Contexts["soak"] = &clientcmdapi.Context{Cluster: "soak"}
	config.CurrentContext = "soak"
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(folder, "dra-exporter")
	build := exec.Command("go", "build", "-race", "-ldflags", "-extldflags=-Wl,-z,lazy", "-o", binary, "../../../cmd/dra-exporter")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the exporter: %v\n%s", err, text)
	}
	s.roles = []*role{
		startRole(t, folder, "node", binary, "node", "--node.name=node-a", "--kubeconfig="+kubeconfig, "--kubelet.pod-resources-socket="+socket,
			"--device.source=simulated", "--simulated.config="+s.devices, "--cdi.dir="+folder, "--ledger.grace=5s", "--metrics.dcgm=split", "--metrics.level=full"),
		startRole(t, folder, "cluster", binary, "cluster", "--kubeconfig="+kubeconfig, "--metrics.level=full"),
	}
	return s
}

func startRole(t *testing.T, folder, name, binary string, args ...string) *role {
	t.Helper()
	r := &role{name: name, log: filepath.Join(folder, name+".log")}
	file, err := os.Create(r.log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r.process = exec.Command(binary, append(args, "--web.listen-address=127.0.0.1:0")...)
	r.process.Stdout, r.process.Stderr = file, file
	r.process.Env = append(os.Environ(), "GORACE=halt_on_error=0 exitcode=66", "GOMAXPROCS=2")
	if err := r.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of the %s role:\n%s", r.name, lastLines(r.log, 30))
		}
		r.process.Process.Kill()
		r.process.Wait() // it was killed, or checkTrends has waited for it
	})
	address := regexp.MustCompile(`address=(127\.0\.0\.1:[0-9]+)`)
	for range 600 {
		if found := address.FindStringSubmatch(lastLines(r.log, 1000)); found != nil {
			r.url = "http://" + found[1] + "/"
			return r
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the %s role does not listen:\n%s", name, lastLines(r.log, 30))
	return nil
}

func lastLines(path string, count int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(string(text), "\n")
	return strings.Join(lines[max(0, len(lines)-count):], "\n")
}

// injectFaults injects faults for a time.
func (s *soak) injectFaults(t *testing.T, length time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), length)
	defer stop()
	var clients sync.WaitGroup
	for _, role := range s.roles {
		for i := range 6 {
			random := rand.New(rand.NewPCG(s.random.Uint64(), uint64(i)))
			clients.Go(func() { role.sendRequests(ctx, random) })
		}
	}
	for ctx.Err() == nil {
		s.changePods(t)
		s.injectFault(t)
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(20+s.random.IntN(200)) * time.Millisecond):
		}
	}
	clients.Wait()
}

// injectFault injects one fault into the roles or into what they read.
func (s *soak) injectFault(t *testing.T) {
	t.Helper()
	var err error
	switch s.random.IntN(14) {
	case 0:
		s.api.EndWatches()
	case 1:
		s.api.Expire()
	case 2:
		s.api.Stop()
		time.Sleep(time.Duration(s.random.IntN(300)) * time.Millisecond)
		err = s.api.Restart()
	case 3:
		err = s.kubelet.Restart()
	case 4:
		traps := kubelets.Always()
		err = s.kubelet.AddFaults(traps[s.random.IntN(len(traps))])
	case 5:
		err = s.kubelet.RemoveFaults(kubelets.Always()...)
	case 6:
		s.writeDevices(t, "[{kind: error, for: 1s}]")
	case 7:
		s.writeDevices(t, "[{kind: hang, for: 1500ms}]")
	case 8:
		s.writeDevices(t, "[{kind: disappear, for: 1s}, {kind: xid, code: 79}]")
	case 9:
		s.writeDevices(t, "[]")
	case 10:
		for _, role := range s.roles {
			err = errors.Join(err, role.process.Process.Signal(syscall.SIGHUP))
		}
	case 11:
		for _, role := range s.roles {
			err = errors.Join(err, role.process.Process.Signal(syscall.SIGSTOP))
		}
		time.Sleep(time.Duration(s.random.IntN(300)) * time.Millisecond)
		for _, role := range s.roles {
			err = errors.Join(err, role.process.Process.Signal(syscall.SIGCONT))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// sendRequests scrapes, stalls and disconnects.
func (r *role) sendRequests(ctx context.Context, random *rand.Rand) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableCompression: random.IntN(2) == 0}}
	defer client.CloseIdleConnections()
	paths := []string{"metrics", "metrics", "metrics", "", "api/v1/claims", "api/v1/pending", "-/ready", "no-such-path"}
	accepts := []string{"", "application/openmetrics-text;version=1.0.0", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"}
	for ctx.Err() == nil {
		if random.IntN(5) == 0 {
			r.stall(random)
			continue
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+paths[random.IntN(len(paths))], nil)
		if err != nil {
			return
		}
		request.Header.Set("Accept", accepts[random.IntN(len(accepts))])
		if response, err := client.Do(request); err == nil {
			io.CopyN(io.Discard, response.Body, int64(random.IntN(1<<20))) // some disconnect before the end
			response.Body.Close()
		}
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
	}
}

// stall opens a connection, sends a part of a request or a whole one, and
// closes it without reading.
func (r *role) stall(random *rand.Rand) {
	connection, err := net.DialTimeout("tcp", strings.Trim(strings.TrimPrefix(r.url, "http://"), "/"), time.Second)
	if err != nil {
		return
	}
	defer connection.Close()
	request := "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
	fmt.Fprint(connection, request[:random.IntN(len(request)+1)])
	time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
}

// recover ends all faults, and waits until all sources are up and ended
// objects are removed.
func (s *soak) recover(t *testing.T) {
	t.Helper()
	s.writeDevices(t, "[]")
	if err := errors.Join(s.kubelet.RemoveFaults(kubelets.Always()...), s.kubelet.Restart()); err != nil { // calls that hung stay unanswered otherwise
		t.Fatal(err)
	}
	s.setKubelet()
	time.Sleep(soakCalm)
	for _, role := range s.roles {
		role.waitSourcesUp(t)
	}
}

// waitSourcesUp waits until every source is up again.
func (r *role) waitSourcesUp(t *testing.T) {
	t.Helper()
	page := ""
	for range 300 {
		page = r.page(t)
		if page != "" && !regexp.MustCompile(`(?m)^dra_exporter_source_up\{[^}]*\} 0$`).MatchString(page) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	var down []string
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "dra_exporter_source_up") || strings.HasPrefix(line, "dra_exporter_source_error_info") {
			down = append(down, line)
		}
	}
	t.Fatalf("the %s role does not recover:\n%s", r.name, strings.Join(down, ""))
}

// page returns the page of metrics, empty if there is none.
func (r *role) page(t *testing.T) string {
	t.Helper()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(r.url + "metrics")
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

func (r *role) measure(t *testing.T, round int) {
	t.Helper()
	page := r.page(t)
	of := func(name string) int {
		found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("the page of the %s role has no %s", r.name, name)
		}
		value, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return int(value)
	}
	proc := fmt.Sprintf("/proc/%d/", r.process.Process.Pid)
	descriptors, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		t.Fatal(err)
	}
	f := footprint{
		descriptors: len(descriptors), threads: field(t, status, "Threads"), goroutines: of("go_goroutines"),
		memory:    (of("go_memory_classes_total_bytes") - of("go_memory_classes_heap_released_bytes")) >> 10,
		anonymous: field(t, status, "RssAnon"),
	}
	r.measured = append(r.measured, f)
	t.Logf("round %d, %s: %s", round, r.name, f)
}

func number(t *testing.T, text string) int {
	t.Helper()
	value, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func field(t *testing.T, status []byte, name string) int {
	t.Helper()
	lines := bufio.NewScanner(bytes.NewReader(status))
	for lines.Scan() {
		if key, value, _ := strings.Cut(lines.Text(), ":"); key == name {
			return number(t, strings.Fields(value)[0])
		}
	}
	t.Fatalf("procfs does not report %s", name)
	return 0
}

// checkTrends compares the medians of the last third of the measurements with
// those of the first, without the warm-up round. It stops the role, which must
// exit without an error or a race.
func (r *role) checkTrends(t *testing.T) {
	t.Helper()
	measured := r.measured[1:]
	third := max(1, len(measured)/3)
	first, last := medians(measured[:third]), medians(measured[len(measured)-third:])
	t.Logf("%s, first third: %s; last third: %s", r.name, first, last)
	if last.descriptors > first.descriptors+8 || last.threads > first.threads+8 || last.goroutines > first.goroutines+20 || last.memory > first.memory*5/4+8<<10 {
		t.Errorf("the %s role grows: from %s to %s", r.name, first, last)
	}
	if err := r.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := r.process.Wait(); err != nil {
		t.Errorf("the %s role did not end well: %v", r.name, err)
	}
	if text := lastLines(r.log, 1<<20); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic:") {
		t.Errorf("the %s role has a race or a panic:\n%s", r.name, text)
	}
}

func medians(all []footprint) footprint {
	median := func(of func(footprint) int) int {
		var values []int
		for _, f := range all {
			values = append(values, of(f))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return footprint{
		descriptors: median(func(f footprint) int { return f.descriptors }), threads: median(func(f footprint) int { return f.threads }),
		goroutines: median(func(f footprint) int { return f.goroutines }), anonymous: median(func(f footprint) int { return f.anonymous }),
		memory: median(func(f footprint) int { return f.memory }),
	}
}

// changePods deletes a pod or creates one. Some claims are pending for a
// device.
func (s *soak) changePods(t *testing.T) {
	t.Helper()
	if len(s.pods) > 3*soakDevices || len(s.pods) > 0 && s.random.IntN(2) == 0 {
		at := s.random.IntN(len(s.pods))
		pod, claim := soakPod(s.pods[at], false)
		if err := s.api.Delete(pod, claim); err != nil {
			t.Fatal(err)
		}
		s.pods = slices.Delete(s.pods, at, at+1)
	} else {
		pod, claim := soakPod(s.next, s.random.IntN(3) > 0)
		s.put(t, pod, claim)
		s.pods = append(s.pods, s.next)
		s.next++
	}
	s.setKubelet()
}

func (s *soak) put(t *testing.T, objects ...apiserver.Object) {
	t.Helper()
	if err := s.api.Put(objects...); err != nil {
		t.Fatal(err)
	}
}

// setKubelet sets the pods that the kubelet lists.
func (s *soak) setKubelet() {
	var pods []kubelets.Pod
	for _, i := range s.pods {
		pods = append(pods, kubelets.Pod{
			Namespace: "team", Name: soakName(i),
			Claims:     []kubelets.Claim{{Name: soakName(i), Stage: kubelets.Prepared, Devices: []kubelets.Device{{Request: "gpu", Driver: soakDriver, Pool: "node-a", Name: soakDevice(i)}}}},
			Containers: []kubelets.Container{{Name: "main", Uses: []kubelets.Use{{Claim: soakName(i)}}}},
		})
	}
	s.kubelet.Set(pods)
}

func (s *soak) writeDevices(t *testing.T, faults string) {
	t.Helper()
	var text strings.Builder
	text.WriteString("devices:\n")
	for i := range soakDevices {
		own := "[]"
		if s.random.IntN(2) == 0 {
			own = faults
		}
		fmt.Fprintf(&text, "- {vendor: nvidia, model: Soak, uuid: %s, minor: %d, faults: %s, quantities: {utilization: {curve: sine, min: 0, max: 1, period: 5s}, memory_used: 1e9, memory_size: 8e9, energy: {rate: 300}}}\n", soakUUID(i), i, own)
	}
	draft := s.devices + ".draft"
	if err := errors.Join(os.WriteFile(draft, []byte(text.String()), 0o600), os.Rename(draft, s.devices)); err != nil {
		t.Fatal(err)
	}
}

const soakDriver = "gpu.nvidia.com"

func soakName(i int) string   { return fmt.Sprintf("pod-%d", i) }
func soakDevice(i int) string { return fmt.Sprintf("gpu-%d", i%soakDevices) }
func soakUUID(i int) string   { return fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i) }

func soakNode() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", UID: "node-a"}}
}

func soakClass() *resourcev1.DeviceClass {
	expression := fmt.Sprintf("device.driver == %q", soakDriver)
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu", UID: "gpu"},
		Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}},
	}
}

func soakSlice() *resourcev1.ResourceSlice {
	node := "node-a"
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "node-a", UID: "slice"},
		Spec:       resourcev1.ResourceSliceSpec{Driver: soakDriver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}},
	}
	for i := range soakDevices {
		uuid := soakUUID(i)
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name:       soakDevice(i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}},
		})
	}
	return slice
}

// soakPod returns a pod with its claim, allocated and running, or pending.
func soakPod(i int, allocated bool) (*corev1.Pod, *resourcev1.ResourceClaim) {
	name := soakName(i)
	uid := types.UID(name)
	created := metav1.Now()
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: uid, CreationTimestamp: created},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
			Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		}}}},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: uid, CreationTimestamp: created},
		Spec: corev1.PodSpec{
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}},
			Containers:     []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if allocated {
		claim.Status = resourcev1.ResourceClaimStatus{
			Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
				Request: "gpu", Driver: soakDriver, Pool: "node-a", Device: soakDevice(i),
			}}}},
			ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: uid}},
		}
		pod.Spec.NodeName, pod.Status.Phase = "node-a", corev1.PodRunning
	}
	return pod, claim
}
