package direct

import (
	"fmt"
	"math"
	"time"
)

// query is what is asked of one device at one time.
type query struct {
	library *Library
	handle  uintptr
	errors  map[string]int
}

// known makes a call and reports whether it has succeeded. What the device does
// not have is no error.
func known[F any](q *query, c *call[F], make func(F) int32, available bool) bool {
	if !available {
		return false
	}
	q.library.current.Store(&c.name)
	return q.check(c.name, make(c.function))
}

func (q *query) check(name string, code int32) bool {
	if code != success && !absent(code) {
		q.errors[name] = int(code)
	}
	return code == success
}

func (q *query) number(c *deviceNumber) *float64 {
	var value uint32
	if !known(q, c, func(f func(uintptr, *uint32) int32) int32 { return f(q.handle, &value) }, c.function != nil) {
		return nil
	}
	return finite(float64(value))
}

func (q *query) long(c *deviceLong) (value uint64, reported bool) {
	reported = known(q, c, func(f func(uintptr, *uint64) int32) int32 { return f(q.handle, &value) }, c.function != nil)
	return value, reported
}

func (q *query) kind(c *deviceKind, kind int32) *float64 {
	var value uint32
	if !known(q, c, func(f func(uintptr, int32, *uint32) int32) int32 { return f(q.handle, kind, &value) }, c.function != nil) {
		return nil
	}
	return finite(float64(value))
}

func (q *query) text(c *deviceText) string {
	var buffer [96]byte // NVML_DEVICE_NAME_V2_BUFFER_SIZE, the largest
	if !known(q, c, func(f func(uintptr, *byte, uint32) int32) int32 { return f(q.handle, &buffer[0], uint32(len(buffer))) }, c.function != nil) {
		return ""
	}
	return text(buffer[:])
}

// pair calls a function that returns two numbers.
func (q *query) pair(c *call[func(uintptr, *uint32, *uint32) int32]) (first, second *float64) {
	var one, two uint32
	if !known(q, c, func(f func(uintptr, *uint32, *uint32) int32) int32 { return f(q.handle, &one, &two) }, c.function != nil) {
		return nil, nil
	}
	return finite(float64(one)), finite(float64(two))
}

func times(value *float64, factor float64) *float64 {
	if value == nil {
		return nil
	}
	return finite(*value * factor)
}

func over(value *float64, divisor float64) *float64 {
	if value == nil {
		return nil
	}
	return finite(*value / divisor)
}

// first returns the first number that is reported.
func first(values ...*float64) *float64 {
	for _, value := range values {
		if value != nil {
			return value
		}
	}
	return nil
}

// device reads a GPU, without what depends on the sample before.
func (q *query) device(now time.Time) (Device, error) {
	d := Device{Time: now, UUID: q.text(&q.library.uuid), Errors: q.errors}
	if d.UUID == "" {
		return Device{}, fmt.Errorf("read the UUID of a device: %v", q.errors)
	}
	d.Name = q.text(&q.library.name)
	d.Memory, d.BAR1 = q.readMemory(), q.readBAR1()
	return d, nil
}

// whole reads what only a GPU as a whole has. What takes longest comes last.
func (q *query) whole(d *Device) {
	l := q.library
	d.Power = q.readPower()
	if millijoules, reported := q.long(&l.energy); reported {
		d.Energy = finite(float64(millijoules) / 1000)
	}
	d.Serial = q.text(&l.serial)
	var pci pciInfo
	if known(q, &l.pciInfo, func(f func(uintptr, *pciInfo) int32) int32 { return f(q.handle, &pci) }, l.pciInfo.function != nil) {
		d.PCIBusID = text(pci.busID[:])
	}
	d.MIGMode, _ = q.pair(&l.migMode)
	var rates utilizationRates
	if known(q, &l.utilization, func(f func(uintptr, *utilizationRates) int32) int32 { return f(q.handle, &rates) }, l.utilization.function != nil) {
		d.Utilization = Utilization{GPU: finite(float64(rates.gpu) / 100), Memory: finite(float64(rates.memory) / 100)}
	}
	d.Clocks, d.MaxClocks = q.readClocks(&l.clock), q.readClocks(&l.maxClock)
	d.PState = q.number(&l.pstate)
	if d.PState != nil && *d.PState > 15 {
		d.PState = nil // NVML_PSTATE_UNKNOWN
	}
	if reasons, reported := q.long(&l.eventReasons); reported {
		d.EventReasons = &reasons
	}
	values := q.fieldValues()
	d.Temperature = Temperature{GPU: q.kind(&l.temperature, temperatureGPU), Memory: values[fieldMemoryTemperature]}
	d.Power.Instant = over(values[fieldPowerInstant], 1000)
	d.ECC = q.readECC(values)
	d.Rows = q.readRows(values)
	for _, t := range Throttles() {
		if nanoseconds := values[t.field]; nanoseconds != nil {
			if d.Throttled == nil {
				d.Throttled = make(map[string]float64)
			}
			d.Throttled[t.Name] = *nanoseconds / 1e9
		}
	}
	d.PCIe = q.readPCIe(values)
}

// readMemory reads the memory by the newer function, which counts what is
// reserved separately, or by the older one, which counts it as used.
func (q *query) readMemory() Memory {
	l := q.library
	newer := memoryV2{version: memoryVersion}
	if known(q, &l.memoryNewer, func(f func(uintptr, *memoryV2) int32) int32 { return f(q.handle, &newer) }, l.memoryNewer.function != nil) {
		return Memory{
			Total: finite(float64(newer.total)), Used: finite(float64(newer.used)),
			Free: finite(float64(newer.free)), Reserved: finite(float64(newer.reserved)),
		}
	}
	var older memoryV1
	if known(q, &l.memory, func(f func(uintptr, *memoryV1) int32) int32 { return f(q.handle, &older) }, l.memory.function != nil) {
		return Memory{Total: finite(float64(older.total)), Used: finite(float64(older.used)), Free: finite(float64(older.free))}
	}
	return Memory{}
}

func (q *query) readBAR1() Memory {
	l := q.library
	var bar bar1Memory
	if !known(q, &l.bar1, func(f func(uintptr, *bar1Memory) int32) int32 { return f(q.handle, &bar) }, l.bar1.function != nil) {
		return Memory{}
	}
	return Memory{Total: finite(float64(bar.total)), Used: finite(float64(bar.used)), Free: finite(float64(bar.free))}
}

func (q *query) readPower() Power {
	l := q.library
	least, most := q.pair(&l.powerConstraints)
	return Power{
		Usage: over(q.number(&l.power), 1000), EnforcedLimit: over(q.number(&l.powerEnforced), 1000),
		Limit: over(q.number(&l.powerLimit), 1000), DefaultLimit: over(q.number(&l.powerDefault), 1000),
		MinimumLimit: over(least, 1000), MaximumLimit: over(most, 1000),
	}
}

func (q *query) readClocks(c *deviceKind) Clocks {
	const megahertz = 1e6
	return Clocks{
		Graphics: times(q.kind(c, clockGraphics), megahertz), SM: times(q.kind(c, clockSM), megahertz),
		Memory: times(q.kind(c, clockMemory), megahertz), Video: times(q.kind(c, clockVideo), megahertz),
	}
}

func (q *query) readECC(values map[uint32]*float64) ECC {
	count := func(kind, counter int32) *float64 {
		var errors uint64
		c := &q.library.eccErrors
		if !known(q, c, func(f func(uintptr, int32, int32, *uint64) int32) int32 { return f(q.handle, kind, counter, &errors) }, c.function != nil) {
			return nil
		}
		return finite(float64(errors))
	}
	mode, _ := q.pair(&q.library.eccMode)
	return ECC{
		Mode:                 mode,
		VolatileCorrected:    first(count(errorCorrected, eccVolatile), values[fieldECCCorrectedVolatile]),
		VolatileUncorrected:  first(count(errorUncorrected, eccVolatile), values[fieldECCUncorrectedVolatile]),
		AggregateCorrected:   first(count(errorCorrected, eccAggregate), values[fieldECCCorrectedAggregate]),
		AggregateUncorrected: first(count(errorUncorrected, eccAggregate), values[fieldECCUncorrectedAggregate]),
	}
}

func (q *query) readRows(values map[uint32]*float64) Rows {
	var corrected, uncorrected, pending, failed uint32
	c := &q.library.remapped
	if known(q, c, func(f func(uintptr, *uint32, *uint32, *uint32, *uint32) int32) int32 {
		return f(q.handle, &corrected, &uncorrected, &pending, &failed)
	}, c.function != nil) {
		return Rows{
			Corrected: finite(float64(corrected)), Uncorrected: finite(float64(uncorrected)),
			Pending: finite(math.Min(float64(pending), 1)), Failed: finite(math.Min(float64(failed), 1)),
		}
	}
	return Rows{
		Corrected: values[fieldRemappedCorrected], Uncorrected: values[fieldRemappedUncorrected],
		Pending: values[fieldRemappedPending], Failed: values[fieldRemappedFailure],
	}
}

func (q *query) readPCIe(values map[uint32]*float64) PCIe {
	l := q.library
	const kilobytes = 1e3
	return PCIe{
		Generation: q.number(&l.pcieGeneration), MaxGeneration: q.number(&l.pcieMaxGeneration),
		Width: q.number(&l.pcieWidth), MaxWidth: q.number(&l.pcieMaxWidth),
		Replays:       first(q.number(&l.pcieReplays), values[fieldPCIeReplays]),
		TransmitBytes: values[fieldPCIeTransmitBytes], ReceiveBytes: values[fieldPCIeReceiveBytes],
		TransmitRate: times(q.kind(&l.pcieThroughput, pcieTransmit), kilobytes),
		ReceiveRate:  times(q.kind(&l.pcieThroughput, pcieReceive), kilobytes),
	}
}

// fieldValues reads all field values by one call, by their ids.
func (q *query) fieldValues() map[uint32]*float64 {
	ids := []uint32{
		fieldECCCorrectedVolatile, fieldECCUncorrectedVolatile, fieldECCCorrectedAggregate, fieldECCUncorrectedAggregate,
		fieldMemoryTemperature, fieldPCIeReplays,
		fieldRemappedCorrected, fieldRemappedUncorrected, fieldRemappedPending, fieldRemappedFailure,
		fieldPowerInstant, fieldPCIeTransmitBytes, fieldPCIeReceiveBytes,
	}
	for _, t := range Throttles() {
		ids = append(ids, t.field)
	}
	values := make([]fieldValue, len(ids))
	for i, id := range ids {
		values[i].id = id
	}
	c := &q.library.fields
	if !known(q, c, func(f func(uintptr, int32, *fieldValue) int32) int32 {
		return f(q.handle, int32(len(values)), &values[0])
	}, c.function != nil) {
		return nil
	}
	found := make(map[uint32]*float64, len(ids))
	for i, id := range ids {
		if q.check(fmt.Sprintf("%s(%d)", c.name, id), values[i].code) {
			found[id] = values[i].number()
		}
	}
	return found
}
