package demo

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// remoteHistory runs all steps of a workload of the remote node and describes
// the API server's objects after each.
func (s *nodeFixture) remoteHistory(t *testing.T, w workload) []string {
	t.Helper()
	i := newInstance(w, 0, 1, time.Unix(0, 0))
	var lines []string
	for _, next := range append(s.lifecycles.startSteps(w), s.lifecycles.endSteps(w)...) {
		if next.ready != nil && !next.ready(i) {
			t.Fatal("devices are taken on an empty node")
		}
		if err := next.run(i); err != nil {
			t.Fatal(err)
		}
		words := []string{s.pod(t, i), s.claim(t, i)}
		if s.listing(t) != "not listed" {
			t.Error("the kubelet of the agent's node lists a pod of another one")
		}
		rules := &resourcev1.DeviceTaintRuleList{}
		if err := s.resource.Get().Resource("devicetaintrules").Do(t.Context()).Into(rules); err != nil {
			t.Fatal(err)
		}
		if len(rules.Items) > 1 { // one is permanent
			words = append(words, "rule "+rules.Items[1].Name)
		}
		events := &corev1.EventList{}
		selected := s.core.Get().Resource("events").Param("fieldSelector", "reason=FailedPrepareDynamicResources")
		if err := selected.Do(t.Context()).Into(events); err != nil {
			t.Fatal(err)
		}
		for _, event := range events.Items {
			words = append(words, event.Reason)
		}
		lines = append(lines, next.at.String()+": "+strings.Join(words, ", "))
	}
	return lines
}

func TestLifecyclesOnRemoteNode(t *testing.T) {
	for name, want := range map[string]string{
		"sweep": `
0s: Pending kueue.x-k8s.io/admission SchedulingGated, no claim
5ms: Pending kueue.x-k8s.io/admission SchedulingGated names claim, claim
8ms: Pending kueue.x-k8s.io/admission SchedulingGated names claim, claim
20s: Pending names claim, claim
20.022s: Pending names claim, claim of gpu-4-mig-1g18gb-19-1 for 1
20.026s: Pending bound names claim, claim of gpu-4-mig-1g18gb-19-1 for 1
20.482s: Pending bound sandbox names claim, claim of gpu-4-mig-1g18gb-19-1 for 1
20.599s: Running bound sandbox sweep names claim, claim of gpu-4-mig-1g18gb-19-1 for 1
0s: Succeeded bound sandbox sweep done names claim, claim of gpu-4-mig-1g18gb-19-1 for 1
90ms: Succeeded bound sandbox sweep done names claim, claim of gpu-4-mig-1g18gb-19-1 for 1
130ms: Succeeded bound sandbox sweep done names claim, claim
150ms: Succeeded bound sandbox sweep done names claim, no claim
3s: no pod, no claim`,
		"transcode": `
0s: Pending, no claim
5ms: Pending names claim, claim
8ms: Pending Unschedulable names claim, claim, rule maintenance
24s: Pending Unschedulable names claim, claim
24.022s: Pending Unschedulable names claim, claim of gpu-4-mig-3g71gb-9-4 for 1
24.026s: Pending bound names claim, claim of gpu-4-mig-3g71gb-9-4 for 1
24.482s: Pending bound sandbox names claim, claim of gpu-4-mig-3g71gb-9-4 for 1
24.599s: Running bound sandbox worker names claim, claim of gpu-4-mig-3g71gb-9-4 for 1
0s: Running bound sandbox DeletionByDeviceTaintManager deleted worker names claim, claim of gpu-4-mig-3g71gb-9-4 for 1, rule maintenance
500ms: Running bound sandbox DeletionByDeviceTaintManager deleted worker done names claim, claim of gpu-4-mig-3g71gb-9-4 for 1, rule maintenance
590ms: Running bound sandbox DeletionByDeviceTaintManager deleted worker done names claim, claim of gpu-4-mig-3g71gb-9-4 for 1, rule maintenance
640ms: no pod, claim of gpu-4-mig-3g71gb-9-4 for 1, rule maintenance
670ms: no pod, claim, rule maintenance
690ms: no pod, no claim, rule maintenance`,
		"tutorial": `
0s: Pending, no claim
5ms: Pending, no claim
8ms: Pending, no claim
18s: Pending, claim
18.022s: Pending, claim of gpu-4-mig-1g18gb-19-1 for 1
18.026s: Pending bound, claim of gpu-4-mig-1g18gb-19-1 for 1
18.482s: Pending bound sandbox, claim of gpu-4-mig-1g18gb-19-1 for 1
18.599s: Running bound sandbox jupyter, claim of gpu-4-mig-1g18gb-19-1 for 1`,
		"aligner": `
0s: Pending, no claim
5ms: Pending names claim, claim
22ms: Pending names claim, claim of fpga-0 for 1
8.022s: Pending names claim, claim of fpga-0 for 1 fpga.example.com/attached
10.026s: Pending bound names claim, claim of fpga-0 for 1 fpga.example.com/attached
10.482s: Pending bound sandbox names claim, claim of fpga-0 for 1 fpga.example.com/attached
10.599s: Running bound sandbox align names claim, claim of fpga-0 for 1 fpga.example.com/attached`,
		"assay": `
0s: Pending, no claim
5ms: Pending names claim, claim
22ms: Pending names claim, claim of gpu-4-mig-1g18gb-19-0 for 1
26ms: Pending bound names claim, claim of gpu-4-mig-1g18gb-19-0 for 1
15s: Pending bound names claim, claim of gpu-4-mig-1g18gb-19-0 for 1, FailedPrepareDynamicResources
30.482s: Pending bound sandbox names claim, claim of gpu-4-mig-1g18gb-19-0 for 1, FailedPrepareDynamicResources
30.599s: Running bound sandbox assay names claim, claim of gpu-4-mig-1g18gb-19-0 for 1, FailedPrepareDynamicResources
0s: Succeeded bound sandbox assay done names claim, claim of gpu-4-mig-1g18gb-19-0 for 1, FailedPrepareDynamicResources
90ms: Succeeded bound sandbox assay done names claim, claim of gpu-4-mig-1g18gb-19-0 for 1, FailedPrepareDynamicResources
130ms: Succeeded bound sandbox assay done names claim, claim, FailedPrepareDynamicResources
150ms: Succeeded bound sandbox assay done names claim, no claim, FailedPrepareDynamicResources
3s: no pod, no claim`,
	} {
		t.Run(name, func(t *testing.T) {
			s, w := newNodeFixture(t), row(t, name)
			w.namespace = "alone" // so that no other objects are in its namespace
			got := s.remoteHistory(t, w)
			expect(t, got[:min(len(got), strings.Count(want, "\n"))], want)
		})
	}
}
