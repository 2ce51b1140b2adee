package node

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// namespaceKey is the labels of totals that are kept after claims end.
type namespaceKey struct {
	namespace, class, model string
}

// namespaceTotals are never removed while the process lives.
type namespaceTotals struct {
	key namespaceKey

	device, sharedDevice, busy, energy tally

	cost tally // of device-seconds, in the currency of the price list; open once a price is known

	labels, costLabels *metric.Labels
}

// charge adds what weighted device-seconds cost.
func (n *namespaceTotals) charge(perHour, seconds float64, now time.Time) {
	n.cost.add(seconds*perHour/time.Hour.Seconds(), now)
}
