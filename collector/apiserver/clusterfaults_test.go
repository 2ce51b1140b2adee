package apiserver

import (
	"net/http"
	"slices"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/source"
	simulated "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

func TestWatchGapIsNotLive(t *testing.T) {
	f := startClusterTest(t, nil, podWithClaim("one", "pod-1", "a"), claim("a", "claim-1", "node-a", "gpu-1", "pod-1"), claim("b", "claim-2", "", ""),
		publish("s", "node-a", "node-a", 1, 1, "gpu-1"), publish("old", "node-b", "node-b", 1, 1, "gpu-1"))
	f.untilSynced()
	before, slicesBefore := len(f.changes), f.keeper.times("slice s")
	f.server.Stop()
	f.until("the claims are down", func() bool { status, _ := f.status("resourceclaims"); return !status.Up })
	f.delete(claim("a", "", "", ""), podWithClaim("one", "", ""), publish("old", "", "", 1, 1))
	f.put(claim("b", "claim-3", "node-a", "gpu-1"), claim("c", "claim-4", "", ""))
	if err := f.server.Restart(); err != nil {
		t.Fatal(err)
	}
	f.until("the changes of the outage are reported", func() bool {
		return len(f.changes) >= before+5 && f.keeper.content() == "claim lab/b, claim lab/c, slice s"
	})
	got := f.since(before)
	slices.Sort(got)
	if want := []string{"claim lab/a gone", "claim lab/b", "claim lab/b gone", "claim lab/c", "pod lab/one gone"}; !slices.Equal(got, want) {
		t.Errorf("reported %q, want %q", got, want)
	}
	if n := f.keeper.times("slice s"); n != slicesBefore {
		t.Errorf("the keeper was given what it has: %d times", n)
	}
	if f.cluster.Synced() != all() {
		t.Errorf("what was known is forgotten: %+v", f.cluster.Synced())
	}
}

func TestExpiredVersionIsNotLiveAndNoFailure(t *testing.T) {
	f := startClusterTest(t, nil, claim("a", "claim-1", "", ""), claim("b", "claim-2", "", ""))
	f.untilSynced()
	time.Sleep(1100 * time.Millisecond) // a watch shorter than a second without events
	before := len(f.changes)
	watches := f.times("watch resourceclaims")
	f.server.EndWatches()
	f.server.Expire()
	f.delete(claim("a", "", "", ""))
	f.server.Expire()
	f.until("the claims are listed again", func() bool { return len(f.changes) > before })
	if got := f.since(before); len(got) != 1 || got[0] != "claim lab/a gone" {
		t.Errorf("reported %q", got)
	}
	f.put(claim("c", "claim-3", "", ""))
	f.until("a new one is reported", func() bool { return f.state["claim lab/c"] != "" })
	if status, _ := f.status("resourceclaims"); status.Errors != 0 || !status.Up || f.times("watch resourceclaims") == watches {
		t.Errorf("held against the source: %+v", status)
	}
}

func TestMissingPermissionAffectsOneCollection(t *testing.T) {
	objects := []simulated.Object{
		podWithClaim("train", "pod-1", "gpu"), claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1"), publish("s", "node-a", "node-a", 1, 1, "gpu-3"),
		deviceClass("c", ""), node("node-a", "v1.37.1"), event("e", decode.ReasonPreparation, "train"),
	}
	for resource, clear := range map[string]func(*Synced){
		"pods":           func(s *Synced) { s.Pods = false },
		"resourceclaims": func(s *Synced) { s.Claims = false },
		"resourceslices": func(s *Synced) { s.Slices = false },
		"deviceclasses":  func(s *Synced) { s.Classes = false },
		"nodes":          func(s *Synced) { s.Nodes = false },
		"events":         func(s *Synced) { s.Events = false },
	} {
		t.Run(resource, func(t *testing.T) {
			f := startClusterTest(t, map[string]int{resource: http.StatusForbidden}, objects...)
			want := all()
			clear(&want)
			f.until("all others are known", func() bool { return f.cluster.Settled() && f.cluster.Synced() == want })
			for _, status := range f.cluster.Statuses() {
				if refused := status.Name == resource; status.Up == refused || (status.Reason == source.ReasonPermission) != refused {
					t.Errorf("source %+v", status)
				}
			}
			if n := f.logged("source is down"); n != 1 {
				t.Errorf("logged %d times: %s", n, f.log.String())
			}
		})
	}
}

// Objects of a collection that is no longer served do not apply.
func TestUnservedCollectionIsEmpty(t *testing.T) {
	rule := &resourcev1.DeviceTaintRule{}
	rule.Name = "rule"
	f := startClusterTest(t, nil, rule)
	f.untilSynced()
	f.until("the rule is known", func() bool { return f.keeper.get("rule rule") != nil })
	f.refuse("devicetaintrules", http.StatusNotFound)
	f.server.EndWatches()
	f.until("it is gone", func() bool { return f.keeper.get("rule rule") == nil })
}

func TestOldClusterIsReportedOnce(t *testing.T) {
	lacking := map[string]int{}
	for _, resource := range []string{"resourceclaims", "resourceslices", "deviceclasses", "resourceclaimtemplates", "devicetaintrules"} {
		lacking[resource] = http.StatusNotFound
	}
	f := startClusterTest(t, lacking, podWithClaim("train", "pod-1", "gpu"))
	f.until("it is settled", f.cluster.Settled)
	f.until("the pods are known all the same", func() bool { return f.state["pod lab/train"] != "" })
	for _, status := range f.cluster.Statuses() {
		_, lacks := lacking[status.Name]
		if (status.Reason == source.ReasonUnsupported) != lacks || (status.Message != "") != (status.Name == "resourceclaims") {
			t.Errorf("source %+v", status)
		}
	}
	if n := f.logged("Kubernetes 1.34 or newer"); n != 1 {
		t.Errorf("said %d times: %s", n, f.log.String())
	}
	time.Sleep(2 * time.Second)
	if n := f.times("list resourceclaims"); n > 4 {
		t.Errorf("asked %d times in two seconds", n)
	}
	if n := f.times("list resourceslices") + f.times("watch resourceslices"); n != 0 {
		t.Errorf("asked %d times for what is not there", n)
	}
}

func TestStopsWithoutAPIServer(t *testing.T) {
	f := startClusterTest(t, nil, podWithClaim("train", "pod-1", "gpu"))
	f.untilSynced()
	f.server.Stop()
	f.until("it is noticed", func() bool { status, _ := f.status("pods"); return !status.Up })
	began := time.Now()
	f.stop()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
