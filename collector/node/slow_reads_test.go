package node

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
)

// TestSlowReads is why held devices are not read as seldom as free ones. Read every five
// seconds, the busy seconds of an hour of a claim differ by more than 5 s and 2 % under the
// worst of twenty random loads; read each second, they are those of the load.
func TestSlowReads(t *testing.T) {
	random, loads := rand.New(rand.NewPCG(1, 2)), 40
	if testing.Short() {
		loads = 20
	}
	errors := make([]float64, loads)
	for i := range errors {
		utilization := randomLoad(random)
		exact := 0.0
		for _, ratio := range utilization[1:] { // the hold begins with the first read
			exact += ratio
		}
		busy := busySeconds(t, utilization, 1)
		if math.Abs(busy-exact) > 1 {
			t.Errorf("read each second, a load of %.1f busy seconds has %.1f", exact, busy)
		}
		errors[i] = math.Abs(busySeconds(t, utilization, 5)-busy) / max(5, busy/50)
	}
	slices.Sort(errors)
	worst := errors[len(errors)*19/20-1]
	t.Logf("read every five seconds, the error is %.1f times what is allowed", worst)
	if worst <= 1 {
		t.Error("held devices can be read as seldom as free ones")
	}
}

// randomLoad returns the utilization of each second of an hour: it is on and off for times
// from a fifth of a second to ten minutes on average.
func randomLoad(random *rand.Rand) []float64 {
	const perSecond = 10
	mean := func() float64 { return 0.2 * math.Pow(3000, random.Float64()) }
	means, level, on := [2]float64{mean(), mean()}, 0.1+0.9*random.Float64(), random.IntN(2)
	utilization, left := make([]float64, 3600), 0.0
	for i := range utilization {
		for range perSecond {
			if left -= 1.0 / perSecond; left <= 0 {
				on, left = 1-on, random.ExpFloat64()*means[on]
			}
			utilization[i] += level * float64(on) / perSecond
		}
	}
	return utilization
}

// busySeconds returns those of a claim whose device is read so many seconds apart.
func busySeconds(t *testing.T, utilization []float64, every int) float64 {
	t.Helper()
	s := newScene(t, gpu(0))
	s.immutable = true
	s.reducer = func(facts Facts, now clock.Instant) { s.state, s.last, _ = Step(s.state, facts, now) }
	s.allocate("ml/train", "gpu-0")
	for i := 0; i < len(utilization); i += every {
		s.set("GPU-0", device.Utilization, utilization[i])
		s.step(time.Duration(every) * time.Second)
	}
	busy, ok := s.value("dra_claim_busy_seconds_total")
	if !ok {
		t.Fatal("the claim has no busy seconds")
	}
	return busy
}
