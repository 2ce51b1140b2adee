package e2e

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestProcessAttribution: GPUs that pods share are divided among their claims
// by the processes that really run in their containers.
func TestProcessAttribution(t *testing.T) {
	n := startSharing(t)
	deploy(t, "sharing")
	for _, pod := range []string{"pod-a", "pod-b", "unclaimed", "pair", "both", "team-0", "team-1", "part-a", "part-b"} {
		running(t, "sharing", pod)
	}
	t.Run("two-claims", n.testTwoClaims)
	t.Run("process-ends", n.testProcessEnds)
	t.Run("kubelet-killed", n.testKubeletKilled)
	t.Run("one-pod", n.testOnePod)
	t.Run("one-claim", n.testOneClaim)
	t.Run("overreported", n.testOverreported)
	t.Run("partition", n.testPartition)
}

// waitBoth waits until check accepts a page of both agents, and returns the
// pages.
func (n *sharingNode) waitBoth(t *testing.T, what string, check func(*scrape.Page) error) (pages []*scrape.Page) {
	t.Helper()
	for _, a := range n.agents() {
		pages = append(pages, a.eventually(t, what, check))
	}
	return pages
}

// testTwoClaims: two pods of two claims use 30 % and 50 %, beside a process of
// the host. The default DaemonSet cannot attribute them, and reports why. With
// the component it can.
func (n *sharingNode) testTwoClaims(t *testing.T) {
	covers(t)
	a, b := mainPID(t, "pod-a", "main"), mainPID(t, "pod-b", "main")
	n.SetProcesses(0,
		stubs.Process{PID: a, Memory: 4 * gibibyte, Utilization: 10},
		stubs.Process{PID: childOf(t, a), Memory: 8 * gibibyte, Utilization: 20},
		stubs.Process{PID: b, Memory: 20 * gibibyte, Utilization: 50},
		stubs.Process{PID: hostProcess(t), Memory: 2 * gibibyte, Utilization: 10},
	)
	divided := division{
		claims:       map[string]usage{"slice-a": {0.3, 12 * gibibyte}, "slice-b": {0.5, 20 * gibibyte}},
		pods:         map[string]usage{"pod-a": {0.3, 12 * gibibyte}, "pod-b": {0.5, 20 * gibibyte}},
		unattributed: usage{0.1, 2 * gibibyte},
	}
	n.host.eventually(t, "the GPU to be divided", divided.check)
	n.deployed.eventually(t, "the GPU to be shared", checkUndivided)
	unprivileged(t, containerPID(t, n.waitPod(t, false), agentContainer), "net", "pid", "ipc", "mnt", "uts")

	n.enableProcessAttribution(t)
	unprivileged(t, containerPID(t, n.waitPod(t, true), agentContainer), "net", "ipc", "mnt", "uts")
	for i, before := range n.waitBoth(t, "the GPU to be divided", divided.check) {
		checkInjected(t, before, "sharing")
		n.agents()[i].checkCounters(t, before, divided)
	}
}

// checkCounters fails the test unless the counters of each claim rise by its
// current value, over the same time as the device's own, and device-seconds by
// its part of 80 GiB of memory. It compares counters from the first
// measurement after the device was divided, because claims have a part of the
// one before.
func (a *hostAgent) checkCounters(t *testing.T, divided *scrape.Page, d division) {
	t.Helper()
	before := a.eventually(t, "another measurement", func(p *scrape.Page) error {
		if increase(divided, p, "dra_device_busy_seconds_total", scrape.Labels{"uuid": sharingUUID(d.gpu)}) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	after := a.eventually(t, "ten seconds of counters", func(p *scrape.Page) error {
		if p.At.Sub(before.At) < 10*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	passed := after.At.Sub(before.At).Seconds()
	sampled := increase(before, after, "dra_device_busy_seconds_total", scrape.Labels{"uuid": sharingUUID(d.gpu)}) / 0.95
	if !(math.Abs(sampled-passed) < 2.5) { // one sample more or less at either end
		t.Errorf("the GPU was busy at 95 %% for %v s of %v s", sampled, passed)
	}
	for claim, given := range map[string]float64{"slice-a": 16 * gibibyte, "slice-b": 8 * gibibyte} {
		labels := scrape.Labels{"namespace": "sharing", "resourceclaim": claim}
		checkShare(t, before, after, labels, given, given/(80*gibibyte))
		busy := increase(before, after, "dra_claim_busy_seconds_total", with(labels, "attribution", "process"))
		t.Logf("by the agent %s %s was busy for %v of %v s", a.name, claim, busy, sampled)
		if part, want := busy/sampled, d.claims[claim].utilization; !(math.Abs(part-want) < 1e-6) {
			t.Errorf("%s was busy for %v of %v s: %v, want %v", claim, busy, sampled, part, want)
		}
	}
}

// testOverreported: processes are reported to use twice what the GPU's own
// reading is. All have half then, and their memory unchanged. The claim that
// holds its GPU alone has only what its processes use, because a pod that holds nothing
// uses the GPU too.
func (n *sharingNode) testOverreported(t *testing.T) {
	covers(t)
	n.Set(2, "utilization.gpu", "40")
	n.SetProcesses(2,
		stubs.Process{PID: mainPID(t, "team-0", "main"), Memory: 10 * gibibyte, Utilization: 20},
		stubs.Process{PID: mainPID(t, "team-1", "main"), Memory: 20 * gibibyte, Utilization: 40},
		stubs.Process{PID: mainPID(t, "unclaimed", "main"), Memory: gibibyte, Utilization: 20},
	)
	halved := division{
		gpu:          2,
		claims:       map[string]usage{"team": {0.3, 30 * gibibyte}},
		pods:         map[string]usage{"team-0": {0.1, 10 * gibibyte}, "team-1": {0.2, 20 * gibibyte}},
		unattributed: usage{0.1, gibibyte},
	}
	n.waitBoth(t, "the parts to be halved", func(p *scrape.Page) error {
		return errors.Join(halved.check(p), claimHas(p, "dra_device_foreign_processes", scrape.Labels{"uuid": sharingUUID(2)}, 1))
	})
}

// testProcessEnds: the value of an ended process goes to no other claim. A pod
// without a claim is unattributed. A claim whose processes are idle is idle,
// although its GPU is not.
func (n *sharingNode) testProcessEnds(t *testing.T) {
	covers(t)
	a, b, other := mainPID(t, "pod-a", "main"), mainPID(t, "pod-b", "main"), mainPID(t, "unclaimed", "main")
	host, child := hostProcess(t), childOf(t, a)
	use := func(main int) {
		n.SetProcesses(0,
			stubs.Process{PID: a, Memory: 4 * gibibyte, Utilization: main},
			stubs.Process{PID: child, Memory: 8 * gibibyte, Utilization: 20},
			stubs.Process{PID: b, Memory: 20 * gibibyte, Utilization: 50},
			stubs.Process{PID: host, Memory: 2 * gibibyte, Utilization: 10},
			stubs.Process{PID: other, Memory: gibibyte, Utilization: 5},
		)
	}
	divided := func(a, unattributed usage) func(*scrape.Page) error {
		b := usage{0.5, 20 * gibibyte}
		return division{
			claims:       map[string]usage{"slice-a": a, "slice-b": b},
			pods:         map[string]usage{"pod-a": a, "pod-b": b},
			unattributed: unattributed,
		}.check
	}
	use(10)
	n.waitBoth(t, "the pod without a claim to be unattributed", divided(usage{0.3, 12 * gibibyte}, usage{0.15, 3 * gibibyte}))
	end(t, child)
	n.waitBoth(t, "the child to be gone", divided(usage{0.1, 4 * gibibyte}, usage{0.15, 3 * gibibyte}))
	end(t, host)
	n.waitBoth(t, "the host's process to be gone", divided(usage{0.1, 4 * gibibyte}, usage{0.05, gibibyte}))
	use(0)
	n.waitBoth(t, "the claim to idle", func(p *scrape.Page) error {
		idle := scrape.Labels{"namespace": "sharing", "uuid": sharingUUID(0)}
		row, err := p.One("dra_claim_idle_since_timestamp_seconds", idle)
		if err == nil && (row.Labels["resourceclaim"] != "slice-a" || row.Labels["attribution"] != "process") {
			err = fmt.Errorf("%s idles", row.Labels)
		}
		return errors.Join(err, divided(usage{0, 4 * gibibyte}, usage{0.05, gibibyte})(p))
	})
}

// testKubeletKilled: every page reports the values of each claim's processes
// while the kubelet is down, and after its restart.
func (n *sharingNode) testKubeletKilled(t *testing.T) {
	covers(t)
	n.SetProcesses(0,
		stubs.Process{PID: mainPID(t, "pod-a", "main"), Memory: 4 * gibibyte, Utilization: 30},
		stubs.Process{PID: mainPID(t, "pod-b", "main"), Memory: 8 * gibibyte, Utilization: 50},
	)
	has := map[string]usage{"slice-a": {0.3, 4 * gibibyte}, "slice-b": {0.5, 8 * gibibyte}}
	divided := division{claims: has, pods: map[string]usage{"pod-a": has["slice-a"], "pod-b": has["slice-b"]}}
	n.waitBoth(t, "the GPU to be divided", divided.check)
	kubelet := shared.Process("kubelet")
	check := n.watched[0].CheckRule(func(p *scrape.Page) []error {
		if err := divided.check(p); err != nil {
			return []error{err}
		}
		return nil
	})
	kill(t, kubelet)
	time.Sleep(12 * time.Second) // longer than the staleness limit
	start(t, kubelet)
	time.Sleep(5 * time.Second)
	endRuleCheck(t, check, 40)
}

// testOnePod: a pod's claims are distinguished by its containers, also by the
// new process of a restarted container, and not if one container has both
// claims.
func (n *sharingNode) testOnePod(t *testing.T) {
	covers(t)
	left, right, both := mainPID(t, "pair", "left"), mainPID(t, "pair", "right"), mainPID(t, "both", "main")
	use := func(right int) {
		n.SetProcesses(1,
			stubs.Process{PID: left, Memory: 5 * gibibyte, Utilization: 25},
			stubs.Process{PID: right, Memory: 6 * gibibyte, Utilization: 35},
			stubs.Process{PID: both, Memory: gibibyte, Utilization: 15},
		)
	}
	use(right)
	n.waitBoth(t, "the containers to be distinguished", wantTwoClaims(usage{0.35, 6 * gibibyte}))

	first := containerID(t, "pair", "right")
	end(t, right)
	n.waitBoth(t, "the ended container to do nothing", wantTwoClaims(usage{}))
	use(restarted(t, "pair", "right", first))
	n.waitBoth(t, "the new container to be distinguished", wantTwoClaims(usage{0.35, 6 * gibibyte}))
}

// testOneClaim: a claim holds the GPU alone, and its two pods are
// distinguished.
func (n *sharingNode) testOneClaim(t *testing.T) {
	covers(t)
	n.SetProcesses(2,
		stubs.Process{PID: mainPID(t, "team-0", "main"), Memory: 10 * gibibyte, Utilization: 20},
		stubs.Process{PID: mainPID(t, "team-1", "main"), Memory: 20 * gibibyte, Utilization: 60},
	)
	n.waitBoth(t, "the pods to be distinguished", wantOneClaim(0.95, 40*gibibyte, division{
		gpu:  2,
		pods: map[string]usage{"team-0": {0.2, 10 * gibibyte}, "team-1": {0.6, 20 * gibibyte}},
	}))
}

// testPartition: processes are not reported by partition, so that two claims
// of one partition share its value. They are reported by instance.
func (n *sharingNode) testPartition(t *testing.T) {
	covers(t)
	n.Set(3, fmt.Sprintf("mig.%d.memory.used", n.gi), fmt.Sprint(3*gibibyte))
	instances := scrape.Labels{"parent_uuid": sharingUUID(3), "gpu_instance_id": fmt.Sprint(n.gi), "compute_instance_id": fmt.Sprint(n.ci)}
	n.waitBoth(t, "the partition to be shared", func(p *scrape.Page) error {
		mig, err := p.One("dra_device_partition_info", instances)
		if err != nil {
			return err
		}
		claim := scrape.Labels{"namespace": "sharing", "uuid": mig.Labels["uuid"]}
		return errors.Join(
			heldBy(p, "dra_claim_memory_used_bytes", with(claim, "resourceclaim", "part-a"), "shared", 3*gibibyte),
			heldBy(p, "dra_claim_memory_used_bytes", with(claim, "resourceclaim", "part-b"), "shared", 3*gibibyte))
	})
}
