package amdgpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
)

// card reads one card. Read must not be called concurrently.
type card struct {
	key    string // its PCI address
	folder string // of its PCI function

	rows     []row
	files    sysfs.Files
	identity device.Device
	hwmon    hwmon
	errors   errorCounts
}

func newCard(root, name, address string) *card {
	return &card{
		key:    address,
		folder: sysfs.FunctionFolder(root, name),
		rows:   rows(),
		identity: device.Device{
			Vendor: "amd", PCIBusID: address,
			Minor: device.Unknown, RenderMinor: device.Unknown,
			Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		},
	}
}

// Key is the card's PCI address.
func (c *card) Key() string { return c.key }

// Read reads the card. In slow reads, and in the first, it also identifies the
// card.
func (c *card) Read(_ context.Context, tier device.Tier) ([]device.Observation, error) {
	bound, err := sysfs.Link(filepath.Join(c.folder, "driver"))
	if err != nil {
		return nil, fmt.Errorf("look at the driver of %s: %w", c.key, err)
	}
	if bound != driver {
		return nil, fmt.Errorf("%s is bound to the driver %s now", c.key, bound)
	}
	if tier == device.Slow || c.identity.Model == "" {
		if err := c.identify(); err != nil {
			return nil, fmt.Errorf("identify %s: %w", c.key, err)
		}
	}
	o := device.Observation{Device: c.identity}
	if c.isSuspended() {
		return []device.Observation{o}, nil
	}
	err = c.readings(&o, tier)
	return []device.Observation{o}, err
}

// isSuspended reports whether the card is suspended: reading most of its files
// would wake it up.
func (c *card) isSuspended() bool {
	status, err := c.files.Text(filepath.Join(c.folder, "power/runtime_status"))
	return err == nil && status == "suspended"
}

// readings adds all readings of the tier to the observation.
func (c *card) readings(o *device.Observation, tier device.Tier) error {
	var errs []error
	if err := c.hwmon.find(&c.files, filepath.Join(c.folder, "hwmon")); err != nil {
		errs = append(errs, fmt.Errorf("find the sensors of %s: %w", c.key, err))
	}
	last := -1 // the last row that was not absent
	for i, r := range c.rows {
		if r.tier > tier || last >= 0 && r.same(c.rows[last]) {
			continue
		}
		value, err := c.value(r)
		switch {
		case err == nil:
			add(o, r.tier, device.Reading{Quantity: r.quantity, Details: [2]string{r.detail}, Value: value})
			last = i
		case !sysfs.Absent(err):
			errs = append(errs, c.failure(r.quantity, err))
			last = i
		}
	}
	errs = append(errs, c.energy(o))
	if tier == device.Slow {
		errs = append(errs, c.countErrors(o), c.linkErrors(o))
	}
	return errors.Join(errs...)
}

// value reads the row's file.
func (c *card) value(r row) (float64, error) {
	folder, file := c.folder, r.file
	if r.hwmon {
		folder = c.hwmon.folder
	}
	if r.label != "" {
		file = c.hwmon.inputs[r.label]
	}
	if folder == "" || file == "" {
		return 0, fs.ErrNotExist
	}
	path := filepath.Join(folder, file)
	number, err := c.files.Number(path)
	if err != nil {
		return 0, err
	}
	if value := number / r.per; r.max == 0 || value <= r.max {
		return value, nil
	}
	return 0, fmt.Errorf("read %s: %v is more than there can be", path, number)
}

// energy adds the energy that the card has used, where it counts it.
func (c *card) energy(o *device.Observation) error {
	path := filepath.Join(c.folder, "gpu_metrics")
	table, err := c.files.Bytes(path)
	if err == nil {
		var joules float64
		if joules, err = decodeEnergy(table); err == nil {
			add(o, device.Fast, device.Reading{Quantity: device.Energy, Value: joules})
			return nil
		}
		err = fmt.Errorf("decode %s: %w", path, err)
	}
	if sysfs.Absent(err) {
		return nil
	}
	return c.failure(device.Energy, err)
}

// failure returns an error that names the quantity and the card.
func (c *card) failure(quantity device.Quantity, err error) error {
	return fmt.Errorf("read %s of %s: %w", device.Specs()[quantity].Name, c.key, err)
}

// add appends a reading to those of its tier.
func add(o *device.Observation, tier device.Tier, reading device.Reading) {
	if tier == device.Slow {
		o.Slow = append(o.Slow, reading)
		return
	}
	o.Readings = append(o.Readings, reading)
}

// identify reads the card's identity. Its render node is the whole card's only
// while the card is not partitioned; otherwise it is the first partition's.
func (c *card) identify() error {
	function, err := c.files.Function(c.folder)
	if err != nil {
		return err
	}
	id := &c.identity
	id.DriverVersion, id.Model = function.DriverVersion, function.ID()
	if name, err := c.files.Text(filepath.Join(c.folder, "product_name")); err == nil && name != "" {
		id.Model = name
	}
	id.LinkDomain, id.Hardware = c.hive(), c.hardware()
	id.RenderMinor, id.Nodes = device.Unknown, nil
	if mode, err := c.files.Text(filepath.Join(c.folder, "current_compute_partition")); err == nil && mode != "SPX" {
		return nil
	}
	nodes, err := sysfs.Names(filepath.Join(c.folder, "drm"))
	if err != nil {
		return nil // a card may have no node
	}
	for _, name := range nodes {
		if _, isNumber := sysfs.Numbered(name, "card"); isNumber {
			id.Nodes = append(id.Nodes, "/dev/dri/"+name)
		}
		if minor, isNumber := sysfs.Numbered(name, "renderD"); isNumber {
			id.RenderMinor, id.Nodes = minor, append(id.Nodes, "/dev/dri/"+name)
		}
	}
	return nil
}

// hardware reads what identifies the card. Only some server cards have a serial
// number and a part number, in an EEPROM.
func (c *card) hardware() (h device.Hardware) {
	for _, part := range []struct {
		field *string
		file  string
	}{
		{&h.Serial, "serial_number"},
		{&h.BoardPartNumber, "product_number"},
		{&h.VBIOS, "vbios_version"},
	} {
		*part.field, _ = c.files.Text(filepath.Join(c.folder, part.file))
	}
	return h
}

// hive is the id of the cards that this one is connected with over xGMI; empty: there are
// none.
func (c *card) hive() string {
	id, err := c.files.Text(filepath.Join(c.folder, "xgmi_hive_info/xgmi_hive_id"))
	if _, notNumber := sysfs.ParseNumber(id); err != nil || notNumber != nil || id == "0" {
		return ""
	}
	return id
}

// countErrors adds the memory errors that the driver has counted since it was
// loaded. It leaves out deferred errors: they are uncorrected, but nothing has
// consumed them yet and the driver does not count them as uncorrected.
func (c *card) countErrors(o *device.Observation) error {
	folder := filepath.Join(c.folder, "ras")
	names, err := sysfs.Names(folder)
	if err != nil {
		if sysfs.Absent(err) {
			return nil
		}
		return c.failure(device.ECCErrors, err)
	}
	uncorrected, corrected := make(map[string]float64), make(map[string]float64)
	var errs []error
	for _, name := range names {
		block, isCount := strings.CutSuffix(name, "_err_count")
		if !isCount || !isMemory(block) {
			continue
		}
		count, err := c.blockErrors(filepath.Join(folder, name))
		switch {
		case err == nil:
			uncorrected[block], corrected[block] = count.uncorrected, count.corrected
		case !sysfs.Absent(err):
			errs = append(errs, c.failure(device.ECCErrors, err))
		}
	}
	for _, part := range []struct {
		severity string
		total    *sysfs.Total
		answered map[string]float64
	}{{"uncorrected", &c.errors.uncorrected, uncorrected}, {"corrected", &c.errors.corrected, corrected}} {
		if len(part.answered) > 0 {
			total, _ := part.total.Sum(part.answered)
			add(o, device.Slow, device.Reading{Quantity: device.ECCErrors, Details: [2]string{part.severity}, Value: total})
		}
	}
	return errors.Join(errs...)
}

// linkErrors adds the errors of the links to other cards that the driver has
// counted since it was loaded.
func (c *card) linkErrors(o *device.Observation) error {
	count, err := c.blockErrors(filepath.Join(c.folder, "ras/xgmi_wafl_err_count"))
	switch {
	case sysfs.Absent(err):
		return nil
	case err != nil:
		return c.failure(device.XGMIErrors, err)
	}
	add(o, device.Slow, device.Reading{Quantity: device.XGMIErrors, Details: [2]string{"uncorrected"}, Value: count.uncorrected})
	add(o, device.Slow, device.Reading{Quantity: device.XGMIErrors, Details: [2]string{"corrected"}, Value: count.corrected})
	return nil
}

func (c *card) blockErrors(path string) (blockCount, error) {
	text, err := c.files.Text(path)
	if err != nil {
		return blockCount{}, err
	}
	count, err := parseBlockCount(text)
	if err != nil {
		return blockCount{}, &fs.PathError{Op: "parse", Path: path, Err: err}
	}
	return count, nil
}
