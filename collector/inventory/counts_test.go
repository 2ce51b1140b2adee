package inventory

import (
	"fmt"
	"reflect"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
)

// TestKeptCounts compares the counts of many requests in random clusters, some
// of which were counted for another request, with those of an inventory that
// keeps none, while devices, allocations, taints and nodes change.
func TestKeptCounts(t *testing.T) {
	kept := 0
	for seed := range uint64(10) {
		w := newTestCluster(t, seed)
		w.populate()
		var requests []Request
		for i := range 12 {
			expression := fmt.Sprintf(`device.attributes["gpu.example.com"].id %s %d`, pick(w, "<", ">="), w.rng.IntN(6))
			if w.chance(4) {
				expression = pick(w, `device.driver == "gpu.example.com"`, `device.driver != "net.example.com"`, `device.attributes["nope"].nope`)
			}
			request := Request{Class: pick(w, "any", "gpu", "none"), Selectors: selectors(expression), AdminAccess: i%4 == 0}
			if w.chance(4) {
				request.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
			}
			requests = append(requests, request)
		}
		for range 10 {
			for _, request := range requests {
				if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
					t.Fatal(err)
				}
			}
			var got []Count
			for _, request := range requests {
				before := len(w.inv.counts.byKey)
				got = append(got, w.inv.Count(request))
				if before > 0 && len(w.inv.counts.byKey) == before && got[len(got)-1].Failed == 0 {
					kept++
				}
			}
			for i, request := range requests {
				w.inv.counts = countStore{}
				if want := w.inv.Count(request); !reflect.DeepEqual(got[i], want) {
					t.Fatalf("seed %d: %+v\nhas the count %+v\nwant %+v", seed, request, got[i], want)
				}
			}
			w.change()
		}
	}
	if kept < 50 {
		t.Errorf("%d counts were kept from another request: the test compares nothing", kept)
	}
}
