package explain_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/cluster"
	diagnosing "github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// liveCluster is a cluster role's memory: a node with two GPUs, which a claim of team-b
// holds, and a pod of team-a that needs two.
type liveCluster struct {
	live      *explain.Live
	published *cluster.Published
	asked     atomic.Int64 // for objects
	elapsed   atomic.Int64
}

func newLiveCluster(t *testing.T) *liveCluster {
	t.Helper()
	c := &liveCluster{}
	instant := func() clock.Instant {
		elapsed := time.Duration(c.elapsed.Load())
		return clock.Instant{Wall: now.Add(elapsed), Elapsed: time.Hour + elapsed}
	}
	kept := inventory.New()
	node := "node-a"
	kept.ApplyClass("gpu.example.com", &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.example.com"}})
	kept.ApplySlice("node-a", &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "node-a"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0"}, {Name: "gpu-1"}},
		},
	})
	requested := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "gpus", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.example.com", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2},
	}}}}
	kept.ApplyClaim("team-a", "train-0-gpus-x7k2p", &resourcev1.ResourceClaim{Spec: requested})
	held := &resourcev1.ResourceClaim{Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{}}}
	for _, name := range []string{"gpu-0", "gpu-1"} {
		held.Status.Allocation.Devices.Results = append(held.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: "gpu", Driver: "gpu.example.com", Pool: node, Device: name})
	}
	kept.ApplyClaim("team-b", "serve", held)
	diagnoser := diagnosing.New(diagnosing.Options{Inventory: kept, Clock: instant, Log: slog.New(slog.DiscardHandler), Budget: 1})

	changes := objectChanges()
	known := cluster.Facts{Changes: changes, Synced: dra.Synced{Claims: true, Pods: true, Slices: true, Classes: true, Nodes: true, Events: true}, Supply: kept.Supply()}
	state, first, _ := cluster.Step(cluster.NewState(cluster.Config{}), known, instant())
	known.Changes = nil
	for _, question := range first.Questions {
		known.Diagnoses = append(known.Diagnoses, diagnoser.Explain(t.Context(), question)...)
	}
	for i := range known.Diagnoses {
		known.Diagnoses[i].Detail = nil // as the role's own diagnoses are
	}
	_, second, _ := cluster.Step(state, known, instant())
	c.published = &cluster.Published{Snapshot: second}
	c.live = &explain.Live{Budget: 1, Running: clusterread.Running{
		Latest: func() *cluster.Published { return c.published },
		Objects: func(namespace string, claims []dra.ClaimRef) []dra.Change {
			c.asked.Add(1)
			var all []dra.Change
			for _, change := range changes {
				if isWanted(change, namespace, claims) {
					all = append(all, change)
				}
			}
			return all
		},
		Statuses: func() []source.Status {
			return []source.Status{{Name: "events", Reason: source.ReasonPermission, Message: "secret of the API server"}}
		},
		Inventory: kept, Diagnoser: diagnoser, Clock: instant,
	}}
	return c
}

// objectChanges are the objects of the cluster.
func objectChanges() []dra.Change {
	return []dra.Change{
		{Claim: createdClaim()},
		{Pod: &dra.PodLifecycle{
			Ref: pendingPod(), UID: "train-0", Created: ago(4 * time.Minute),
			Claims: []dra.PodClaim{{Name: "gpus", Template: "gpus", Claim: "train-0-gpus-x7k2p"}}, Unschedulable: "0/1 nodes are available",
		}},
		{Claim: &dra.ClaimLifecycle{
			Ref: dra.ClaimRef{Namespace: "team-b", Name: "serve"}, UID: "claim-serve", Created: ago(3 * time.Hour), Allocated: true, AllocatedAt: ago(3 * time.Hour),
			Results:     []dra.AllocatedDevice{{Request: "gpu", Device: gpu("node-a", "gpu-0")}, {Request: "gpu", Device: gpu("node-a", "gpu-1")}},
			ReservedFor: []dra.Consumer{{Resource: "pods", Name: "serve-0", UID: "serve-0"}},
		}},
		{Pod: &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-b", Name: "serve-0"}, UID: "serve-0", Created: ago(3 * time.Hour), Claims: []dra.PodClaim{{Name: "gpu", Claim: "serve"}}, Started: ago(time.Hour), Node: "node-a"}},
	}
}

func isWanted(change dra.Change, namespace string, claims []dra.ClaimRef) bool {
	holder := len(claims) > 0 && claims[0].Name == "serve"
	if change.Claim != nil {
		return change.Claim.Ref.Namespace == namespace || holder
	}
	return change.Pod.Ref.Namespace == namespace || holder
}

// A running role explains with the holders of all namespaces, and for a reader of one
// namespace names nothing of another one.
func TestLiveExplanation(t *testing.T) {
	c := newLiveCluster(t)
	report, err := c.live.Report(t.Context(), pod, false)
	if err != nil {
		t.Fatal(err)
	}
	text := report.Text(false)
	for _, want := range []string{"insufficient_devices", "team-b/serve (pod serve-0)", "gpus: 2 devices of class gpu.example.com", "secret of the API server"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
	limited, err := c.live.Report(t.Context(), pod, true)
	if err != nil {
		t.Fatal(err)
	}
	text = limited.Text(false) + fmt.Sprint(limited.Answer())
	for _, hidden := range []string{"team-b", "serve", "secret"} {
		if strings.Contains(text, hidden) {
			t.Errorf("the report for a reader of team-a says %q:\n%s", hidden, text)
		}
	}
	if !strings.Contains(text, "insufficient_devices") || !strings.Contains(text, "1 claim of another namespace holds matching devices") {
		t.Errorf("the holder is not counted:\n%s", text)
	}
	_, err = c.live.Report(t.Context(), clusterread.Subject{Kind: clusterread.KindPod, Namespace: "team-a", Name: "train-1"}, false)
	if missing := (*explain.NotFoundError)(nil); !errors.As(err, &missing) || len(missing.Near) != 1 {
		t.Errorf("a wrong name gives %v", err)
	}
}

// An answer is given again while it is fresh, others rest in proportion to the work, and
// a request that waits for too long fails.
func TestLiveExplanationsAreBounded(t *testing.T) {
	c := newLiveCluster(t)
	ask := func() *explain.Report {
		t.Helper()
		report, err := c.live.Report(t.Context(), pod, false)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	first := ask()
	if again := ask(); again != first || c.asked.Load() != 1 {
		t.Errorf("a fresh answer was made again: objects were asked for %d times", c.asked.Load())
	}
	c.elapsed.Add(int64(6 * time.Second))
	if later := ask(); later == first || c.asked.Load() != 2 {
		t.Error("an old answer was given again")
	}

	objects := c.live.Objects
	began, proceed := make(chan struct{}), make(chan struct{})
	c.live.Objects = func(namespace string, claims []dra.ClaimRef) []dra.Change {
		close(began)
		<-proceed
		c.elapsed.Add(int64(3 * time.Second)) // the work
		return objects(namespace, claims)
	}
	c.live.Budget = 0.01
	c.elapsed.Add(int64(6 * time.Second))
	done := make(chan error)
	go func() {
		_, err := c.live.Report(context.Background(), pod, false)
		done <- err
	}()
	<-began
	left, leave := context.WithCancelCause(t.Context())
	leave(errors.New("the reader has left"))
	if _, err := c.live.Report(left, pod, true); err == nil || err.Error() != "the reader has left" {
		t.Errorf("a reader who leaves gets %v", err)
	}
	if _, err := c.live.Report(t.Context(), pod, true); !errors.Is(err, explain.ErrBusy) {
		t.Errorf("during another explanation: %v", err)
	}
	close(proceed)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c.live.Objects = objects
	if _, err := c.live.Report(t.Context(), pod, true); !errors.Is(err, explain.ErrBusy) {
		t.Errorf("during the rest after much work: %v", err)
	}
	c.elapsed.Add(int64(10 * time.Second))
	if again, err := c.live.Report(t.Context(), pod, false); err != nil || again == first {
		t.Errorf("an answer of ten seconds ago is not given during the rest: %v", err)
	}
	c.elapsed.Add(int64(10 * time.Minute))
	if _, err := c.live.Report(t.Context(), pod, true); err != nil {
		t.Errorf("after the rest: %v", err)
	}
	c.published = nil
	c.elapsed.Add(int64(10 * time.Minute))
	if _, err := c.live.Report(t.Context(), pod, false); !errors.Is(err, clusterread.ErrNotReady) {
		t.Errorf("before the first snapshot: %v", err)
	}
}
