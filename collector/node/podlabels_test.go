package node

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

func TestLabelsOfPods(t *testing.T) {
	s := busyGPU(t)
	s.configure(func(c *Config) { c.PodLabels = []string{"app.kubernetes.io/name", "costCenter"} })
	pages := s.script("dra_claim_consumer_info")
	s.allocate("ml/train", "gpu-0")
	pod := &s.facts.Cluster.Pods[0]
	pod.Labels = []string{"trainer", "cc-7"}
	s.run(2)
	pages.show("the pod's labels")
	s.facts.Cluster.Pods[0].Labels = []string{"trainer", "cc-8"}
	s.run(2)
	pages.show("one has changed: the row is another, there is no second")
	s.facts.Cluster.Pods[0].Labels = []string{"", "cc-8"}
	s.run(2)
	pages.show("one is gone")
	s.facts.Cluster.Pods[0].Labels = nil
	s.run(2)
	pages.show("unknown")
	s.facts.Cluster = APIFacts{}
	s.facts.Listing = dra.PodResources{Pods: []dra.PodRef{{Namespace: "ml", Name: "listed"}}, Assignments: []dra.Assignment{{
		Pod: dra.PodRef{Namespace: "ml", Name: "listed"}, Container: "main", Claim: dra.ClaimRef{Namespace: "ml", Name: "other"}, Device: sceneID("gpu-0"),
	}}}
	s.facts.ListedAt = s.now
	s.run(302)
	pages.show("without the API server")
	metrictest.CompareGolden(t, "testdata/pod_labels.txt", pages.String())
}

func TestNamesOfPodLabels(t *testing.T) {
	for key, want := range map[string]string{
		"team": "label_team", "app.kubernetes.io/name": "label_app_kubernetes_io_name", "cost-center": "label_cost_center",
		"costCenter": "label_cost_center", "GPU": "label_gpu", "teamID2Go": "label_team_id2_go", "1st": "label_1st", "größe": "label_gr__e",
	} {
		if got := podLabelName(key); got != want {
			t.Errorf("%s becomes %s, want %s", key, got, want)
		}
	}
}

func TestInvalidPodLabels(t *testing.T) {
	for keys, want := range map[string]string{
		"":                         "without a name",
		"team, ":                   "without a name",
		"team":                     "",
		"team,app,team":            "team is named twice",
		"app.kubernetes.io/n,team": "",
		"a.b,a-b":                  "a.b and a-b would both be the metric label label_a_b",
		"costCenter,x,cost-center": "costCenter and cost-center would both be the metric label label_cost_center",
	} {
		err := CheckPodLabels(strings.Split(keys, ","))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", keys, err, want)
		}
	}
	if err := CheckPodLabels(nil); err != nil {
		t.Errorf("none: %v", err)
	}
}
