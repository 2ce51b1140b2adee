// Package dcgmnames spells the rows of a snapshot as dcgm-exporter does: its
// metric names, labels, types and units, so that what was written for it
// (dashboards, alerts, autoscalers) goes on working. docs/dcgm-names.md says
// what is the same and what is not.
//
// It reads nothing but the rows, and so cannot disagree with them: what they
// do not tell of a device is absent here as well.
package dcgmnames

import "fmt"

// Mode says what pods see of a device that several of them share.
type Mode uint8

// The modes. Copy is what dcgm-exporter does under DRA: every pod has the value of
// the whole device. (Between pods of device plugins it has split utilization and
// memory since March 2026, with --kubernetes-virtual-gpus.) With Split a pod has its own share of utilization and memory
// where its processes are known, and the device's value where they are not.
const (
	Copy Mode = iota
	Split
)

func (m Mode) String() string { return [...]string{Copy: "copy", Split: "split"}[m] }

// ParseMode is the inverse of String.
func ParseMode(name string) (Mode, error) {
	for _, mode := range []Mode{Copy, Split} {
		if name == mode.String() {
			return mode, nil
		}
	}
	return 0, fmt.Errorf("parse the mode of DCGM names: %q is neither copy nor split", name)
}
