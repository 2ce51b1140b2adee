package demo

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// fillInventory adds all objects to an inventory.
func (w *pendingFixture) fillInventory(h hardware, seed uint64, now time.Time) *inventory.Inventory {
	stocked := inventory.New()
	objects := append(staticObjects(h, scenario(), newRandom(seed, "standing")), existingObjects(seed, now)...)
	for _, claim := range w.claims {
		objects = append(objects, claim)
	}
	for _, object := range objects {
		switch of := object.(type) {
		case *corev1.Node:
			stocked.ApplyNode(of.Name, of)
		case *resourcev1.DeviceClass:
			stocked.ApplyClass(of.Name, of)
		case *resourcev1.ResourceSlice:
			stocked.ApplySlice(of.Name, of)
		case *resourcev1.ResourceClaim:
			stocked.ApplyClaim(of.Namespace, of.Name, of)
		case *resourcev1.ResourceClaimTemplate:
			stocked.ApplyTemplate(of.Namespace, of.Name, of)
		case *resourcev1.DeviceTaintRule:
			stocked.ApplyRule(of.Name, of)
		}
	}
	return stocked
}

// question returns the cluster role's question about a pending pod.
func (w pendingWorkload) question(objects []apiserver.Object) dra.Question {
	asked := dra.PendingRef{PodClaim: w.claim.name, Template: w.claim.template}
	for _, object := range objects {
		if made, is := object.(*resourcev1.ResourceClaim); is {
			asked.Claim, asked.Template = made.Name, ""
		}
	}
	if w.claim.extended != "" {
		asked = dra.PendingRef{PodClaim: w.claim.extended, Extended: int64(w.claim.requests[0].count)}
	}
	return dra.Question{Pod: dra.PodRef{Namespace: w.namespace, Name: objects[0].GetName()}, Refs: []dra.PendingRef{asked}}
}

// TestDiagnosesOfScenario: the diagnoses are those that the demo is meant to
// show, whether gpu-2 is allocated or not.
func TestDiagnosesOfScenario(t *testing.T) {
	want := map[string]dra.PendingReason{
		"pretrain-70b": dra.ReasonInsufficient, "blackwell": dra.ReasonNoMatchingDevice, "train": dra.ReasonFragmented,
		"mpi": dra.ReasonConstraints, "hello-gpu": dra.ReasonNoDeviceClass, "burst": dra.ReasonInsufficient,
		"protein": dra.ReasonInsufficient, "sorter": dra.ReasonPoolIncomplete,
		"homework": dra.ReasonNone, "etl": dra.ReasonNone, // devices are not the reason
	}
	h, err := readHardware(1)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1e9, 0)
	for _, visitors := range [][]string{nil, {"finetune", "fold", "assay", "sweep", "transcode", "aligner"}} {
		diagnoser := diagnosis.New(diagnosis.Options{
			Inventory: newPendingFixture(t, visitors...).fillInventory(h, 1, now), Clock: clock.System(), Log: slog.New(slog.DiscardHandler), Budget: 1,
		})
		for _, w := range pendingWorkloads() {
			reason, diagnosed := want[w.name]
			if !diagnosed {
				continue
			}
			diagnoses := diagnoser.Explain(t.Context(), w.question(w.objects(1, now)))
			if len(diagnoses) != 1 || diagnoses[0].Reason != reason {
				t.Errorf("with %v: %s waits by %+v, want %q", visitors, w.name, diagnoses, reason)
			}
		}
	}
	for name := range want {
		if !slices.ContainsFunc(pendingWorkloads(), func(w pendingWorkload) bool { return w.name == name }) {
			t.Errorf("%s does not wait", name)
		}
	}
}
