// Package inventory knows what is published in the cluster, which of it is
// free, and what each device class selects. It keeps slices, claims, classes,
// taint rules, nodes and templates as they come, in a compact form, and counts
// them; why a claim cannot be allocated is collector/funnel's to say, which
// asks here.
//
// The rules are those of the scheduler's allocator (package structured of
// k8s.io/dynamic-resource-allocation), with all of its features: only the
// newest generation of a pool counts, nothing can be allocated from a pool that
// is incomplete or contradicts itself, a counter set is spent once, admin
// access spends nothing, a selector that fails for a device aborts.
//
// How it is asked, all of it safe for concurrent use:
//
//	Supply                    what is published and what is left, for metrics; cheap when little has changed
//	Version, Concerns         whether an answer may have changed
//	ClassNamed, ClassFor, Classes, NodeNamed, Nodes, ClaimSpec, TemplateSpec, Allocation    objects
//	Settle, Select            have selectors evaluated: of all classes, of a request
//	Count                     what each stage of the funnel leaves of all devices, and which nodes reach the free ones
//	Examples, Holders         a few devices that each stage removed, and why; who holds those that would fit
//	OnNode                    what upstream's allocator needs for one node
//
// What they return is shared and must not be changed.
//
// No lock is held for longer than a few milliseconds: CEL runs without any.
package inventory
