// Package clusterread reads a cluster once, or takes what a running cluster role has in
// memory, and diagnoses what concerns one object. Facts is the result; what is not known
// is in Facts.Gaps, and a diagnosis that depends on it is not given.
//
// The stages, in the direction of the data:
//
//	Reader, Running  collections of the API server, or a snapshot in memory
//	Gaps             what could not be read, and which diagnoses depend on it
//	diagnose         two steps of the cluster role's reducer, with a diagnosis between them
//	Facts            objects, pending references with their reasons, what claims request
//	Trial            the same for a pod that does not exist
package clusterread

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// Facts is what has been read of the cluster, and what the reducer of the cluster
// role finds in it.
type Facts struct {
	Now       time.Time
	Server    string // version of the API server; empty: unknown
	Objects   *Objects
	Pending   []cluster.PendingRef // with their reasons and diagnoses
	Phases    []*model.Phase
	Supply    *dra.Supply // nil: not counted
	Claims    map[dra.ClaimRef]Spec
	Templates map[Template]Spec
	Classes   []string // names of all device classes
	Gaps      Gaps
}

// Template names a ResourceClaimTemplate.
type Template struct {
	Namespace, Name string
}

// Spec returns what the claim or the template requests; nil: unknown.
func (f *Facts) Spec(namespace, claim, template string) *Spec {
	if claim != "" {
		if spec, ok := f.Claims[dra.ClaimRef{Namespace: namespace, Name: claim}]; ok {
			return &spec
		}
		return nil
	}
	if spec, ok := f.Templates[Template{namespace, template}]; ok {
		return &spec
	}
	return nil
}
