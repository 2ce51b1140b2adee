package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// member makes a pod a member of a workload "kind/name" of the queue "q".
func member(p dra.PodLifecycle, workload, replica string, size int32) dra.PodLifecycle {
	kind, name, _ := strings.Cut(workload, "/")
	p.Member = dra.Member{Workload: &dra.Workload{Kind: kind, Name: name, Queue: "q"}, Replica: replica, Size: size}
	return p
}

// running binds and starts a pod, at this many seconds after testStart.
func running(p dra.PodLifecycle, started int) dra.PodLifecycle {
	p.Node, p.Scheduled, p.Started = "node-a", p.Created, second(started)
	return p
}

func TestWorkloadRows(t *testing.T) {
	h := newHarness(t)
	gated := member(pod("lab/gated", 3, "gpu<one"), "JobSet/train", "0", 0)
	gated.Gated = true
	ended := running(member(pod("lab/ended", 3, "gpu<one"), "JobSet/train", "0", 0), 4)
	ended.Terminal = true
	bound := member(pod("lab/bound", 3, "gpu<one"), "JobSet/train", "1", 0)
	bound.Node = "node-a"
	grouped := func(name string) dra.PodLifecycle {
		p := member(pod("lab/"+name, 3), "PodGroup/gang", "", 0) // has no claim
		p.Group = "gang"
		return p
	}
	h.update(gated, ended, bound, member(pod("lab/waits", 3, "gpu<one"), "JobSet/train", "1", 0),
		running(member(pod("lab/l-0", 3, "gpu<one"), "LeaderWorkerSet/llama", "0", 4), 9), member(pod("lab/l-1", 3, "gpu<one"), "LeaderWorkerSet/llama", "1", 4),
		running(member(pod("lab/l-0-1", 3, "gpu<one"), "LeaderWorkerSet/llama", "0", 4), 9),
		member(pod("other/waits", 3, "gpu<one"), "JobSet/train", "1", 0), pod("lab/alone", 3, "gpu<one"),
		grouped("a"), running(grouped("b"), 9))
	h.step(time.Second)
	want := `
		dra_workload_info{namespace="lab",queue="q",workload="gang",workload_kind="PodGroup"} 1
		dra_workload_info{namespace="lab",queue="q",workload="llama",workload_kind="LeaderWorkerSet"} 1
		dra_workload_info{namespace="lab",queue="q",workload="train",workload_kind="JobSet"} 1
		dra_workload_info{namespace="other",queue="q",workload="train",workload_kind="JobSet"} 1
		dra_workload_min_pods{namespace="lab",workload="llama",workload_kind="LeaderWorkerSet"} 8
		dra_workload_pods{namespace="lab",state="ended",workload="train",workload_kind="JobSet"} 1
		dra_workload_pods{namespace="lab",state="gated",workload="train",workload_kind="JobSet"} 1
		dra_workload_pods{namespace="lab",state="pending",workload="gang",workload_kind="PodGroup"} 1
		dra_workload_pods{namespace="lab",state="pending",workload="llama",workload_kind="LeaderWorkerSet"} 1
		dra_workload_pods{namespace="lab",state="pending",workload="train",workload_kind="JobSet"} 1
		dra_workload_pods{namespace="lab",state="running",workload="gang",workload_kind="PodGroup"} 1
		dra_workload_pods{namespace="lab",state="running",workload="llama",workload_kind="LeaderWorkerSet"} 2
		dra_workload_pods{namespace="lab",state="starting",workload="train",workload_kind="JobSet"} 1
		dra_workload_pods{namespace="other",state="pending",workload="train",workload_kind="JobSet"} 1`
	h.expectRows(want, "dra_workload_")
	h.update(dra.Group{Ref: dra.PodRef{Namespace: "lab", Name: "gang"}, UID: "g", MinPods: 8})
	h.step(time.Second)
	h.expectRows(`
		dra_workload_min_pods{namespace="lab",workload="gang",workload_kind="PodGroup"} 8
		dra_workload_min_pods{namespace="lab",workload="llama",workload_kind="LeaderWorkerSet"} 8`, "dra_workload_min_pods")
	moved := member(gated, "JobSet/train", "0", 0)
	moved.Member.Workload.Queue = "r"
	h.update(moved)
	h.step(time.Second)
	h.expectRows(`dra_workload_info{namespace="lab",queue="r",workload="train",workload_kind="JobSet"} 1`, `dra_workload_info{namespace="lab",queue="r"`)
	h.remove(moved, ended, bound, member(pod("lab/waits", 3), "JobSet/train", "1", 0))
	h.step(time.Second)
	h.expectRows(``, `dra_workload_info{namespace="lab",queue="r"`)
}

// starts returns the starts of workloads that the last snapshot observed.
func starts(h *harness) string {
	var all []string
	for _, o := range h.last.Observations {
		if o.WorkloadKind != "" {
			all = append(all, fmt.Sprintf("%s of %s: %s", o.WorkloadKind, o.Queue, o.Took))
		}
	}
	return strings.Join(all, ", ")
}

func TestWorkloadStart(t *testing.T) {
	expect := func(h *harness, when, want string) {
		t.Helper()
		if got := starts(h); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	at := 3600 // seconds after testStart: the present time of the harness
	t.Run("of a gang", func(t *testing.T) {
		h := newHarness(t)
		a, b := member(pod("lab/a", at, "gpu<one"), "JobSet/train", "", 2), member(pod("lab/b", at+4, "gpu<one"), "JobSet/train", "", 2)
		h.update(a)
		h.step(4 * time.Second)
		if opened := h.last.Opened; !slices.ContainsFunc(opened, func(o Observation) bool { return o.WorkloadKind == "JobSet" && o.Queue == "q" && o.Took == 0 }) {
			t.Errorf("no histogram from 0: %+v", opened)
		}
		h.update(b, running(a, at+4))
		h.step(20 * time.Second)
		expect(h, "one of two has started", "")
		h.update(running(b, at+24))
		h.step(0)
		expect(h, "both have", "JobSet of q: 24s")
		h.step(time.Minute)
		expect(h, "a minute later", "")
		// It is restarted.
		h.remove(running(a, at+4))
		h.update(func() dra.PodLifecycle { p := running(b, at+24); p.Terminal = true; return p }())
		h.step(time.Second)
		a, b = member(pod("lab/a2", at+85, "gpu<one"), "JobSet/train", "", 2), member(pod("lab/b2", at+85, "gpu<one"), "JobSet/train", "", 2)
		h.update(a, b)
		h.step(5 * time.Second)
		h.update(running(a, at+90), running(b, at+90))
		h.step(0)
		expect(h, "it has started again", "JobSet of q: 5s")
	})
	t.Run("of pods that are created one after the other", func(t *testing.T) {
		h := newHarness(t)
		a, b := member(pod("lab/a", at, "gpu<one"), "StatefulSet/db", "", 0), member(pod("lab/b", at+6, "gpu<one"), "StatefulSet/db", "", 0)
		h.update(a)
		h.step(5 * time.Second)
		h.update(running(a, at+5))
		h.step(time.Second)
		expect(h, "the first has started", "")
		h.update(b)
		h.step(3 * time.Second)
		h.update(running(b, at+9))
		h.step(time.Second)
		expect(h, "both have", "")
		h.step(startSettles)
		expect(h, "no other has been created", "StatefulSet of q: 9s")
	})
	t.Run("of a pod that replaces another in one step", func(t *testing.T) {
		for range 20 { // the order of changes in a step must not matter
			h := newHarness(t)
			a := member(pod("lab/b", at, "gpu<one"), "Job/a", "", 1)
			h.update(running(a, at+1))
			h.step(time.Second)
			h.step(time.Second)
			b := member(pod("lab/a", at+2, "gpu<one"), "Job/a", "", 1)
			h.update(b)
			h.remove(running(a, at+1))
			h.step(3 * time.Second)
			h.update(running(b, at+5))
			h.step(0)
			expect(h, "the second has started", "Job of q: 3s")
		}
	})
	t.Run("before the exporter started", func(t *testing.T) {
		h := newHarness(t)
		h.live = false
		h.update(running(member(pod("lab/a", 5, "gpu<one"), "Job/a", "", 1), 9))
		h.step(time.Minute)
		h.step(time.Minute)
		expect(h, "all have started", "")
	})
	t.Run("of more kinds and queues than there are histograms", func(t *testing.T) {
		h := newHarness(t)
		submit := func(namespaces, each int) map[string]bool {
			queues := map[string]bool{}
			for i := range namespaces * each {
				p := member(pod(fmt.Sprintf("lab-%d/p%d-%d", i/each, each, i), at, "gpu<one"), "Job/a", "", 1)
				p.Member.Workload.Name, p.Member.Workload.Queue = p.Ref.Name, p.Ref.Name
				h.update(p)
			}
			h.step(time.Second)
			for _, o := range h.last.Opened {
				if o.WorkloadKind != "" {
					queues[o.Queue] = true
				}
			}
			return queues
		}
		if queues := submit(1, 2*maxStartHistograms); len(queues) != maxStartHistogramsEach+1 || !queues[queueOther] {
			t.Errorf("%d queues of one namespace", len(queues))
		}
		if queues := submit(2*maxStartHistograms, 1); len(queues) != maxStartHistograms-maxStartHistogramsEach-1 {
			t.Errorf("%d further queues of other namespaces", len(queues))
		}
	})
}

// TestWorkloadHistories compares the rows after random changes with those that
// follow from the pods alone.
func TestWorkloadHistories(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 23))
		h, pods := newHarness(t), map[string]dra.PodLifecycle{}
		groups := map[string]int32{}
		for range 60 {
			name := fmt.Sprintf("p%d", random.IntN(12))
			p, exists := pods[name]
			switch action := random.IntN(10); {
			case action == 0:
				group := fmt.Sprintf("g%d", random.IntN(2))
				groups[group] = random.Int32N(5)
				h.update(dra.Group{Ref: dra.PodRef{Namespace: "lab", Name: group}, UID: "uid-" + group, MinPods: groups[group]})
			case !exists:
				p = pod("lab/"+name, random.IntN(100), "gpu<one")
				if random.IntN(8) > 0 {
					job, replica := random.IntN(3), random.Int32N(2) // the pods of a replica agree on its size
					p = member(p, fmt.Sprintf("Job/j%d", job), fmt.Sprint(replica), int32(job)*(replica+1))
				}
				if random.IntN(3) == 0 {
					p.Group = fmt.Sprintf("g%d", random.IntN(2))
				}
				p.Gated = random.IntN(4) == 0
				pods[name] = p
				h.update(p)
			case action == 1:
				delete(pods, name)
				h.remove(p)
			default:
				p.Gated = p.Gated && random.IntN(2) == 0
				if p.Node == "" && !p.Gated && random.IntN(2) == 0 {
					p.Node, p.Scheduled = "node-a", second(200)
				} else if p.Node != "" {
					p.Started = second(300)
				}
				p.Terminal = p.Terminal || random.IntN(6) == 0
				pods[name] = p
				h.update(p)
			}
			if random.IntN(3) > 0 {
				continue
			}
			h.step(time.Second)
			if got, want := unindented(h.exposition("dra_workload_pods", "dra_workload_min_pods")), expectedWorkloads(pods, groups); got != want {
				t.Fatalf("seed %d: the page has\n%s\nwant\n%s", seed, got, want)
			}
		}
	}
}

// expectedWorkloads returns the lines of workloads, from the pods as they are.
func expectedWorkloads(pods map[string]dra.PodLifecycle, groups map[string]int32) string {
	counts, needs := map[string]int{}, map[string]map[string]int{}
	for _, p := range pods {
		if p.Member.Workload == nil {
			continue
		}
		name := p.Member.Workload.Name
		state := "running"
		for _, earlier := range []struct {
			is    bool
			state string
		}{{p.Terminal, "ended"}, {p.Gated, "gated"}, {p.Node == "", "pending"}, {p.Started.IsZero(), "starting"}} {
			if earlier.is {
				state = earlier.state
				break
			}
		}
		counts[fmt.Sprintf(`dra_workload_pods{namespace="lab",state=%q,workload=%q,workload_kind="Job"}`, state, name)]++
		if needs[name] == nil {
			needs[name] = map[string]int{}
		}
		if minimum := groups[p.Group]; p.Group != "" && minimum > 0 {
			needs[name]["group "+p.Group] = int(minimum)
		} else if p.Member.Size > 0 {
			replica := "replica " + p.Member.Replica
			needs[name][replica] = max(needs[name][replica], int(p.Member.Size))
		}
	}
	var lines []string
	for of, count := range counts {
		lines = append(lines, fmt.Sprintf("%s %d", of, count))
	}
	for name, gangs := range needs {
		sum := 0
		for _, minimum := range gangs {
			sum += minimum
		}
		if sum > 0 {
			lines = append(lines, fmt.Sprintf(`dra_workload_min_pods{namespace="lab",workload=%q,workload_kind="Job"} %d`, name, sum))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
