package node

import "github.com/dra-exporter/dra-exporter/collector/metric"

// costRows shows the prices of all devices and what namespaces were charged.
func (b *rowBuilder) costRows(s *State) {
	if s.config.Prices == nil {
		return
	}
	f := b.families
	b.In(f.devicePrice)
	for _, u := range s.devices.all() {
		for _, row := range u.pricing.rows.live {
			b.Add(row.labels, row.says.perHour)
		}
		for _, row := range u.pricing.rows.retired {
			b.AddPast(row.labels, row.says.perHour)
		}
	}
	b.In(f.namespaceCost)
	for _, e := range s.order.totals {
		cost := &e.totals.cost
		if cost.labels == nil {
			cost.labels = metric.NewLabels(f.namespaceCost.Labels, s.config.Node, e.key.namespace, e.key.class, e.key.model, s.config.Prices.Currency)
		}
		b.addTally(cost.labels, cost.tally)
	}
}
