package apiserver

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// decodeGroup returns the claims that a PodGroup has for its pods. It neither
// keeps nor changes anything of the group.
func decodeGroup(group *schedulingv1beta1.PodGroup) dra.Group {
	decoded := dra.Group{
		Ref: dra.PodRef{Namespace: clean(group.Namespace), Name: clean(group.Name)},
		UID: clean(string(group.UID)),
	}
	made, unneeded := make(map[string]string), make(map[string]bool)
	for _, status := range group.Status.ResourceClaimStatuses {
		made[status.Name], unneeded[status.Name] = cleanOr(status.ResourceClaimName), status.ResourceClaimName == nil
	}
	for _, reference := range group.Spec.ResourceClaims {
		claim := dra.PodClaim{
			Name:     clean(reference.Name),
			Template: cleanOr(reference.ResourceClaimTemplateName),
			Claim:    cleanOr(reference.ResourceClaimName),
		}
		if claim.Claim == "" {
			claim.Claim = made[reference.Name]
		}
		if claim.Claim != "" || !unneeded[reference.Name] {
			decoded.Claims = append(decoded.Claims, claim)
		}
	}
	decoded.Claims = atMost(decoded.Claims, maxReferences)
	return decoded
}
