// Package fit answers how many pods of a manifest could run in a cluster, on which
// nodes, what one pod more would wait for, and what would help. Nothing is created. The
// devices are allocated, in a copy of what was read, by the scheduler's own allocator.
//
// The stages, in the direction of the data:
//
//	Manifest  a file → one kind of pods, and how many
//	pod       what their claims request, from the file or the cluster
//	place     how many pods each node can have, and what keeps more from it
//	next      one pod more, as explain explains it
//	Report    as text and JSON
package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Options are what Fit needs to know beside the manifest.
type Options struct {
	Namespace string // of the pods, if the manifest does not say
	Count     int    // of pods; 0: as the manifest says
	Explain   func(clusterread.Facts, clusterread.Subject) (*clusterread.Shortage, error)
}

// The most nodes and pods for which the allocations are made, so that it can be
// explained what one pod more would wait for.
const (
	placedNodes = 500
	placedPods  = 2000

	// mostPods is how many pods are counted on one node, unless more are requested:
	// then as many, up to mostCounted.
	mostPods    = 256
	mostCounted = 4096
)

// Fit finds out how many pods of the manifest could run in the cluster.
func Fit(ctx context.Context, cluster *clusterread.Trial, m *Manifest, options Options) (*Report, error) {
	known := cluster.Known()
	if !known.Devices {
		return nil, fmt.Errorf("what can be allocated is not known: %w", unreadError(cluster.Gaps))
	}
	namespace := cmp.Or(m.Namespace, options.Namespace)
	inv := cluster.Inventory
	p, err := m.resolve(inv, namespace)
	if err != nil {
		return nil, err
	}
	r := &Report{
		APIVersion: apiVersion, Kind: m.Kind, Namespace: namespace, Name: m.Name, Requested: cmp.Or(max(options.Count, 0), m.Count), Claims: listClaims(p),
		Nodes: []Node{}, Obstacles: []Obstacle{}, NotConsidered: slices.Concat(p.notConsidered(inv), m.NotConsidered), NotRead: cluster.Gaps,
	}
	r.Exact = known.Claims && known.Nodes && known.Pods && len(r.NotConsidered) == 0
	placing := &placing{inventory: inv, pod: p, known: known}
	if err := placing.count(ctx, min(max(mostPods, r.Requested), mostCounted)); err != nil {
		return nil, err
	}
	placing.fill(r)
	r.Fits = r.Pods >= r.Requested
	if err := r.addNext(ctx, cluster, placing, options.Explain); err != nil {
		return nil, err
	}
	return r, nil
}

// unreadError names what could not be read, and why.
func unreadError(gaps clusterread.Gaps) error {
	for _, gap := range gaps {
		return fmt.Errorf("%s: %s", gap.Source, gap.Message)
	}
	return errors.New("the cluster cannot be read")
}

// addNext allocates for the pods that can run, and explains why one more cannot, unless
// obstacles alone keep it: then there are devices for it.
func (r *Report) addNext(ctx context.Context, cluster *clusterread.Trial, p *placing, explainPod func(clusterread.Facts, clusterread.Subject) (*clusterread.Shortage, error)) error {
	if r.More || len(r.Claims) == 0 || len(r.Obstacles) > 0 || len(r.Nodes) > placedNodes || r.Pods > placedPods {
		return nil
	}
	nodeCache := allocator.NewNodeCache(p.inventory, allocator.NewCache(), allocator.CommandLimit)
	made := 0
	record := func(results [][]resourcev1.AllocationResult, claims []clusterread.SupposedClaim) {
		for _, pod := range results {
			for i := range pod {
				made++
				cluster.Allocate(dra.ClaimRef{Namespace: p.pod.namespace, Name: fmt.Sprintf("fit-%s-%d", r.Name, made)}, claims[i].Spec, &pod[i])
			}
		}
	}
	for _, node := range r.Nodes {
		if len(p.pod.shared) > 0 { // all pods are on one node
			filled, err := p.fillNode(ctx, nodeCache, node.Node, p.pod.shared, 1)
			if err != nil {
				return err
			}
			record(filled.Results, p.pod.shared)
		}
		if supposed := p.claimsOn(node.Node); len(supposed) > 0 {
			filled, err := p.fillNode(ctx, nodeCache, node.Node, supposed, node.Pods)
			if err != nil {
				return err
			}
			record(filled.Results, supposed)
		}
	}
	next := p.pod.claimsOn(nil)
	if len(p.pod.shared) > 0 && r.Pods > 0 {
		r.Next = &clusterread.Shortage{
			Reason: string(dra.ReasonFragmented), Meaning: dra.ReasonFragmented.Info().Meaning,
			Message:  fmt.Sprintf("the pods share a claim, so that all run on %s, which has devices for no more of them", r.Nodes[0].Node),
			Remedies: []string{"give each pod a claim of its own, by a ResourceClaimTemplate"},
		}
		return nil
	}
	if r.Pods == 0 {
		next = slices.Concat(p.pod.shared, next)
	}
	if len(next) == 0 {
		return nil
	}
	supposed, err := explainPod(cluster.Suppose(ctx, dra.PodRef{Namespace: p.pod.namespace, Name: r.Name + "-next"}, next))
	if err != nil {
		return fmt.Errorf("explain what one pod more would wait for: %w", err)
	}
	r.Next = supposed
	return nil
}
