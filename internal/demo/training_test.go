package demo

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// The ranks of a job belong to one Job and have different pods, claims and indexes.
func TestRanksOfOneJob(t *testing.T) {
	owners, pods, claims, indexes := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, w := range trainingWorkloads() {
		if w.owner != ownedByJob {
			continue
		}
		i := newInstance(w, 0, 1, time.Unix(0, 0))
		owners[string(i.pods[0].OwnerReferences[0].UID)] = true
		pods[string(i.pods[0].UID)+i.pods[0].Name] = true
		claims[string(i.claim.UID)+i.claim.Name] = true
		indexes[i.pods[0].Labels["batch.kubernetes.io/job-completion-index"]] = true
	}
	if len(owners) != 1 || len(pods) != 6 || len(claims) != 6 || len(indexes) != 6 || !indexes["0"] || !indexes["5"] {
		t.Errorf("owners %v, pods %v, claims %v, indexes %v", owners, pods, claims, indexes)
	}
}

// One of the ranks is slow: under the same load, its GPU draws less power than all others.
func TestSlowRank(t *testing.T) {
	node := newNodeFixture(t).training
	power := map[string]float64{}
	for _, gpu := range node.cdi.hardware.gpus {
		node.source.SetLoad(gpu.UUID, 0.98)
		power[gpuName(gpu.Minor)] = node.reading(t, gpu.UUID, device.Power)
	}
	for name, watts := range power {
		if name != "gpu-4" && watts < 1.1*power["gpu-4"] {
			t.Errorf("%s draws %g W, the slow one %g", name, watts, power["gpu-4"])
		}
	}
}

// Agents see what runs on their own nodes, and nothing of each other's.
func TestNodesHaveTheirOwnPods(t *testing.T) {
	s := newNodeFixture(t)
	for _, row := range append(trainingWorkloads(), row(t, "embedder")) {
		i := newInstance(row, 0, 1, time.Unix(0, 0))
		for _, next := range s.lifecycles.startSteps(row) {
			if next.ready != nil && !next.ready(i) {
				t.Fatalf("the devices of %s are taken", row.name)
			}
			if err := next.run(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if first, second := len(s.pods.pods), len(s.training.pods.pods); first != 1 || second != 7 {
		t.Errorf("the first node's kubelet lists %d pods, the second's %d", first, second)
	}
	s.training.activity.mu.Lock()
	defer s.training.activity.mu.Unlock()
	if busy, idle := s.training.activity.load("gpu-4"), s.training.activity.load("gpu-6"); busy < 0.9 || idle != 0 {
		t.Errorf("the load of a rank's GPU is %g, of an unused one %g", busy, idle)
	}
}
