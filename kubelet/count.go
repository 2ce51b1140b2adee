package kubelet

import (
	"fmt"

	"github.com/dra-exporter/dra-exporter/collector/objectfields"
)

// maxAnswer is the largest response, in bytes: what Kubernetes' own node tests
// allow. gRPC's default of 4 MiB is too small for a full node.
const maxAnswer = 16 << 20

// Limits of a response. A full node with 1,000 pods has some 25,000 entries.
const (
	maxPods    = 10_000
	maxEntries = 200_000   // of all kinds: pods, containers, devices and what those consist of
	maxValues  = 1_000_000 // ids of devices and of CPUs
)

// checkEntries returns an error whose text diagnose recognizes: gRPC keeps only the
// text of a codec's error.
func checkEntries(e objectfields.Entries) error {
	switch {
	case e.Top > maxPods:
		return fmt.Errorf("%s %d pods", moreThan, maxPods)
	case e.All > maxEntries:
		return fmt.Errorf("%s %d entries", moreThan, maxEntries)
	case e.Values > maxValues:
		return fmt.Errorf("%s %d ids of devices and CPUs", moreThan, maxValues)
	default:
		return nil
	}
}

const moreThan = "the answer has more than"
