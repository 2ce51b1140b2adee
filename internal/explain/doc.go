// Package explain answers a person's question about one ResourceClaim or one
// pod: what was asked for, what each stage of the judgement took away, who
// holds the devices that would do, and what would help; or, of a claim that
// does not wait, which devices it has and what it is waiting for now.
//
// It is pure: Explain makes a Report of values, and Report.Text writes it for
// a terminal. The fields of Report are a stable JSON document, described in
// docs/explain.md: within its apiVersion no name is renamed or removed.
//
// Nothing is guessed. What could not be read stands in Report.NotRead with
// what is not known because of it, and Trust takes away from a verdict what
// rested on it.
package explain
