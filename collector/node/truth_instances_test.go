package node

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// TestTruthOfInstances lets claims come to compute instances, and go, and adds
// up what pages say that each has to itself: never more than its GPU instance
// has, and everything where only one of them is held.
func TestTruthOfInstances(t *testing.T) {
	shared, alone := 0, 0
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 3))
		parts := make([]device.Device, 6)
		for i := range parts {
			parts[i] = migOf("GPU-0", fmt.Sprintf("MIG-%d", i), "1c.2g.20gb", 2*(i/2))
			parts[i].GPUInstance, parts[i].ComputeInstance = 1+i/2, i%2
		}
		s := newScene(t, append([]device.Device{gpu(0)}, parts...)...)
		for _, part := range parts {
			s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{
				ID: sceneID(part.UUID), UUID: part.UUID, ParentUUID: "GPU-0", Profile: part.Profile, Placement: part.Placement})
		}
		held := map[int]bool{}
		for range 60 {
			if i := random.IntN(len(parts)); held[i] {
				s.release(fmt.Sprint("ml/claim-", i))
				delete(held, i)
			} else {
				s.allocate(fmt.Sprint("ml/claim-", i), parts[i].UUID)
				held[i] = true
			}
			memory := [3]float64{}
			for instance := range memory {
				memory[instance] = float64(1+random.IntN(19)) * 1e9
				s.set(parts[2*instance].UUID, device.MemoryUsed, memory[instance])
				s.set(parts[2*instance+1].UUID, device.MemoryUsed, memory[instance])
			}
			s.steps(1)
			for instance, all := range memory {
				own := 0.0
				for i := 2 * instance; i < 2*instance+2; i++ {
					value, _ := s.value("dra_claim_memory_used_bytes", "resourceclaim", fmt.Sprint("claim-", i), "attribution", "partition")
					own += value
				}
				want := all
				switch both, one := held[2*instance] && held[2*instance+1], held[2*instance] || held[2*instance+1]; {
				case both:
					want, shared = 0, shared+1
				case one:
					alone++
				default:
					want = 0
				}
				if own != want {
					t.Fatalf("seed %d: claims have %v bytes of GPU instance %d to themselves, want %v of %v", seed, own, instance+1, want, all)
				}
			}
		}
	}
	if shared < 100 || alone < 100 {
		t.Errorf("instances were shared %d times and held alone %d times: the histories prove nothing", shared, alone)
	}
}
