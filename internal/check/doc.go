// Package check makes the report of `dra-exporter check`: findings, each with what to
// do about it. It reads the host, the API server's version and permissions, and
// running exporters. What the parts of a role have read, the command passes on as
// values.
//
// A failure is something that the exporter needs to do what its flags say, a warning
// something that it can do without. Skipped is what could not be read, or what is not
// wanted here. Nothing is reported about what is unknown.
package check
