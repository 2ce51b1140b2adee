package node

import (
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// labelled is a model with the labels that several families share. They are made once
// for a record, and kept from one model to the next.
type labelled struct {
	*model.Node
	none *metric.Labels

	devices   []labelledDevice
	holds     []labelledHold
	pods      []*rowLabels
	totals    []*rowLabels
	incidents []*rowLabels

	specs [device.Quantities]device.Spec
	kept  struct {
		devices   metric.LabelCache[*model.Identity, deviceRowLabels]
		holds     metric.LabelCache[holdKey, holdRowLabels]
		pods      labelList[podUseKey]
		totals    labelList[namespaceKey]
		incidents labelList[[3]string]
	}
}

func newLabelled() *labelled { return &labelled{none: metric.NewLabels(nil), specs: device.Specs()} }

// rowLabels are the labels of a record whose rows have the same.
type rowLabels struct{ *metric.Labels }

// labelList keeps the labels of records that have the same in all of their rows.
type labelList[K comparable] struct {
	cache metric.LabelCache[K, rowLabels]
}

// align returns the labels of each record of a list. create makes those of a new one.
func (l *labelList[K]) align(count int, key func(int) K, create func(int) *metric.Labels) []*rowLabels {
	aligned := l.cache.Align(count, key)
	for i, labels := range aligned {
		if labels.Labels == nil {
			labels.Labels = create(i)
		}
	}
	return aligned
}

// apply takes the next model, and brings the labels up to date.
func (n *labelled) apply(node *model.Node) {
	n.Node = node
	n.labelDevices()
	n.labelHolds()
	n.pods = n.kept.pods.align(len(n.Pods),
		func(i int) podUseKey { return podUseKey{n.Pods[i].Pod, n.Pods[i].UUID} },
		func(i int) *metric.Labels {
			p := &n.Pods[i]
			return metric.NewLabels(podLabels("uuid"), n.Name, p.Pod.Namespace, p.Pod.Name, p.UUID)
		})
	n.totals = n.kept.totals.align(len(n.Totals),
		func(i int) namespaceKey {
			return namespaceKey{n.Totals[i].Namespace, n.Totals[i].Class, n.Totals[i].Model}
		},
		func(i int) *metric.Labels {
			t := &n.Totals[i]
			return metric.NewLabels(namespaceLabels(), n.Name, t.Namespace, t.Class, t.Model)
		})
	n.incidents = n.kept.incidents.align(len(n.Incidents),
		func(i int) [3]string {
			return [3]string{n.Incidents[i].Model, n.Incidents[i].DriverVersion, n.Incidents[i].Kind}
		},
		func(i int) *metric.Labels {
			incidents := &n.Incidents[i]
			return metric.NewLabels(incidentLabels(), n.Name, incidents.Model, incidents.DriverVersion, incidents.Kind)
		})
}

type podUseKey struct {
	pod  dra.PodRef
	uuid string
}

// labelledDevice is a device with its labels.
type labelledDevice struct {
	*model.Device
	*deviceRowLabels
}

// deviceRowLabels are the labels of a device, for as long as its identity stays the same.
type deviceRowLabels struct {
	plain          *metric.Labels
	xids, readings []*rowLabels // in the order of the records

	newest  listIdentity[device.Reading] // that readings and offsets are of
	offsets [device.Quantities + 1]int   // where the readings of each quantity begin

	kept struct {
		xids     labelList[int]
		readings labelList[readingKey]
	}
}

type readingKey struct {
	quantity device.Quantity
	details  [2]string
}

// identity identifies a device of the model.
func (n *labelled) identity(i int) *model.Identity { return n.Devices[i].Identity }

func (n *labelled) labelDevices() {
	n.devices = n.devices[:0]
	for i, labels := range n.kept.devices.Align(len(n.Devices), n.identity) {
		d := labelledDevice{&n.Devices[i], labels}
		if labels.plain == nil {
			labels.plain = n.newDeviceLabels(deviceLabels(), d.Device)
		}
		d.xids = d.kept.xids.align(len(d.XIDs), func(i int) int { return d.XIDs[i].Code }, func(i int) *metric.Labels {
			return n.newDeviceLabels(deviceLabels("xid"), d.Device, xidLabel(d.XIDs[i].Code))
		})
		if newest := newListIdentity(d.Readings); d.newest != newest {
			d.newest = newest
			n.labelReadings(&d)
		}
		n.devices = append(n.devices, d)
	}
}

func (n *labelled) newDeviceLabels(names []string, d *model.Device, values ...string) *metric.Labels {
	return metric.NewLabels(names, append([]string{n.Name, d.UUID, d.Parent}, values...)...)
}

// labelReadings labels the readings of a device, and finds those of each quantity. The
// readings of a quantity have a fixed order, so labels change only when one of them
// appears or disappears.
func (n *labelled) labelReadings(d *labelledDevice) {
	d.readings = d.kept.readings.align(len(d.Readings),
		func(i int) readingKey { return readingKey{d.Readings[i].Quantity, d.Readings[i].Details} },
		func(i int) *metric.Labels {
			r := &d.Readings[i]
			if names := n.specs[r.Quantity].Details; len(names) > 0 && r.Quantity != device.Extension {
				return n.newDeviceLabels(deviceLabels(names...), d.Device, r.Details[:len(names)]...)
			}
			return d.plain
		})
	at := 0
	for q := range d.offsets {
		for at < len(d.Readings) && int(d.Readings[at].Quantity) < q {
			at++
		}
		d.offsets[q] = at
	}
}

// span is where the readings of a quantity begin and end.
func (d *labelledDevice) span(q device.Quantity) (first, end int) {
	return d.offsets[q], d.offsets[q+1]
}

// labelledHold is a hold with its labels.
type labelledHold struct {
	*model.Hold
	*holdRowLabels
}

// holdRowLabels are the labels of a hold.
type holdRowLabels struct {
	plain    *metric.Labels
	accounts [model.Attributions]*metric.Labels // nil: it has nothing under this attribution yet
}

func (n *labelled) labelHolds() {
	n.holds = n.holds[:0]
	for i, labels := range n.kept.holds.Align(len(n.Holds), n.holdKey) {
		h := labelledHold{&n.Holds[i], labels}
		if labels.plain == nil {
			labels.plain = n.newHoldLabels(holdLabels(), h.Hold)
		}
		for _, a := range []model.Attribution{h.Attribution, h.Utilization.Attribution, h.Memory.Attribution} {
			n.labelAccount(&h, a)
		}
		for i := range h.Accounts {
			n.labelAccount(&h, h.Accounts[i].Attribution)
		}
		n.holds = append(n.holds, h)
	}
}

// holdKey identifies a hold of the model.
func (n *labelled) holdKey(i int) holdKey { return holdKey{n.Holds[i].Claim, n.Holds[i].UUID} }

func (n *labelled) newHoldLabels(names []string, h *model.Hold, values ...string) *metric.Labels {
	return metric.NewLabels(names, append([]string{n.Name, h.Claim.Namespace, h.Claim.Name, h.UUID}, values...)...)
}

func (n *labelled) labelAccount(h *labelledHold, a model.Attribution) {
	if h.accounts[a] == nil {
		h.accounts[a] = n.newHoldLabels(accountLabels(), h.Hold, a.String())
	}
}
