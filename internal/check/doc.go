// Package check judges what `dra-exporter check` has found out: facts in, one
// finding a line out, each with what to do about it. It reads nothing itself;
// the command gathers the facts, with the very parts of the exporter.
//
// A failure is something without which the exporter does not do what its flags
// say, a warning something that it does without, and skipped is what could not
// be looked at or what is not wanted here. What is unknown is never judged.
package check
