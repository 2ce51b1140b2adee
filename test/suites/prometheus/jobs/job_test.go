package jobs_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/jobs"
)

func training() jobs.Job {
	return jobs.Job{
		Namespace: "ml", Name: "train", Devices: 16,
		Step: 4 * time.Second, Compute: 0.7, StepBytes: 8e9, NodeBytes: 2e9, Memory: 60e9,
	}
}

// last plays a job and returns the last samples of its ranks.
func last(t *testing.T, job jobs.Job, seed uint64, duration time.Duration, faults ...jobs.Fault) ([]jobs.Sample, *jobs.Player) {
	t.Helper()
	player, ranks := jobs.NewPlayer(job, faults, seed), make([]jobs.Sample, job.Devices)
	player.Play(15*time.Second, duration, func(s jobs.Sample) {
		if before := ranks[s.Rank]; s.At != before.At+15*time.Second || s.Energy <= before.Energy || s.BusySeconds < before.BusySeconds || s.NVLinkBytes < before.NVLinkBytes {
			t.Fatalf("after %+v came %+v", before, s)
		}
		ranks[s.Rank] = s
	})
	return ranks, player
}

// near reports whether two numbers differ by at most so much of the second.
func near(got, want, tolerance float64) bool { return math.Abs(got-want) <= tolerance*math.Abs(want) }

func TestHealthyJob(t *testing.T) {
	ranks, player := last(t, training(), 1, time.Hour)
	// The slowest of 16 ranks is at most 7 % slower than the mean.
	if steps := float64(player.Steps()); steps < 900*0.93 || steps > 900 {
		t.Errorf("%v steps in an hour", steps)
	}
	for _, r := range ranks {
		if !near(r.NVLinkBytes, 8e9*float64(player.Steps()), 0.002) || !near(r.NetworkBytes, 2e9*float64(player.Steps()), 0.002) {
			t.Errorf("rank %d sent %g bytes in %d steps", r.Rank, r.NVLinkBytes, player.Steps())
		}
		if watts := r.Energy / 3600; !near(watts, 530, 0.12) {
			t.Errorf("rank %d draws %.0f W", r.Rank, watts)
		}
		if !near(r.BusySeconds, 3600, 0.001) || r.ThrottledSeconds+r.NVLinkErrors != 0 || r.NetworkErrors > 10 {
			t.Errorf("%+v", r)
		}
	}
	again, _ := last(t, training(), 1, time.Hour)
	if other, _ := last(t, training(), 2, time.Hour); fmt.Sprint(again) != fmt.Sprint(ranks) || fmt.Sprint(other) == fmt.Sprint(ranks) {
		t.Error("the seed does not decide")
	}
}

// A slow rank makes the whole job slow by as much, and the metrics of the cause
// differ on that rank alone.
func TestStragglers(t *testing.T) {
	_, healthy := last(t, training(), 1, time.Hour)
	for _, kind := range []jobs.Kind{jobs.ThermalThrottle, jobs.SlowNIC, jobs.BadNVLink, jobs.NoisyNeighbour} {
		t.Run(string(kind), func(t *testing.T) {
			ranks, player := last(t, training(), 1, time.Hour, jobs.Fault{Kind: kind, Rank: 5, To: time.Hour, Slowdown: 0.3})
			if ratio := float64(healthy.Steps()) / float64(player.Steps()); !near(ratio, 1.3, 0.05) {
				t.Errorf("a step takes %.2f times as long", ratio)
			}
			for _, r := range ranks {
				slow := r.Rank == 5
				if (r.ThrottledSeconds > 600) != (slow && kind == jobs.ThermalThrottle) || (r.NetworkErrors > 1000) != (slow && kind == jobs.SlowNIC) ||
					(r.NVLinkErrors > 1000) != (slow && kind == jobs.BadNVLink) || (r.BusySeconds < 3000) != (slow && kind == jobs.NoisyNeighbour) {
					t.Errorf("%+v", r)
				}
				if !near(r.NVLinkBytes, ranks[0].NVLinkBytes, 0.002) {
					t.Errorf("rank %d sent %g bytes, rank 0 %g", r.Rank, r.NVLinkBytes, ranks[0].NVLinkBytes)
				}
			}
			if slow, other := ranks[5].Energy, ranks[4].Energy; kind == jobs.ThermalThrottle && slow > 0.9*other {
				t.Errorf("a throttled rank draws %g J, another one %g", slow, other)
			}
		})
	}
}

// Ranks that compute longer draw more power, and the others wait for them.
func TestImbalance(t *testing.T) {
	job := training()
	job.Imbalance = 0.1
	ranks, _ := last(t, job, 1, time.Hour)
	if first, most := ranks[0].Energy, ranks[15].Energy; most < 1.02*first {
		t.Errorf("rank 0 has used %g J, rank 15 %g J", first, most)
	}
}

func TestHangs(t *testing.T) {
	job := training()
	job.Checkpoint = jobs.Pause{Every: 10 * time.Minute, Lasts: time.Minute}
	for kind, utilization := range map[jobs.Kind]float64{jobs.HangCollective: 1, jobs.HangStuckRank: 1, jobs.HangDeadRank: 0} {
		t.Run(string(kind), func(t *testing.T) {
			before := map[int]jobs.Sample{}
			jobs.NewPlayer(job, []jobs.Fault{{Kind: kind, Rank: 3, From: 20 * time.Minute, To: 40 * time.Minute}}, 1).Play(15*time.Second, time.Hour, func(s jobs.Sample) {
				earlier := before[s.Rank]
				before[s.Rank] = s
				sent := s.NVLinkBytes - earlier.NVLinkBytes
				switch {
				case s.At > 21*time.Minute && s.At < 40*time.Minute:
					want := 1.0
					if s.Rank == 3 {
						want = utilization
					}
					if sent != 0 || s.Utilization != want || s.TensorActive != 0 || s.Power > 180 {
						t.Errorf("while it hangs: %+v", s)
					}
				case s.At > 50*time.Minute && s.At%(5*time.Minute) == 0 && sent == 0 && s.Utilization == 1:
					t.Errorf("after the hang: %+v", s)
				}
			})
		})
	}
}

// Pauses are no hangs: the devices are idle or evaluate.
func TestPauses(t *testing.T) {
	job := training()
	job.Checkpoint, job.Evaluation = jobs.Pause{Every: 10 * time.Minute, Lasts: time.Minute}, jobs.Pause{Every: 20 * time.Minute, Lasts: 4 * time.Minute}
	idle, evaluating := 0, 0
	jobs.NewPlayer(job, nil, 1).Play(15*time.Second, 2*time.Hour, func(s jobs.Sample) {
		switch {
		case s.Rank != 0:
		case s.Utilization == 0:
			idle++
		case s.Utilization < 1:
			evaluating++
		}
	})
	job = training()
	job.Checkpoint = jobs.Pause{Every: 10 * time.Minute, Lasts: time.Minute, Waits: true}
	ranks, _ := last(t, job, 1, 2*time.Hour)
	for _, r := range ranks {
		if waited := r.BusySeconds > 7190; waited != (r.Rank > 0) {
			t.Errorf("rank %d was busy for %.0f of 7200 s", r.Rank, r.BusySeconds)
		}
	}
	if share := float64(idle) / 480; share < 0.05 || share > 0.12 {
		t.Errorf("%.2f of the time are checkpoints", share)
	}
	if share := float64(evaluating) / 480; share < 0.1 || share > 0.25 {
		t.Errorf("%.2f of the time are evaluations", share)
	}
}
