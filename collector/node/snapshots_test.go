package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/cdi"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	demo "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/kubelet"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

const (
	moments      = "../../test/fakes/fixtures/moments"
	snapshotNode = "node-a"
)

// TestSnapshots steps what was captured on a real node: its objects go through an
// API server and the agent's client, its PodResources through the decoder. The
// result is compared with golden files, and with the devices that the container
// runtime really gave to each container. A sequence shares a state. The quick tests
// run some of the sequences.
func TestSnapshots(t *testing.T) {
	sequences := [][]string{
		{"00-baseline"}, {"01-round1"},
		{"02-driver-down-allocated-not-prepared", "03-driver-down-slices-wiped"},
		{"06a-init-running", "06b-init-done", "06c-pod-succeeded"},
		{"07a-example-drivers-binding-pending"}, {"07b-example-drivers-all"},
		{"09a-taintrule-none"}, {"09b-taintrule-noexecute"},
		{"10a-before-kubelet-restart", "10b-after-kubelet-restart"},
		{"13-sixty-pods-one-nic"},
	}
	if testing.Short() {
		sequences = sequences[:3]
	}
	for _, sequence := range sequences {
		t.Run(strings.Join(sequence, ","), func(t *testing.T) {
			t.Parallel()
			state := node.NewState(node.Config{Node: snapshotNode, Interval: time.Second, Grace: time.Minute})
			now := clock.Instant{Wall: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), Elapsed: time.Hour}
			for _, name := range sequence {
				m := readSnapshot(t, name)
				now = now.Add(10 * time.Minute)
				var snapshot node.Snapshot
				state, snapshot, _ = node.Step(state, m.facts(now), now)
				metrictest.CompareGolden(t, filepath.Join("testdata", "snapshot_"+name+".txt"), held(t, snapshot.Rows()))
				m.compareWithTruth(snapshot.Rows())
			}
		})
	}
}

// held returns the rows about holds, as exposition text.
func held(t *testing.T, rows []metric.Row) string {
	var lines []string
	families := regexp.MustCompile(`^dra_(claim_(held|info|device_info|consumer_info)|exporter_unmatched_devices)\{`)
	for line := range strings.Lines(metrictest.Text(t, metric.NewPage(rows))) {
		if families.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// A snapshot is the captured node at one time.
type snapshot struct {
	t       *testing.T
	name    string
	pods    []corev1.Pod
	claims  []resourcev1.ResourceClaim
	slices  []resourcev1.ResourceSlice
	listing dra.PodResources
}

func readSnapshot(t *testing.T, name string) *snapshot {
	m := &snapshot{t: t, name: name}
	m.pods = items[corev1.Pod](t, m.path("pods.yaml"))
	m.claims = items[resourcev1.ResourceClaim](t, m.path("resourceclaims.yaml"))
	m.slices = items[resourcev1.ResourceSlice](t, m.path("resourceslices.yaml"))
	var answer podresourcesv1.ListPodResourcesResponse
	if err := protojson.Unmarshal(read(t, m.path("podresources.json")), &answer); err != nil {
		t.Fatalf("decode the answer of the kubelet: %v", err)
	}
	m.listing = kubelet.Decode(&answer)
	return m
}

func (m *snapshot) path(file string) string { return filepath.Join(moments, m.name, file) }

// items reads a list of objects; no file is an empty list.
func items[T any](t *testing.T, path string) []T {
	t.Helper()
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return nil
	}
	var list struct{ Items []T }
	if err := yaml.Unmarshal(read(t, path), &list); err != nil {
		t.Fatalf("decode %s: %v", path, err)
	}
	return list.Items
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// facts are what the agent's own clients read of the snapshot.
func (m *snapshot) facts(now clock.Instant) node.Facts {
	m.t.Helper()
	known := m.readCluster()
	facts := node.Facts{
		Listing: m.listing, ListedAt: now, CDI: m.cdi(),
		Cluster: node.APIFacts{
			Enabled: true, Fresh: known.PodsFresh, SlicesFresh: known.SlicesFresh,
			Pods: known.Pods, Claims: known.Claims, Unread: known.Unread, Published: known.Published,
		},
	}
	for minor := range 8 {
		facts.Samples = append(facts.Samples, device.Sample{Source: "simulated", At: now, Device: device.Device{
			UUID: fmt.Sprintf("GPU-01000100-0000-0000-0000-00000000000%d", minor), Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3",
			Minor: minor, RenderMinor: device.Unknown, Placement: device.Unknown,
		}})
	}
	return facts
}

// readCluster writes the objects to an API server and reads them as the agent
// does.
func (m *snapshot) readCluster() apiserver.NodeFacts {
	m.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	server, err := demo.Start(ctx, demo.Options{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer server.Stop()
	put(m.t, server, m.pods)
	put(m.t, server, m.claims)
	put(m.t, server, m.slices)
	client, err := apiserver.New(apiserver.Options{Config: server.Config(), Node: snapshotNode, Log: slog.New(slog.DiscardHandler), Clock: clock.System()})
	if err != nil {
		m.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { client.Run(ctx); close(done) }()
	for deadline := time.Now().Add(time.Minute); !m.complete(client.Latest()); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("not everything was read: %v", client.Statuses())
		}
	}
	stop()
	<-done
	return client.Latest()
}

func put[T any, P interface {
	*T
	demo.Object
}](t *testing.T, server *demo.Server, objects []T) {
	t.Helper()
	for i := range objects {
		if err := server.Put(P(&objects[i])); err != nil {
			t.Fatal(err)
		}
	}
}

// complete reports whether all slices are there, and every claim that is
// reserved for a pod that is bound and not finished.
func (m *snapshot) complete(facts apiserver.NodeFacts) bool {
	published := 0
	for _, slice := range m.slices {
		published += len(slice.Spec.Devices)
	}
	read := make(map[dra.ClaimRef]bool, len(facts.Claims))
	for _, claim := range facts.Claims {
		read[claim.Ref] = true
	}
	running := map[string]bool{}
	for _, pod := range m.pods {
		running[string(pod.UID)] = pod.Spec.NodeName == snapshotNode && (pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning)
	}
	for _, claim := range m.claims {
		for _, consumer := range claim.Status.ReservedFor {
			if running[string(consumer.UID)] && !read[dra.ClaimRef{Namespace: claim.Namespace, Name: claim.Name}] {
				return false
			}
		}
	}
	return facts.PodsFresh && len(facts.Published) == published
}

func (m *snapshot) cdi() []dra.CDIDevice {
	m.t.Helper()
	files, err := filepath.Glob(m.path("cdi/*.yaml"))
	if err != nil {
		m.t.Fatal(err)
	}
	var devices []dra.CDIDevice
	for _, file := range files {
		decoded, err := cdi.Decode(read(m.t, file), file)
		if err != nil {
			m.t.Fatal(err)
		}
		devices = append(devices, decoded...)
	}
	return devices
}

// A truth is what the container runtime gave to one container.
type truth struct {
	Namespace, Pod, Container string
	Nodes                     []string `json:"dev_nodes"`
	Environment               []string `json:"nvidia_env"`
}

// compareWithTruth checks, for every running container, that it was given
// exactly the devices that it may use by the page.
func (m *snapshot) compareWithTruth(rows []metric.Row) {
	m.t.Helper()
	if _, err := os.Stat(m.path("injected-ground-truth.json")); os.IsNotExist(err) {
		return
	}
	var truths []truth
	if err := json.Unmarshal(read(m.t, m.path("injected-ground-truth.json")), &truths); err != nil {
		m.t.Fatal(err)
	}
	compared := 0
	for _, given := range truths {
		if !m.runs(given) {
			continue
		}
		compared++
		want, got := given.devices(), usable(rows, given)
		if !slices.Equal(got, want) {
			m.t.Errorf("%s: container %s/%s/%s may use %v, was given %v", m.name, given.Namespace, given.Pod, given.Container, got, want)
		}
	}
	if compared < 8 {
		m.t.Errorf("%s: only %d containers were compared", m.name, compared)
	}
}

func (m *snapshot) runs(given truth) bool {
	for _, pod := range m.pods {
		if pod.Namespace != given.Namespace || pod.Name != given.Pod {
			continue
		}
		for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if status.Name == given.Container {
				return status.State.Running != nil
			}
		}
	}
	return false
}

// devices are named gpu-N where NVIDIA's driver gave /dev/nvidiaN, and
// DEVICE of CLAIM-UID if an example driver set it in the environment.
func (given truth) devices() []string {
	variable := regexp.MustCompile(`^(?:GPU|NET)_DEVICE_(.+)_RESOURCE_CLAIM=(.+)$`)
	devices := []string{}
	for _, path := range given.Nodes {
		number, _ := strings.CutPrefix(path, "/dev/nvidia")
		if _, err := strconv.Atoi(number); err == nil {
			devices = append(devices, "gpu-"+number)
		}
	}
	for _, entry := range given.Environment {
		if match := variable.FindStringSubmatch(entry); match != nil {
			devices = append(devices, match[1]+" of "+match[2])
		}
	}
	slices.Sort(devices)
	return devices
}

// usable names, in the same way, what a container may use by the page.
func usable(rows []metric.Row, given truth) []string {
	uid := map[string]string{}
	devices := []string{}
	for _, row := range rows {
		if row.Family.Name == "dra_claim_info" {
			uid[row.Labels.Get("namespace")+"/"+row.Labels.Get("resourceclaim")] = row.Labels.Get("claim_uid")
		}
	}
	for _, row := range rows {
		l := row.Labels
		if row.Family.Name != "dra_claim_consumer_info" || l.Get("namespace") != given.Namespace || l.Get("pod") != given.Pod || l.Get("container") != given.Container {
			continue
		}
		claim := given.Namespace + "/" + l.Get("resourceclaim")
		devices = append(devices, nameOf(rows, l.Get("uuid"), given.Namespace, l.Get("resourceclaim"), uid[claim])...)
	}
	slices.Sort(devices)
	return slices.Compact(devices)
}

func nameOf(rows []metric.Row, uuid, namespace, claim, uid string) []string {
	for _, row := range rows {
		l := row.Labels
		if row.Family.Name != "dra_claim_device_info" || l.Get("uuid") != uuid || l.Get("namespace") != namespace || l.Get("resourceclaim") != claim {
			continue
		}
		switch l.Get("driver") {
		case "gpu.nvidia.com":
			return []string{l.Get("device")}
		case "health.example.com": // leaves no trace in the container
			return nil
		default:
			return []string{strings.ToUpper(strings.ReplaceAll(l.Get("device"), "-", "_")) + " of " + uid}
		}
	}
	return []string{"unknown " + uuid}
}
