// Package cluster is the cluster role: how long each claim waits, in which
// phase; what is pending, and why; what is left; what is stuck or sick. Its
// reducer takes what the API server told of as a stream of changes and never
// looks at everything again because of one of them. All but run.go is pure.
//
// Phases and their errors are in docs/phases.md, reasons in docs/pending.md.
package cluster
