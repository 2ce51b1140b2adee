package fit

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	simulated "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// fitTest is a simulated API server with nodes of four GPUs and 32 CPUs each.
type fitTest struct {
	testing.TB
	server *simulated.Server
	denied map[string]bool // resources that may not be listed
}

func newFitTest(t testing.TB, nodes ...string) *fitTest {
	f := &fitTest{TB: t, denied: map[string]bool{}}
	var err error
	f.server, err = simulated.Start(t.Context(), simulated.Options{Intercept: func(r simulated.Request) int {
		if f.denied[r.Resource] {
			return 403
		}
		return 0
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.server.Stop)
	class := &resourcev1.DeviceClass{}
	class.Name = "gpu"
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}}
	name := "example.com/gpu"
	class.Spec.ExtendedResourceName = &name
	f.put(class)
	for _, name := range nodes {
		f.put(node(name), gpus(name, 4))
	}
	return f
}

func (f *fitTest) put(objects ...simulated.Object) {
	f.Helper()
	if err := f.server.Put(objects...); err != nil {
		f.Fatal(err)
	}
}

func node(name string) *corev1.Node {
	n := &corev1.Node{}
	n.Name, n.Labels = name, map[string]string{"zone": name}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return n
}

func gpus(node string, count int) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{}
	slice.Name = "gpus-" + node
	slice.Spec = resourcev1.ResourceSliceSpec{Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}
	for i := range count {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i)})
	}
	return slice
}

// bound is a pod that takes something of a node.
func bound(name, node, cpu, memory string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "other", name
	pod.UID = "uid-of-other"
	pod.Spec.NodeName = node
	pod.Spec.Containers = []corev1.Container{{Name: "c"}}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return pod
}

func (f *fitTest) fit(manifest string) (*Report, error) {
	f.Helper()
	m, err := Decode(strings.NewReader(manifest))
	if err != nil {
		f.Fatal(err)
	}
	return f.fitManifest(m)
}

func (f *fitTest) fitManifest(m *Manifest) (*Report, error) {
	f.Helper()
	reader := clusterread.Reader{Config: f.server.Config(), Clock: clock.System(), Log: slog.New(slog.DiscardHandler), Stderr: io.Discard, Timeout: time.Minute}
	cluster, err := reader.Trial(f.Context(), "team")
	if err != nil {
		f.Fatal(err)
	}
	return Fit(f.Context(), cluster, m, Options{Namespace: "team", Explain: explain.Supposed})
}

// job is a manifest of a Job whose pods use two GPUs each.
func job(parallelism int, pod string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team}
spec:
  parallelism: %d
  template:
    spec:
      containers: [{name: c, resources: {requests: {cpu: "4", memory: 16Gi}, claims: [{name: gpus}]}}]
      resourceClaims: [{name: gpus, resourceClaimTemplateName: two}]
%s
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: two, namespace: team}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, count: 2}}]}}}
`, parallelism, pod)
}

// summary is what a test expects of a report.
func summary(r *Report) string {
	var parts []string
	for _, n := range r.Nodes {
		parts = append(parts, fmt.Sprintf("%s=%d", n.Node, n.Pods))
	}
	slices.Sort(parts)
	for _, o := range r.Obstacles {
		parts = append(parts, fmt.Sprintf("%s %s on %s: +%d", o.Kind, o.Detail, strings.Join(o.Nodes, ","), o.Pods))
	}
	if r.Next != nil {
		parts = append(parts, r.Next.Reason)
	}
	return fmt.Sprintf("%v %d: %s", r.Fits, r.Pods, strings.Join(parts, "; "))
}

func TestFit(t *testing.T) {
	cordoned := node("node-b")
	cordoned.Spec.Unschedulable = true
	tainted := node("node-b")
	tainted.Spec.Taints = []corev1.Taint{{Key: "team", Value: "other", Effect: corev1.TaintEffectNoSchedule}}
	unready := node("node-b")
	unready.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	full := node("node-b")
	full.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("1")
	both := cordoned.DeepCopy()
	both.Spec.Taints = tainted.Spec.Taints
	incomplete := gpus("node-b", 4)
	incomplete.Spec.Pool.ResourceSliceCount = 2
	for name, test := range map[string]struct {
		objects  []simulated.Object
		manifest string
		want     string
	}{
		"fits":              {nil, job(3, ""), "true 4: node-a=2; node-b=2; insufficient_devices"},
		"does not fit":      {nil, job(5, ""), "false 4: node-a=2; node-b=2; insufficient_devices"},
		"cordoned":          {[]simulated.Object{cordoned}, job(3, ""), "false 2: node-a=2; cordoned cordoned on node-b: +2"},
		"not ready":         {[]simulated.Object{unready}, job(1, ""), "true 2: node-a=2; not_ready not ready on node-b: +2"},
		"tainted":           {[]simulated.Object{tainted}, job(3, ""), "false 2: node-a=2; taint team=other:NoSchedule on node-b: +2"},
		"tolerated":         {[]simulated.Object{tainted}, job(3, "      tolerations: [{key: team, operator: Exists}]"), "true 4: node-a=2; node-b=2; insufficient_devices"},
		"cordoned, tainted": {[]simulated.Object{both}, job(3, ""), "false 2: node-a=2; several cordoned and team=other:NoSchedule on node-b: +2"},
		"node selector":     {nil, job(3, "      nodeSelector: {zone: node-a}"), "false 2: node-a=2; affinity node selector or affinity of the pod on node-b: +2"},
		"CPU":               {[]simulated.Object{bound("busy", "node-b", "26", "1Gi")}, job(4, ""), "false 3: node-a=2; node-b=1; cpu  on node-b: +1"},
		"no number":         {nil, strings.Replace(job(4, ""), "16Gi", "1e19", 1), "false 0: memory  on node-a,node-b: +4"},
		"beyond computing":  {nil, strings.Replace(job(4, ""), "16Gi", "1e2147483647", 1), "false 0: memory  on node-a,node-b: +4"},
		"a node's pods":     {[]simulated.Object{bound("busy", "node-b", "1", "1e2147483647")}, job(4, ""), "false 2: node-a=2; memory  on node-b: +2"},
		"memory":            {[]simulated.Object{bound("busy", "node-b", "1", "120Gi")}, job(4, ""), "false 2: node-a=2; memory  on node-b: +2"},
		"pods":              {[]simulated.Object{full, bound("busy", "node-b", "1", "1Gi")}, job(4, ""), "false 2: node-a=2; pods  on node-b: +2"},
		"incomplete pool":   {[]simulated.Object{incomplete}, job(4, ""), "false 2: node-a=2; pool_incomplete"},
		"no pool":           {[]simulated.Object{gpus("node-a", 1), gpus("node-b", 1)}, job(1, ""), "false 0: fragmented"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFitTest(t, "node-a", "node-b")
			f.put(test.objects...)
			report, err := f.fit(test.manifest)
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(report); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
			if text := report.Text(); len(report.Help()) == 0 || !strings.Contains(text, "Would help:") || strings.Contains(text, "fit-train") {
				t.Errorf("the report does not say what would help, or names what does not exist:\n%s", text)
			}
		})
	}
}

func TestFitSharedAndAllocatedClaims(t *testing.T) {
	claim := func(name string) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{}
		c.Namespace, c.Name, c.UID = "team", name, "uid-of-claim"
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", AllocationMode: "ExactCount", Count: 2}}}
		return c
	}
	allocated := claim("allocated")
	allocated.Status.Allocation = &resourcev1.AllocationResult{
		Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpus", Driver: "gpu.example.com", Pool: "node-b", Device: "gpu-0"}}},
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-b"}}},
		}}},
	}
	manifest := func(claims string) string {
		return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"serve"},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"c"}],"resourceClaims":[%s]}}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
`, claims)
	}
	for name, test := range map[string]struct{ claims, want string }{
		"a claim that all share":            {`{"name":"gpus","resourceClaimName":"shared"}`, "true 110: node-a=110; pods  on node-a: +146"},
		"a shared claim and one for each":   {`{"name":"gpus","resourceClaimName":"shared"},{"name":"own","resourceClaimTemplateName":"one"}`, "true 2: node-a=2; fragmented"},
		"allocated, and one for each":       {`{"name":"gpus","resourceClaimName":"allocated"},{"name":"own","resourceClaimTemplateName":"one"}`, "true 3: node-b=3; allocated where the pod's other claims are allocated on node-a: +4"},
		"two claims for each, of one class": {`{"name":"a","resourceClaimTemplateName":"one"},{"name":"b","resourceClaimTemplateName":"one"}`, "true 3: node-a=2; node-b=1; insufficient_devices"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFitTest(t, "node-a", "node-b")
			f.put(claim("shared"), allocated)
			report, err := f.fit(manifest(test.claims))
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(report); got != test.want {
				t.Errorf("%s\nwant %s\n%s", got, test.want, report.Text())
			}
		})
	}
}

// Requests of an extended resource are those for devices of its class, but on nodes where
// a device plugin offers it.
func TestFitExtendedResource(t *testing.T) {
	pod := func(limits, more string) string {
		return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"team"},"spec":{"containers":[{"name":"c","resources":{"limits":{` + limits + `}}}]` + more + `}}`
	}
	plugin := node("node-b")
	plugin.Status.Allocatable["example.com/gpu"] = resource.MustParse("6")
	user := bound("busy", "node-b", "1", "1Gi")
	user.Spec.Containers[0].Resources.Requests["example.com/gpu"] = resource.MustParse("2")
	init := `,"initContainers":[{"name":"i","resources":{"limits":{"example.com/gpu":3}}}]`
	sidecar := `,"initContainers":[{"name":"i","restartPolicy":"Always","resources":{"limits":{"example.com/gpu":2}}}]`
	for name, test := range map[string]struct {
		objects  []simulated.Object
		manifest string
		want     string
	}{
		"devices":                 {nil, pod(`"example.com/gpu":3`, ""), "true 2: node-a=1; node-b=1; insufficient_devices"},
		"the name of a class":     {nil, pod(`"deviceclass.resource.kubernetes.io/gpu":2`, ""), "true 4: node-a=2; node-b=2; insufficient_devices"},
		"the name of no class":    {nil, pod(`"deviceclass.resource.kubernetes.io/x":1`, ""), "false 0: no_resource deviceclass.resource.kubernetes.io/x on node-a,node-b: +220"},
		"devices, and a plugin":   {[]simulated.Object{plugin}, pod(`"example.com/gpu":3`, ""), "true 3: node-a=1; node-b=2; resource example.com/gpu on node-b: +108"},
		"a plugin's, in use":      {[]simulated.Object{plugin, user}, pod(`"example.com/gpu":4`, ""), "true 2: node-a=1; node-b=1; resource example.com/gpu on node-b: +108"},
		"an init container":       {nil, pod(`"example.com/gpu":2`, init), "true 2: node-a=1; node-b=1; insufficient_devices"},
		"a sidecar":               {nil, pod(`"example.com/gpu":2`, sidecar), "true 2: node-a=1; node-b=1; insufficient_devices"},
		"and what nobody offers":  {nil, pod(`"example.com/gpu":3,"plugin.example.com/nic":1`, ""), "false 0: no_resource plugin.example.com/nic on node-a,node-b: +2"},
		"only what nobody offers": {nil, pod(`"plugin.example.com/nic":1`, ""), "false 0: no_resource plugin.example.com/nic on node-a,node-b: +220"},
		"more than can be":        {nil, pod(`"example.com/gpu":9223372036854775807`, ""), "false 0: insufficient_devices"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFitTest(t, "node-a", "node-b")
			f.put(test.objects...)
			report, err := f.fit(test.manifest)
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(report); got != test.want || !report.Exact || !report.IsKnown() {
				t.Errorf("%s\nwant %s\n%+v\n%s", got, test.want, report, report.Text())
			}
		})
	}
}

// What a device plugin or the kubelet offers is counted as CPU and memory are.
func TestFitOtherResources(t *testing.T) {
	offer := func(name string) *corev1.Node {
		n := node(name)
		n.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("4")
		n.Status.Allocatable[corev1.ResourceEphemeralStorage] = resource.MustParse("100Gi")
		n.Status.Allocatable["hugepages-2Mi"] = resource.MustParse("1Gi")
		return n
	}
	user := bound("busy", "node-a", "1", "1Gi")
	user.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("3")
	user.Spec.Containers[0].Resources.Requests[corev1.ResourceEphemeralStorage] = resource.MustParse("95Gi")
	ended := user.DeepCopy()
	ended.Name, ended.Status.Phase = "ended", corev1.PodSucceeded
	for name, test := range map[string]struct{ limits, more, want string }{
		"as many as nodes have":    {`nvidia.com/gpu: 4`, "", "false 1: node-b=1; resource nvidia.com/gpu on node-a,node-b: +218"},
		"more than a node has":     {`nvidia.com/gpu: 8`, "", "false 0: resource nvidia.com/gpu on node-a,node-b: +219"},
		"what nobody offers":       {`nvidia.com/gpu: 1, amd.com/gpu: 1`, "", "false 0: no_resource amd.com/gpu on node-a,node-b: +5"},
		"storage":                  {`nvidia.com/gpu: 1, ephemeral-storage: 10Gi`, "", "true 4: node-b=4; resource nvidia.com/gpu on node-b: +6; resource ephemeral-storage on node-a: +1"},
		"huge pages":               {`nvidia.com/gpu: 1, hugepages-2Mi: 512Mi`, "", "true 3: node-a=1; node-b=2; resource hugepages-2Mi on node-b: +2; resource nvidia.com/gpu on node-a: +1"},
		"CPU of a limit":           {`nvidia.com/gpu: 1, cpu: 30`, "", "true 2: node-a=1; node-b=1; several too little CPU and too little nvidia.com/gpu on node-a: +108; cpu  on node-b: +3"},
		"of an init container":     {`nvidia.com/gpu: 1`, `initContainers: [{name: i, resources: {limits: {nvidia.com/gpu: 3}}}]`, "false 1: node-b=1; resource nvidia.com/gpu on node-a,node-b: +218"},
		"and of a sidecar":         {`nvidia.com/gpu: 1`, `initContainers: [{name: i, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 1}}}]`, "true 2: node-b=2; resource nvidia.com/gpu on node-a,node-b: +217"},
		"an overhead":              {`nvidia.com/gpu: 1`, `overhead: {memory: 100Gi}`, "true 2: node-a=1; node-b=1; several too little memory and too little nvidia.com/gpu on node-a: +108; memory  on node-b: +3"},
		"of the pod as a whole":    {`nvidia.com/gpu: 1`, `resources: {limits: {memory: 100Gi}}`, "true 2: node-a=1; node-b=1; several too little memory and too little nvidia.com/gpu on node-a: +108; memory  on node-b: +3"},
		"more than can be counted": {`nvidia.com/gpu: 9223372036854775807`, `initContainers: [{name: i, restartPolicy: Always, resources: {limits: {nvidia.com/gpu: 9223372036854775807, memory: 9000000000E}}}]`, "false 0: several too little memory and too little nvidia.com/gpu on node-a,node-b: +219"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFitTest(t)
			f.put(offer("node-a"), offer("node-b"), user, ended)
			report, err := f.fit(fmt.Sprintf(`{kind: Job, metadata: {name: train}, spec: {parallelism: 2, template: {spec: {%s, containers: [{name: c, resources: {limits: {%s}}}]}}}}`, cmp.Or(test.more, "hostIPC: false"), test.limits))
			if err != nil {
				t.Fatal(err)
			}
			if got := summary(report); got != test.want || !report.Exact || !report.IsKnown() {
				t.Errorf("%s\nwant %s\n%s", got, test.want, report.Text())
			}
		})
	}
}

// TestFitAgreesWithTheFilter compares with the scheduler's filter of resources
// (noderesources, fitsRequest), which binds one pod after the other, on random nodes.
func TestFitAgreesWithTheFilter(t *testing.T) {
	names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "hugepages-2Mi", "nvidia.com/gpu", "example.com/nic"}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		amounts := func(most int64, some int) corev1.ResourceList {
			list := corev1.ResourceList{}
			for _, name := range names {
				if random.IntN(some) == 0 {
					list[name] = *resource.NewQuantity(random.Int64N(most), resource.DecimalSI)
				}
			}
			return list
		}
		f := newFitTest(t)
		pod := corev1.Pod{}
		pod.Spec.Containers = []corev1.Container{{Name: "c"}}
		pod.Spec.Containers[0].Resources.Requests = amounts(5, 2)
		pod.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("1")
		want := 0
		for i := range 3 {
			n := node(fmt.Sprintf("node-%d", i))
			n.Status.Allocatable = amounts(30, 1)
			n.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(random.Int64N(20), resource.DecimalSI)
			used, left := bound(fmt.Sprintf("busy-%d", i), n.Name, "0", "0"), n.Status.Allocatable.DeepCopy()
			used.Spec.Containers[0].Resources.Requests = amounts(10, 2)
			f.put(n, used)
			take := func(requests corev1.ResourceList) (fits bool) {
				fits = true
				for name, amount := range requests {
					rest := left[name]
					rest.Sub(amount)
					fits = fits && (amount.IsZero() || rest.Sign() >= 0)
					left[name] = rest
				}
				rest := left[corev1.ResourcePods]
				rest.Sub(resource.MustParse("1"))
				left[corev1.ResourcePods] = rest
				return fits && rest.Sign() >= 0
			}
			for take(used.Spec.Containers[0].Resources.Requests); take(pod.Spec.Containers[0].Resources.Requests); {
				want++
			}
		}
		m := &Manifest{Kind: "Pod", Name: "p", Count: 5, Pod: corev1.PodTemplateSpec{Spec: pod.Spec}}
		report, err := f.fitManifest(m)
		if err != nil || report.Pods != want || report.Fits != (want >= 5) || !report.IsKnown() {
			t.Errorf("seed %d: %v, %+v, want %d pods", seed, err, report, want)
		}
	}
}

// What is not looked at leaves no certain yes.
func TestFitNotConsidered(t *testing.T) {
	term := `requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, labelSelector: {matchLabels: {a: b}}}]`
	soft := `preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: zone}}]`
	for name, test := range map[string]struct{ pod, want string }{
		"near pods":               {`affinity: {podAffinity: {` + term + `}}`, "affinity to pods"},
		"far from pods":           {`affinity: {podAntiAffinity: {` + term + `}}`, "affinity to pods"},
		"rather near pods":        {`affinity: {podAffinity: {` + soft + `}, podAntiAffinity: {` + soft + `}}`, ""},
		"spread":                  {`topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]`, "topologySpreadConstraints"},
		"rather spread":           {`topologySpreadConstraints: [{topologyKey: zone, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]`, ""},
		"a volume claim":          {`volumes: [{name: v, persistentVolumeClaim: {claimName: v}}]`, "volumes"},
		"an ephemeral volume":     {`volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {}}}}]`, "volumes"},
		"a CSI volume":            {`volumes: [{name: v, csi: {driver: d}}]`, "volumes"},
		"a disk":                  {`volumes: [{name: v, awsElasticBlockStore: {volumeID: v}}]`, "volumes"},
		"files":                   {`volumes: [{name: a, emptyDir: {}}, {name: b, configMap: {name: c}}, {name: c, secret: {secretName: s}}, {name: d, projected: {sources: []}}, {name: e, downwardAPI: {}}, {name: f, hostPath: {path: /}}]`, ""},
		"a gate":                  {`schedulingGates: [{name: example.com/gate}]`, "scheduling gates"},
		"another scheduler":       {`schedulerName: volcano`, "scheduler volcano"},
		"the scheduler":           {`schedulerName: default-scheduler`, ""},
		"a runtime class":         {`runtimeClassName: kata`, "runtime class kata"},
		"a group":                 {`schedulingGroup: {podGroupName: g}`, "scheduling group"},
		"the network of the node": {`hostNetwork: true`, "host ports"},
		"a feature":               {`hostNetwork: true, hostUsers: false`, "host ports, feature UserNamespacesHostNetworkSupport of nodes"},
		"others":                  {`priorityClassName: high, hostPID: true, tolerations: [], nodeSelector: {zone: node-a}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFitTest(t, "node-a")
			report, err := f.fit(`{kind: Job, metadata: {name: train, namespace: team}, spec: {parallelism: 2, template: {spec: {` + test.pod + `,
  containers: [{name: c, ports: [{containerPort: 80}]}], resourceClaims: [{name: gpus, resourceClaimTemplateName: two}]}}}}
---
{kind: ResourceClaimTemplate, metadata: {name: two}, spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu, count: 2}}]}}}}
`)
			if err != nil {
				t.Fatal(err)
			}
			want := "fits: 2 of 2 pods could run now, 2 in all"
			if test.want != "" {
				want = "may fit: 2 of 2 pods could run now, at most 2 in all"
			}
			if got := strings.Join(report.NotConsidered, ", "); got != test.want || report.IsKnown() != (test.want == "") || !strings.Contains(report.Text(), want) {
				t.Errorf("not considered: %s\nwant %s\n%s", got, test.want, report.Text())
			}
		})
	}
}

// The required anti-affinity of a pod that runs may keep the pods from its node.
func TestFitAntiAffinityOfOthers(t *testing.T) {
	for name, test := range map[string]struct {
		term corev1.PodAffinityTerm
		want bool
	}{
		"of these labels":         {corev1.PodAffinityTerm{Namespaces: []string{"team"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}}, false},
		"of other labels":         {corev1.PodAffinityTerm{Namespaces: []string{"team"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "serve"}}}, true},
		"of its own namespace":    {corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}}, true},
		"of all namespaces":       {corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}}, false},
		"of no pod":               {corev1.PodAffinityTerm{Namespaces: []string{"team"}}, true},
		"of a selector like none": {corev1.PodAffinityTerm{Namespaces: []string{"team"}, LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "x"}}}}, true},
	} {
		f := newFitTest(t, "node-a")
		other := bound("other", "node-a", "1", "1Gi")
		test.term.TopologyKey = "zone"
		other.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{test.term}}}
		f.put(other)
		report, err := f.fit(strings.Replace(job(1, ""), "    spec:", "    metadata: {labels: {app: train}}\n    spec:", 1))
		if err != nil || report.IsKnown() != test.want || test.want != (len(report.NotConsidered) == 0) {
			t.Errorf("%s: %v, %+v", name, err, report)
		}
	}
}

// What else a manifest may have that is no certain yes.
func TestFitDoubtfulManifests(t *testing.T) {
	pod := `{spec: {containers: [{name: c}], resourceClaims: [{name: g, resourceClaimTemplateName: one}]}}`
	shared := `{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}], resourceClaims: [{name: g, resourceClaimName: one}]}}`
	request := func(more string) string {
		return `{devices: {requests: [{name: g, exactly: {deviceClassName: gpu, ` + more + `}}]}}`
	}
	template := func(namespace, more string) string {
		return "\n---\n{kind: ResourceClaimTemplate, metadata: {name: one, namespace: " + namespace + "}, spec: {spec: " + request(more) + "}}\n"
	}
	reserved := &resourcev1.ResourceClaim{}
	reserved.Namespace, reserved.Name, reserved.UID = "team", "one", "uid-of-claim"
	reserved.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "g", Driver: "gpu.example.com", Pool: "node-a", Device: "gpu-0"}}}}
	for i := range 254 {
		reserved.Status.ReservedFor = append(reserved.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: fmt.Sprint(i)})
	}
	for name, test := range map[string]struct {
		objects        []simulated.Object
		manifest, want string
	}{
		"volumes of a StatefulSet":    {nil, `{kind: StatefulSet, metadata: {name: s}, spec: {volumeClaimTemplates: [{}], template: ` + pod + `}}` + template("team", "count: 1"), "may fit: 1 of 1 pod could run now, at most 4 in all"},
		"pods without claims":         {nil, `{kind: LeaderWorkerSet, metadata: {name: l}, spec: {leaderWorkerTemplate: {size: 2, leaderTemplate: {spec: {containers: [{name: c}]}}, workerTemplate: ` + pod + `}}}` + template("team", "count: 1"), "may fit: 1 of 1 pod could run now, at most 4 in all"},
		"one topology for each job":   {nil, `{kind: JobSet, metadata: {name: j, annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}, spec: {replicatedJobs: [{template: {spec: {template: ` + pod + `}}}]}}` + template("team", "count: 1"), "may fit: 1 of 1 pod could run now, at most 4 in all"},
		"a DaemonSet":                 {nil, `{kind: DaemonSet, metadata: {name: d}, spec: {template: ` + pod + `}}`, "document 1 of the manifest: a DaemonSet runs one pod on each of its nodes"},
		"a template elsewhere":        {nil, `{kind: Job, metadata: {name: j}, spec: {template: ` + pod + `}}` + template("other", "count: 1"), "ResourceClaimTemplate one is neither in the manifest nor in namespace team of the cluster"},
		"less than no devices":        {nil, `{kind: Job, metadata: {name: j}, spec: {template: ` + pod + `}}` + template("team", "count: -1"), "ResourceClaimTemplate one: request g: it requests -1 devices"},
		"more devices than there are": {nil, `{kind: Job, metadata: {name: j}, spec: {template: ` + pod + `}}` + template("team", "count: 9223372036854775807"), "does not fit: 0 of 1 pod could run now, 0 in all"},
		"less than no CPU":            {nil, `{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: {limits: {cpu: -1}}}], resourceClaims: [{name: g, resourceClaimTemplateName: one}]}}` + template("team", "count: 1"), "container c: it requests -1 of cpu"},
		"admin access":                {nil, `{kind: Pod, metadata: {name: p}, ` + pod[1:] + template("team", "adminAccess: true"), "fits: 1 of 1 pod could run now, 110 in all"},
		"admin access to nothing":     {nil, `{kind: Pod, metadata: {name: p}, ` + pod[1:] + template("team", "adminAccess: true, count: 5"), "does not fit: 0 of 1 pod could run now, 0 in all"},
		"an affinity like none":       {nil, `{kind: Pod, metadata: {name: p}, spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: zone, operator: x}]}]}}}, ` + pod[len(`{spec: {`):] + template("team", "count: 1"), "does not fit: 0 of 1 pod could run now, 0 in all"},
		"a claim that is allocated":   {[]simulated.Object{reserved}, strings.Replace(shared, "kind: Pod, metadata: {name: p}, spec: {", "kind: Deployment, metadata: {name: d}, spec: {replicas: 3, template: {spec: {", 1) + "}}\n---\n{kind: ResourceClaim, metadata: {name: one}, spec: " + request("count: 1") + "}\n", "does not fit: 2 of 3 pods could run now, 2 in all"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFitTest(t, "node-a")
			f.put(test.objects...)
			got := ""
			m, err := Decode(strings.NewReader(test.manifest))
			if err == nil {
				var report *Report
				if report, err = f.fitManifest(m); err == nil {
					got = report.Text()
				}
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// Slices can name nodes that do not exist: no pod runs there.
func TestFitOnNodesThatDoNotExist(t *testing.T) {
	f := newFitTest(t)
	f.put(gpus("node-a", 4))
	report, err := f.fit(job(1, ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(report); got != "false 0: absent does not exist on node-a: +2" || !report.IsKnown() {
		t.Errorf("%s\n%s", got, report.Text())
	}
}

// Every field of a pod is counted, listed as not considered, or nothing to the scheduler.
func TestFieldsOfPods(t *testing.T) {
	known := map[string]string{
		"counted": "Affinity Containers InitContainers NodeName NodeSelector Overhead ResourceClaims Resources Tolerations",
		"listed":  "Affinity HostNetwork HostUsers RuntimeClassName SchedulerName SchedulingGates SchedulingGroup TopologySpreadConstraints Volumes",
		"nothing": "ActiveDeadlineSeconds AutomountServiceAccountToken DNSConfig DNSPolicy DeprecatedServiceAccount EnableServiceLinks EphemeralContainers EvictionResponders " +
			"HostAliases HostIPC HostPID Hostname HostnameOverride ImagePullSecrets OS PreemptionPolicy Priority PriorityClassName ReadinessGates RestartPolicy " +
			"SecurityContext ServiceAccountName SetHostnameAsFQDN ShareProcessNamespace Subdomain TerminationGracePeriodSeconds",
	}
	all := strings.Fields(known["counted"] + " " + known["listed"] + " " + known["nothing"])
	for _, field := range reflect.VisibleFields(reflect.TypeFor[corev1.PodSpec]()) {
		if !slices.Contains(all, field.Name) {
			t.Errorf("what is PodSpec.%s to the scheduler?", field.Name)
		}
	}
}

// Without permissions nothing is claimed that is not known.
func TestFitWithoutPermissions(t *testing.T) {
	for denied, want := range map[string]string{
		"resourceslices": "what can be allocated is not known: resourceslices: ",
		"deviceclasses":  "what can be allocated is not known: deviceclasses: ",
		"nodes":          "true 4: node-a=2; node-b=2; insufficient_devices",
		"pods":           "true 4: node-a=2; node-b=2",
	} {
		t.Run(denied, func(t *testing.T) {
			f := newFitTest(t, "node-a", "node-b")
			f.denied[denied] = true
			report, err := f.fit(job(3, ""))
			if err != nil {
				if !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%v, want %s", err, want)
				}
				return
			}
			if report.IsKnown() || !strings.Contains(report.Text(), "may fit: 3 of 3 pods could run now, at most 4 in all") {
				t.Errorf("without %s it is not certain that all fit:\n%s", denied, report.Text())
			}
			if got := summary(report); got != want || !strings.Contains(report.Text(), "not read       "+denied) {
				t.Errorf("%s, want %s\n%s", got, want, report.Text())
			}
		})
	}
}

func TestDecodeManifests(t *testing.T) {
	pod := `{spec: {containers: [{name: c}], resourceClaims: [{name: g, resourceClaimTemplateName: t}]}}`
	for name, test := range map[string]struct{ manifest, want string }{
		"pod":                  {`{kind: Pod, metadata: {name: p}, ` + pod[1:], "Pod p: 1"},
		"job of completions":   {`{kind: Job, metadata: {name: j}, spec: {parallelism: 8, completions: 3, template: ` + pod + `}}`, "Job j: 3"},
		"generated name":       {`{kind: Job, metadata: {generateName: j-}, spec: {template: ` + pod + `}}`, "Job j: 1"},
		"deployment":           {`{kind: Deployment, metadata: {name: d}, spec: {replicas: 5, template: ` + pod + `}}`, "Deployment d: 5"},
		"cron job":             {`{kind: CronJob, metadata: {name: c}, spec: {jobTemplate: {spec: {parallelism: 2, template: ` + pod + `}}}}`, "CronJob c: 2"},
		"JobSet":               {`{kind: JobSet, metadata: {name: s}, spec: {replicatedJobs: [{name: w, replicas: 3, template: {spec: {parallelism: 2, template: ` + pod + `}}}]}}`, "JobSet s: 6"},
		"JobSet with a driver": {`{kind: JobSet, metadata: {name: s}, spec: {replicatedJobs: [{name: d, template: {spec: {template: {spec: {containers: [{name: c}]}}}}}, {name: w, template: {spec: {parallelism: 4, template: ` + pod + `}}}]}}`, "JobSet s: 4"},
		"LeaderWorkerSet":      {`{kind: LeaderWorkerSet, metadata: {name: l}, spec: {replicas: 2, leaderWorkerTemplate: {size: 4, workerTemplate: ` + pod + `}}}`, "LeaderWorkerSet l: 8"},
		"equal leader":         {`{kind: LeaderWorkerSet, metadata: {name: l}, spec: {replicas: 2, leaderWorkerTemplate: {size: 4, leaderTemplate: ` + pod + `, workerTemplate: ` + pod + `}}}`, "LeaderWorkerSet l: 8"},
		"list":                 {`{kind: List, items: [{kind: Service, metadata: {name: s}}, {kind: Pod, metadata: {name: p}, ` + pod[1:] + `]}`, "Pod p: 1"},
		"comments":             {"# nothing\n---\n# a pod\n{kind: Pod, metadata: {name: p}, " + pod[1:] + "\n---\n", "Pod p: 1"},
		"empty":                {"", "the manifest is empty: it needs a Pod, a Job or another object that makes pods"},
		"no pods":              {"{kind: Service, metadata: {name: s}}", "the manifest has no pod and nothing that makes pods: it has Service"},
		"no kind":              {"{spec: {}}", "document 1 of the manifest: it has no kind: it is no Kubernetes object"},
		"no claims":            {`{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}]}}`, "document 1 of the manifest: the pods of Pod p use no claims"},
		"two":                  {"{kind: Pod, metadata: {name: a}, " + pod[1:] + "\n---\n{kind: Pod, metadata: {name: b}, " + pod[1:], "document 2 of the manifest: Pod b: the manifest has pods of Pod a already, and one kind of pods can be looked at"},
		"a few aliases":        {"{kind: Pod, metadata: {name: &p p, labels: {app: *p}}, " + pod[1:], "Pod p: 1"},
		"many values":          {"x: [" + strings.Repeat("y,", 250_000) + "]\n", "the manifest: it has more than 250000 values"},
		"a wrong type":         {"{kind: Pod, metadata: {name: 7}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Decode(strings.NewReader(test.manifest))
			got := ""
			switch {
			case err != nil:
				got = err.Error()
			default:
				got = fmt.Sprintf("%s %s: %d", m.Kind, m.Name, m.Count)
			}
			if test.want == "" && err == nil || test.want != "" && got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// A manifest that describes more than it says, or nonsense, is refused, in little time
// and memory.
func TestDecodeAbsurdManifests(t *testing.T) {
	nested := func(lists int) string {
		return strings.Repeat(`{"kind":"List","items":[`, lists) + `{"kind":"Service"}` + strings.Repeat(`]}`, lists)
	}
	aliases := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		aliases += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), i-1)
	}
	long := "a: &a " + strings.Repeat("x", 300_000) + "\nkind: Pod\nall: [" + strings.Repeat("*a,", 1000) + "*a]\n"
	for name, test := range map[string]struct{ manifest, want string }{
		"aliases of aliases":  {"kind: Pod\n" + aliases, "the manifest: its aliases stand for more than 250000 values"},
		"aliases of a text":   {long, "the manifest: its aliases stand for more than 16777216 bytes"},
		"an alias of itself":  {"kind: Pod\na: &a [*a]\n", "the manifest: line 2: an alias stands for itself"},
		"lists in lists":      {nested(6), "document 1 of the manifest: it has Lists in more than 4 Lists"},
		"many lists in lists": {nested(50_000), "the manifest: it has more than 250000 values"},
		"deep values":         {"kind: Pod\nspec: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000), "document 1 of the manifest: "},
		"many objects":        {"kind: List\nitems:\n" + strings.Repeat("- {kind: Service}\n", maxObjects), "document 1 of the manifest: the manifest has more than 10000 objects"},
		"many documents":      {strings.Repeat("kind: Service\n---\n", maxObjects+1), "document 10001 of the manifest: the manifest has more than 10000 objects"},
		"many bytes":          {strings.Repeat("#", maxManifest+1), "the manifest has more than 4194304 bytes"},
		"many kinds":          {strings.Repeat("kind: Service\n---\n", 20), "the manifest has no pod and nothing that makes pods: it has Service" + strings.Repeat(", Service", mostIgnored-1)},
		"no UTF-8":            {"kind: \"\xff\"", "document 1 of the manifest: yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decode(strings.NewReader(test.manifest)); err == nil || !strings.HasPrefix(err.Error(), test.want) || len(err.Error()) > 300 {
				t.Errorf("%.300v\nwant %s", err, test.want)
			}
		})
	}
}

// Counts are not negative, however large their parts are.
func TestCountsOfAbsurdManifests(t *testing.T) {
	const most = "2147483647"
	pod := `{spec: {containers: [{name: c}], resourceClaims: [{name: g, resourceClaimTemplateName: t}]}}`
	job := `{replicas: ` + most + `, template: {spec: {parallelism: ` + most + `, template: ` + pod + `}}}`
	for name, test := range map[string]struct {
		manifest string
		want     int
	}{
		"JobSet":          {`{kind: JobSet, metadata: {name: s}, spec: {replicatedJobs: [` + job + `, ` + job + `, ` + job + `]}}`, math.MaxInt},
		"LeaderWorkerSet": {`{kind: LeaderWorkerSet, metadata: {name: l}, spec: {replicas: ` + most + `, leaderWorkerTemplate: {size: ` + most + `, workerTemplate: ` + pod + `}}}`, math.MaxInt32 * math.MaxInt32},
		"negative":        {`{kind: JobSet, metadata: {name: s}, spec: {replicatedJobs: [{replicas: -2, template: {spec: {parallelism: -3, template: ` + pod + `}}}]}}`, 1},
		"none":            {`{kind: Deployment, metadata: {name: s}, spec: {replicas: 0, template: ` + pod + `}}`, 1},
	} {
		m, err := Decode(strings.NewReader(test.manifest))
		if err != nil || m.Count != test.want {
			t.Errorf("%s: %+v, %v, want %d", name, m, err, test.want)
		}
	}
}

// Without a device there is no node for a claim that pods share.
func TestFitSharedClaimWithoutDevices(t *testing.T) {
	f := newFitTest(t)
	report, err := f.fit(`{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c}], resourceClaims: [{name: g, resourceClaimName: shared}]}}
---
{kind: ResourceClaim, metadata: {name: shared}, spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu}}]}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(report); got != "false 0: no_matching_device" {
		t.Errorf("%s\n%s", got, report.Text())
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(job(2, ""))
	f.Add("{kind: List, items: [{kind: JobSet, spec: {replicatedJobs: [{}]}}]}")
	f.Add("{kind: LeaderWorkerSet, spec: {replicas: 2147483647, leaderWorkerTemplate: {size: -2147483648, workerTemplate: {spec: {containers: [{resources: {limits: {a/b: 9E}}}]}}}}}")
	f.Add("a: &a [*a]\nkind: \"x\\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Decode(strings.NewReader(text))
		if err != nil {
			return
		}
		if m.Count < 1 || strings.ContainsAny(m.Kind+m.Namespace+m.Name, "\n\r\x1b") {
			t.Errorf("%+v", m)
		}
		p, err := m.resolve(inventory.New(), "team")
		if err == nil && (p.cpu < 0 || p.memory < 0 || slices.ContainsFunc(p.others, func(a dra.Amount) bool { return a.Units <= 0 })) {
			t.Errorf("%+v", p)
		}
	})
}
