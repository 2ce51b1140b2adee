package node

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// idleScene is two GPUs of one model that nothing holds, and that draw 70 W.
func idleScene(t testing.TB) *scene {
	s := newScene(t, gpu(0), gpu(1))
	s.facts.ListedAt = s.now
	for _, uuid := range []string{"GPU-0", "GPU-1"} {
		s.set(uuid, device.Utilization, 0)
		s.set(uuid, device.Power, 70)
		s.set(uuid, device.MemoryUsed, 1e9)
		s.set(uuid, device.MemorySize, 80e9)
		s.set(uuid, device.NVLinkTransmit, 0)
	}
	return s
}

// forSeconds steps once a second while the device reads this, and its NVLink counter
// grows by so many bytes a second.
func (s *scene) forSeconds(seconds int, uuid string, utilization, power, bytes float64) {
	s.set(uuid, device.Utilization, utilization)
	s.set(uuid, device.Power, power)
	for range seconds {
		s.set(uuid, device.NVLinkTransmit, s.sampled[uuid][device.NVLinkTransmit]+bytes)
		s.step(time.Second)
	}
}

// executionIdle returns what the claim has accrued.
func (s *scene) executionIdle(claim string) (seconds, joules float64, known bool) {
	seconds, known = s.value("dra_claim_execution_idle_seconds_total", "resourceclaim", claim)
	joules, _ = s.value("dra_claim_execution_idle_joules_total", "resourceclaim", claim)
	return seconds, joules, known
}

func TestExecutionIdle(t *testing.T) {
	free := func(s *scene) { s.run(3) }
	for name, test := range map[string]struct {
		before  func(*scene)
		held    func(*scene)
		seconds float64
		joules  float64
		absent  bool
	}{
		"computes": {before: free, held: func(s *scene) { s.forSeconds(10, "GPU-0", 0.9, 400, 0) }},
		"is kept ready": {before: free, held: func(s *scene) { s.forSeconds(10, "GPU-0", 0, 150, 0) },
			seconds: 10, joules: 800},
		"is kept ready between work": {before: free, held: func(s *scene) {
			s.forSeconds(10, "GPU-0", 0.9, 400, 0)
			s.forSeconds(5, "GPU-0", 0.04, 120, 0)
			s.forSeconds(10, "GPU-0", 0.06, 120, 0)
		}, seconds: 5, joules: 250},
		"draws hardly more than without a holder": {before: free, held: func(s *scene) { s.forSeconds(10, "GPU-0", 0, 80, 0) }},
		"moves data over NVLink":                  {before: free, held: func(s *scene) { s.forSeconds(10, "GPU-0", 0, 150, 2e9) }},
		"moves little over NVLink": {before: free, held: func(s *scene) { s.forSeconds(10, "GPU-0", 0, 150, 0.5e9) },
			seconds: 10, joules: 800},
		"an engine is active": {before: free, held: func(s *scene) {
			s.setDetail("GPU-0", device.EngineActive, 0.3, "tensor")
			s.forSeconds(10, "GPU-0", 0, 150, 0)
		}},
		"memory is read": {before: free, held: func(s *scene) {
			s.set("GPU-0", device.MemoryActivity, 0.2)
			s.forSeconds(10, "GPU-0", 0, 150, 0)
		}},
		"was never free, but another of its model was": {before: func(s *scene) { s.allocate("ml/train", "gpu-0"); s.run(3) },
			held: func(s *scene) { s.forSeconds(10, "GPU-0", 0, 150, 0) }, seconds: 10, joules: 800},
		"a sensor read too little at rest, once or twice": {before: func(s *scene) {
			free(s)
			for _, watts := range []float64{0.08, 70, 70, 70, 70, 0.08, 0.08, 70, 70, 70, 70} {
				s.forSeconds(1, "GPU-0", 0, watts, 0)
			}
		}, held: func(s *scene) { s.forSeconds(100, "GPU-0", 0, 72, 0) }},
		"no device of its model was free": {before: func(s *scene) {
			s.allocate("ml/train", "gpu-0")
			s.allocate("ml/other", "gpu-1")
			s.run(3)
		}, held: func(s *scene) { s.forSeconds(10, "GPU-0", 0, 150, 0) }, absent: true},
		"the power is not read": {before: func(s *scene) {
			s.run(3)
			s.unset("GPU-0", device.Power)
		}, held: func(s *scene) { s.run(10) }, absent: true},
		"cannot be read for a minute": {before: free, held: func(s *scene) {
			s.forSeconds(5, "GPU-0", 0, 150, 0)
			s.unreadable["GPU-0"] = true
			s.run(60)
			s.unreadable["GPU-0"] = false
			s.forSeconds(6, "GPU-0", 0, 150, 0)
		}, seconds: 10, joules: 800},
	} {
		t.Run(name, func(t *testing.T) {
			s := idleScene(t)
			test.before(s)
			if len(s.facts.Cluster.Claims) == 0 {
				s.allocate("ml/train", "gpu-0")
				s.step(time.Second)
			}
			test.held(s)
			seconds, joules, known := s.executionIdle("train")
			if known == test.absent || math.Abs(seconds-test.seconds) > 1e-9 || math.Abs(joules-test.joules) > 1e-6 {
				t.Errorf("%v s, %v J (known: %v), want %v s, %v J", seconds, joules, known, test.seconds, test.joules)
			}
		})
	}
}

// While it is not known who holds a device, what it draws is not its idle power.
func TestExecutionIdleOfAHeldDeviceAtTheStart(t *testing.T) {
	for name, unknown := range map[string]func(*Facts){
		"claims":         func(f *Facts) { f.Cluster.Fresh = false },
		"slices":         func(f *Facts) { f.Cluster.SlicesFresh = false },
		"device plugins": func(f *Facts) { f.ListedAt = clock.Instant{} },
	} {
		t.Run(name, func(t *testing.T) {
			s := idleScene(t)
			s.set("GPU-1", device.Power, 150)
			known := s.facts
			unknown(&s.facts)
			s.forSeconds(5, "GPU-0", 0, 150, 0)
			samples := s.facts.Samples
			s.facts = known
			s.facts.Samples = samples
			s.allocate("ml/train", "gpu-0")
			s.allocate("ml/other", "gpu-1")
			s.forSeconds(5, "GPU-0", 0, 150, 0)
			if seconds, _, known := s.executionIdle("train"); known {
				t.Errorf("%v s without a known idle power", seconds)
			}
		})
	}
}

// A counter of a bus that is read less often than the utilization counts between its
// readings too.
func TestExecutionIdleWithSlowCounters(t *testing.T) {
	s := idleScene(t)
	s.run(3)
	s.allocate("ml/train", "gpu-0")
	s.measured = map[string]map[device.Quantity]device.Window{"GPU-0": {}}
	for second := range 12 {
		if second%3 == 0 {
			at := s.now.Elapsed + time.Second
			s.measured["GPU-0"][device.NVLinkTransmit] = device.Window{From: at, To: at}
			s.set("GPU-0", device.NVLinkTransmit, float64(second)*2e9)
		}
		s.set("GPU-0", device.Power, 150)
		s.step(time.Second)
	}
	if seconds, _, known := s.executionIdle("train"); !known || seconds > 3 { // the rate is known from the second reading on
		t.Errorf("%v s (known: %v) while 2 GB/s are sent", seconds, known)
	}
}

// Of devices that several claims share, each claim has the device's own.
func TestExecutionIdleOfASharedDevice(t *testing.T) {
	s := idleScene(t)
	s.run(3)
	s.allocate("ml/first", "gpu-0")
	s.allocate("ml/second", "gpu-0")
	s.step(time.Second)
	s.forSeconds(10, "GPU-0", 0, 150, 0)
	for _, claim := range []string{"first", "second"} {
		if seconds, joules, _ := s.executionIdle(claim); seconds != 10 || joules != 800 {
			t.Errorf("%s: %v s, %v J", claim, seconds, joules)
		}
	}
}

// Whatever happens second by second, a claim accrues the seconds, and the energy above
// the idle power: the lowest median of five readings in a row while the device was free.
func TestExecutionIdleOfRandomHistories(t *testing.T) {
	some := 0.0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 5))
		s := idleScene(t)
		idle, held, wantSeconds, wantJoules := math.Inf(1), false, map[string]float64{}, map[string]float64{}
		var free []float64
		claim, since := "", 0
		for second := range 300 {
			switch {
			case !held && random.IntN(10) == 0:
				claim = fmt.Sprintf("claim-%d", second)
				s.allocate("ml/"+claim, "gpu-0")
				held, since = true, second
			case held && random.IntN(40) == 0:
				s.release("ml/" + claim)
				held = false
			}
			utilization := []float64{0, 0, 0.03, 0.5}[random.IntN(4)]
			power := 60 + 100*random.Float64()
			bytes := []float64{0, 0, 9e8, 3e9}[random.IntN(4)]
			s.forSeconds(1, "GPU-0", utilization, power, bytes)
			switch {
			case held && second > since && !math.IsInf(idle, 1) && utilization < 0.05 && bytes < 1e9 && power > 1.2*idle:
				wantSeconds[claim]++
				wantJoules[claim] += power - idle
			case !held && utilization == 0:
				free = append(free, power)
				if last := free[max(0, len(free)-5):]; len(last) < 5 {
					idle = slices.Max(last)
				} else {
					idle = min(idle, slices.Sorted(slices.Values(last))[2])
				}
			}
		}
		for claim, want := range wantSeconds {
			seconds, joules, known := s.executionIdle(claim)
			if !known || math.Abs(seconds-want) > 1e-6 || math.Abs(joules-wantJoules[claim]) > 1e-3 {
				t.Fatalf("seed %d, %s: %v s, %v J, want %v s, %v J", seed, claim, seconds, joules, want, wantJoules[claim])
			}
			some += seconds
		}
	}
	if some == 0 {
		t.Error("nothing was idle: the test does not exercise it")
	}
}
