package upstream

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// The times after which what should have happened at once has not happened.
const (
	overdue       = time.Minute
	overdueDelete = 5 * time.Minute // kubelet and driver take part in a deletion
)

// claimFinalizer is Kubernetes' own.
const claimFinalizer = "resource.kubernetes.io/delete-protection"

// Drivers of NVIDIA.
const (
	nvidiaGPU    = "gpu.nvidia.com"
	nvidiaDomain = "compute-domain.nvidia.com"
)

// doubleAllocations finds devices that several claims have as a whole.
func doubleAllocations(c *ClusterObjects) []Sign {
	holders := make(map[dra.DeviceID][]dra.ClaimRef)
	for ref, claim := range c.Claims {
		for _, result := range claim.Results {
			if claim.Allocated && !result.AdminAccess && !result.Shared && !slices.Contains(holders[result.Device], ref) {
				holders[result.Device] = append(holders[result.Device], ref)
			}
		}
	}
	var signs []Sign
	for device, claims := range holders {
		if len(claims) < 2 {
			continue
		}
		slices.SortFunc(claims, compareClaims)
		signs = append(signs, Sign{Text: fmt.Sprintf("device %s is allocated to claims %s", device, named(claims)), Claims: claims})
	}
	return signs
}

// overdrawnCounters finds pools of which more is allocated than their counters allow.
func overdrawnCounters(c *ClusterObjects) []Sign {
	var signs []Sign
	for _, pool := range c.pools() {
		if pool.Overdrawn {
			signs = append(signs, Sign{Text: fmt.Sprintf("the allocated devices of pool %s of %s consume more of a counter than it has", pool.Pool, pool.Driver), Claims: c.holders(pool)})
		}
	}
	return signs
}

func (c *ClusterObjects) pools() []*dra.PoolSupply {
	if c.Supply == nil {
		return nil
	}
	return c.Supply.Pools
}

// holders returns the claims with a device of the pool, sorted.
func (c *ClusterObjects) holders(pool *dra.PoolSupply) []dra.ClaimRef {
	var claims []dra.ClaimRef
	for ref, claim := range c.Claims {
		if claim.Allocated && slices.ContainsFunc(claim.Results, func(result dra.AllocatedDevice) bool {
			return !result.AdminAccess && result.Device.Driver == pool.Driver && result.Device.Pool == pool.Pool
		}) {
			claims = append(claims, ref)
		}
	}
	slices.SortFunc(claims, compareClaims)
	return claims
}

// silentScheduler finds pods that the scheduler has not reported on.
func silentScheduler(c *ClusterObjects) []Sign {
	if !slices.ContainsFunc(c.pools(), func(pool *dra.PoolSupply) bool { return pool.Counters }) {
		return nil
	}
	var signs []Sign
	for ref, pod := range c.Pods {
		silent := pod.Node == "" && pod.Unschedulable == "" && !pod.Gated && pod.Group == "" && pod.Deleted.IsZero() && !pod.Terminal
		if !silent || c.Now.Sub(pod.Created) < overdue {
			continue
		}
		for _, claim := range c.claims(pod) {
			if claim.AllDevices && !claim.Allocated && c.Now.Sub(claim.Created) >= overdue {
				signs = append(signs, Sign{
					Text: fmt.Sprintf("the scheduler reports nothing of pod %s, whose claim %s asks for all devices", ref, claim.Ref.Name),
					Pods: []dra.PodRef{ref}, Claims: []dra.ClaimRef{claim.Ref},
				})
			}
		}
	}
	return signs
}

// claims returns the claims of the pod that exist, in the order of its references.
func (c *ClusterObjects) claims(pod *dra.PodLifecycle) []*dra.ClaimLifecycle {
	var claims []*dra.ClaimLifecycle
	for _, reference := range pod.Claims {
		claim := c.Claims[dra.ClaimRef{Namespace: pod.Ref.Namespace, Name: reference.Claim}]
		if reference.Claim != "" && claim != nil && !slices.Contains(claims, claim) {
			claims = append(claims, claim)
		}
	}
	return claims
}

// failedScores finds pods for which the scheduler fails to score nodes.
func failedScores(c *ClusterObjects) []Sign {
	var signs []Sign
	for ref, pod := range c.Pods {
		if pod.Node != "" || !strings.Contains(pod.Unschedulable, "number of allocations") || !strings.Contains(pod.Unschedulable, "smaller than number of claims") {
			continue
		}
		var allocated, unallocated []dra.ClaimRef
		for _, claim := range c.claims(pod) {
			if claim.Allocated {
				allocated = append(allocated, claim.Ref)
			} else {
				unallocated = append(unallocated, claim.Ref)
			}
		}
		if len(allocated) > 0 && len(unallocated) > 0 {
			signs = append(signs, Sign{
				Text: fmt.Sprintf("pod %s is pending with claims that are allocated (%s) and others that are not (%s), for which the scheduler cannot score nodes", ref, named(allocated), named(unallocated)),
				Pods: []dra.PodRef{ref}, Claims: unallocated,
			})
		}
	}
	return signs
}

// unevictedPods finds pods of extended resources with a device that should have evicted
// them. Their claims have no tolerations, because no pod can write one for an extended
// resource.
func unevictedPods(c *ClusterObjects) []Sign {
	if c.Supply == nil {
		return nil
	}
	var signs []Sign
	for i := range c.Supply.Tainted {
		device := &c.Supply.Tainted[i]
		taint := evicting(device)
		if taint == nil {
			continue
		}
		for _, holder := range device.Holders {
			claim := c.Claims[holder]
			if claim == nil || !claim.ExtendedResource || !claim.Allocated {
				continue
			}
			for _, consumer := range claim.ReservedFor {
				pod := c.pod(holder.Namespace, consumer)
				if pod == nil || pod.Node == "" || pod.Terminal || !pod.Deleted.IsZero() {
					continue
				}
				signs = append(signs, Sign{
					Text: fmt.Sprintf("pod %s keeps device %s with the taint %s", pod.Ref, device.Device, taintText(*taint)),
					Pods: []dra.PodRef{pod.Ref}, Claims: []dra.ClaimRef{holder},
				})
			}
		}
	}
	return signs
}

// evicting returns the first taint of the device that evicts; nil: none does.
func evicting(device *dra.TaintedDevice) *dra.Taint {
	for _, taints := range [][]dra.Taint{device.Taints, device.ByRules} {
		for i := range taints {
			if taints[i].Effect == "NoExecute" {
				return &taints[i]
			}
		}
	}
	return nil
}

// broadRules finds rules that evict the pods of all devices.
func broadRules(c *ClusterObjects) []Sign {
	if c.Supply == nil {
		return nil
	}
	var signs []Sign
	for _, rule := range c.Supply.BroadRules {
		if rule.Taint.Effect == "NoExecute" {
			signs = append(signs, Sign{Text: fmt.Sprintf("DeviceTaintRule %s evicts the pods of all devices (%s)", rule.Rule, taintText(rule.Taint))})
		}
	}
	return signs
}

// reservedForEnded finds claims that are reserved for a pod that has ended, and for
// another consumer, so that they stay allocated.
func reservedForEnded(c *ClusterObjects) []Sign {
	var signs []Sign
	for ref, claim := range c.Claims {
		if !claim.Allocated || !claim.Deleted.IsZero() || len(claim.ReservedFor) < 2 {
			continue
		}
		for _, consumer := range claim.ReservedFor {
			pod := c.pod(ref.Namespace, consumer)
			if pod == nil || !pod.Terminal || pod.Ended.IsZero() || c.Now.Sub(pod.Ended) < overdue {
				continue
			}
			signs = append(signs, Sign{
				Text: fmt.Sprintf("claim %s is reserved for pod %s, which has ended", ref, pod.Ref.Name),
				Pods: []dra.PodRef{pod.Ref}, Claims: []dra.ClaimRef{ref},
			})
		}
	}
	return signs
}

// lostClaimNames finds pods that are kept by a claim whose name their status has lost.
func lostClaimNames(c *ClusterObjects) []Sign {
	made := make(map[string][]*dra.ClaimLifecycle) // by the UID of the pod
	for _, claim := range c.Claims {
		if claim.MadeFor.Resource == "pods" && claim.PodClaim != "" {
			made[claim.MadeFor.UID] = append(made[claim.MadeFor.UID], claim)
		}
	}
	var signs []Sign
	for ref, pod := range c.Pods {
		if pod.Deleted.IsZero() || pod.Terminal || pod.Node == "" || c.Now.Sub(pod.Deleted.Add(pod.Grace)) < overdue {
			continue
		}
		for _, reference := range pod.Claims {
			for _, claim := range made[pod.UID] {
				lost := reference.Claim == "" && reference.Template != "" && claim.PodClaim == reference.Name && claim.Ref.Namespace == ref.Namespace
				reserved := slices.ContainsFunc(claim.ReservedFor, func(consumer dra.Consumer) bool { return consumer.UID == pod.UID })
				if lost && reserved {
					signs = append(signs, Sign{
						Text: fmt.Sprintf("pod %s does not end, and its status has lost the name of its claim %s", ref, claim.Ref.Name),
						Pods: []dra.PodRef{ref}, Claims: []dra.ClaimRef{claim.Ref}, Node: pod.Node,
					})
				}
			}
		}
	}
	return signs
}

// zombieClaims finds claims of NVIDIA's driver that stay although no pod uses them.
func zombieClaims(c *ClusterObjects) []Sign {
	if !c.PodsKnown {
		return nil
	}
	var signs []Sign
	for ref, claim := range c.Claims {
		deleted := !claim.Deleted.IsZero() && c.Now.Sub(claim.Deleted) >= overdueDelete && slices.Contains(claim.Finalizers, claimFinalizer)
		if !deleted || len(claim.ReservedFor) == 0 || !slices.ContainsFunc(claim.Results, isNVIDIA) {
			continue
		}
		used := slices.ContainsFunc(claim.ReservedFor, func(consumer dra.Consumer) bool {
			pod := c.pod(ref.Namespace, consumer)
			return consumer.Resource != "pods" || pod != nil && !pod.Terminal
		})
		if !used {
			signs = append(signs, Sign{Text: fmt.Sprintf("claim %s is being deleted and reserved for no pod that runs", ref), Claims: []dra.ClaimRef{ref}})
		}
	}
	return signs
}

func isNVIDIA(result dra.AllocatedDevice) bool {
	return result.Device.Driver == nvidiaGPU || result.Device.Driver == nvidiaDomain
}

// lostDomains finds nodes without the slices of ComputeDomains that others have.
func lostDomains(c *ClusterObjects) []Sign {
	gpus, domains := make(map[string]bool), make(map[string]bool)
	for _, pool := range c.pools() {
		switch {
		case pool.Slices == 0 || pool.Node == "":
		case pool.Driver == nvidiaGPU:
			gpus[pool.Node] = true
		case pool.Driver == nvidiaDomain:
			domains[pool.Node] = true
		}
	}
	if len(domains) == 0 {
		return nil
	}
	var signs []Sign
	for _, node := range slices.Sorted(maps.Keys(gpus)) {
		if !domains[node] {
			signs = append(signs, Sign{Text: fmt.Sprintf("node %s has no slice of %s", node, nvidiaDomain), Node: node})
		}
	}
	return signs
}

// partialPartitions finds pods whose MIG device cannot be prepared after an attempt that
// stopped half-way.
func partialPartitions(c *ClusterObjects) []Sign {
	var signs []Sign
	for _, warning := range c.Warnings {
		pod := c.Pods[warning.Pod]
		repeated := warning.Kind == dra.WarningPreparation && warning.Count > 1 && strings.Contains(warning.Message, "device handle by UUID for : Not Found")
		if !repeated || pod == nil || warning.PodUID != "" && warning.PodUID != pod.UID || !pod.Started.IsZero() || pod.Terminal {
			continue
		}
		for _, claim := range c.claims(pod) {
			if slices.ContainsFunc(claim.Results, isPartition) {
				signs = append(signs, Sign{
					Text: fmt.Sprintf("on node %s the MIG device of claim %s cannot be prepared", pod.Node, claim.Ref),
					Pods: []dra.PodRef{pod.Ref}, Claims: []dra.ClaimRef{claim.Ref}, Node: pod.Node,
				})
			}
		}
	}
	return signs
}

func isPartition(result dra.AllocatedDevice) bool {
	return result.Device.Driver == nvidiaGPU && strings.Contains(result.Device.Name, "-mig-")
}

func compareClaims(a, b dra.ClaimRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// named lists the first claims, and says how many more there are.
func named(claims []dra.ClaimRef) string {
	const limit = 4
	var names []string
	for _, ref := range claims[:min(len(claims), limit)] {
		names = append(names, ref.String())
	}
	text := strings.Join(names, ", ")
	if more := len(claims) - limit; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// taintText writes a taint as kubectl does.
func taintText(taint dra.Taint) string {
	text := taint.Key
	if taint.Value != "" {
		text += "=" + taint.Value
	}
	return text + ":" + taint.Effect
}
