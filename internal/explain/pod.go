package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// The phases that a pod may be in, see docs/pending.md.
const (
	phaseBinding          = "binding"
	phaseScheduling       = "scheduling"
	phasePreparation      = "preparation"
	phaseStart            = "start"
	phasePreparationStart = "preparation_start"
)

// podBuilder describes pods and the phases that they are in.
type podBuilder struct{ facts *clusterread.Facts }

// build describes the pod and its phases; with a claim, the phases of that claim
// and of the pod as a whole.
func (b podBuilder) build(lifecycle *dra.PodLifecycle, claim string) Pod {
	pod := Pod{Name: lifecycle.Ref.Name, UID: lifecycle.UID, Node: lifecycle.Node, State: b.state(lifecycle)}
	for _, phase := range b.facts.Phases {
		if phase.Pod == lifecycle.Ref && (claim == "" || phase.Claim == "" || phase.Claim == claim) {
			pod.Phases = append(pod.Phases, PodPhase{Claim: phase.Claim, Phase: phase.Name, Since: phase.Since.UTC().Truncate(time.Second)})
		}
	}
	for _, taken := range lifecycle.Allocatable {
		for _, amount := range taken.Resources {
			if claim == "" || claim == taken.Claim {
				pod.Allocatable = append(pod.Allocatable, Allocatable{
					Claim: taken.Claim, Resource: amount.Resource, Devices: amount.Devices, PerPod: amount.PerPod, PerContainer: amount.PerContainer,
				})
			}
		}
	}
	pod.progress, pod.Help = b.progress(lifecycle, pod.Phases)
	pod.Message = b.withFailure(pod.progress, lifecycle, pod.Phases)
	return pod
}

func (b podBuilder) state(lifecycle *dra.PodLifecycle) string {
	switch {
	case lifecycle.Terminal:
		return StateFinished
	case !lifecycle.Deleted.IsZero():
		return StateTerminating
	}
	for _, pending := range b.facts.Pending {
		if pending.Pod == lifecycle.Ref && pending.PodUID == lifecycle.UID {
			return StatePending
		}
	}
	switch {
	case !lifecycle.Started.IsZero():
		return StateRunning
	case lifecycle.Node == "" && b.facts.Gaps.Lack(clusterread.SourceClaims):
		return StateUnknown // a pod that is bound has its claims
	default:
		return StateStarting
	}
}

// progress returns what happens in the phases, which component does it, and
// what to look at if it takes long.
func (b podBuilder) progress(lifecycle *dra.PodLifecycle, phases []PodPhase) (message string, help []string) {
	seen := make(map[string]bool)
	var messages []string
	for _, phase := range phases {
		if seen[phase.Phase] {
			continue
		}
		seen[phase.Phase] = true
		text, hint := b.phaseText(lifecycle, phase.Phase)
		messages, help = append(messages, text), append(help, hint)
	}
	return strings.Join(messages, "; "), help
}

// withFailure adds to the message what the kubelet reports about a preparation that
// is in progress.
func (b podBuilder) withFailure(message string, lifecycle *dra.PodLifecycle, phases []PodPhase) string {
	if !slices.ContainsFunc(phases, func(phase PodPhase) bool {
		return phase.Phase == phasePreparation || phase.Phase == phasePreparationStart
	}) {
		return message
	}
	warning := b.preparationFailure(lifecycle.Ref, lifecycle.UID)
	if warning == nil {
		return message
	}
	return fmt.Sprintf("%s; the kubelet reports, %s so far: %s", message, words.Count(max(warning.Count, 1), "time", "times"), warning.Message)
}

func (b podBuilder) phaseText(lifecycle *dra.PodLifecycle, phase string) (text, help string) {
	if domain := b.waitsForDomain(lifecycle); domain != nil && (phase == phasePreparation || phase == phasePreparationStart) {
		return fmt.Sprintf("the pod waits until its node %s is ready in ComputeDomain %s", lifecycle.Node, domain.Ref.Name),
			fmt.Sprintf("`kubectl get pods -A -o wide -l resource.nvidia.com/computeDomain=%s` shows the pod of the IMEX daemon on %s", domain.UID, lifecycle.Node)
	}
	drivers := words.List(b.drivers(lifecycle), 4)
	switch phase {
	case phaseBinding:
		return "the devices are allocated; their binding conditions, which a controller of their driver sets, are not true yet",
			fmt.Sprintf("check the controller of %s, and status.devices of the claim", drivers)
	case phaseScheduling:
		return "the claims are allocated; the scheduler has not bound the pod to a node",
			fmt.Sprintf("`kubectl describe pod -n %s %s` shows the scheduler's message", lifecycle.Ref.Namespace, lifecycle.Ref.Name)
	case phasePreparation:
		return fmt.Sprintf("on %s, %s prepares the devices and the kubelet creates the sandbox", lifecycle.Node, drivers),
			fmt.Sprintf("check the pod of %s on node %s, then the kubelet's log there", drivers, lifecycle.Node)
	case phaseStart:
		if lifecycle.Sandbox.IsZero() {
			return fmt.Sprintf("nothing is prepared for the claims of the pod; the kubelet on %s has not reported its sandbox as ready, and no container has started", lifecycle.Node),
				fmt.Sprintf("`kubectl describe pod -n %s %s` shows what it waits for, for example a volume or the network of the sandbox", lifecycle.Ref.Namespace, lifecycle.Ref.Name)
		}
		return fmt.Sprintf("the sandbox on %s is ready; no container has started", lifecycle.Node),
			fmt.Sprintf("`kubectl describe pod -n %s %s` shows why its containers have not started, for example a missing image", lifecycle.Ref.Namespace, lifecycle.Ref.Name)
	case phasePreparationStart:
		return fmt.Sprintf("on %s, %s prepares the devices and the kubelet starts the containers; before Kubernetes 1.36 these phases cannot be distinguished", lifecycle.Node, drivers),
			fmt.Sprintf("`kubectl describe pod -n %s %s`; then the pod of %s on node %s", lifecycle.Ref.Namespace, lifecycle.Ref.Name, drivers, lifecycle.Node)
	default:
		return phase, ""
	}
}

// drivers returns those of the devices that the pod's claims have, sorted.
func (b podBuilder) drivers(lifecycle *dra.PodLifecycle) []string {
	names := make(map[string]bool)
	for _, reference := range lifecycle.Claims {
		ref := dra.ClaimRef{Namespace: lifecycle.Ref.Namespace, Name: b.facts.Objects.ClaimName(lifecycle, reference)}
		if claim, ok := b.facts.Objects.Claims[ref]; ok {
			for _, result := range claim.Results {
				names[result.Device.Driver] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// preparationFailure returns the newest event about devices that could not be
// prepared for the pod; nil without one.
func (b podBuilder) preparationFailure(pod dra.PodRef, uid string) *dra.Warning {
	var newest *dra.Warning
	for _, warning := range b.facts.Objects.Warnings {
		if warning.Kind != dra.WarningPreparation || warning.Pod != pod || (warning.PodUID != "" && warning.PodUID != uid) {
			continue
		}
		if newest == nil || warning.Last.After(newest.Last) || warning.Last.Equal(newest.Last) && warning.Name > newest.Name {
			newest = warning
		}
	}
	return newest
}

// waitsForDomain returns the ComputeDomain in which the node of a pod is not ready, and
// for which the pod therefore waits; nil if there is none.
func (b podBuilder) waitsForDomain(pod *dra.PodLifecycle) *dra.ComputeDomain {
	for _, reference := range pod.Claims {
		domain := computeDomain(b.facts.Objects, pod.Ref.Namespace, reference.Template)
		if domain != nil && !slices.ContainsFunc(domain.Nodes, func(node dra.ComputeDomainNode) bool { return node.Name == pod.Node && node.Ready }) {
			return domain
		}
	}
	return nil
}
