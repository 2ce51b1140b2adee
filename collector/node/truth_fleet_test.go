package node

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/self"
)

// A fleet is two nodes whose pods share one claim on network-attached devices.
// Each agent has read the claim some time ago.
type fleet struct {
	t        testing.TB
	random   *rand.Rand
	states   [2]State
	now      clock.Instant
	pods     [2][]string // UIDs of the pods that are there
	reserved []dra.Consumer
	leaving  map[string]int // steps until a pod that has ended is out of the claim
	versions [][]dra.Consumer
	read     [2]int // which version each agent has
	made     int
	held     float64 // seconds in which a claim held it
	weighed  [2]float64
	before   bool
}

func newFleet(t testing.TB, seed uint64) *fleet {
	f := &fleet{t: t, random: rand.New(rand.NewPCG(seed, 11)), now: origin(), leaving: map[string]int{}}
	for i := range f.states {
		f.states[i] = NewState(Config{Node: fmt.Sprint("node-", i), Interval: time.Second, Grace: 5 * time.Minute, Version: self.Build{Version: "v0"}})
	}
	return f
}

func (f *fleet) tick() {
	f.now = f.now.Add(time.Second)
	for i := range f.pods {
		if f.random.IntN(8) == 0 && len(f.pods[i]) < 2 {
			f.made++
			uid := fmt.Sprint("pod-", f.made)
			f.pods[i] = append(f.pods[i], uid)
			f.reserved = append(slices.Clone(f.reserved), dra.Consumer{Resource: "pods", Name: uid, UID: uid})
		}
		if f.random.IntN(12) == 0 && len(f.pods[i]) > 0 {
			f.leaving[f.pods[i][0]] = f.random.IntN(4)
			f.pods[i] = f.pods[i][1:]
		}
	}
	for uid, left := range f.leaving {
		if f.leaving[uid] = left - 1; left <= 0 {
			f.reserved = slices.DeleteFunc(slices.Clone(f.reserved), func(c dra.Consumer) bool { return c.UID == uid })
			delete(f.leaving, uid)
		}
	}
	f.versions = append(f.versions, f.reserved)
	now := len(f.pods[0])+len(f.pods[1]) > 0
	if now && f.before {
		f.held++
	}
	f.before = now
	for i := range f.states {
		f.stepNode(i)
	}
	if sum := f.weighed[0] + f.weighed[1]; sum > f.held+1e-6 {
		f.t.Fatalf("%s, %v: the nodes have %v device-seconds of a claim that was held for %v s", f.t.Name(), f.now.Elapsed-origin().Elapsed, f.weighed, f.held)
	}
}

func (f *fleet) stepNode(i int) {
	newest := len(f.versions) - 1
	if newest-f.read[i] > 15 || f.random.IntN(8) == 0 {
		f.read[i] = newest - f.random.IntN(min(3, newest-f.read[i]+1))
	}
	node := fmt.Sprint("node-", i)
	facts := Facts{Cluster: APIFacts{Enabled: true, Fresh: true}}
	facts.Cluster.Claims = []dra.Claim{{Ref: dra.ClaimRef{Namespace: "ml", Name: "far"}, UID: "far", Allocated: true,
		Requests: []dra.Request{{Name: "gpu", DeviceClass: "far"}}, ReservedFor: f.versions[f.read[i]],
		Results: []dra.Result{{Request: "gpu", Device: dra.DeviceID{Driver: "fabric.example.com", Pool: "rack", Name: "far-0"}}}}}
	for _, uid := range f.pods[i] {
		facts.Cluster.Pods = append(facts.Cluster.Pods, dra.Pod{Ref: dra.PodRef{Namespace: "ml", Name: uid}, UID: uid, Node: node,
			Claims: []dra.PodClaim{{Name: "gpu", Claim: "far"}}, Containers: []dra.Container{{Name: "main", Uses: []dra.Use{{Claim: "far"}}}}})
	}
	var last Snapshot
	f.states[i], last, _ = Step(f.states[i], facts, f.now)
	for _, row := range last.Rows() {
		if row.Family.Name == "dra_claim_device_seconds_total" {
			f.weighed[i] = row.Value
		}
	}
}

// TestTruthOfAFleet: of a claim that pods on several nodes share, all agents
// together count no more device-seconds than there are, however old their
// copies of the claim are.
func TestTruthOfAFleet(t *testing.T) {
	held, weighed, both, ran := 0.0, 0.0, 0, uint64(0)
	for seed := range histories(t) {
		t.Run(fmt.Sprint("seed_", seed), func(t *testing.T) {
			f := newFleet(t, seed)
			for range 60 {
				f.tick()
				if len(f.pods[0]) > 0 && len(f.pods[1]) > 0 {
					both++
				}
			}
			ran++
			held, weighed = held+f.held, weighed+f.weighed[0]+f.weighed[1]
		})
	}
	if ran == histories(t) && (weighed < held/4 || both < int(ran)) {
		t.Errorf("only %v of %v s were counted, and %d with pods on both nodes: the histories prove nothing", weighed, held, both)
	}
}
