// Package customresource has the Go types of the custom resources that are read:
// Workloads of Kueue, ComputeDomains of NVIDIA's DRA driver, and PodGroups of Volcano
// and KAI. They have only
// the fields that are read; JSON decoding ignores the others, so that a pod
// template within a Workload takes no memory. API servers send custom resources
// as JSON alone.
package customresource
