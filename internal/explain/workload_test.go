package explain_test

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// A job is found by its name, and by its kind where several have the name. What is
// not found is named with what is meant.
func TestJobNames(t *testing.T) {
	f := jobFacts(4, false)
	f.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{
		Ref: dra.PodRef{Namespace: "team-a", Name: "web"}, UID: "web", Node: "node-a", Started: now,
		Claims: []dra.PodClaim{{Name: "gpus", Claim: "web"}}, Member: dra.Member{Workload: &dra.Workload{Kind: "Deployment", Name: "train"}},
	}})
	for _, test := range []struct{ name, kind, begins, fails string }{
		{name: "train", fails: "Deployment team-a/train and JobSet team-a/train are workloads of this name: name one with --workload-kind"},
		{name: "train", kind: "jobset", begins: "JobSet team-a/train has 5 pods"},
		{name: "train", kind: "Deployment", begins: "Deployment team-a/train has 1 pod: 1 running"},
		{name: "train", kind: "Job", fails: "of kind Job with pods that use claims or extended resources of a device class, or that waits in a queue of Kueue; did you mean Deployment team-a/train or JobSet team-a/train?"},
		{name: "trian", fails: "there is no workload team-a/trian with pods that use claims or extended resources of a device class, or that waits in a queue of Kueue; did you mean team-a/train?"},
	} {
		report, err := explain.Explain(f, clusterread.Subject{Kind: clusterread.KindWorkload, Namespace: "team-a", Name: test.name, WorkloadKind: test.kind})
		switch {
		case err != nil:
			if test.fails == "" || !strings.HasSuffix(err.Error(), test.fails) {
				t.Errorf("%s of kind %q: %v", test.name, test.kind, err)
			}
		case test.fails != "" || !strings.HasPrefix(report.Brief(false), test.begins):
			t.Errorf("%s of kind %q:\n%s", test.name, test.kind, report.Brief(false))
		}
	}
}
