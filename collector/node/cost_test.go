package node

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// configure begins the scene again with another configuration.
func (s *scene) configure(change func(*Config)) {
	config := s.state.config
	change(&config)
	s.state = NewState(config)
}

func (s *scene) priced(rules ...price.Rule) {
	s.configure(func(c *Config) { c.Prices = &price.Prices{Currency: "EUR", Rules: rules} })
}

// prices are those of the page: uuid/class=price, in order.
func (s *scene) prices() string {
	s.t.Helper()
	var list []string
	for _, row := range s.last.Rows() {
		if row.Family.Name == "dra_device_price_per_hour" {
			text := fmt.Sprintf("%s/%s=%v", row.Labels.Get("uuid"), row.Labels.Get("deviceclass"), row.Value)
			if row.Past {
				text += " past"
			}
			list = append(list, text)
		}
	}
	return strings.Join(list, ", ")
}

func TestCostOfASharedDevice(t *testing.T) {
	s := busyGPU(t)
	s.priced(price.Rule{DeviceClass: "gold", PerHour: 36}, price.Rule{Model: "NVIDIA H100*", PerHour: 3.6})
	pages := s.script("dra_device_price", "dra_namespace_cost", "dra_namespace_device_seconds")
	s.run(1)
	pages.show("free")
	s.allocate("ml/train", "gpu-0")
	s.run(1)
	pages.show("a namespace's cost is there from nothing")
	s.run(10)
	pages.show("held by one claim for ten seconds")
	s.allocate("web/serve", "gpu-0").Requests[0].DeviceClass = "gold"
	s.run(1)
	s.run(10)
	pages.show("and by another, of a dearer class, for ten seconds: half of each price")
	s.release("ml/train")
	s.run(11)
	pages.show("the first is released: the price of its class is kept as long as its counters")
	s.release("web/serve")
	s.run(302)
	pages.show("after the grace: the price while free, and totals that outlive claims")
	metrictest.CompareGolden(t, "testdata/cost_shared.txt", pages.String())
}

func TestPricesOfDevices(t *testing.T) {
	whole := price.Rule{Model: "NVIDIA H100", PerHour: 4}
	slice := price.Rule{Profile: "3g.40gb", PerHour: 2}
	class := price.Rule{DeviceClass: "gold", PerHour: 9}
	mig := func() *scene {
		part := gpu(0)
		part.UUID, part.ParentUUID, part.Profile, part.Placement = "MIG-a", "GPU-0", "3g.40gb", 0
		s := newScene(t, gpu(0), part)
		s.facts.Cluster.Published = append(s.facts.Cluster.Published, dra.PublishedDevice{
			ID: sceneID("gpu-0-mig-3g40gb-9-0"), UUID: "MIG-a", ParentUUID: "GPU-0", Profile: "3g.40gb", Placement: 0, Model: "NVIDIA H100",
		})
		return s
	}
	plain := func() *scene { return newScene(t, gpu(0)) }
	for name, c := range map[string]struct {
		scene  func() *scene
		rules  []price.Rule
		change func(*scene)
		want   string
	}{
		"free":                       {plain, []price.Rule{class, whole}, func(*scene) {}, "GPU-0/=4"},
		"free, priced by class only": {plain, []price.Rule{class}, func(*scene) {}, ""},
		"held through a class":       {plain, []price.Rule{class, whole}, func(s *scene) { s.allocate("a/b", "gpu-0").Requests[0].DeviceClass = "gold" }, "GPU-0/gold=9"},
		"held through two classes": {plain, []price.Rule{class, whole}, func(s *scene) {
			s.allocate("a/b", "gpu-0").Requests[0].DeviceClass = "gold"
			s.allocate("a/c", "gpu-0")
			s.allocate("a/d", "gpu-0")
		}, "GPU-0/gold=9, GPU-0/gpu.nvidia.com=4"},
		"held with admin access": {plain, []price.Rule{class, whole}, func(s *scene) {
			c := s.allocate("a/b", "gpu-0")
			c.Requests[0].DeviceClass, c.Results[0].AdminAccess = "gold", true
		}, "GPU-0/=4"},
		"held with admin access beside a claim": {plain, []price.Rule{class, whole}, func(s *scene) {
			s.allocate("a/b", "gpu-0").Requests[0].DeviceClass = "gold"
			s.allocate("a/c", "gpu-0").Results[0].AdminAccess = true
		}, "GPU-0/gold=9"},
		"gone": {plain, []price.Rule{whole}, func(s *scene) {
			s.run(1)
			s.facts.Samples = nil
		}, ""},
		"held by a device plugin": {plain, []price.Rule{class, whole}, func(s *scene) {
			s.facts.Listing, s.facts.ListedAt = s.legacyPod(), s.now
		}, "GPU-0/=4"},
		"held by a claim and a device plugin": {plain, []price.Rule{class, whole}, func(s *scene) {
			s.facts.Listing, s.facts.ListedAt = s.legacyPod(), s.now
			s.allocate("a/b", "gpu-0")
		}, "GPU-0/gpu.nvidia.com=4"},
		"of an unknown model": {plain, []price.Rule{whole}, func(s *scene) {
			s.facts.Samples[0].Device.Model = ""
			s.facts.Cluster.Published[0].Model = ""
		}, ""},
		"of unknown hardware": {plain, []price.Rule{whole}, func(s *scene) {
			s.facts.Samples = nil
			s.allocate("a/b", "gpu-0")
		}, "node-a/gpu.nvidia.com/node-a/gpu-0/gpu.nvidia.com=4"},
		"a partition, free: its parent cannot be held": {mig, []price.Rule{whole, slice}, func(*scene) {}, "MIG-a/=2"},
		"a partition, held":                            {mig, []price.Rule{whole, slice}, func(s *scene) { s.allocate("a/b", "gpu-0-mig-3g40gb-9-0") }, "MIG-a/gpu.nvidia.com=2"},
		"a partition of unknown profile": {mig, []price.Rule{whole}, func(s *scene) {
			s.facts.Samples[1].Device.Profile, s.facts.Cluster.Published[1].Profile = "", ""
		}, ""},
		"a partition that is held before it exists": {mig, []price.Rule{slice, whole}, func(s *scene) {
			s.facts.Samples = s.facts.Samples[:1]
			s.allocate("a/b", "gpu-0-mig-3g40gb-9-0")
		}, "node-a/gpu.nvidia.com/node-a/gpu-0-mig-3g40gb-9-0/gpu.nvidia.com=2"},
	} {
		s := c.scene()
		s.priced(c.rules...)
		c.change(s)
		s.run(3)
		if got := s.prices(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestPricesOfThePast(t *testing.T) {
	s := busyGPU(t)
	s.priced(price.Rule{DeviceClass: "gold", PerHour: 9}, price.Rule{PerHour: 4})
	steps := []struct {
		change func()
		want   string
	}{
		{func() {}, "GPU-0/=4"},
		{func() { s.allocate("a/b", "gpu-0").Requests[0].DeviceClass = "gold" }, "GPU-0/gold=9"},
		{func() { s.release("a/b"); s.allocate("a/c", "gpu-0") }, "GPU-0/gpu.nvidia.com=4, GPU-0/gold=9 past"},
		{func() { s.release("a/c") }, "GPU-0/=4, GPU-0/gold=9 past, GPU-0/gpu.nvidia.com=4 past"},
		{func() { s.allocate("a/b", "gpu-0").Requests[0].DeviceClass = "gold" }, "GPU-0/gold=9, GPU-0/gpu.nvidia.com=4 past"},
		{func() { s.run(300) }, "GPU-0/gold=9"},
		{func() { s.release("a/b"); s.run(1); s.unreadable["GPU-0"] = true; s.run(299) }, "GPU-0/=4, GPU-0/gold=9 past"},
		{func() { s.run(2) }, "GPU-0/=4"},
	}
	for i, step := range steps {
		step.change()
		s.run(1)
		if got := s.prices(); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

func TestNoCostWithoutAPrice(t *testing.T) {
	s := busyGPU(t)
	s.allocate("ml/train", "gpu-0")
	s.run(10)
	if page := s.page("dra_device_price", "dra_namespace_cost"); page != "" {
		t.Errorf("without a price list:\n%s", page)
	}
	s.priced(price.Rule{Model: "NVIDIA B200", PerHour: 1})
	s.run(10)
	if page := s.page("dra_device_price", "dra_namespace_cost"); page != "" {
		t.Errorf("without a price of the model:\n%s", page)
	}
}

// A device whose model is found later costs from then on.
func TestCostBeginsWithThePrice(t *testing.T) {
	s := busyGPU(t)
	s.priced(price.Rule{Model: "NVIDIA H100", PerHour: 3600})
	s.facts.Samples[0].Device.Model, s.facts.Cluster.Published[0].Model = "", ""
	s.allocate("ml/train", "gpu-0")
	s.run(10)
	s.facts.Samples[0].Device.Model = "NVIDIA H100"
	s.step(time.Second)
	began := s.now.Wall
	s.run(10)
	for _, row := range s.last.Rows() {
		if row.Family.Name == "dra_namespace_cost_total" {
			if row.Labels.Get("model") != "NVIDIA H100" || row.Value != 11 || !row.Start.Equal(began) {
				t.Errorf("%s is %v since %v, want 11 since %v", seriesName(row), row.Value, row.Start, began)
			}
			return
		}
	}
	t.Error("nothing costs")
}

// TestCostIsThePriceOfHeldTime lets claims of three namespaces and two
// classes come and go for a day, and holds what they are charged against an
// account of its own: of each step, the price times the part of the device
// that those have who held it at both ends.
func TestCostIsThePriceOfHeldTime(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 5))
		s := newScene(t, gpu(0))
		s.set("GPU-0", device.Utilization, 0.5)
		prices := map[string]float64{"gold": 9, "silver": 3.5}
		s.priced(price.Rule{DeviceClass: "gold", PerHour: 9}, price.Rule{Model: "NVIDIA*", PerHour: 3.5})
		type holder struct {
			namespace, class string
			memory           float64 // consumed; 0: none
		}
		held, want, covered := map[string]holder{}, map[string]float64{}, 0.0
		for range 300 {
			before := make(map[string]bool, len(held))
			for claim := range held {
				before[claim] = true
			}
			namespace := fmt.Sprintf("team-%d", random.IntN(3))
			claim := namespace + fmt.Sprintf("/claim-%d", random.IntN(2))
			if _, holds := held[claim]; holds {
				s.release(claim)
				delete(held, claim)
			} else if random.IntN(2) == 0 {
				h := holder{namespace, []string{"gold", "silver"}[random.IntN(2)], float64(random.IntN(3)) * 10e9}
				c := s.allocate(claim, "gpu-0")
				c.Requests[0].DeviceClass = h.class
				if h.memory > 0 {
					c.Results[0].Consumed = map[string]float64{"memory": h.memory}
				}
				held[claim] = h
			}
			pause := time.Duration(1+random.IntN(300)) * time.Second
			s.step(pause)
			allConsume, consumed := true, 0.0
			for _, h := range held {
				allConsume = allConsume && h.memory > 0
				consumed += h.memory
			}
			for claim, h := range held {
				weight := 1 / float64(len(held))
				if allConsume {
					weight = h.memory / max(80e9, consumed)
				}
				if before[claim] {
					want[h.namespace] += weight * pause.Hours() * prices[h.class]
					covered += weight * pause.Hours()
				}
			}
		}
		got, seconds := map[string]float64{}, 0.0
		for _, row := range s.last.Rows() {
			switch row.Family.Name {
			case "dra_namespace_cost_total":
				got[row.Labels.Get("namespace")] += row.Value
			case "dra_namespace_device_seconds_total":
				seconds += row.Value
			}
		}
		for namespace, cost := range want {
			if math.Abs(got[namespace]-cost) > 1e-9*cost {
				t.Errorf("seed %d: %s is charged %v, want %v", seed, namespace, got[namespace], cost)
			}
		}
		if len(got) != 3 || covered < 1 || math.Abs(seconds/3600-covered) > 1e-9*covered {
			t.Errorf("seed %d: %v of 3 namespaces, for %v hours; %v device-seconds", seed, got, covered, seconds)
		}
	}
}

// TestCostOfAnHour: what the claims of a device cost together in an hour is
// its price.
func TestCostOfAnHour(t *testing.T) {
	s := busyGPU(t)
	s.priced(price.Rule{PerHour: 4.2})
	for i := range 7 {
		s.allocate(fmt.Sprintf("team-%d/claim", i%3), "gpu-0")
		s.facts.Cluster.Claims[i].Ref.Name += fmt.Sprint(i)
		s.facts.Cluster.Pods[i].Claims[0].Claim += fmt.Sprint(i)
		s.facts.Cluster.Pods[i].Ref.Name += fmt.Sprint(i)
	}
	s.run(1)
	for range 720 {
		s.step(5 * time.Second)
	}
	sum := 0.0
	for _, row := range s.last.Rows() {
		if row.Family.Name == "dra_namespace_cost_total" {
			sum += row.Value
		}
	}
	if math.Abs(sum-4.2) > 1e-9 {
		t.Errorf("an hour costs %v, want 4.2:\n%s", sum, s.page("dra_namespace_cost", "dra_device_holders"))
	}
}

// TestCostOfAnOverallocatedDevice: a driver that publishes less capacity than is
// consumed does not make the device dearer.
func TestCostOfAnOverallocatedDevice(t *testing.T) {
	s := busyGPU(t)
	s.priced(price.Rule{PerHour: 3600})
	for claim, memory := range map[string]float64{"a/one": 60e9, "b/two": 20e9} {
		s.allocate(claim, "gpu-0").Results[0].Consumed = map[string]float64{"memory": memory}
	}
	s.facts.Cluster.Published[0].Capacity = map[string]float64{"memory": 40e9}
	s.run(11)
	got := map[string]float64{}
	for _, row := range s.last.Rows() {
		if row.Family.Name == "dra_namespace_cost_total" {
			got[row.Labels.Get("namespace")] = row.Value
		}
	}
	if math.Abs(got["a"]-7.5) > 1e-9 || math.Abs(got["b"]-2.5) > 1e-9 {
		t.Errorf("ten seconds cost %v, want 7.5 and 2.5", got)
	}
}

// A price list that is reloaded is in force from the next step on: what was
// charged before stays.
func TestReloadedPrices(t *testing.T) {
	s := newScene(t, gpu(0))
	s.priced(price.Rule{Model: "NVIDIA H100", PerHour: 3600})
	s.allocate("ml/train", "gpu-0")
	s.run(1)
	s.run(10)
	cost := func() (total float64) {
		for _, row := range s.last.Rows() {
			if row.Family.Name == "dra_namespace_cost_total" {
				total += row.Value
			}
		}
		return total
	}
	before := cost()
	s.facts.Prices = &price.Prices{Currency: "EUR", Rules: []price.Rule{{Model: "NVIDIA H100", PerHour: 7200}}}
	s.run(10)
	if got := s.prices(); got != "GPU-0/gpu.nvidia.com=7200" {
		t.Errorf("the prices are %q", got)
	}
	if grown := cost() - before; before != 10 || math.Abs(grown-20) > 0.001 {
		t.Errorf("ten seconds cost %v before and %v after", before, grown)
	}
	unpriced := newScene(t, gpu(0))
	unpriced.facts.Prices = s.facts.Prices
	unpriced.run(1)
	if got := unpriced.prices(); got != "" {
		t.Errorf("without a price list at the start %q", got)
	}
}

// TestReloadedPricesOfThePast reloads lists while the grace keeps rows of holds that were
// released: no row has a price of an earlier list, and no time is charged by one.
func TestReloadedPricesOfThePast(t *testing.T) {
	gold, silver, other := price.Rule{DeviceClass: "gold", PerHour: 9}, price.Rule{DeviceClass: "silver", PerHour: 5}, price.Rule{Model: "NVIDIA H100", PerHour: 4}
	dearer := price.Rule{DeviceClass: "gold", PerHour: 18}
	s := newScene(t, gpu(0))
	s.priced(gold, silver, other)
	hold := func(claim, class string) { s.allocate(claim, "gpu-0").Requests[0].DeviceClass = class }
	reload := func(rules ...price.Rule) { s.facts.Prices = &price.Prices{Currency: "EUR", Rules: rules} }
	for i, step := range []struct {
		change func()
		want   string
	}{
		{func() { hold("a/b", "gold") }, "GPU-0/gold=9"},
		{func() { s.release("a/b"); hold("a/c", "silver") }, "GPU-0/silver=5, GPU-0/gold=9 past"},
		{func() { reload(dearer, silver) }, "GPU-0/silver=5, GPU-0/gold=18 past"},
		{func() { reload(silver) }, "GPU-0/silver=5"},
		{func() { s.release("a/c") }, "GPU-0/silver=5 past"},
		{func() { reload(gold, other) }, "GPU-0/=4, GPU-0/silver=4 past"},
		{func() { hold("a/d", "gold") }, "GPU-0/gold=9, GPU-0/silver=4 past"},
		{func() { reload(price.Rule{Model: "another", PerHour: 1}) }, ""},
		{func() { s.release("a/d") }, ""},
		{func() { reload(gold) }, ""},
	} {
		step.change()
		s.run(1)
		if got := s.prices(); got != step.want {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}
