// Package jobs plays training jobs with known faults, for tests of the rules that
// find stragglers and hangs. It models what the metrics of such jobs show, from
// published measurements; no real job was recorded.
//
// A job is synchronous: in each step, every rank computes, then all ranks exchange
// data, and none begins the next step before the last one is done. A rank that
// waits for others in a collective spins: its utilization is 1, its tensor cores do
// nothing, and its power is far below that of computing. So a slow rank slows all,
// and differs from them by what it does while they wait.
package jobs

import (
	"math"
	"math/rand/v2"
	"time"
)

// Job is a training job.
type Job struct {
	Namespace, Name string
	Devices         int // ranks, one device each

	Step       time.Duration // of a healthy job
	Compute    float64       // share of the step in which a rank computes; the rest is communication
	StepBytes  float64       // that each rank sends over NVLink in a step
	NodeBytes  float64       // that each rank's network adapter sends in a step; 0: the job is on one node
	Memory     float64       // bytes that each rank uses
	Imbalance  float64       // how much longer the last eighth of the ranks computes: 0.1 is 10 %
	Checkpoint Pause         // writes files: devices are nearly idle
	Evaluation Pause         // another program on the devices: less power, little communication
	DataStall  Pause         // no data: devices wait, without a collective
}

// Pause is a phase that comes again and again, in which the job does not train. The
// zero value never comes.
type Pause struct {
	Every, Lasts time.Duration // on average; both vary by a fifth
	Waits        bool          // only rank 0 pauses; the others wait for it in a collective
}

// Kind is the kind of a fault.
type Kind string

// Faults of one rank that slow the job, and hangs, in which it stops.
const (
	// ThermalThrottle lowers the clock of a device.
	ThermalThrottle Kind = "thermal throttle"
	// SlowNIC slows the network of a node: packets are sent again.
	SlowNIC Kind = "slow NIC"
	// BadNVLink slows the NVLink of a device: it has errors.
	BadNVLink Kind = "bad NVLink"
	// NoisyNeighbour takes the host's CPUs, so that a device waits between kernels.
	NoisyNeighbour Kind = "noisy neighbour"

	// HangCollective has all ranks spin in a collective that never ends.
	HangCollective Kind = "hang of a collective"
	// HangStuckRank has one rank stuck in a kernel while all others spin.
	HangStuckRank Kind = "hang of a rank"
	// HangDeadRank has one rank do nothing, because its process is blocked on the
	// host, while all others spin.
	HangDeadRank Kind = "hang of a process"
)

// IsHang reports whether the fault stops the job.
func (k Kind) IsHang() bool { return k == HangCollective || k == HangStuckRank || k == HangDeadRank }

// Fault is a fault of one rank during a part of the job.
type Fault struct {
	Kind     Kind
	Rank     int
	From, To time.Duration // since the start of the job
	Slowdown float64       // of the rank's step: 0.15 is 15 % longer; not for hangs
	Passes   bool          // so soon that it should be no alert
}

// activity is what a rank does at a moment.
type activity uint8

const (
	computing activity = iota
	communicating
	spinning // waits in a collective
	evaluating
	idling // no kernel runs
	stuck  // in a kernel that never ends
)

// Powers in watts, after reports on jobs on H100 (700 W): spinning and stuck ranks
// had 129 to 152 W (NCCL issue 1550), and a context alone takes 26 to 66 W beyond
// an idle device (arXiv 2605.23918). That of computing is 91 % of the limit.
const powerIdle = 105.0

// traits returns what the metrics show of an activity: ratios, and watts.
func (a activity) traits() (utilization, sm, tensor, power float64) {
	switch a {
	case computing:
		return 1, 0.85, 0.45, 640
	case communicating:
		return 1, 0.25, 0, 320
	case spinning:
		return 1, 0.12, 0, 145
	case evaluating:
		return 0.8, 0.5, 0.25, 380
	case stuck:
		return 1, 0.05, 0, 152
	default:
		return 0, 0, 0, powerIdle
	}
}

const (
	clockBoost = 1.98e9 // hertz

	packetErrors = 20.0  // per second of communication over a slow network
	strayErrors  = 0.002 // per second over a healthy one
	linkErrors   = 5.0   // per second of communication over a bad NVLink
)

// Sample is what the metrics of one rank show at one time. Counters are totals
// since the start of the job.
type Sample struct {
	Rank int
	At   time.Duration // since the start of the job

	Utilization, SMActive, TensorActive float64 // 0 to 1
	Power, Clock, Memory                float64 // watts, hertz, bytes

	BusySeconds, Energy, NVLinkBytes, NetworkBytes, ThrottledSeconds float64
	NVLinkErrors, NetworkErrors                                      float64
}

// Player plays a job. It is not safe for concurrent use.
type Player struct {
	job    Job
	faults []Fault
	random *rand.Rand
	ranks  []rank
	pauses []pause
	at     time.Duration // since the start of the job
	left   time.Duration // of what all ranks do now: a step, a pause or a hang
	steps  int           // that were begun
	hung   time.Duration // since when it hangs or has hung, 0 if it has not
}

// rank is one device: its traits, and what it does now.
type rank struct {
	power, clock float64 // of this piece of silicon and its place in the rack: factors around 1

	parts  []part // what it does now, and next
	totals Sample // its counters
}

// part is a time in which a rank does one thing.
type part struct {
	does       activity
	lasts      time.Duration
	clock      float64 // factor
	duty       float64 // share of the time in which kernels run
	throttled  bool
	nvlink     float64 // bytes per second
	network    float64
	linkErrors float64 // per second
	packets    float64 // that are sent again, per second
}

type pause struct {
	Pause
	does activity
	next time.Duration
}

// NewPlayer returns a player of a job with faults. The same seed plays the same.
func NewPlayer(job Job, faults []Fault, seed uint64) *Player {
	p := &Player{job: job, faults: faults, random: rand.New(rand.NewPCG(seed, 1)), ranks: make([]rank, job.Devices)}
	for i := range p.ranks {
		p.ranks[i].power = 1 + 0.03*p.normal()
		p.ranks[i].clock = 1 + 0.008*p.normal()
	}
	for _, of := range []pause{{Pause: job.Checkpoint, does: idling}, {Pause: job.Evaluation, does: evaluating}, {Pause: job.DataStall, does: idling}} {
		if of.Every > 0 {
			of.next = p.varied(of.Every)
			p.pauses = append(p.pauses, of)
		}
	}
	return p
}

// normal returns a normal number within three deviations: what lies beyond is a
// fault, and no noise.
func (p *Player) normal() float64 { return max(-3, min(3, p.random.NormFloat64())) }

// varied varies a duration by a fifth.
func (p *Player) varied(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*p.random.Float64()))
}

// Steps returns how many steps the job has begun.
func (p *Player) Steps() int { return p.steps }

// Hung returns when the last hang began, which is after the step or the pause in which
// its fault began; 0 if there was none.
func (p *Player) Hung() time.Duration { return p.hung }

// Play calls a function with the samples of all ranks, every interval, for so long.
func (p *Player) Play(interval, duration time.Duration, each func(Sample)) {
	for end := p.at + duration; p.at+interval <= end; {
		for next := p.at + interval; p.at < next; {
			if p.left <= 0 {
				p.begin()
			}
			d := min(p.left, next-p.at)
			for i := range p.ranks {
				p.ranks[i].advance(d)
			}
			p.at, p.left = p.at+d, p.left-d
		}
		for i := range p.ranks {
			each(p.sample(i))
		}
	}
}

// begin begins a hang, a pause or a step.
func (p *Player) begin() {
	for _, fault := range p.faults {
		if fault.Kind.IsHang() && fault.covers(p.at) {
			p.hang(fault)
			return
		}
	}
	for i := range p.pauses {
		of := &p.pauses[i]
		if p.at < of.next {
			continue
		}
		p.left = p.varied(of.Lasts)
		of.next = p.at + p.left + p.varied(of.Every)
		for i := range p.ranks {
			does := of.does
			if of.Waits && i > 0 {
				does = spinning
			}
			p.ranks[i].parts = []part{{does: does, lasts: p.left, clock: 1, duty: 1}}
		}
		return
	}
	p.step()
}

func (f Fault) covers(at time.Duration) bool { return f.From <= at && at < f.To }

// hang has every rank do one thing until the fault ends.
func (p *Player) hang(fault Fault) {
	p.left, p.hung = fault.To-p.at, p.at
	for i := range p.ranks {
		does := spinning
		if i == fault.Rank {
			does = map[Kind]activity{HangCollective: spinning, HangStuckRank: stuck, HangDeadRank: idling}[fault.Kind]
		}
		p.ranks[i].parts = []part{{does: does, lasts: p.left, clock: 1, duty: 1}}
	}
}

// step plans a step: every rank computes, waits for the slowest, communicates, and
// waits for the slowest link.
func (p *Player) step() {
	p.steps++
	step := float64(p.job.Step)
	compute := step * p.job.Compute
	communicate := time.Duration(step - compute)
	plans := make([][2]part, len(p.ranks))
	var slowest, slowestLink time.Duration
	for i := range plans {
		plans[i] = p.plan(i, compute, communicate)
		slowest, slowestLink = max(slowest, plans[i][0].lasts), max(slowestLink, plans[i][1].lasts)
	}
	for i, plan := range plans {
		p.ranks[i].parts = []part{
			plan[0], {does: spinning, lasts: slowest - plan[0].lasts, clock: 1, duty: 1},
			plan[1], {does: spinning, lasts: slowestLink - plan[1].lasts, clock: 1, duty: 1},
		}
	}
	p.left = slowest + slowestLink
}

// plan returns how a rank computes and communicates in a step.
func (p *Player) plan(i int, compute float64, communicate time.Duration) [2]part {
	own := compute * (1 + 0.01*p.normal()) / p.ranks[i].clock
	if 8*i >= 7*len(p.ranks) {
		own *= 1 + p.job.Imbalance
	}
	computes := part{does: computing, clock: 1, duty: 1}
	sends := part{does: communicating, lasts: communicate, clock: 1, duty: 1, packets: strayErrors}
	for _, fault := range p.faults {
		if fault.Rank != i || !fault.covers(p.at) {
			continue
		}
		extra := fault.Slowdown * float64(p.job.Step)
		switch fault.Kind {
		case ThermalThrottle:
			computes.clock, computes.throttled = own/(own+extra), true
			own += extra
		case NoisyNeighbour:
			computes.duty = own / (own + extra)
			own += extra
		case SlowNIC:
			sends.lasts += time.Duration(extra)
			sends.packets = packetErrors
		case BadNVLink:
			sends.lasts += time.Duration(extra)
			sends.linkErrors = linkErrors
		default:
		}
	}
	computes.lasts = time.Duration(own)
	sends.nvlink, sends.network = p.job.StepBytes/sends.lasts.Seconds(), p.job.NodeBytes/sends.lasts.Seconds()
	return [2]part{computes, sends}
}

// advance has the rank do what it does for so long.
func (r *rank) advance(d time.Duration) {
	for d > 0 {
		now := &r.parts[0]
		spent := min(d, now.lasts)
		seconds, t := spent.Seconds(), &r.totals
		utilization, power := r.use(now)
		t.BusySeconds += utilization * seconds
		t.Energy += power * seconds
		t.NVLinkBytes += now.nvlink * seconds
		t.NetworkBytes += now.network * seconds
		t.NVLinkErrors += now.linkErrors * seconds
		t.NetworkErrors += now.packets * seconds
		if now.throttled {
			t.ThrottledSeconds += seconds
		}
		d, now.lasts = d-spent, now.lasts-spent
		if now.lasts <= 0 && len(r.parts) > 1 {
			r.parts = r.parts[1:]
		}
	}
}

// use returns the utilization and the power in a part. Power follows the square of
// the clock.
func (r *rank) use(now *part) (utilization, power float64) {
	utilization, _, _, power = now.does.traits()
	return utilization * now.duty, powerIdle + (power-powerIdle)*now.duty*now.clock*now.clock*r.power
}

// sample returns what the metrics of a rank show now: gauges have noise.
func (p *Player) sample(i int) Sample {
	r := &p.ranks[i]
	now := &r.parts[0]
	s := r.totals
	s.Rank, s.At = i, p.at
	utilization, power := r.use(now)
	_, sm, tensor, _ := now.does.traits()
	noisy := func(value, most float64) float64 { return min(most, value*(1+0.015*p.normal())) }
	s.Utilization, s.SMActive, s.TensorActive = utilization, noisy(sm*now.duty, 1), noisy(tensor*now.duty, 1)
	s.Power, s.Clock, s.Memory = noisy(power, math.Inf(1)), clockBoost*r.clock*now.clock, p.job.Memory
	s.NVLinkErrors, s.NetworkErrors = math.Floor(s.NVLinkErrors), math.Floor(s.NetworkErrors)
	return s
}
