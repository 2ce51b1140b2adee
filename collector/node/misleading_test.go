package node

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/kubelet"
	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// Each case is one way in which the reports of the kubelet or of a driver are
// misleading. A simulated kubelet on a real socket causes it. The golden file is
// the page with the countermeasure; misleadingMutants removes each countermeasure.
func TestMisleadingReports(t *testing.T) {
	for name, play := range map[string]func(*misleadingScene){
		"init_containers":     runInitContainers,
		"every_device":        runEveryDevice,
		"empty_after_restart": runEmptyAfterRestart,
		"before_preparation":  runBeforePreparation,
		"two_shares":          runTwoShares,
		"driver_dies":         runDriverDies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMisleadingScene(t)
			play(s)
			metrictest.CompareGolden(t, filepath.Join("testdata", "misleading_"+name+".txt"), s.pages.String())
		})
	}
}

// A misleadingScene is a scene with a kubelet.
type misleadingScene struct {
	*scene
	kubelet *simulated.Kubelet
	client  *kubelet.Client
	pages   *script
}

func newMisleadingScene(t *testing.T) *misleadingScene {
	s := &misleadingScene{scene: newScene(t, gpu(0), gpu(1))}
	for _, uuid := range []string{"GPU-0", "GPU-1"} {
		s.set(uuid, device.Utilization, 0.5)
	}
	s.pages = s.joined()
	socket := filepath.Join(t.TempDir(), "kubelet.sock")
	ctx, stop := context.WithCancel(context.Background())
	server, err := simulated.Start(ctx, socket, simulated.Options{EmptyFor: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s.kubelet = server
	s.client = kubelet.New(kubelet.Options{Socket: socket, Interval: time.Hour, Clock: clock.System()})
	done := make(chan struct{})
	go func() { s.client.Run(ctx); close(done) }()
	t.Cleanup(func() { stop(); <-done; server.Close() })
	return s
}

// runs gives the kubelet the pods and waits for a List that came after.
func (s *misleadingScene) runs(pods ...simulated.Pod) {
	s.t.Helper()
	s.kubelet.Set(pods)
	s.ask()
}

func (s *misleadingScene) ask() {
	s.t.Helper()
	before, _ := s.client.Latest()
	deadline := time.Now().Add(30 * time.Second)
	for after := before; after.Sequence < before.Sequence+2; after, _ = s.client.Latest() {
		if time.Now().After(deadline) {
			s.t.Fatalf("the kubelet does not answer: %s", s.client.Status().Message)
		}
		s.client.RequestList()
		time.Sleep(10 * time.Millisecond)
		s.facts.Listing = after.Resources
	}
	after, _ := s.client.Latest()
	s.facts.Listing = after.Resources
}

func (s *misleadingScene) provoke(fault simulated.Fault) {
	s.t.Helper()
	if err := s.kubelet.AddFaults(fault); err != nil {
		s.t.Fatal(err)
	}
}

// trainPod is the pod ml/train with its claim, as the kubelet sees it.
func trainPod(stage simulated.Stage, containers ...simulated.Container) simulated.Pod {
	return simulated.Pod{Namespace: "ml", Name: "train", Containers: containers, Claims: []simulated.Claim{{
		Name: "train", Stage: stage,
		Devices: []simulated.Device{{Request: "left", Driver: "gpu.nvidia.com", Pool: sceneNode, Name: "gpu-0"}, {Request: "right", Driver: "gpu.nvidia.com", Pool: sceneNode, Name: "gpu-1"}},
	}}}
}

// trainClaim is the same for the API server: two requests, one device each.
func (s *misleadingScene) trainClaim(containers ...dra.Container) {
	claim := s.allocate("ml/train", "gpu-0", "gpu-1")
	claim.Requests = []dra.Request{{Name: "left", DeviceClass: "gpu.nvidia.com"}, {Name: "right", DeviceClass: "gpu.nvidia.com"}}
	claim.Results[0].Request, claim.Results[1].Request = "left", "right"
	s.facts.Cluster.Pods[0].Containers = containers
}

// showAlone steps an agent without the API server: by the List alone.
func (s *misleadingScene) showAlone(heading string) {
	s.t.Helper()
	cluster, state := s.facts.Cluster, s.state
	s.facts.Cluster, s.state = APIFacts{}, NewState(state.config)
	s.listed(10)
	s.pages.show(heading)
	s.facts.Cluster, s.state = cluster, state
}

func runInitContainers(s *misleadingScene) {
	s.provoke(simulated.InitContainersHidden)
	s.trainClaim(dra.Container{Name: "warm", Uses: []dra.Use{{Claim: "train"}}}, dra.Container{Name: "main"})
	s.runs(trainPod(simulated.Prepared, simulated.Container{Name: "warm", Init: true, Uses: []simulated.Use{{Claim: "train"}}}, simulated.Container{Name: "main"}))
	s.listed(1)
	s.pages.show("an init container holds two GPUs that the kubelet does not list")
}

func runEveryDevice(s *misleadingScene) {
	s.provoke(simulated.EveryDevice)
	s.trainClaim(dra.Container{Name: "main", Uses: []dra.Use{{Claim: "train", Request: "left"}}})
	s.runs(trainPod(simulated.Prepared, simulated.Container{Name: "main", Uses: []simulated.Use{{Claim: "train", Request: "left"}}}))
	s.listed(1)
	s.pages.show("a container uses one request, the kubelet lists both devices for it")
	s.showAlone("without the API server it is not known")
}

func runEmptyAfterRestart(s *misleadingScene) {
	s.facts.Cluster = APIFacts{}
	s.runs(trainPod(simulated.Prepared, simulated.Container{Name: "main", Uses: []simulated.Use{{Claim: "train"}}}))
	s.listed(1)
	s.pages.show("listed, without an API server")
	s.provoke(simulated.EmptyAfterRestart)
	if err := s.kubelet.Restart(); err != nil {
		s.t.Fatal(err)
	}
	s.ask()
	s.listed(1)
	s.listed(1)
	s.pages.show("the kubelet has restarted and lists nothing: everything is still held")
	s.listed(5)
	s.pages.show("it still lists nothing five seconds later")
}

func runBeforePreparation(s *misleadingScene) {
	s.provoke(simulated.ClaimBeforeDevices)
	s.trainClaim(dra.Container{Name: "main", Uses: []dra.Use{{Claim: "train"}}})
	s.runs(trainPod(simulated.Named, simulated.Container{Name: "main", Uses: []simulated.Use{{Claim: "train"}}}))
	s.listed(1)
	s.pages.show("allocated and bound, not prepared yet: it holds")
	s.showAlone("the List alone: a claim named without devices is not known to hold anything")
}

func runTwoShares(s *misleadingScene) {
	s.provoke(simulated.TwoShares)
	s.facts.Cluster = APIFacts{}
	s.runs(simulated.Pod{Namespace: "ml", Name: "train", Containers: []simulated.Container{{Name: "main", Uses: []simulated.Use{{Claim: "train"}}}}, Claims: []simulated.Claim{{
		Name: "train", Devices: []simulated.Device{{Driver: "gpu.nvidia.com", Pool: sceneNode, Name: "gpu-0", ShareID: "a"}},
	}}})
	s.listed(1)
	s.pages.show("one claim holds one device under two share ids: one holder")
}

func runDriverDies(s *misleadingScene) {
	s.trainClaim(dra.Container{Name: "main", Uses: []dra.Use{{Claim: "train"}}})
	s.facts.Cluster.Published[0].ID.Name = "gpu-by-another-name"
	s.facts.Cluster.Claims[0].Results[0].Device.Name = "gpu-by-another-name"
	s.listed(1)
	s.facts.Cluster.Published = nil
	s.listed(1)
	s.pages.show("the driver died, the kubelet deleted its slices, the claim still holds")
}
