package diagnosis

import (
	"math/rand/v2"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// TestOracleOfAlphaFeatures is TestOracle with what is alpha in Kubernetes 1.37:
// slices that skip node operations, on nodes that declare it and on others;
// compatibility groups; lists as attributes; and derived attributes, some of
// which cannot be evaluated for each device.
func TestOracleOfAlphaFeatures(t *testing.T) {
	clusters := 200
	if testing.Short() {
		clusters = 40
	}
	found := make(map[dra.PendingReason]int)
	fatals := 0
	for seed := range clusters {
		random := rand.New(rand.NewPCG(uint64(seed), 37))
		w := randomCluster(t, random)
		w.useAlphaFeatures(random)
		d := w.diagnoser()
		for range 6 {
			q, claims := w.randomQuestion(random)
			for _, claim := range claims {
				deriveAttributes(random, &claim.Spec)
				w.ask(claim)
			}
			diagnoses := d.Explain(t.Context(), q)
			allocatable, fatal := w.allocateAnywhere(claims)
			nothing := true
			for _, v := range diagnoses {
				checkStages(t, v)
				nothing = nothing && v.Reason == dra.ReasonNone
				found[v.Reason]++
			}
			if fatal != nil {
				fatals++
			}
			if want := allocatable && fatal == nil; nothing != want {
				for i, v := range diagnoses {
					t.Logf("%s: %q %s\n%+v\n%s", v.PodClaim, v.Reason, v.Message, v.Requests, claims[i].Spec.String())
				}
				t.Fatalf("seed %d: no reason: %v; the allocator: allocatable %v, %v", seed, nothing, allocatable, fatal)
			}
			w.checkReason(diagnoses, claims)
			w.forget(claims)
		}
	}
	for _, reason := range []dra.PendingReason{dra.ReasonNone, dra.ReasonInsufficient, dra.ReasonConstraints} {
		if found[reason] < clusters/20 {
			t.Errorf("reason %q was found %d times in %d clusters: the generator does not exercise it", reason, found[reason], clusters)
		}
	}
	if fatals < clusters/40 {
		t.Errorf("the allocator gave up %d times in %d clusters: the generator does not exercise it", fatals, clusters)
	}
	t.Log(found, fatals)
}

// useAlphaFeatures publishes the cluster's nodes and slices again with what is
// alpha.
func (w *testCluster) useAlphaFeatures(random *rand.Rand) {
	for _, node := range w.nodes {
		if random.IntN(2) == 0 {
			node.Status.DeclaredFeatures = []string{"DRAOptionalNodeOperations"}
		}
		w.inventory.ApplyNode(node.Name, node.DeepCopy())
	}
	for _, slice := range w.slices {
		if random.IntN(3) == 0 {
			slice.Spec.SkipNodeOperations = []resourcev1.SkipNodeOperation{resourcev1.SkipNodeOperationAll}
		}
		for i := range slice.Spec.Devices {
			d := &slice.Spec.Devices[i]
			if random.IntN(2) == 0 {
				d.Attributes["numas"] = resourcev1.DeviceAttribute{IntValues: []int64{random.Int64N(2), 2 + random.Int64N(2)}}
			}
			for j := range d.ConsumesCounters {
				if random.IntN(2) == 0 {
					d.ConsumesCounters[j].CompatibilityGroups = []string{[]string{"x", "y"}[random.IntN(2)]}
				}
			}
		}
		w.inventory.ApplySlice(slice.Name, slice.DeepCopy())
	}
}

// deriveAttributes adds to some specifications a constraint that compares an
// attribute which is a list, or one which each request derives.
func deriveAttributes(random *rand.Rand, s *resourcev1.ResourceClaimSpec) {
	const derived = "example.com/side"
	expressions := []string{
		`device.attributes["d"].numa`,
		`device.attributes["d"].index % 2 == 0`,
		`device.attributes["d"].?model.orValue("none")`,
		`device.attributes["d"].model`, // cannot be evaluated where there is none
	}
	switch random.IntN(4) {
	case 0:
		s.Devices.Constraints = append(s.Devices.Constraints, matchAttribute("d/numas"))
		return
	case 1:
		return
	}
	expression := expressions[random.IntN(len(expressions))]
	attributes := []resourcev1.DeviceDerivedAttribute{{Name: derived, Expression: expression}}
	for i := range s.Devices.Requests {
		if exactly := s.Devices.Requests[i].Exactly; exactly != nil {
			exactly.DerivedAttributes = attributes
		}
		for j := range s.Devices.Requests[i].FirstAvailable {
			s.Devices.Requests[i].FirstAvailable[j].DerivedAttributes = attributes
		}
	}
	s.Devices.Constraints = append(s.Devices.Constraints, matchAttribute(derived))
}
