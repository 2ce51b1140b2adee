package node

import (
	"math"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// meter is one of the totals that an account accrues.
type meter int

const (
	meterBusy meter = iota
	meterEnergy
	meterNVLinkTransmit
	meterNVLinkReceive
	meterPCIeTransmit
	meterPCIeReceive
	meterNetworkTransmit
	meterNetworkReceive
	meterExecutionIdle
	meterExecutionIdleEnergy
	meters
)

// isCounter reports whether a meter accrues the growth of a hardware counter; the others
// accrue integrals.
func (m meter) isCounter() bool { return m > meterBusy && m < meterExecutionIdle }

// quantity is what a meter accrues, if it is the growth of a hardware counter, or the
// integral of a gauge.
func (m meter) quantity() device.Quantity {
	return [meters]device.Quantity{
		meterBusy:            device.Utilization,
		meterEnergy:          device.Energy,
		meterNVLinkTransmit:  device.NVLinkTransmit,
		meterNVLinkReceive:   device.NVLinkReceive,
		meterPCIeTransmit:    device.PCIeTransmit,
		meterPCIeReceive:     device.PCIeReceive,
		meterNetworkTransmit: device.NetworkTransmit,
		meterNetworkReceive:  device.NetworkReceive,
	}[m]
}

// tally is a total that only rises, and when it began at zero. It has a row from
// when it is opened.
type tally struct {
	total float64
	start time.Time // zero: not open yet
}

func (t *tally) open(now time.Time) {
	if t.start.IsZero() {
		t.start = now
	}
}

// add adds what accrued, and opens the tally if it is not open yet.
func (t *tally) add(amount float64, now time.Time) {
	t.open(now)
	t.total += amount
}

func (t tally) isOpen() bool { return !t.start.IsZero() }

// model returns the total, unknown until it is opened.
func (t *tally) model() model.Total {
	if !t.isOpen() {
		return model.Total{}
	}
	return model.NewTotal(t.total, t.start)
}

// usage is a quantity of a device that is split by process.
type usage uint8

const (
	usedTime usage = iota
	usedMemory
	usages
)

// quantity is the device's own value of the usage.
func (q usage) quantity() device.Quantity {
	return [usages]device.Quantity{usedTime: device.Utilization, usedMemory: device.MemoryUsed}[q]
}

// of returns the usage of a process; false if it is not reported.
func (q usage) of(p *device.Process) (float64, bool) {
	value := p.Utilization
	if q == usedMemory {
		value = p.Memory
	}
	return value, value >= 0 && !math.IsInf(value, 1)
}

// amounts is the amount of each usage.
type amounts [usages]float64
