package node

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// A claim that has not been read is the one of before only if the pod that held it
// still references it, or if its UID is the same: the name alone proves nothing.
// What the kubelet lists of it now decides over what was read of the one before.
func TestUnreadClaimMadeAgain(t *testing.T) {
	const uid, other = "6e3c2f6e-4b0e-4d3a-9a53-0d8b1c8d7a11", "6e3c2f6e-4b0e-4d3a-9a53-0d8b1c8d7a22"
	train := dra.ClaimRef{Namespace: "ml", Name: "train"}
	listed := func(s *scene, name, uid string) {
		s.facts.Listing = dra.PodResources{}
		s.list("ml/train", name)
		if uid != "" {
			s.facts.Listing.Assignments[0].CDIDevices = []string{"k8s.gpu.nvidia.com/claim=" + uid + "-" + name}
		}
	}
	newPod := func(s *scene) { s.facts.Cluster.Pods[0].UID = "uid-of-another-pod" }
	for name, test := range map[string]struct {
		change    func(*scene)
		held      float64 // seconds in the end, of three before the change and ten after it
		exclusive bool    // another claim on GPU-1 is alone
	}{
		"another pod, not listed":            {newPod, 3, true},
		"another pod, listed elsewhere":      {func(s *scene) { newPod(s); listed(s, "gpu-1", "") }, 3, false},
		"another pod, listed the same":       {func(s *scene) { newPod(s); listed(s, "gpu-0", "") }, 3, true},
		"another pod, another UID":           {func(s *scene) { newPod(s); listed(s, "gpu-0", other) }, 3, true},
		"another pod of the claim, by UID":   {func(s *scene) { newPod(s); listed(s, "gpu-0", uid) }, 13, true},
		"the same pod":                       {func(*scene) {}, 13, true},
		"the same pod, listed":               {func(s *scene) { listed(s, "gpu-0", "") }, 13, true},
		"the same pod, listed elsewhere":     {func(s *scene) { listed(s, "gpu-1", "") }, 3, false},
		"the pod has ended":                  {func(s *scene) { s.facts.Cluster.Pods[0].Terminal = true }, 3, true},
		"a second pod beside the first":      {func(s *scene) { s.addPodOf("train", "second") }, 13, true},
		"read before, of the pod before":     {func(s *scene) { newPod(s); s.reread() }, 3, true},
		"read before, and listed elsewhere":  {func(s *scene) { newPod(s); s.reread(); listed(s, "gpu-1", "") }, 3, false},
		"no claim can be read, listed":       {func(s *scene) { newPod(s); listed(s, "gpu-1", ""); s.claimsDown() }, 3, false},
		"no claim can be read, listed again": {func(s *scene) { newPod(s); listed(s, "gpu-0", ""); s.claimsDown() }, 13, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, gpu(0), gpu(1))
			s.allocate("ml/train", "gpu-0").UID = uid
			s.allocate("ml/neighbour", "gpu-1")
			s.set("GPU-1", device.Power, 100)
			s.facts.Sources = []source.Status{{Name: SourceClaims, Up: true}}
			s.facts.ListedAt = s.now
			s.run(4)
			s.facts.Cluster.Unread = []dra.ClaimRef{train}
			test.change(s)
			if len(s.facts.Cluster.Unread) > 0 {
				s.facts.Cluster.Claims = s.facts.Cluster.Claims[1:]
			}
			s.run(10)
			if got, _ := s.value("dra_claim_held_seconds_total", "resourceclaim", "train", "uuid", "GPU-0"); got != test.held {
				t.Errorf("held for %v s, want %v", got, test.held)
			}
			if _, exclusive := s.value("dra_claim_power_watts", "resourceclaim", "neighbour", "attribution", "exclusive"); exclusive != test.exclusive {
				t.Errorf("the claim on the other device is exclusive: %v, want %v", exclusive, test.exclusive)
			}
		})
	}
}

// reread leaves the claim as it was read before.
func (s *scene) reread() { s.facts.Cluster.Unread = nil }

func (s *scene) claimsDown() {
	s.facts.Sources = []source.Status{{Name: SourceClaims, Errors: 1}}
}

// addPodOf adds a pod that references the claim, too.
func (s *scene) addPodOf(claim, name string) {
	pod := s.facts.Cluster.Pods[0]
	pod.Ref.Name, pod.UID = name, "pod-uid-of-"+name
	pod.Claims = []dra.PodClaim{{Name: "gpu", Claim: claim}}
	s.facts.Cluster.Pods = append(s.facts.Cluster.Pods, pod)
}
