package node

import (
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestPodWorkloads(t *testing.T) {
	s := newScene(t, gpu(0))
	s.allocate("lab/one", "gpu-0")
	expect := func(want string) {
		t.Helper()
		if got := strings.TrimSpace(s.page("dra_pod_workload_info")); got != strings.TrimSpace(strings.ReplaceAll(want, "\t", "")) {
			t.Errorf("the page has\n%s\nwant\n%s", got, want)
		}
	}
	pods := s.facts.Cluster.Pods
	pods[0].Member = dra.Member{Workload: &dra.Workload{Kind: "JobSet", Name: "train", Queue: "team-a"}, Role: "workers", Replica: "1", Rank: "7"}
	s.facts.Cluster.PluginPods = []dra.Pod{
		{Ref: dra.PodRef{Namespace: "lab", Name: "notebook"}, Member: dra.Member{Workload: &dra.Workload{Kind: "StatefulSet", Name: "notebook"}, Rank: "0"}},
		{Ref: dra.PodRef{Namespace: "lab", Name: "bare"}},
	}
	s.step(time.Second)
	notebook := `
		dra_pod_workload_info{namespace="lab",node="node-a",pod="notebook",queue="",rank="0",replica="",role="",workload="notebook",workload_kind="StatefulSet"} 1`
	train := `
		dra_pod_workload_info{namespace="lab",node="node-a",pod="one",queue="team-a",rank="7",replica="1",role="workers",workload="train",workload_kind="JobSet"} 1`
	expect(notebook + train)

	// A pod that has ended keeps its row for the grace, one that is created again under
	// its name replaces it.
	s.facts.Cluster.Pods = nil
	s.step(time.Second)
	expect(notebook + train)
	again := pods[0]
	again.Member.Workload = &dra.Workload{Kind: "JobSet", Name: "train-2"}
	s.facts.Cluster.Pods = []dra.Pod{again}
	s.step(time.Second)
	expect(notebook + `
		dra_pod_workload_info{namespace="lab",node="node-a",pod="one",queue="",rank="7",replica="1",role="workers",workload="train-2",workload_kind="JobSet"} 1`)
	s.facts.Cluster.Pods = nil
	s.step(time.Second)
	s.step(6 * time.Minute)
	expect(notebook)
}
