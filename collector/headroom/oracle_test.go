package headroom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// planner returns one whose searches reach no limit on a busy machine.
func (c *testCluster) planner() *Planner {
	return newPlanner(Options{Inventory: c.inventory, Clock: clock.System(), Shapes: 20}, allocator.NewCache(), time.Minute)
}

func (p *Planner) mustRefresh(t testing.TB) *dra.Headroom {
	t.Helper()
	if err := p.refresh(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return p.Latest()
}

// fillAll allocates claims on one node after the other until upstream's allocator
// refuses on all, and returns how many.
func (c *testCluster) fillAll(spec resourcev1.ResourceClaimSpec) (claims int) {
	nodes := slices.Clone(c.nodes)
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return compare(a.Name, b.Name) })
	for _, node := range nodes {
		for {
			result := c.allocate(spec, node)
			if result == nil {
				break
			}
			c.record(spec, *result)
			claims++
		}
	}
	return claims
}

// In random clusters the headroom of each shape is how many claims upstream's
// allocator, given the API objects, allocates one after the other, and the limit is the
// reason for which the diagnosis says that the next one is pending.
func TestHeadroomIsWhatCanBeAllocated(t *testing.T) {
	clusters := 60
	if testing.Short() {
		clusters = 12
	}
	compared, limits, differ := 0, map[dra.PendingReason]int{}, 0
	for seed := range uint64(clusters) {
		nodes := 1 + int(seed)%9
		if seed%20 == 19 && !testing.Short() {
			nodes = 200
		}
		shapes := randomCluster(t, seed, nodes).planner()
		found := shapes.mustRefresh(t).Shapes
		for i, s := range shapes.shapes {
			at := slices.IndexFunc(found, func(of dra.ShapeHeadroom) bool { return of.Class == s.class && of.Shape == s.text })
			if at < 0 || nodes == 200 && i%4 != int(seed)%4 {
				continue
			}
			c := randomCluster(t, seed, nodes) // the same again
			want := c.fillAll(*s.specs[0])
			if got := found[at]; got.Claims != want || !got.Exact {
				t.Fatalf("seed %d, %d nodes, class %s, shape %s: %+v, but %d can be allocated", seed, nodes, s.class, s.text, got, want)
			}
			compared++
			reason := c.reasonOfNext(s.specs[0])
			limits[found[at].Limit]++
			if found[at].Limit != reason && found[at].Limit != dra.ReasonNone {
				differ++
				if s.class != "part" && s.class != "net" {
					t.Errorf("seed %d, class %s, shape %s: the limit is %s, but the next claim is pending because of %s", seed, s.class, s.text, found[at].Limit, reason)
				}
			}
		}
	}
	t.Logf("%d shapes compared, limits %v; %d differ from the diagnosis", compared, limits, differ)
	if differ*20 > compared { // those of overlapping partitions, and of devices that several nodes share
		t.Errorf("%d of %d limits differ from the diagnosis", differ, compared)
	}
	for _, reason := range []dra.PendingReason{dra.ReasonInsufficient, dra.ReasonFragmented, dra.ReasonConstraints, dra.ReasonTainted, dra.ReasonPoolIncomplete} {
		if limits[reason] == 0 {
			t.Errorf("no shape was limited by %s: the test does not exercise it", reason)
		}
	}
}

// Pools of one name on several nodes have nothing in common but their devices' names: what
// is allocated of one device, others of its name cannot be.
func TestHeadroomOfPoolsOfOneName(t *testing.T) {
	several, none := 0, 0
	for seed := range uint64(40) {
		made := func() *testCluster {
			c := newTestCluster(t, seed)
			c.class("net", `device.driver == "net.example.com"`)
			nodes := 2 + int(seed)%3
			for i := range nodes {
				c.node(fmt.Sprintf("node-%03d", i), nil)
			}
			c.rails(nodes)
			if c.chance(50) {
				c.network("fabric", 1)
			}
			if c.chance(50) {
				c.hold(*newDeviceSpec("net", 1), c.nodes[c.random.IntN(nodes)])
			}
			return c
		}
		shapes := made().planner()
		found := shapes.mustRefresh(t).Shapes
		for _, s := range shapes.shapes {
			at := slices.IndexFunc(found, func(of dra.ShapeHeadroom) bool { return of.Class == s.class && of.Shape == s.text })
			if at < 0 {
				continue
			}
			want := made().fillAll(*s.specs[0])
			if got := found[at]; got.Claims != want || !got.Exact {
				t.Errorf("seed %d, %s: %+v, but %d can be allocated", seed, s.text, got, want)
			}
			if want > 1 {
				several++
			} else if want == 0 {
				none++
			}
		}
	}
	if several < 20 || none < 5 {
		t.Errorf("several claims fit %d times, none %d times: the test shows nothing", several, none)
	}
}

// While not all nodes have been searched, or not to the end, at least as many claims fit as
// is said. Once they have been, the number is exact.
func TestHeadroomIsALowerBoundUntilItIsExact(t *testing.T) {
	for seed := range uint64(20) {
		c := randomCluster(t, 300+seed, 12)
		exact := map[string]dra.ShapeHeadroom{}
		for _, s := range c.planner().mustRefresh(t).Shapes {
			exact[s.Class+"/"+s.Shape] = s
		}
		slow := newPlanner(Options{Inventory: c.inventory, Clock: clock.System(), Shapes: 20}, allocator.NewCache(), time.Nanosecond)
		part := c.planner()
		part.searches = 2
		for name, p := range map[string]*Planner{"slow": slow, "part": part} {
			bounds, refreshes := 0, 0
			for done := false; !done; refreshes++ {
				found := p.mustRefresh(t)
				for _, s := range found.Shapes {
					want := exact[s.Class+"/"+s.Shape]
					if s.Claims > want.Claims || s.Exact && s != want && name == "part" || !s.Exact && s.Limit != dra.ReasonNone {
						t.Fatalf("seed %d, %s: %+v, exact is %+v", seed, name, s, want)
					}
					if !s.Exact {
						bounds++
					}
				}
				done = name == "slow" || p.complete
				if done && name == "part" && !slices.Equal(found.Shapes, c.planner().mustRefresh(t).Shapes) {
					t.Errorf("seed %d: %+v after %d refreshes", seed, found.Shapes, refreshes)
				}
			}
			if bounds == 0 {
				t.Errorf("seed %d, %s: all numbers are exact at once", seed, name)
			}
		}
	}
}

// In random clusters as many pods with one to three claims fit on each node as upstream's
// allocator, given the API objects, allocates on one node after the other.
func TestPerNodeIsWhatCanBeAllocated(t *testing.T) {
	clusters := 80
	if testing.Short() {
		clusters = 15
	}
	compared, fits := 0, 0
	for seed := range uint64(clusters) {
		nodes := 1 + int(seed)%8
		if seed%40 == 39 {
			nodes = 200
		}
		c := randomCluster(t, 500+seed, nodes)
		specs := []resourcev1.ResourceClaimSpec{c.randomSpec()}
		for range c.random.IntN(3) {
			specs = append(specs, c.randomSpec())
		}
		var asked []*resourcev1.ResourceClaimSpec
		for i := range specs {
			asked = append(asked, &specs[i])
		}
		found, err := PerNode(t.Context(), c.inventory, asked, 256)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(c.nodes, func(a, b *corev1.Node) int { return compare(a.Name, b.Name) })
		for _, node := range c.nodes {
			want := 0
			for results := c.allocateTogether(node, specs...); results != nil; results = c.allocateTogether(node, specs...) {
				for i := range results {
					c.record(specs[i], results[i])
				}
				want++
			}
			at := slices.IndexFunc(found, func(of NodeFill) bool { return of.Node == node.Name })
			if at < 0 && want == 0 {
				continue // it has no devices
			}
			if at < 0 || found[at].Pods != want || found[at].More {
				t.Fatalf("seed %d, node %s: %+v, but %d pods can have their claims", seed, node.Name, found, want)
			}
			compared, fits = compared+1, fits+want
		}
	}
	t.Logf("%d nodes compared, %d pods", compared, fits)
	if fits < clusters/4 {
		t.Error("hardly any pod fits: the test does not exercise it")
	}
}

// reasonOfNext returns why one claim more is pending.
func (c *testCluster) reasonOfNext(spec *resourcev1.ResourceClaimSpec) dra.PendingReason {
	c.inventory.ApplyClaim("team", "next", &resourcev1.ResourceClaim{Spec: *spec})
	d := diagnosis.New(diagnosis.Options{Inventory: c.inventory, Clock: clock.System(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Budget: 1})
	answer := d.Explain(context.Background(), dra.Question{
		Pod: dra.PodRef{Namespace: "team", Name: "next"}, PodUID: "next", Refs: []dra.PendingRef{{PodClaim: "c", Claim: "next"}},
	})
	return answer[0].Reason
}

// After any change, and after refreshes that did not end, the headroom is that of a
// planner that knows nothing of before.
func TestHeadroomAfterChanges(t *testing.T) {
	errInterrupted := errors.New("interrupted")
	for seed := range uint64(12) {
		c := randomCluster(t, 100+seed, 6)
		p := c.planner()
		p.mustRefresh(t)
		for step := range 25 {
			for interrupted := range c.random.IntN(3) { // at some pause
				c.change(100*interrupted + step)
				pauses := c.random.IntN(200)
				if err := p.refresh(t.Context(), func(context.Context) error {
					if pauses--; pauses < 0 {
						return errInterrupted
					}
					return nil
				}); err != nil && !errors.Is(err, errInterrupted) {
					t.Fatal(err)
				}
			}
			c.change(step)
			got, want := p.mustRefresh(t), c.planner().mustRefresh(t)
			if !slices.Equal(got.Shapes, want.Shapes) || !slices.Equal(got.Classes, want.Classes) {
				t.Fatalf("seed %d, step %d:\n%+v\nwant\n%+v", seed, step, got, want)
			}
		}
	}
}

// change changes something.
func (c *testCluster) change(step int) {
	node := c.nodes[c.random.IntN(len(c.nodes))]
	switch c.random.IntN(7) {
	case 0, 1, 2:
		c.hold(c.randomSpec(), node)
	case 3: // a claim ends
		c.inventory.ApplyClaim("team", fmt.Sprintf("claim-%d", 1+c.random.IntN(c.made+1)), nil)
	case 4: // a driver publishes again
		slice := c.slices[c.random.IntN(len(c.slices))].DeepCopy()
		for i := range slice.Spec.Devices {
			if c.chance(30) {
				slice.Spec.Devices[i].Taints = []resourcev1.DeviceTaint{{Key: "example.com/new", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			}
		}
		c.inventory.ApplySlice(slice.Name, slice)
	case 5: // a node comes or goes
		if c.chance(50) {
			c.inventory.ApplyNode(node.Name, nil)
		} else {
			name := fmt.Sprintf("new-%d", step)
			c.node(name, map[string]string{"zone": "a"})
			c.gpus(name, 4)
		}
	default:
		c.template(fmt.Sprintf("template-%d", c.random.IntN(8)), c.randomSpec())
	}
}
