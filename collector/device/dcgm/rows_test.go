package dcgm

import (
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Every quantity is read, except for those listed here with the reason.
func TestEveryQuantityIsRead(t *testing.T) {
	elsewhere := map[device.Quantity]string{
		device.NVLinkLinkTransmit: "per link: too many entities",
		device.NVLinkLinkReceive:  "likewise",
		device.NetworkTransmit:    "of network devices",
		device.NetworkReceive:     "likewise",
		device.NetworkLinks:       "likewise",
		device.NetworkErrors:      "likewise",
		device.XGMIErrors:         "of AMD's links",
		device.DriverHealth:       "of drivers' device metrics",
		device.Extension:          "of drivers' device metrics",
		device.NVLinks:            "by a call of its own",
		device.HealthCheck:        "likewise",
		device.Lost:               "from the lack of everything else",
	}
	read := make(map[device.Quantity]bool)
	for _, r := range wholeRows() {
		read[r.quantity] = true
	}
	for q, spec := range device.Specs() {
		if _, left := elsewhere[device.Quantity(q)]; read[device.Quantity(q)] == left {
			t.Errorf("%s: read %v, left out %v", spec.Name, read[device.Quantity(q)], left)
		}
	}
}

func TestRowsFitTheirSpecs(t *testing.T) {
	specs := device.Specs()
	for _, r := range append(wholeRows(), partitionRows()...) {
		spec := specs[r.quantity]
		if named := r.detail != "" || r.conversion == stateSet; named != (len(spec.Details) == 1) {
			t.Errorf("field %d: detail %q of %s", r.field, r.detail, spec.Name)
		}
		if counts := spec.Kind == device.Counter; (r.conversion == rate || r.conversion == reasonBit) && !counts {
			t.Errorf("field %d is added up for the gauge %s", r.field, spec.Name)
		}
		if r.conversion == reasonBit && r.bit == 0 || r.conversion == stateSet && len(r.states) == 0 || r.conversion == plain && r.scale == 0 {
			t.Errorf("field %d: the row says too little: %+v", r.field, r)
		}
	}
}

// Quantities that claims accrue, and those that can change the health
// immediately, are fast. A quantity that an instance lacks is not read from it.
func TestTiersAndLevels(t *testing.T) {
	accrued := []device.Quantity{
		device.Utilization, device.Energy, device.NVLinkTransmit, device.NVLinkReceive,
		device.PCIeTransmit, device.PCIeReceive, device.Throttled,
		device.RecoveryAction, device.RowRemapFailed, device.RowRemapPending,
	}
	for _, r := range wholeRows() {
		if slices.Contains(accrued, r.quantity) && r.tier != device.Fast || r.detail == "uncorrected" && r.quantity == device.ECCErrors && r.tier != device.Fast {
			t.Errorf("field %d is slow", r.field)
		}
		if r.level != wholeGPU {
			t.Errorf("field %d of whole GPUs is of level %d", r.field, r.level)
		}
	}
	// The fields whose level in dcgm_fields.cpp is that of instances.
	own := map[entityKind][]uint16{
		gpuInstance:     {framebufferUsed, framebufferTotal, framebufferReserved, dramActive},
		computeInstance: {graphicsActive, smActive, smOccupancy, tensorActive, fp64Active, fp32Active, fp16Active},
	}
	for _, r := range partitionRows() {
		if !slices.Contains(own[r.level], r.field) {
			t.Errorf("field %d of MIG devices is not of level %d", r.field, r.level)
		}
		if r.tier != device.Fast {
			t.Errorf("field %d of MIG devices is slow, and not watched", r.field)
		}
	}
}

// A field group, and a request for values, has room for 128.
func TestFieldsFitOneRequest(t *testing.T) {
	whole := newRowTable(wholeRows())
	if n := len(whole.fields(anyRow)) + 1; n > 128 {
		t.Errorf("%d fields", n)
	}
	if fields := newRowTable(watched(wholeRows(), false)).fields(row.profiling); len(fields) > 0 {
		t.Errorf("without profiling %v are watched", fields)
	}
	if fields := whole.fields(row.profiling); len(fields) != 12 {
		t.Errorf("with profiling %v are watched", fields)
	}
}
