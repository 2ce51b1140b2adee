package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// The phases that may be under way, see docs/phases.md.
const (
	phaseBinding          = "binding"
	phaseScheduling       = "scheduling"
	phasePreparation      = "preparation"
	phaseStart            = "start"
	phasePreparationStart = "preparation_start"
)

// podOf tells of a pod and where it is on its way; with a claim, of the
// phases that concern that claim alone.
func (a account) podOf(life *dra.PodLife, claim string) Pod {
	told := Pod{Name: life.Ref.Name, UID: life.UID, Node: life.Node, State: a.podState(life)}
	for _, phase := range a.facts.Phases {
		if phase.Pod == life.Ref && (claim == "" || phase.Claim == "" || phase.Claim == claim) {
			told.Phases = append(told.Phases, PodPhase{Claim: phase.Claim, Phase: phase.Phase, Since: phase.Since.UTC()})
		}
	}
	told.Message, told.Help = a.underWay(life, told.Phases)
	return told
}

func (a account) podState(life *dra.PodLife) string {
	switch {
	case life.Terminal:
		return StateFinished
	case !life.Deleted.IsZero():
		return StateTerminating
	}
	for _, waiting := range a.facts.Waiting {
		if waiting.Pod == life.Ref && waiting.PodUID == life.UID {
			return StateWaiting
		}
	}
	switch {
	case !life.Started.IsZero():
		return StateRunning
	case life.Node == "" && a.facts.Gaps.lack(sourceClaims):
		return StateUnknown // a pod that is bound has its claims
	default:
		return StateStarting
	}
}

// underWay says what is going on in the phases, who has it in hand, and what
// to look at if it takes long.
func (a account) underWay(life *dra.PodLife, phases []PodPhase) (message string, help []string) {
	seen := make(map[string]bool)
	var messages []string
	for _, phase := range phases {
		if seen[phase.Phase] {
			continue
		}
		seen[phase.Phase] = true
		text, hint := a.phaseWords(life, phase.Phase)
		messages, help = append(messages, text), append(help, hint)
	}
	if seen[phasePreparation] || seen[phasePreparationStart] {
		if trouble := a.facts.World.unprepared(life.Ref, life.UID); trouble != nil {
			messages = append(messages, fmt.Sprintf("the kubelet says, %s by now: %s", counted(max(trouble.Count, 1), "time", "times"), trouble.Message))
		}
	}
	return strings.Join(messages, "; "), help
}

func (a account) phaseWords(life *dra.PodLife, phase string) (text, help string) {
	drivers := some(a.drivers(life), 4)
	switch phase {
	case phaseBinding:
		return "the devices are allocated; the scheduler waits until their binding conditions are true, which a controller of their driver sets",
			fmt.Sprintf("look at the controller of %s, and at status.devices of the claim", drivers)
	case phaseScheduling:
		return "the claims are allocated; the scheduler has not bound the pod to a node",
			fmt.Sprintf("`kubectl describe pod -n %s %s` shows what the scheduler says", life.Ref.Namespace, life.Ref.Name)
	case phasePreparation:
		return fmt.Sprintf("the kubelet of %s has %s prepare the devices and makes the sandbox", life.Node, drivers),
			fmt.Sprintf("look at the pod of %s on node %s, then at the kubelet's log there", drivers, life.Node)
	case phaseStart:
		return fmt.Sprintf("the sandbox on %s is ready; no container has started", life.Node),
			fmt.Sprintf("`kubectl describe pod -n %s %s` shows what its containers wait for, such as an image", life.Ref.Namespace, life.Ref.Name)
	case phasePreparationStart:
		return fmt.Sprintf("the kubelet of %s has %s prepare the devices and starts the containers; before Kubernetes 1.36 the two cannot be told apart", life.Node, drivers),
			fmt.Sprintf("`kubectl describe pod -n %s %s`; then the pod of %s on node %s", life.Ref.Namespace, life.Ref.Name, drivers, life.Node)
	default:
		return phase, ""
	}
}

// drivers are those of the devices that the pod's claims have, sorted.
func (a account) drivers(life *dra.PodLife) []string {
	names := make(map[string]bool)
	for _, reference := range life.Claims {
		ref := dra.ClaimRef{Namespace: life.Ref.Namespace, Name: a.facts.World.claimOf(life, reference)}
		if claim, known := a.facts.World.claims[ref]; known {
			for _, result := range claim.Results {
				names[result.Device.Driver] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
