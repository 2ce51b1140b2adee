package intelgpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
)

// card reads one card. Read must not be called concurrently.
type card struct {
	driver   string
	key      string          // its PCI address
	folders  [drm + 1]string // empty: the card has none
	rows     []row
	answered []bool // by row: it had a value once
	files    sysfs.Files
	identity device.Device
}

func newCard(root, name string, key cardKey) *card {
	c := &card{
		driver: key.driver,
		key:    key.address,
		rows:   rows(key.driver),
		identity: device.Device{
			Vendor: "intel", PCIBusID: key.address,
			Minor: device.Unknown, RenderMinor: device.Unknown,
			Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		},
	}
	c.answered = make([]bool, len(c.rows))
	c.folders[function] = sysfs.FunctionFolder(root, name)
	return c
}

// Key is the card's PCI address.
func (c *card) Key() string { return c.key }

// Read reads the card. In slow reads, and in the first, it also identifies the
// card.
func (c *card) Read(_ context.Context, tier device.Tier) ([]device.Observation, error) {
	bound, err := sysfs.Link(filepath.Join(c.folders[function], "driver"))
	if err != nil {
		return nil, fmt.Errorf("look at the driver of %s: %w", c.key, err)
	}
	if bound != c.driver {
		return nil, fmt.Errorf("%s is bound to the driver %s now", c.key, bound)
	}
	if tier == device.Slow || c.identity.Model == "" {
		if err := c.identify(); err != nil {
			return nil, fmt.Errorf("identify %s: %w", c.key, err)
		}
	}
	o := device.Observation{Device: c.identity}
	if status, err := c.files.Text(filepath.Join(c.folders[function], "power/runtime_status")); err == nil && status == "suspended" {
		return []device.Observation{o}, nil // reading its files would wake it up
	}
	err = c.readings(&o, tier)
	return []device.Observation{o}, err
}

// identify reads the card's identity and finds its DRM device.
func (c *card) identify() error {
	known, err := c.files.Function(c.folders[function])
	if err != nil {
		return err
	}
	id := &c.identity
	id.Model, id.DriverVersion = known.ID(), known.DriverVersion
	id.RenderMinor, id.Nodes, c.folders[drm] = device.Unknown, nil, ""
	names, err := sysfs.Names(filepath.Join(c.folders[function], "drm"))
	if err != nil && !sysfs.Absent(err) { // a card may have no node
		return fmt.Errorf("list its DRM devices: %w", err)
	}
	for _, name := range names {
		if _, ok := sysfs.Numbered(name, "card"); ok {
			c.folders[drm] = filepath.Join(c.folders[function], "drm", name)
			id.Nodes = append(id.Nodes, "/dev/dri/"+name)
		}
		if minor, ok := sysfs.Numbered(name, "renderD"); ok {
			id.RenderMinor, id.Nodes = minor, append(id.Nodes, "/dev/dri/"+name)
		}
	}
	return nil
}

// findSensors finds the hwmon device of the whole card: i915 has more, of its
// graphics tiles. Its number changes whenever the driver registers it again.
func (c *card) findSensors() error {
	among := filepath.Join(c.folders[function], "hwmon")
	c.folders[sensors] = ""
	names, err := sysfs.Names(among)
	if err != nil && !sysfs.Absent(err) {
		return fmt.Errorf("find the sensors of %s: %w", c.key, err)
	}
	for _, name := range names {
		label, err := c.files.Text(filepath.Join(among, name, "name"))
		switch {
		case err == nil && label == c.driver:
			c.folders[sensors] = filepath.Join(among, name)
			return nil
		case err != nil && !sysfs.Absent(err):
			return fmt.Errorf("find the sensors of %s: %w", c.key, err)
		}
	}
	return nil
}

// replaced reports whether another row gives the quantity of a row: one that has had a
// value once does so from then on, because two may count from different times.
func (c *card) replaced(i int) bool {
	for j, other := range c.rows {
		if j != i && c.answered[j] && other.same(c.rows[i]) {
			return !c.answered[i]
		}
	}
	return false
}

// readings adds all readings of the tier to the observation.
func (c *card) readings(o *device.Observation, tier device.Tier) error {
	errs := []error{c.findSensors()}
	last := -1 // the last row that was not absent
	for i, r := range c.rows {
		if r.tier > tier || last >= 0 && r.same(c.rows[last]) || c.replaced(i) {
			continue
		}
		value, err := c.value(r)
		if sysfs.Absent(err) {
			continue
		}
		last = i
		c.answered[i] = c.answered[i] || err == nil
		reading := device.Reading{Quantity: r.quantity, Details: [2]string{r.detail}, Value: value}
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("read %s of %s: %w", device.Specs()[r.quantity].Name, c.key, err))
		case r.tier == device.Slow:
			o.Slow = append(o.Slow, reading)
		default:
			o.Readings = append(o.Readings, reading)
		}
	}
	return errors.Join(errs...)
}

// value reads the row's file.
func (c *card) value(r row) (float64, error) {
	if c.folders[r.in] == "" {
		return 0, fs.ErrNotExist
	}
	path := filepath.Join(c.folders[r.in], r.file)
	number, err := c.files.Number(path)
	switch {
	case err != nil:
		return 0, err
	case number == 0 && r.disabled:
		return 0, fs.ErrNotExist
	case number < 0 && r.quantity != device.Temperature:
		return 0, fmt.Errorf("read %s: %v is less than there can be", path, number)
	}
	return number / r.per, nil
}
