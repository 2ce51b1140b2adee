package invariant

// Rules returns every rule, in the order in which violations are reported.
func Rules() []Rule {
	return []Rule{
		{Name: UniqueSeries, Text: "No two series have the same name and labels", page: uniqueSeries},
		{Name: UniqueInfo, Text: "A join on an info series has one partner: a device has one identity and one published name, a claim one info row", page: uniqueInfo},
		{Name: ValueRange, Text: "Ratios are from 0 to 1, counters are not negative, and every value is a number", page: valueRange},
		{Name: HardwareKnown, Text: "A device without known hardware has no quantities", page: hardwareKnown},
		{Name: HoldersAgree, Text: "`dra_device_holders` counts the claims of `dra_claim_held`", page: holdersAgree},
		{Name: GaugesHeld, Text: "A claim has gauges of a device only while it holds the device", page: gaugesHeld},
		{Name: AloneOnDevice, Text: "No gauge is `exclusive` or `partition` on a device with another holder, or with a holder of its parent or partition; `exclusive` is for whole devices, `partition` for partitions", page: exclusiveHolder},
		{Name: ProcessSplit, Text: "Only utilization, memory, busy and idle time of whole devices are attributed by `process`, together with the unattributed part", page: processSplit},
		{Name: DeviceValue, Text: "A claim's gauge is exported together with the device's own value, and equals it unless it is attributed by `process`", page: deviceValue},
		{Name: ClaimsWithinDevice, Text: "The sum of a device's claims and the unattributed part is at most the device's own value; claims with `shared` are not added", page: claimsWithinDevice},
		{Name: PodsWithinDevice, Text: "The sum of a device's pods and the unattributed part is at most the device's own value", page: podsWithinDevice},
		{Name: PartsWithinParent, Text: "The sum of bytes or watts of a device's partitions, or of their claims, is at most the device's own value", Momentary: true, page: partitionsWithinParent},
		{Name: ShareOfHold, Text: "The device-seconds of a claim are at most the time for which it held the device, unless it is a bundle", page: shareOfHold},
		{Name: CountersRise, Text: "A counter of the exporter does not decrease while the process runs", pair: countersRise},
		{Name: GrowthWithinDevice, Text: "Between two pages, the counters of a device's claims grow together by at most the growth of the device's counter; claims with `shared` are not added", pair: growthWithinDevice},
		{Name: DeviceTime, Text: "The device-seconds of a device grow no faster than time, those of a bundle no faster than time times its devices", pair: deviceTime},
	}
}

// Check returns the violations of each page: the first few of each rule, in the order of
// Rules.
func Check(pages ...Page) []Violation {
	var all []Violation
	for _, page := range pages {
		all = append(all, checkView(newView(page))...)
	}
	return all
}

func checkView(v *view) []Violation {
	var all []Violation
	for _, rule := range Rules() {
		if rule.page != nil {
			f := findings{rule: rule, node: v.node}
			rule.page(v, &f)
			all = append(all, f.bounded()...)
		}
	}
	return all
}

// Compare returns the violations between two pages of one exporter. Pages of two
// processes are not compared.
func Compare(before, after Page) []Violation {
	p := pair{newView(before), newView(after)}
	if !p.sameProcess() {
		return nil
	}
	return p.compare()
}

// Watch checks one page of an exporter after the other. The zero Watch has no
// page.
type Watch struct{ last *view }

// Next returns the violations that Check finds in the page, and that Compare
// finds in it and the page before.
func (w *Watch) Next(page Page) []Violation {
	p := pair{w.last, newView(page)}
	w.last = p.after
	all := checkView(p.after)
	if p.before != nil && p.sameProcess() {
		all = append(all, p.compare()...)
	}
	return all
}

func (p pair) compare() []Violation {
	var all []Violation
	for _, rule := range Rules() {
		if rule.pair != nil {
			f := findings{rule: rule, node: p.after.node}
			rule.pair(p.before, p.after, &f)
			all = append(all, f.bounded()...)
		}
	}
	return all
}
