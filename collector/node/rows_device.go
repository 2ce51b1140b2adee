package node

func (b *rowBuilder) holderRows(units []*deviceState) {
	b.In(b.families.deviceHolders)
	for _, u := range units {
		b.Add(u.labels.byClaim, float64(u.holders.claims))
		b.Add(u.labels.byPlugin, float64(u.holders.plugins))
	}
}

func (b *rowBuilder) busyRows(units []*deviceState) {
	b.In(b.families.deviceBusy)
	for _, u := range units {
		b.addTally(u.labels.plain, u.busy)
	}
}
