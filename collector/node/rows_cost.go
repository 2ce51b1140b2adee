package node

import "github.com/dra-exporter/dra-exporter/collector/metric"

// addCost lists the families of what devices cost.
func (f *families) addCost() {
	f.devicePrice = gauge("dra_device_price_per_hour", "", "What an hour of the device costs by the price list, for each class through which claims hold it, or with an empty class while none does; absent where no rule fits",
		[]string{"node", "uuid", "deviceclass", "currency"})
	f.namespaceCost = counter("dra_namespace_cost_total", "", "What the namespace's device-seconds cost by the price list; outlives the claims",
		append(namespaceLabels(), "currency"))
}

// costRows shows the prices of all devices and what namespaces were charged.
func (b *rowBuilder) costRows(s *State) {
	if s.config.Prices == nil {
		return
	}
	f := b.families
	b.In(f.devicePrice)
	for _, u := range s.order.units {
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
