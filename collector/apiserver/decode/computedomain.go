package decode

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/customresource"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// maxDomainNodes bounds the nodes of one ComputeDomain. An IMEX domain has at most 18
// by default, and a ComputeDomain may have several.
const maxDomainNodes = 1024

// ComputeDomain returns the nodes that a ComputeDomain has, sorted, and is to have. It
// neither keeps nor changes anything of the object.
func ComputeDomain(object *customresource.ComputeDomain) dra.ComputeDomain {
	decoded := dra.ComputeDomain{
		Ref:      dra.PodRef{Namespace: Text(object.Namespace), Name: Text(object.Name)},
		UID:      Text(string(object.UID)),
		Created:  instant(object.CreationTimestamp),
		Template: shortText(object.Spec.Channel.ResourceClaimTemplate.Name, maxName),
		NumNodes: max(object.Spec.NumNodes, 0),
		Ready:    object.Status.Status == customresource.ComputeDomainReady,
	}
	for _, node := range first(object.Status.Nodes, maxDomainNodes) {
		decoded.Nodes = append(decoded.Nodes, dra.ComputeDomainNode{
			Name: shortText(node.Name, maxName), Clique: shortText(node.CliqueID, maxName), Ready: node.Status == customresource.ComputeDomainReady,
		})
	}
	slices.SortFunc(decoded.Nodes, func(a, b dra.ComputeDomainNode) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Clique, b.Clique))
	})
	return decoded
}
