// Package diagnosis is the judge: it says why the claims of a pod cannot be
// allocated, as far as devices go. For each request it counts what is left of
// the published devices stage by stage; what counts cannot tell (constraints,
// partitions, requests that compete) it asks the allocator that the scheduler
// uses, on the most promising nodes.
//
// It answers the reducer's questions, the oldest first, within a share of a
// core, and answers one question at once and in detail for a person. What it
// does not look at: node affinity, taints of nodes, processor and memory.
// docs/pending.md has the reasons and the limits.
package diagnosis
