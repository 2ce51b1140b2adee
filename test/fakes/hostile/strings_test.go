package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
	kubelets "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// stringsForged names what exists only if a string was not treated as a value:
// a series, an element, an attribute, a member of JSON, a field of a log.
const stringsForged = "forged"

// stringsTexts returns texts for fields in which Kubernetes, a driver or a
// kubelet accepts any text.
func stringsTexts() map[string]string {
	return map[string]string{
		"terminal": "x\x1b]0;owned\a\x1b[2J\u009b31m\b\b\r\x00\x7f\u0085\v\f",
		"direction": "x\u202a\u202b\u202c\u202d\u202egpj.exe\u2066\u2067\u2068\u2069\u200e\u200f\u061c" +
			"\u200b\u200c\u200d\u2060\ufeff\u00ad\u2028\u2029",
		"markup": `x"'><` + stringsForged + `><script>alert(1)</script><a href="javascript:alert(1)" ` + stringsForged + `="1" onload='a'>{{.}}`,
		"lines": `x",node="` + stringsForged + `"} 1` + "\n" + stringsForged + `{a="b"} 1` + "\n# EOF\n" + stringsForged + " 1\n" +
			`time=2026-01-01T00:00:00Z level=ERROR msg=` + stringsForged + ` ` + stringsForged + `=1` + "\n",
		"documents": `x"},"` + stringsForged + `":{"a":"` + "\n" + stringsForged + `: 1` + "\n---\n- " + stringsForged + `: {a: b}` + "\n" + `\`,
		"long":      "x" + strings.Repeat("Ⅷ\u202e\x1b[", 1<<15),
	}
}

// TestHostileStringsEverywhere runs both roles as programs with a kubelet and
// an API server in which every free text is hostile, and reads all output of
// the roles and commands: metrics, pages, JSON, links, logs, top, explain and
// check.
func TestHostileStringsEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	program := filepath.Join(t.TempDir(), "dra-exporter")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "../../../cmd/dra-exporter")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, output)
	}
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for name, text := range stringsTexts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scene := newStringsEnv(t, program, text)
			scene.turns = turns
			scene.checkMetrics(t)
			scene.checkPages(t)
			scene.checkCommands(t)
			scene.stop(t)
		})
	}
}

// stringsEnv is one cluster whose texts are hostile, and the programs that
// read it.
type stringsEnv struct {
	program, dir, text string
	turns              chan struct{} // one for each command that runs, of all tests
	kubeconfig         string
	nodeFlags          []string
	node, cluster      *stringsProcess
}

func newStringsEnv(t *testing.T, program, text string) *stringsEnv {
	t.Helper()
	s := &stringsEnv{program: program, dir: t.TempDir(), text: text}
	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	if err := server.Put(stringsObjects(text)...); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(s.dir, "kubelet.sock")
	kubelet, err := kubelets.Start(t.Context(), socket, kubelets.Options{Pods: []kubelets.Pod{stringsPod(text)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelet.Close)
	s.kubeconfig = s.file(t, "kubeconfig", map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{map[string]any{"name": "c", "cluster": map[string]any{"server": server.Config().Host}}},
		"contexts": []any{map[string]any{"name": "c", "context": map[string]any{"cluster": "c", "user": "", "namespace": "train"}}},
	})
	hardware := s.file(t, "hardware.yaml", map[string]any{"devices": []any{map[string]any{
		"uuid": "GPU-0" + text, "model": text, "driverVersion": text, "quantities": map[string]any{"utilization": 0.5, "memory_used": 100},
	}}})
	s.file(t, "cdi.json", map[string]any{"cdiVersion": "0.6.0", "kind": "v/" + text, "devices": []any{map[string]any{
		"name": text, "containerEdits": map[string]any{"deviceNodes": []any{map[string]any{"path": "/dev/" + text}}}}}})
	s.nodeFlags = []string{
		"--node.name=n", "--kubeconfig=" + s.kubeconfig, "--kubelet.pod-resources-socket=" + socket, "--cdi.dir=" + s.dir,
		"--device.source=simulated", "--simulated.config=" + hardware, "--labels.pod=team",
	}
	listen := []string{"--web.listen-address=127.0.0.1:0", "--log.level=debug"}
	s.node = startStringsProcess(t, program, slices.Concat([]string{"node", "--log.format=json"}, listen, s.nodeFlags)...)
	s.cluster = startStringsProcess(t, program, slices.Concat([]string{"cluster", "--kubeconfig=" + s.kubeconfig}, listen)...)
	s.node.until(t, "\ndra_claim_held{", "\ndra_claim_consumer_info{", "\ndra_device_utilization_ratio{")
	s.cluster.until(t, "\ndra_claim_pending_since_timestamp_seconds{")
	return s
}

// file writes a document into the folder of the test: YAML includes JSON, but
// no literal control characters.
func (s *stringsEnv) file(t *testing.T, name string, document any) string {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, terminal.EscapeJSON(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// stringsObjects have the text wherever the API server accepts any, and in
// more fields, because a driver's own validation may be missing. Names that
// are part of a request's path are valid.
func stringsObjects(text string) []apiserver.Object {
	uuid, node, name := "GPU-0"+text, "n", "held"
	meta := func(name string) metav1.ObjectMeta {
		controls := true
		return metav1.ObjectMeta{Namespace: "train", Name: name, UID: "uid-1", Labels: map[string]string{"team": text}, Annotations: map[string]string{text: text},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: text, Kind: "Job" + text, Name: "job" + text, Controller: &controls}}}
	}
	condition := metav1.Condition{Type: "Ready" + text, Status: "False", Reason: text, Message: text}
	claim := &resourcev1.ResourceClaim{ObjectMeta: meta(name)}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "r" + text, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "class" + text,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == 'a'" + text}}}}}}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r" + text, Driver: "d" + text, Pool: "p" + text, Device: "gpu-0" + text}}}}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod", UID: "uid-1"}}
	claim.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: "d" + text, Pool: "p" + text, Device: "gpu-0" + text, Conditions: []metav1.Condition{condition}}}
	waiting := &resourcev1.ResourceClaim{ObjectMeta: meta("waiting"), Spec: claim.Spec}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "class" + text}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: text}}}}}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	slice.Spec = resourcev1.ResourceSliceSpec{Driver: "d" + text, NodeName: &node, Pool: resourcev1.ResourcePool{Name: "p" + text, Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "gpu-0" + text, Taints: []resourcev1.DeviceTaint{{Key: "k" + text, Value: text, Effect: "NoSchedule"}},
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}, "model": {StringValue: &text}}}}}
	pod := &corev1.Pod{ObjectMeta: meta("pod")}
	pod.Spec = corev1.PodSpec{NodeName: "n", ResourceClaims: []corev1.PodResourceClaim{{Name: "c" + text, ResourceClaimName: &name}},
		Containers: []corev1.Container{{Name: "main" + text, Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "c" + text}}}}}}
	pod.Status.Phase = corev1.PodRunning
	queued := &corev1.Pod{ObjectMeta: meta("queued")}
	queued.UID = "uid-2"
	queued.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c" + text, ResourceClaimName: &waiting.Name}}
	queued.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: text}}
	queued.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: text}}}
	stuck := queued.DeepCopy()
	stuck.Name, stuck.UID, stuck.Spec.SchedulingGates = "stuck", "uid-3", nil
	event := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "train", Name: "e"}, Reason: "FailedResourceClaimCreation", Message: text, Count: 1,
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "train", Name: "stuck", UID: "uid-3", FieldPath: text}, Source: corev1.EventSource{Component: text}}
	return []apiserver.Object{claim, waiting, class, slice, pod, queued, stuck, event}
}

func stringsPod(text string) kubelets.Pod {
	return kubelets.Pod{Namespace: "train", Name: "pod",
		Containers: []kubelets.Container{{Name: "main" + text, Uses: []kubelets.Use{{Claim: "held"}}, Plugins: []kubelets.Plugin{{Resource: "v/" + text, DeviceIDs: []string{text}}}}},
		Claims:     []kubelets.Claim{{Name: "held", Devices: []kubelets.Device{{Request: "r" + text, Driver: "d" + text, Pool: "p" + text, Name: "gpu-0" + text, CDI: []string{text}}}}}}
}

// checkMetrics decodes the text and protobuf of both roles. Hostile texts may
// only be in label values.
func (s *stringsEnv) checkMetrics(t *testing.T) {
	t.Helper()
	for _, process := range []*stringsProcess{s.node, s.cluster} {
		for _, format := range []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeProtoDelim)} {
			decoder := expfmt.NewDecoder(strings.NewReader(process.get(t, "/metrics", string(format))), format)
			families := 0
			for {
				family := &dto.MetricFamily{}
				err := decoder.Decode(family)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("%s cannot be decoded: %v", format, err)
				}
				families++
				for _, metric := range family.GetMetric() {
					for _, label := range metric.GetLabel() {
						if label.GetName() == stringsForged || label.GetName() == "node" && strings.Contains(label.GetValue(), stringsForged) {
							t.Errorf("%s has the label %s=%q", family.GetName(), label.GetName(), label.GetValue())
						}
					}
				}
				if strings.Contains(family.GetName(), stringsForged) {
					t.Errorf("there is a family %s", family.GetName())
				}
			}
			if families < 20 {
				t.Errorf("%s has %d families", format, families)
			}
		}
		open := process.get(t, "/metrics", "application/openmetrics-text;version=1.0.0")
		if strings.Count(open, "\n# EOF") != 1 || strings.Contains(open, "\n"+stringsForged) {
			t.Error("a string has ended the page of OpenMetrics, or become a series")
		}
	}
}

// checkPages reads HTML and JSON of both roles.
func (s *stringsEnv) checkPages(t *testing.T) {
	t.Helper()
	for _, process := range []*stringsProcess{s.node, s.cluster} {
		page := process.get(t, "/", "text/html")
		checkStringsShown(t, "the page", page)
		document, err := html.Parse(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		for node := range document.Descendants() {
			if node.Type != html.ElementNode {
				continue
			}
			if node.Data == stringsForged || node.Data == "script" && node.FirstChild != nil {
				t.Errorf("a string has become an element <%s>", node.Data)
			}
			for _, attribute := range node.Attr {
				if attribute.Key == stringsForged || strings.HasPrefix(attribute.Key, "on") {
					t.Errorf("a string has become the attribute %s", attribute.Key)
				}
				if attribute.Key == "href" || attribute.Key == "src" {
					checkStringsLink(t, attribute.Val)
				}
			}
		}
	}
	for _, path := range []string{"/api/v1/claims", "/api/v1/namespaces"} {
		checkStringsJSON(t, path, s.node.get(t, path, "application/json"))
	}
	checkStringsJSON(t, "/api/v1/pending", s.cluster.get(t, "/api/v1/pending", "application/json"))
}

// checkStringsLink accepts links to the page, to paths of the exporter, to the
// project's documents, and the icon of the page.
func checkStringsLink(t *testing.T, link string) {
	t.Helper()
	parsed, err := url.Parse(link)
	if err != nil {
		t.Errorf("the link %+.100q cannot be parsed: %v", link, err)
		return
	}
	if parsed.Scheme == "" && parsed.Host == "" || parsed.Scheme == "https" && parsed.Host == "github.com" || strings.HasPrefix(link, "data:image/svg+xml,%3Csvg ") && !strings.Contains(link, stringsForged) {
		return
	}
	t.Errorf("a link leads to %+.100q", link)
}

// checkCommands runs all commands, as many at a time as there are processors, and
// reads both outputs. More at a time would ask the API server for long lists faster
// than it can answer: a list may take 15 s.
func (s *stringsEnv) checkCommands(t *testing.T) {
	t.Helper()
	node, cluster := s.node.address(t), s.cluster.address(t)
	var running sync.WaitGroup
	for _, command := range [][]string{
		{"top", "--once", "--url=" + node, "--cluster-url=" + cluster},
		{"top", "--once", "-o", "json", "--url=" + node, "--cluster-url=" + cluster},
		{"explain", "claim", "waiting"},
		{"explain", "claim", "waiting", "-o", "json"},
		{"explain", "pod", "stuck"},
		{"explain", "pod", "queued", "-o", "json"},
		{"check", "agent", node + "/metrics", cluster + "/metrics"},
		{"check", "agent", "-o", "json", node + "/metrics", cluster + "/metrics"},
		slices.Concat([]string{"check", "node"}, s.nodeFlags),
		slices.Concat([]string{"check", "node", "-o", "json"}, s.nodeFlags),
		{"check", "cluster", "--kubeconfig=" + s.kubeconfig},
	} {
		running.Go(func() {
			stdout, stderr := s.run(t, command)
			what := strings.Join(command[:2], " ")
			checkStringsShown(t, what, stdout)
			checkStringsShown(t, what, stderr)
			checkStringsLines(t, what, stdout)
			checkStringsLines(t, what, stderr)
			if slices.Contains(command, "json") {
				if stdout == "" {
					t.Errorf("%s -o json says only %+.1000q", what, stderr)
					return
				}
				checkStringsJSON(t, what, stdout)
			}
		})
	}
	// Messages repeat the user's arguments.
	pasted := strings.ReplaceAll(s.text, "\x00", "")
	pasted = pasted[:min(len(pasted), 4000)]
	for _, command := range [][]string{
		{"explain", "claim", pasted}, {"top", "--once", "--url=" + pasted}, {pasted}, {"node", "--node.name=" + pasted, "--log.level=" + pasted},
	} {
		running.Go(func() {
			stdout, stderr := s.run(t, command)
			checkStringsShown(t, "a refusal", stdout+stderr)
		})
	}
	running.Wait()
}

// run runs a command until it ends, possibly with an error. There must be
// output.
func (s *stringsEnv) run(t *testing.T, command []string) (string, string) {
	t.Helper()
	s.turns <- struct{}{}
	defer func() { <-s.turns }()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	run := exec.CommandContext(ctx, s.program, command...)
	run.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "DRA_EXPORTER_TIMEOUT=100s") // commands that read and diagnose use it twice
	var stdout, stderr bytes.Buffer
	run.Stdout, run.Stderr = &stdout, &stderr
	err := run.Run() // findings and errors have an exit status of their own
	if ctx.Err() != nil {
		t.Errorf("%.60q did not end: %v", command, err)
	}
	if stdout.Len()+stderr.Len() == 0 {
		t.Errorf("%.60q says nothing: %v", command, err)
	}
	return stdout.String(), stderr.String()
}

// stop ends both programs and reads their logs.
func (s *stringsEnv) stop(t *testing.T) {
	t.Helper()
	log := s.node.stop(t)
	checkStringsShown(t, "the log in JSON", log)
	for line := range strings.Lines(log) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil || fields["level"] == nil || fields[stringsForged] != nil {
			t.Errorf("not a line of the log: %+.200q (%v)", line, err)
		}
	}
	log = s.cluster.stop(t)
	checkStringsShown(t, "the log in logfmt", log)
	begins := regexp.MustCompile(`^time=\S+ level=[A-Z]+[-+0-9]* `)
	quoted := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	for line := range strings.Lines(log) {
		if !begins.MatchString(line) || strings.Contains(quoted.ReplaceAllString(line, ""), " "+stringsForged+"=") {
			t.Errorf("not a line of the log: %+.200q", line)
		}
	}
}

// checkStringsShown: every character is printable, a space or a line break.
func checkStringsShown(t *testing.T, what, text string) {
	t.Helper()
	acts := func(r rune) bool {
		return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) && r != '\n' && r != '\t'
	}
	if at := strings.IndexFunc(text, acts); at >= 0 {
		t.Errorf("%s has %+q", what, text[max(0, at-20):min(at+20, len(text))])
	}
}

// checkStringsLines: no line consists of hostile text.
func checkStringsLines(t *testing.T, what, text string) {
	t.Helper()
	if strings.Contains(text, "\n"+stringsForged) {
		t.Errorf("%s has a forged line:\n%s", what, text)
	}
}

func checkStringsJSON(t *testing.T, what, text string) {
	t.Helper()
	checkStringsShown(t, what, text)
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Errorf("%s is not JSON: %v: %.200q", what, err, text)
	}
	if stringsMember(document) {
		t.Errorf("%s: a string has become a member", what)
	}
}

func stringsMember(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if key == stringsForged || stringsMember(member) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, stringsMember)
	}
	return false
}

// stringsProcess is a running role, and its log so far.
type stringsProcess struct {
	command *exec.Cmd
	ended   chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

func (p *stringsProcess) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

func (p *stringsProcess) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func startStringsProcess(t *testing.T, program string, arguments ...string) *stringsProcess {
	t.Helper()
	p := &stringsProcess{command: exec.Command(program, arguments...), ended: make(chan struct{})}
	p.command.Stderr, p.command.Stdout = p, p
	p.command.Env = append(os.Environ(), "KUBECONFIG=/dev/null")
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait() // ended by a signal
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.command.Process.Kill() // it may have ended
		<-p.ended
	})
	return p
}

// address returns the address on which it listens, from its log.
func (p *stringsProcess) address(t *testing.T) string {
	t.Helper()
	listening := regexp.MustCompile(`(?i)listening on.*?(127\.0\.0\.1:\d+)`)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if found := listening.FindStringSubmatch(p.output()); found != nil {
			return "http://" + found[1]
		}
		select {
		case <-p.ended:
			t.Fatalf("it has ended:\n%s", p.output())
		default:
		}
	}
	t.Fatalf("it listens nowhere:\n%s", p.output())
	return ""
}

func (p *stringsProcess) get(t *testing.T, path, accept string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.address(t)+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
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

// until waits until the page of metrics has all of these parts.
func (p *stringsProcess) until(t *testing.T, parts ...string) {
	t.Helper()
	var missing []string
	for deadline := time.Now().Add(6 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		page := p.get(t, "/metrics", "text/plain")
		missing = slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return strings.Contains(page, part) })
		if len(missing) == 0 {
			return
		}
	}
	t.Fatalf("the page lacks %q:\n%.3000s", missing, p.output())
}

func (p *stringsProcess) stop(t *testing.T) string {
	t.Helper()
	if err := p.command.Process.Signal(os.Interrupt); err != nil {
		t.Error(fmt.Errorf("end the program: %w", err))
	}
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
	return p.output()
}
