package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	toolkit "github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	otlpsettings "github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/role"
	kubelets "github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// forged is the name of a series, an element and a member of JSON that exist
// only if a string was interpreted as more than a value.
const forged = "forged"

// hostileStrings returns names that could harm a reader of some format.
func hostileStrings() map[string]string {
	return map[string]string{
		"a line of the text format": "x\n" + forged + `{a="b"} 1` + "\n# HELP y",
		"the end of OpenMetrics":    "x\n# EOF\n" + forged + " 1\n",
		"the end of a label":        `x",node="` + forged + `"} 1` + "\n" + forged + `{x="`,
		"backslashes":               `x\`,
		"backslash and quote":       `x\"} 1` + "\n" + forged + " 1",
		"a script":                  `x<` + forged + `><script>alert(1)</script>`,
		"an attribute":              `x" ` + forged + `="1" onload='alert(1)'`,
		"the end of JSON":           `x"},"` + forged + `":{"a":"`,
		"bytes that are no UTF-8":   "x\xff\xfe\xc0\x80\xed\xa0\x80",
		"escape sequences":          "x\x1b]0;owned\a\x1b[2J\x9b31m",
		"the other direction":       "x\u202egpj.exe\u2066\u200f",
		"NULs and returns":          "x\x00\r\n\v\f\u2028\u0085",
		"a quarter of a mebibyte":   "x" + strings.Repeat("A", 1<<18),
		"one of bad bytes":          "x" + strings.Repeat("a\xff", 1<<17),
		"a template":                `x{{.}}${jndi:ldap://x}%s%n`,
	}
}

// hostileSource is hardware that reports a given text.
type hostileSource struct{ text string }

func (hostileSource) Name() string { return "hostile" }
func (hostileSource) Close() error { return nil }
func (hostileSource) Key() string  { return "GPU-0" }
func (s hostileSource) Readers(context.Context) ([]device.Reader, error) {
	return []device.Reader{s}, nil
}
func (s hostileSource) Read(context.Context, device.Tier) ([]device.Observation, error) {
	return []device.Observation{{
		Device:   device.Device{UUID: "GPU-0" + s.text, Vendor: s.text, Model: s.text, DriverVersion: s.text, Profile: s.text},
		Readings: []device.Reading{{Quantity: device.Utilization, Value: 0.5}, {Quantity: device.MemoryUsed, Value: 100}},
	}}, nil
}

// inPath returns as much of the text as fits into the path of a request: a
// claim is requested by its namespace and its name.
func inPath(text string) string {
	return strings.ToValidUTF8(strings.ToValidUTF8(text, "?")[:min(len(strings.ToValidUTF8(text, "?")), 200)], "?")
}

// hostileObjects has the text in every place that a driver, a user or an
// administrator fills in.
func hostileObjects(text string) []apiserver.Object {
	uuid, node, named := "GPU-0"+text, "n", inPath(text)
	name, hidden := "claim"+named, "missing"+named
	meta := func(namespace, name string) metav1.ObjectMeta {
		controls := true
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-1", Labels: map[string]string{"team": text}, Annotations: map[string]string{text: text},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job" + text, Name: "job" + text, Controller: &controls}}}
	}
	opaque := &resourcev1.OpaqueDeviceConfiguration{Driver: "d" + text, Parameters: runtime.RawExtension{Raw: []byte(`{"sharing":{"strategy":"` + "MPS\u001b" + `"}}`)}}
	request := resourcev1.DeviceRequest{Name: "r" + text, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "class" + text}}
	claim := &resourcev1.ResourceClaim{ObjectMeta: meta("ns"+named, name)}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{request}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r" + text, Driver: "d" + text, Pool: "p" + text, Device: "gpu-0" + text}},
		Config:  []resourcev1.DeviceAllocationConfiguration{{DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: opaque}}}}}
	claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "pod" + text, UID: "uid-1"}}
	pending := &resourcev1.ResourceClaim{ObjectMeta: meta("ns"+named, hidden), Spec: claim.Spec}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	slice.Spec = resourcev1.ResourceSliceSpec{Driver: "d" + text, NodeName: &node, Pool: resourcev1.ResourcePool{Name: "p" + text, Generation: 1, ResourceSliceCount: 1},
		Devices: []resourcev1.Device{{Name: "gpu-0" + text, Taints: []resourcev1.DeviceTaint{{Key: "k" + text, Value: text, Effect: "NoSchedule"}},
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}, "model": {StringValue: &text}}}}}
	pod := &corev1.Pod{ObjectMeta: meta("ns"+named, "pod"+text)}
	pod.Spec = corev1.PodSpec{NodeName: "n", ResourceClaims: []corev1.PodResourceClaim{{Name: "c" + text, ResourceClaimName: &name}},
		Containers: []corev1.Container{{Name: "main" + text, Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "c" + text}}}}}}
	pod.Status.Phase = corev1.PodRunning
	queued := &corev1.Pod{ObjectMeta: meta("ns"+named, "queued"+text)}
	queued.UID = "uid-2"
	queued.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c" + text, ResourceClaimName: &hidden}}
	queued.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: text}}}
	return []apiserver.Object{claim, pending, slice, pod, queued}
}

// hostileNode runs an agent whose sources all report the text, and
// hostileCluster the other role.
func hostileNode(t *testing.T, text string, server *apiserver.Server) string {
	t.Helper()
	dir := t.TempDir()
	around := role.NodeOptions{Name: "n", Socket: filepath.Join(dir, "kubelet.sock"), CDIDirs: []string{dir}, API: server.Config(), Sources: []device.Source{hostileSource{text}}}
	// gRPC refuses to send strings that are not UTF-8.
	valid, named := strings.ToValidUTF8(text, "?"), inPath(text)
	kubelet, err := kubelets.Start(t.Context(), around.Socket, kubelets.Options{Pods: []kubelets.Pod{{Namespace: "ns" + named, Name: "pod" + valid,
		Containers: []kubelets.Container{{Name: "main" + valid, Uses: []kubelets.Use{{Claim: "claim" + named}}, Plugins: []kubelets.Plugin{{Resource: "v/" + valid, DeviceIDs: []string{valid}}}}},
		Claims:     []kubelets.Claim{{Name: "claim" + named, Devices: []kubelets.Device{{Request: "r" + valid, Driver: "d" + valid, Pool: "p" + valid, Name: "gpu-0" + valid, CDI: []string{valid}}}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelet.Close)
	device, err := json.Marshal(map[string]any{"cdiVersion": "0.6.0", "kind": "v/" + text, "devices": []any{map[string]any{"name": text,
		"containerEdits": map[string]any{"deviceNodes": []any{map[string]any{"path": "/dev/" + text}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.json"), device, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := testFlags()
	flags.podLabels, flags.dcgm = []string{"team"}, "copy"
	return serve(t, flags, around)
}

func hostileCluster(t *testing.T, server *apiserver.Server) string {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	cluster, err := role.NewClusterRole((&clusterFlags{budget: 1, maxSeries: 1000}).options(server.Config(), otlpsettings.Settings{}, clock.System()), log)
	if err != nil {
		t.Fatal(err)
	}
	addresses, systemd, config := []string{"127.0.0.1:0"}, false, ""
	flags := &webFlags{toolkit: &toolkit.FlagConfig{WebListenAddresses: &addresses, WebSystemdSocket: &systemd, WebConfigFile: &config}, path: "/metrics", log: &promslog.Config{}}
	web, err := flags.server(server.Config(), cluster.Server, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cluster.Run(ctx, web) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the role did not end well: %v", err)
		}
	})
	return "http://" + web.Addresses()[0].String()
}

// decoded is the page in a format, decoded and checked: every family and label
// is known, every value is valid and bounded, and no series is duplicate.
func decoded(t *testing.T, address string, format expfmt.Format) map[string]*dto.MetricFamily {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", string(format))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	decoder := expfmt.NewDecoder(response.Body, format)
	families, series := make(map[string]*dto.MetricFamily), make(map[string]bool)
	for {
		family := &dto.MetricFamily{}
		if err := decoder.Decode(family); err != nil {
			if err.Error() != "EOF" {
				t.Fatalf("%s cannot be decoded: %v", format, err)
			}
			return families
		}
		families[family.GetName()] = family
		if strings.Contains(family.GetName(), forged) || !model.LegacyValidation.IsValidMetricName(family.GetName()) {
			t.Errorf("there is a family %q", family.GetName())
		}
		for _, row := range family.GetMetric() {
			checkLabels(t, family.GetName(), row, series)
		}
	}
}

func checkLabels(t *testing.T, family string, row *dto.Metric, series map[string]bool) {
	t.Helper()
	key := family
	for _, label := range row.GetLabel() {
		key += fmt.Sprintf(",%s=%q", label.GetName(), label.GetValue())
		if label.GetName() == forged || !model.LegacyValidation.IsValidLabelName(label.GetName()) {
			t.Errorf("%s has a label %q", family, label.GetName())
		}
		if label.GetName() == "node" && label.GetValue() != "n" && label.GetValue() != "" {
			t.Errorf("%s is of node %q", family, label.GetValue())
		}
		if value := label.GetValue(); len(value) > metric.MaxValue || !utf8.ValidString(value) {
			t.Errorf("%s has %d bytes in %s, valid: %v", family, len(value), label.GetName(), utf8.ValidString(value))
		}
	}
	if series[key] {
		t.Errorf("a series is there twice: %.300s", key)
	}
	series[key] = true
}

// checkPages checks the other pages and documents.
func checkPages(t *testing.T, address string, apis ...string) {
	t.Helper()
	_, page := get(t, address+"/")
	if at := strings.IndexFunc(page, isControl); at >= 0 {
		t.Errorf("the page has %+q", page[at:min(at+40, len(page))])
	}
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for node := range document.Descendants() {
		if node.Type == html.ElementNode && node.Data == forged {
			t.Error("a string has become an element")
		}
		if node.Type == html.ElementNode && node.Data == "script" && node.FirstChild != nil {
			t.Errorf("a script in the page: %.200s", node.FirstChild.Data)
		}
		for _, attribute := range node.Attr {
			if attribute.Key == forged || strings.HasPrefix(attribute.Key, "on") {
				t.Errorf("a string has become the attribute %s", attribute.Key)
			}
		}
	}
	for _, api := range apis {
		status, text := get(t, address+api)
		var answer any
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || !utf8.ValidString(text) {
			t.Errorf("%s: %d, %v", api, status, err)
		}
		if at := strings.IndexFunc(text, isControl); at >= 0 {
			t.Errorf("%s has %+q", api, text[at:min(at+40, len(text))])
		}
		if hasMember(answer, forged) {
			t.Errorf("%s: a string has become a member", api)
		}
	}
}

// isControl reports whether a character is neither visible nor a space or a
// line break: it controls a terminal, reorders the text beside it, or has no
// width.
func isControl(r rune) bool {
	return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) && r != '\n' && r != '\t'
}

func hasMember(value any, name string) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if key == name || hasMember(member, name) {
				return true
			}
		}
	case []any:
		for _, element := range v {
			if hasMember(element, name) {
				return true
			}
		}
	}
	return false
}

// Strings of users, drivers, vendors and files are nothing but values in the
// output of both roles.
func TestHostileStrings(t *testing.T) {
	formats := []expfmt.Format{expfmt.NewFormat(expfmt.TypeTextPlain), expfmt.NewFormat(expfmt.TypeProtoDelim)}
	for name, text := range hostileStrings() {
		t.Run(name, func(t *testing.T) {
			server, err := apiserver.Start(t.Context(), apiserver.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Stop)
			if err := server.Put(hostileObjects(text)...); err != nil {
				t.Fatal(err)
			}
			node, cluster := hostileNode(t, text, server), hostileCluster(t, server)
			eventually(t, node+"/metrics", "\ndra_claim_held{", "\ndra_claim_consumer_info{", "\ndra_device_utilization_ratio{")
			eventually(t, cluster+"/metrics", "\ndra_claim_pending_since_timestamp_seconds{")
			for _, address := range []string{node, cluster} {
				for _, format := range formats {
					if families := decoded(t, address, format); len(families) < 20 {
						t.Errorf("%s has %d families", format, len(families))
					}
				}
			}
			checkPages(t, node, "/api/v1/claims", "/api/v1/namespaces")
			checkPages(t, cluster, "/api/v1/pending")
			checkOpenMetrics(t, node)
			checkOpenMetrics(t, cluster)
		})
	}
}

// checkOpenMetrics reads the page line by line: no string breaks a line, each
// line is a comment or a series of a known family, and only the last line is
// the end.
func checkOpenMetrics(t *testing.T, address string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/metrics", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	response, err := http.DefaultClient.Do(request)
	for tries := 0; err == nil && response.StatusCode == http.StatusServiceUnavailable && tries < 60; tries++ {
		response.Body.Close() // earlier requests are in flight on a busy machine
		time.Sleep(time.Second)
		response, err = http.DefaultClient.Do(request)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body strings.Builder
	if err := response.Write(&body); err != nil {
		t.Fatal(err)
	}
	if strings.Count(body.String(), "\n# EOF") != 1 || strings.Contains(body.String(), "\n"+forged) {
		t.Errorf("a string has ended the page, or become a series:\n%.3000s", body.String())
	}
}

// Any log record is one line of its format, without control characters.
func TestHostileLogs(t *testing.T) {
	for _, format := range []string{"logfmt", "json"} {
		for name, text := range hostileStrings() {
			var out strings.Builder
			config := &promslog.Config{Writer: &out, Level: promslog.NewLevel(), Format: promslog.NewFormat()}
			if err := config.Format.Set(format); err != nil {
				t.Fatal(err)
			}
			(&webFlags{log: config}).logger().Warn("message "+text, "error", errors.New(text), "name", text)
			line, rest, _ := strings.Cut(out.String(), "\n")
			if at := strings.IndexFunc(line, isControl); at >= 0 || rest != "" {
				t.Errorf("%s, %s: %+.200q, and then %+.100q", format, name, line[max(at, 0):], rest)
			}
			if format == "json" {
				var fields map[string]string
				err := json.Unmarshal([]byte(line), &fields)
				whole, found := strings.CutSuffix(fields["name"], "…")
				if kept := whole == text || found && strings.HasPrefix(text, whole) && len(whole) > 10_000; err != nil || !kept && utf8.ValidString(text) {
					t.Errorf("%s: the name is %+.100q (%v)", name, fields["name"], err)
				}
			}
		}
	}
}
