package node

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// deviceRows returns what adds rows for each device.
func deviceRows(add func(*labelledDevice, *metric.Builder)) fill {
	return func(n *labelled, b *metric.Builder) {
		for i := range n.devices {
			add(&n.devices[i], b)
		}
	}
}

// readingRows returns what adds the readings of a quantity. Gauges are left out when they
// are stale; counters stay.
func readingRows(q device.Quantity, gauge bool) fill {
	return func(n *labelled, b *metric.Builder) {
		for i := range n.devices {
			d := &n.devices[i]
			if gauge && !d.Fresh {
				continue
			}
			first, end := d.span(q)
			for at := first; at < end; at++ {
				b.Add(d.readings[at].Labels, d.Readings[at].Value)
			}
		}
	}
}

// deviceInfoRows returns what adds an info row for each device of which there is something
// to say: values are those of the labels after the UUID, or nil.
func deviceInfoRows(values func(*model.Device) []string, isPast func(*model.Device) bool) fill {
	type key struct {
		*model.Identity
		*model.Details
	}
	var kept metric.LabelCache[key, struct {
		made bool
		*metric.Labels
	}]
	return func(n *labelled, b *metric.Builder) {
		for i, labels := range kept.Align(len(n.Devices), func(i int) key { return key{n.Devices[i].Identity, n.Devices[i].Details} }) {
			d := &n.Devices[i]
			if !labels.made {
				labels.made = true
				if values := values(d); values != nil {
					labels.Labels = metric.NewLabels(b.Family().Labels, append([]string{n.Name, d.UUID}, values...)...)
				}
			}
			if labels.Labels != nil {
				addFact(b, labels.Labels, isPast(d))
			}
		}
	}
}

// deviceKindRows returns what adds up to three numbers for each device, under a label of
// their kind.
func deviceKindRows(kinds [3]string, numbers func(*model.Device) [3]model.Optional) fill {
	var kept metric.LabelCache[*model.Identity, [3]*metric.Labels]
	return func(n *labelled, b *metric.Builder) {
		for i, labels := range kept.Align(len(n.Devices), n.identity) {
			d := &n.Devices[i]
			for kind, number := range numbers(d) {
				if number.Known && labels[kind] == nil {
					labels[kind] = n.newDeviceLabels(b.Family().Labels, d, kinds[kind])
				}
				addOptional(b, labels[kind], number)
			}
		}
	}
}

// deviceFactRows returns what adds an info row for each fact about each device. The values
// are those of the labels after the device's own.
func deviceFactRows[T comparable](list func(*model.Device) []T, values func(T) []string) fill {
	var kept metric.LabelCache[*model.Identity, labelList[T]]
	return func(n *labelled, b *metric.Builder) {
		for i, labels := range kept.Align(len(n.Devices), n.identity) {
			d := &n.Devices[i]
			facts := list(d)
			for _, l := range labels.align(len(facts), func(i int) T { return facts[i] }, func(i int) *metric.Labels {
				return n.newDeviceLabels(b.Family().Labels, d, values(facts[i])...)
			}) {
				b.Add(l.Labels, 1)
			}
		}
	}
}

// priceRows returns what adds the prices of each device by class.
func priceRows() fill {
	var kept metric.LabelCache[*model.Identity, labelList[string]]
	return func(n *labelled, b *metric.Builder) {
		for i, labels := range kept.Align(len(n.Devices), n.identity) {
			d := &n.Devices[i]
			price := func(i int) *model.Price { return element(d.Prices, d.PastPrices, i) }
			for at, l := range labels.align(len(d.Prices)+len(d.PastPrices), func(i int) string { return price(i).Class }, func(i int) *metric.Labels {
				return metric.NewLabels(b.Family().Labels, n.Name, d.UUID, price(i).Class, n.Currency)
			}) {
				if at < len(d.Prices) {
					b.Add(l.Labels, price(at).PerHour)
				} else {
					b.AddPast(l.Labels, price(at).PerHour)
				}
			}
		}
	}
}

// holdRows returns what adds rows for each hold.
func holdRows(add func(*labelledHold, *metric.Builder)) fill {
	return func(n *labelled, b *metric.Builder) {
		for i := range n.holds {
			add(&n.holds[i], b)
		}
	}
}

// accountRows returns what adds a total of each account of each hold.
func accountRows(total func(*model.Account) model.Total) fill {
	return func(n *labelled, b *metric.Builder) {
		for i := range n.holds {
			h := &n.holds[i]
			for at := range h.Accounts {
				a := &h.Accounts[at]
				addTotal(b, h.accounts[a.Attribution], total(a))
			}
		}
	}
}

// accountLists keeps the labels of lists of each account of a hold.
type accountLists = metric.LabelCache[holdKey, [model.Attributions]labelList[string]]

// engineRows returns what adds how active the engines are for each hold.
func engineRows() fill {
	var kept accountLists
	return func(n *labelled, b *metric.Builder) {
		for i, labels := range kept.Align(len(n.Holds), n.holdKey) {
			h := &n.Holds[i]
			engine := func(i int) string { return h.Engines[i].Details[0] }
			for at, l := range labels[h.Attribution].align(len(h.Engines), engine, func(i int) *metric.Labels {
				return n.newHoldLabels(b.Family().Labels, h, h.Attribution.String(), engine(i))
			}) {
				b.Add(l.Labels, h.Engines[at].Value)
			}
		}
	}
}

// throttledRows returns what adds the throttled time of each account, by reason.
func throttledRows() fill {
	var kept accountLists
	return func(n *labelled, b *metric.Builder) {
		for i, labels := range kept.Align(len(n.Holds), n.holdKey) {
			h := &n.Holds[i]
			for at := range h.Accounts {
				a := &h.Accounts[at]
				reason := func(i int) string { return a.Throttled[i].Reason }
				for at, l := range labels[a.Attribution].align(len(a.Throttled), reason, func(i int) *metric.Labels {
					return n.newHoldLabels(b.Family().Labels, h, a.Attribution.String(), reason(i))
				}) {
					addTotal(b, l.Labels, a.Throttled[at].Seconds)
				}
			}
		}
	}
}

// claimFactRows returns what adds an info row for each of all facts about each claim. The
// first ones hold as long as the claim is live, the others do not hold any more. The
// values are those of the labels after the claim's own.
func claimFactRows(count func(*model.Claim) (live, all int), values func(c *model.Claim, i int) []string) fill {
	var kept metric.LabelCache[*model.Claim, []*metric.Labels]
	return func(n *labelled, b *metric.Builder) {
		for i, labels := range kept.Align(len(n.Claims), func(i int) *model.Claim { return n.Claims[i] }) {
			c := n.Claims[i]
			live, all := count(c)
			for i := len(*labels); i < all; i++ {
				values := append([]string{n.Name, c.Ref.Namespace, c.Ref.Name}, values(c, i)...)
				*labels = append(*labels, metric.NewLabels(b.Family().Labels, values...))
			}
			for i, l := range *labels {
				addFact(b, l, !c.Live || i >= live)
			}
		}
	}
}

// element returns a record of two lists, of which the second begins after the first.
func element[T any](first, second []T, i int) *T {
	if i < len(first) {
		return &first[i]
	}
	return &second[i-len(first)]
}

// factRows returns what adds an info row for each fact, and for those that do not hold any
// more. The values are those of the labels after the node.
func factRows[T comparable](lists func(*model.Node) (live, past []T), values func(T) []string) fill {
	var kept [2]labelList[T]
	return func(n *labelled, b *metric.Builder) {
		live, past := lists(n.Node)
		for at, list := range [][]T{live, past} {
			for _, labels := range kept[at].align(len(list), func(i int) T { return list[i] }, func(i int) *metric.Labels {
				return metric.NewLabels(b.Family().Labels, append([]string{n.Name}, values(list[i])...)...)
			}) {
				addFact(b, labels.Labels, at > 0)
			}
		}
	}
}

// costRows returns what adds the costs of namespaces.
func costRows() fill {
	var kept labelList[namespaceKey]
	var priced []*model.Totals
	return func(n *labelled, b *metric.Builder) {
		priced = priced[:0]
		for i := range n.Totals {
			if n.Totals[i].Cost.Known() {
				priced = append(priced, &n.Totals[i])
			}
		}
		for i, labels := range kept.align(len(priced),
			func(i int) namespaceKey { return namespaceKey{priced[i].Namespace, priced[i].Class, priced[i].Model} },
			func(i int) *metric.Labels {
				return metric.NewLabels(b.Family().Labels, n.Name, priced[i].Namespace, priced[i].Class, priced[i].Model, n.Currency)
			}) {
			addTotal(b, labels.Labels, priced[i].Cost)
		}
	}
}

// violationRows returns what adds the violations of constraints by class.
func violationRows() fill {
	type key struct{ class, constraint string }
	var kept labelList[key]
	return func(n *labelled, b *metric.Builder) {
		for i, labels := range kept.align(len(n.Violations),
			func(i int) key { return key{n.Violations[i].Class, n.Violations[i].Constraint} },
			func(i int) *metric.Labels {
				return metric.NewLabels(b.Family().Labels, n.Name, n.Violations[i].Class, n.Violations[i].Constraint)
			}) {
			addTotal(b, labels.Labels, n.Violations[i].Count)
		}
	}
}

// countRows returns what adds a list of counts.
func countRows(list func(*model.Node) []model.Counter) fill {
	var kept labelList[string]
	return func(n *labelled, b *metric.Builder) {
		counts := list(n.Node)
		for i, labels := range kept.align(len(counts), func(i int) string { return counts[i].Name }, func(i int) *metric.Labels {
			return metric.NewLabels(b.Family().Labels, counts[i].Name)
		}) {
			b.Add(labels.Labels, counts[i].Count)
		}
	}
}

// unmatchedRows returns what adds the numbers of unmatched devices of each driver.
func unmatchedRows() fill {
	var kept metric.LabelCache[string, struct{ published, hardware *metric.Labels }]
	return func(n *labelled, b *metric.Builder) {
		for i, labels := range kept.Align(len(n.Unmatched), func(i int) string { return n.Unmatched[i].Driver }) {
			u, names := &n.Unmatched[i], b.Family().Labels
			if labels.published == nil {
				labels.published, labels.hardware = metric.NewLabels(names, u.Driver, "published"), metric.NewLabels(names, u.Driver, "hardware")
			}
			addOptional(b, labels.hardware, u.Hardware)
			addOptional(b, labels.published, u.Published)
		}
	}
}

// accessRow returns what adds an info row about the access to the GPUs; without values
// there is nothing to say.
func accessRow(values func(*model.Node) []string) fill {
	var labels *metric.Labels
	var made model.Access
	return func(n *labelled, b *metric.Builder) {
		if made != n.Access {
			made, labels = n.Access, nil
			if values := values(n.Node); values != nil {
				labels = metric.NewLabels(b.Family().Labels, values...)
			}
		}
		if labels != nil {
			b.Add(labels, 1)
		}
	}
}

// processStateRows returns what adds whether processes are attributed to pods, and if
// not, why.
func processStateRows() fill {
	var labels [processStates]*metric.Labels
	return func(n *labelled, b *metric.Builder) {
		for state := range processStates {
			if labels[state] == nil {
				labels[state] = metric.NewLabels(b.Family().Labels, state.String())
			}
			b.Add(labels[state], flag(state.String() == n.ProcessAttribution))
		}
	}
}

// addFact adds an info row: a past one if its fact does not hold any more.
func addFact(b *metric.Builder, labels *metric.Labels, past bool) {
	if past {
		b.AddPast(labels, 1)
		return
	}
	b.Add(labels, 1)
}

func addTotal(b *metric.Builder, labels *metric.Labels, total model.Total) {
	if total.Known() {
		b.AddFrom(labels, total.Value, total.Start())
	}
}

func addOptional(b *metric.Builder, labels *metric.Labels, value model.Optional) {
	if value.Known {
		b.Add(labels, value.Value)
	}
}

func addUse(b *metric.Builder, labels *metric.Labels, use model.Use) {
	if use.Known {
		b.Add(labels, use.Value)
	}
}

func addNonZero(b *metric.Builder, labels *metric.Labels, value float64) {
	if value > 0 {
		b.Add(labels, value)
	}
}

// addTime adds a Unix time in seconds; nothing for the zero time.
func addTime(b *metric.Builder, labels *metric.Labels, at time.Time) {
	if !at.IsZero() {
		b.Add(labels, float64(at.UnixMilli())/1000)
	}
}

// flag returns 1 for true and 0 for false.
func flag(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
