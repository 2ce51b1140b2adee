package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const (
	saysDevices = "0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
	saysCPU     = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
	saysBoth    = "0/2 nodes are available: 1 Insufficient cpu, 1 cannot allocate all claims. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
	saysClass   = "0/1 nodes are available: request gpu: device class gpu.acme.com does not exist. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
)

type reasonCase struct {
	name             string
	pod              func(*dra.PodLifecycle)
	claim            func(*dra.ClaimLifecycle) // nil: the claim does not exist
	said             string
	warning          string
	kueue            *dra.KueueWorkload
	domain           *dra.ComputeDomain
	diagnosis        []dra.PendingReason // none: not diagnosed
	diagnosisMessage string              // message of the diagnosis; empty: a default if devices do not suffice
	synced           func(*Synced)
	want             dra.PendingReason
	message          string
}

// Each reason of the closed set, from objects as they occur in clusters.
func TestReasons(t *testing.T) {
	exists := func(*dra.ClaimLifecycle) {}
	unreadable := func(s *Synced) { s.Slices = false }
	template := func(p *dra.PodLifecycle) { p.Claims = []dra.PodClaim{{Name: "gpu", Template: "one-gpu"}} }
	held := func(p *dra.PodLifecycle) { p.Gated, p.HeldBy = true, new("pods") }
	cases := []reasonCase{
		{name: "gated", pod: func(p *dra.PodLifecycle) { p.Gated = true }, said: "Scheduling is blocked due to non-empty scheduling gates",
			diagnosis: []dra.PendingReason{dra.ReasonInsufficient}, want: dra.ReasonGated, message: "the pod has scheduling gates"},
		{name: "gated before all", pod: func(p *dra.PodLifecycle) { p.Gated = true }, claim: exists, diagnosis: []dra.PendingReason{dra.ReasonTainted}, want: dra.ReasonGated},
		{name: "a queue", pod: held, kueue: &dra.KueueWorkload{Ref: dra.PodRef{Namespace: "team", Name: "pods"}, UID: "k", Workload: dra.Workload{Kind: "PodGroup", Name: "pods", Queue: "gpus"},
			Waiting: &dra.KueueWaiting{Reason: "WaitingForQuota", Message: "insufficient unused quota for gpus"}},
			want: dra.ReasonQueueQuota, message: "workload pods waits in queue gpus of Kueue: WaitingForQuota: insufficient unused quota for gpus"},
		{name: "a queue, for one pod", pod: func(p *dra.PodLifecycle) { p.Gated, p.HeldBy = true, new("") }, kueue: &dra.KueueWorkload{Ref: dra.PodRef{Namespace: "team", Name: "pod-p-1"}, UID: "k",
			Pod: dra.Consumer{Resource: "pods", Name: "p", UID: "uid-p"}, Workload: dra.Workload{Queue: "gpus"}, Waiting: &dra.KueueWaiting{Reason: "NoMatchingFlavor", Message: "none"}},
			want: dra.ReasonQueueQuota, message: "workload pod-p-1 waits in queue gpus of Kueue: NoMatchingFlavor: none"},
		{name: "admitted, and another gate", pod: held, kueue: &dra.KueueWorkload{Ref: dra.PodRef{Namespace: "team", Name: "pods"}, UID: "k"}, want: dra.ReasonGated},
		{name: "a queue that is not known", pod: held, want: dra.ReasonGated},
		{name: "a domain that is not set up", pod: template, domain: &dra.ComputeDomain{Ref: dra.PodRef{Namespace: "team", Name: "nvl"}, UID: "d", Template: "one-gpu"},
			warning: `PodResourceClaim gpu: failed to create resource claim: template "one-gpu": resourceclaimtemplate.resource.k8s.io "one-gpu" not found`,
			want:    dra.ReasonComputeDomain, message: "the controller of ComputeDomain nvl has not made template one-gpu yet"},
		{name: "a domain, and another obstacle", pod: template, domain: &dra.ComputeDomain{Ref: dra.PodRef{Namespace: "team", Name: "nvl"}, UID: "d", Template: "one-gpu"},
			warning: "PodResourceClaim gpu: exceeded quota: gpus", want: dra.ReasonQuota},
		{name: "a domain of another namespace", pod: template, domain: &dra.ComputeDomain{Ref: dra.PodRef{Namespace: "other", Name: "nvl"}, UID: "d", Template: "one-gpu"}, want: dra.ReasonClaimNotCreated},
		{name: "no claim", want: dra.ReasonClaimMissing, message: "resourceclaim c does not exist"},
		{name: "a claim that goes", claim: deleted(50, "resource.kubernetes.io/delete-protection"), said: `resourceclaim "c" is being deleted`,
			want: dra.ReasonClaimUnusable, message: "resourceclaim c is being deleted"},
		{name: "a claim that goes, though it was ours", claim: allOf(withDevices("gpu-0"), reserved("p"), deleted(50, "resource.kubernetes.io/delete-protection")),
			want: dra.ReasonClaimUnusable, message: "resourceclaim c is being deleted"},
		{name: "no claim yet", pod: template, want: dra.ReasonClaimNotCreated, message: "no resourceclaim has been created from template one-gpu yet"},
		{name: "no claim can be made", pod: template, warning: `PodResourceClaim gpu: failed to create resource claim: template "one-gpu": resourceclaimtemplate.resource.k8s.io "one-gpu" not found`,
			want: dra.ReasonClaimNotCreated, message: `PodResourceClaim gpu: failed to create resource claim: template "one-gpu": resourceclaimtemplate.resource.k8s.io "one-gpu" not found`},
		{name: "not within the quota", pod: template, diagnosis: []dra.PendingReason{dra.ReasonNone},
			warning: `PodResourceClaim gpu: failed to create resource claim: resourceclaims.resource.k8s.io "p-gpu-x7" is forbidden: exceeded quota: gpus, requested: gpu.example.com.deviceclass.resource.k8s.io/devices=1, used: 4, limited: 4`,
			want:    dra.ReasonQuota},
		{name: "warning with another claim", pod: template, warning: "PodResourceClaim nic: exceeded quota: nics", want: dra.ReasonClaimNotCreated},
		{name: "made for another pod", pod: template, claim: func(c *dra.ClaimLifecycle) { c.MadeFor = dra.Consumer{Resource: "pods", Name: "p", UID: "before"} },
			want: dra.ReasonClaimUnusable, message: "resourceclaim c was created for another pod"},
		{name: "no class, diagnosed", claim: exists, diagnosis: []dra.PendingReason{dra.ReasonNoDeviceClass}, want: dra.ReasonNoDeviceClass, message: "as diagnosed"},
		{name: "no class, said", claim: exists, said: saysClass, synced: unreadable, want: dra.ReasonNoDeviceClass, message: "request gpu: device class gpu.acme.com does not exist"},
		{name: "the class is there by now", claim: exists, said: saysClass, diagnosis: []dra.PendingReason{dra.ReasonNone}, want: dra.ReasonUnknown,
			message: "enough devices are free now, but the scheduler reported: " + saysClass},
		{name: "nothing matches", claim: exists, said: saysDevices, diagnosis: []dra.PendingReason{dra.ReasonNoMatchingDevice}, want: dra.ReasonNoMatchingDevice},
		{name: "tainted", claim: exists, said: saysDevices, diagnosis: []dra.PendingReason{dra.ReasonTainted}, want: dra.ReasonTainted},
		{name: "too few", claim: exists, said: saysDevices, diagnosis: []dra.PendingReason{dra.ReasonInsufficient}, want: dra.ReasonInsufficient, message: "as diagnosed"},
		{name: "too few, and no processor", claim: exists, said: saysCPU, diagnosis: []dra.PendingReason{dra.ReasonInsufficient}, want: dra.ReasonInsufficient},
		{name: "an incomplete pool", claim: exists, diagnosis: []dra.PendingReason{dra.ReasonPoolIncomplete}, want: dra.ReasonPoolIncomplete},
		{name: "on no single node", claim: exists, diagnosis: []dra.PendingReason{dra.ReasonFragmented}, want: dra.ReasonFragmented},
		{name: "constraints", claim: exists, said: saysDevices, diagnosis: []dra.PendingReason{dra.ReasonConstraints}, want: dra.ReasonConstraints},
		{name: "conditions", claim: allOf(withDevices("gpu-0"), reserved("p"), func(c *dra.ClaimLifecycle) { c.Binding = dra.BindingWaiting }), want: dra.ReasonBinding},
		{name: "conditions that failed", claim: allOf(withDevices("gpu-0"), reserved("p"), func(c *dra.ClaimLifecycle) { c.Binding = dra.BindingFailed }), want: dra.ReasonBinding,
			message: "allocated; a binding condition of a device has failed, and the scheduler will try again"},
		{name: "no processor, and no diagnosis", claim: exists, said: saysCPU, synced: unreadable, want: dra.ReasonOther, message: "Insufficient cpu"},
		{name: "no processor", claim: exists, said: saysCPU, diagnosis: []dra.PendingReason{dra.ReasonNone}, want: dra.ReasonOther, message: "Insufficient cpu"},
		{name: "no processor where devices are", claim: exists, said: saysBoth, diagnosis: []dra.PendingReason{dra.ReasonNone}, want: dra.ReasonOther, message: "Insufficient cpu"},
		{name: "both, and no diagnosis", claim: exists, said: saysBoth, synced: unreadable, want: dra.ReasonUnknown, message: "the scheduler reports: " + saysBoth},
		{name: "a contradiction", claim: exists, said: saysDevices, diagnosis: []dra.PendingReason{dra.ReasonNone}, want: dra.ReasonUnknown,
			message: "enough devices are free now, but the scheduler reported: " + saysDevices},
		{name: "for others", claim: allOf(withDevices("gpu-0"), reserved("q")), said: "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.", want: dra.ReasonOther},
		{name: "for others, and a claim beside it cannot be", claim: allOf(withDevices("gpu-0"), reserved("q")), said: saysDevices, want: dra.ReasonUnknown,
			message: "allocated, but not for this pod yet: " + saysDevices},
		{name: "for others, and both", claim: allOf(withDevices("gpu-0"), reserved("q")), said: saysBoth, want: dra.ReasonUnknown},
		{name: "made for another pod, and named all the same", claim: allOf(createdForAnother, withDevices("gpu-0"), reserved("q")), want: dra.ReasonUnknown,
			message: "allocated, but not for this pod yet"},
		{name: "made for another pod, named and diagnosed", claim: createdForAnother, diagnosis: []dra.PendingReason{dra.ReasonInsufficient}, want: dra.ReasonInsufficient},
		{name: "another claim of the pod cannot be", claim: exists, said: saysCPU, diagnosisMessage: "its devices could be allocated, but not those of another claim of the pod",
			diagnosis: []dra.PendingReason{dra.ReasonNone}, want: dra.ReasonUnknown, message: "its devices could be allocated, but not those of another claim of the pod"},
		{name: "it cannot be determined", claim: exists, said: saysCPU, diagnosisMessage: "cannot be determined: the diagnosis was interrupted",
			diagnosis: []dra.PendingReason{dra.ReasonUnknown}, want: dra.ReasonUnknown, message: "cannot be determined: the diagnosis was interrupted"},
		{name: "for others so far", claim: allOf(withDevices("gpu-0"), reserved("q")), want: dra.ReasonUnknown, message: "allocated, but not for this pod yet"},
		{name: "silence", claim: exists, synced: unreadable, want: dra.ReasonUnknown, message: "the scheduler has not reported anything yet"},
		{name: "not diagnosed yet", claim: exists, want: dra.ReasonPendingDiagnosis, message: "not diagnosed yet"},
		{name: "not diagnosed yet, and no class", claim: exists, said: saysClass, want: dra.ReasonPendingDiagnosis,
			message: "not diagnosed yet; request gpu: device class gpu.acme.com does not exist"},
		{name: "not diagnosed yet, and no processor", claim: exists, said: saysCPU, want: dra.ReasonPendingDiagnosis, message: "not diagnosed yet; Insufficient cpu"},
		{name: "not diagnosed yet, and both", claim: exists, said: saysBoth, want: dra.ReasonPendingDiagnosis, message: "not diagnosed yet; the scheduler reports: " + saysBoth},
		{name: "undetermined", claim: exists, said: saysCPU, diagnosisMessage: "the diagnosis needs more than 4s", diagnosis: []dra.PendingReason{dra.ReasonUndetermined},
			want: dra.ReasonUndetermined, message: "the diagnosis needs more than 4s; Insufficient cpu"},
		{name: "a gang, and devices", claim: exists, said: saysGang, diagnosis: []dra.PendingReason{dra.ReasonNone}, want: dra.ReasonGangQuorum, message: saysGang},
		{name: "a gang, and too few devices", claim: exists, said: saysGang, diagnosis: []dra.PendingReason{dra.ReasonInsufficient}, want: dra.ReasonInsufficient},
		{name: "a gang, and no diagnosis", claim: exists, said: saysGang, synced: unreadable, want: dra.ReasonGangQuorum, message: saysGang},
		{name: "a gang, and a claim of others", claim: allOf(withDevices("gpu-0"), reserved("q")), said: saysGang, want: dra.ReasonGangQuorum, message: saysGang},
		{name: "silence, diagnosed", claim: exists, diagnosis: []dra.PendingReason{dra.ReasonNone}, want: dra.ReasonUnknown, message: "enough devices are free; the scheduler has not reported anything yet"},
		{name: "slices that may not be read", claim: exists, said: saysDevices, diagnosis: []dra.PendingReason{dra.ReasonNoMatchingDevice},
			synced: func(s *Synced) { s.Slices = false }, want: dra.ReasonUnknown, message: "the scheduler reports: " + saysDevices},
		{name: "classes that may not be read", claim: exists, diagnosis: []dra.PendingReason{dra.ReasonNoDeviceClass},
			synced: func(s *Synced) { s.Classes = false }, want: dra.ReasonUnknown},
	}
	seen := map[dra.PendingReason]bool{}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) { test.run(t) })
		seen[test.want] = true
	}
	for _, reason := range dra.PendingReasons() {
		if !seen[reason] {
			t.Errorf("no case gives %s", reason)
		}
	}
}

// With Once, a reference without a diagnosis will have none.
func TestOnceIsNeverPendingDiagnosis(t *testing.T) {
	h := newHarness(t)
	h.state = NewState(Config{Once: true})
	p := pod("team/p", 10, "gpu=c")
	p.Unschedulable = saysCPU
	h.update(p, claim("team/c", 11))
	h.step(time.Second)
	if w := h.onlyPending(); w.Reason != dra.ReasonOther {
		t.Errorf("%s: %s", w.Reason, w.Message)
	}
}

func (test reasonCase) run(t *testing.T) {
	h := newHarness(t)
	p := pod("team/p", 10, "gpu=c")
	if test.pod != nil {
		test.pod(&p)
	}
	p.Unschedulable = test.said
	if test.claim != nil {
		p.Claims[0].Claim = "c"
		h.update(claim("team/c", 11, test.claim))
	}
	h.update(p)
	if test.warning != "" {
		h.update(dra.Warning{Name: "team/e", Pod: p.Ref, PodUID: p.UID, Message: test.warning, Count: 1, Last: second(12)})
	}
	if test.kueue != nil {
		h.update(*test.kueue)
	}
	if test.domain != nil {
		h.update(*test.domain)
	}
	for _, reason := range test.diagnosis {
		message := test.diagnosisMessage
		if message == "" && reason != dra.ReasonNone {
			message = "as diagnosed"
		}
		h.facts.Diagnoses = append(h.facts.Diagnoses, diagnosisFor(p, "gpu", reason, message))
	}
	if test.synced != nil {
		test.synced(&h.facts.Synced)
	}
	h.step(time.Second)
	w := h.onlyPending()
	if w.Reason != test.want || test.message != "" && w.Message != test.message {
		t.Errorf("%s: %s\nwant %s: %s", w.Reason, w.Message, test.want, test.message)
	}
	if w.Message == "" {
		t.Error("no message")
	}
	h.step(time.Minute)
	if again := h.onlyPending(); again.Reason != w.Reason || again.Message != w.Message {
		t.Errorf("then %s: %s, though nothing happened", again.Reason, again.Message)
	}
}

func createdForAnother(c *dra.ClaimLifecycle) {
	c.MadeFor, c.PodClaim = dra.Consumer{Resource: "pods", Name: "q", UID: "uid-q"}, "gpu"
}

func allOf(all ...func(*dra.ClaimLifecycle)) func(*dra.ClaimLifecycle) {
	return func(c *dra.ClaimLifecycle) {
		for _, f := range all {
			f(c)
		}
	}
}

// The controller manager reports on the group, not on its pods, why a claim of
// the group cannot be created. The order of event and pod does not matter.
func TestGroupWarning(t *testing.T) {
	group := dra.Group{Ref: dra.PodRef{Namespace: "a", Name: "gang"}, UID: "uid-gang", Claims: []dra.PodClaim{{Name: "gpu", Template: "one"}}}
	warning := dra.Warning{Name: "a/e", Pod: group.Ref, PodUID: group.UID, Count: 1, Last: second(12),
		Message: `PodGroupResourceClaim gpu: failed to create resource claim: forbidden: exceeded quota: gpus`}
	p := pod("a/p", 10, "gpu<one")
	p.Group = "gang"
	for name, steps := range map[string][][]any{"the pod first": {{group, p}, {warning}}, "the event first": {{warning}, {group, p}}} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			for _, objects := range steps {
				h.update(objects...)
				h.step(time.Second)
			}
			if w := h.onlyPending(); w.Reason != dra.ReasonQuota || w.Message != warning.Message {
				t.Errorf("%s: %s", w.Reason, w.Message)
			}
			h.remove(warning)
			h.step(time.Second)
			if w := h.onlyPending(); w.Reason != dra.ReasonClaimNotCreated {
				t.Errorf("without the event %s: %s", w.Reason, w.Message)
			}
		})
	}
}

// What the scheduler reports on a group is the message about its pods, unless it
// has reported on the pod itself.
func TestUnschedulableGroup(t *testing.T) {
	group := dra.Group{Ref: dra.PodRef{Namespace: "a", Name: "gang"}, UID: "uid-gang", Unschedulable: "0/2 nodes are available: 2 Insufficient cpu."}
	p := pod("a/p", 10, "gpu=c")
	p.Group = "gang"
	h := newHarness(t)
	h.state = NewState(Config{Interval: time.Second, Once: true})
	h.update(claim("a/c", 5), p)
	h.step(time.Second)
	h.update(group)
	h.step(time.Second)
	if w := h.onlyPending(); w.Reason != dra.ReasonOther || w.Message != "Insufficient cpu" {
		t.Errorf("%s: %s", w.Reason, w.Message)
	}
	p.Unschedulable = "0/2 nodes are available: 2 cannot allocate all claims."
	h.update(p)
	h.step(time.Second)
	if w := h.onlyPending(); w.Reason != dra.ReasonUnknown || !strings.Contains(w.Message, "cannot allocate all claims") {
		t.Errorf("the pod's own message: %s: %s", w.Reason, w.Message)
	}
}

// These are not pending: a claim that is allocated and reserved for the pod or
// its group with all conditions true, a pod that is bound, a pod that has
// terminated.
func TestNothingIsPending(t *testing.T) {
	for name, change := range map[string]func(*dra.PodLifecycle, *dra.ClaimLifecycle){
		"reserved": func(_ *dra.PodLifecycle, c *dra.ClaimLifecycle) { allOf(withDevices("gpu-0"), reserved("p"))(c) },
		"conditions true": func(_ *dra.PodLifecycle, c *dra.ClaimLifecycle) {
			allOf(withDevices("gpu-0"), reserved("p"))(c)
			c.Binding = dra.BindingDone
		},
		"bound":         func(p *dra.PodLifecycle, _ *dra.ClaimLifecycle) { p.Node = "node-a" },
		"over":          func(p *dra.PodLifecycle, _ *dra.ClaimLifecycle) { p.Terminal = true },
		"being deleted": func(p *dra.PodLifecycle, _ *dra.ClaimLifecycle) { p.Deleted = second(60) },
		"reserved for group": func(p *dra.PodLifecycle, c *dra.ClaimLifecycle) {
			p.Group = "gang"
			withDevices("gpu-0")(c)
			c.ReservedFor = []dra.Consumer{{Resource: "podgroups", Name: "gang", UID: "uid-gang"}}
		},
		"a resource of a device plugin": func(p *dra.PodLifecycle, _ *dra.ClaimLifecycle) {
			p.Claims, p.Extended = nil, map[string]int64{"vendor.example.com/plugin": 1}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			p, c := pod("team/p", 10, "gpu=c"), claim("team/c", 11)
			h.update(p, c)
			h.step(time.Second)
			h.onlyPending()
			change(&p, &c)
			h.update(p, c)
			h.step(time.Second)
			if len(h.last.Pending)+len(h.last.Questions) > 0 {
				t.Errorf("%+v waits", h.last.Pending)
			}
		})
	}
}

func TestFailuresAreReasons(t *testing.T) {
	for _, reason := range dra.PendingReasons() {
		known := slices.Contains(failureReasons(), string(reason))
		if known != isFailure(reason) {
			t.Errorf("%s is counted: %v", reason, isFailure(reason))
		}
	}
}
