package rdma

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
)

// adapter reads one PCI function. Read must not be called concurrently.
type adapter struct {
	key    string // its PCI address
	folder string // of the function

	rows     []row
	totals   []sysfs.Total          // by row; used for the first row of each quantity and detail
	values   map[string]float64     // by part; reused by sum
	chosen   map[portCounter]string // the file that a part has for it
	files    sysfs.Files
	identity device.Device
	known    bool // identity has been read
}

func newAdapter(root, function, address string) *adapter {
	table := rows()
	return &adapter{
		key:    address,
		folder: sysfs.FunctionFolder(root, function),
		rows:   table,
		totals: make([]sysfs.Total, len(table)),
		values: make(map[string]float64),
		chosen: make(map[portCounter]string),
		identity: device.Device{
			PCIBusID: address,
			Minor:    device.Unknown, RenderMinor: device.Unknown,
			Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		},
	}
}

// portCounter is a counter of a part.
type portCounter struct {
	part     string
	quantity device.Quantity
	detail   string
}

// Key is the function's PCI address.
func (a *adapter) Key() string { return a.key }

// Read reads the ports of the function. In slow reads, and in the first, it
// also identifies the function. It lists the RDMA devices in each read, because
// they may be renamed.
func (a *adapter) Read(_ context.Context, tier device.Tier) ([]device.Observation, error) {
	names, err := sysfs.Names(filepath.Join(a.folder, "infiniband"))
	if err != nil {
		return nil, fmt.Errorf("find the RDMA devices of %s: %w", a.key, err)
	}
	if tier == device.Slow || !a.known {
		if err := a.identify(names); err != nil {
			return nil, fmt.Errorf("identify %s: %w", a.key, err)
		}
	}
	o := device.Observation{Device: a.identity}
	ports, err := a.ports(names)
	errs := []error{err, a.count(&o, ports, tier)}
	for _, p := range ports {
		errs = append(errs, a.state(&o, p))
	}
	return []device.Observation{o}, errors.Join(errs...)
}

// port is one port of an RDMA device of the function.
type port struct {
	name   string // its number; with the device's name if there are several devices
	part   string // its key in sums, which does not change when the device is renamed
	folder string
}

func (a *adapter) ports(devices []string) ([]port, error) {
	var found []port
	for _, name := range devices {
		folder := filepath.Join(a.folder, "infiniband", name)
		numbers, err := sysfs.Names(filepath.Join(folder, "ports"))
		if err != nil {
			return found, fmt.Errorf("list the ports of %s: %w", a.key, err)
		}
		guid, err := a.files.Text(filepath.Join(folder, "node_guid"))
		if err != nil {
			guid = name
		}
		for _, number := range numbers {
			p := port{name: number, part: guid + "/" + number, folder: filepath.Join(folder, "ports", number)}
			if len(devices) > 1 {
				p.name = name + "/" + number
			}
			found = append(found, p)
		}
	}
	return found, nil
}

// count adds the sum over the ports of each counter of the tier.
func (a *adapter) count(o *device.Observation, ports []port, tier device.Tier) error {
	var errs []error
	for first := 0; first < len(a.rows); {
		next := first + 1
		for next < len(a.rows) && a.rows[next].same(a.rows[first]) {
			next++
		}
		if a.rows[first].tier <= tier {
			errs = append(errs, a.sum(o, ports, first, next))
		}
		first = next
	}
	return errors.Join(errs...)
}

// sum adds up the values of the ports of the rows from first to before next.
func (a *adapter) sum(o *device.Observation, ports []port, first, next int) error {
	clear(a.values)
	var errs []error
	r := a.rows[first]
	for _, p := range ports {
		value, err := a.value(p, a.rows[first:next])
		switch {
		case err == nil:
			a.values[p.part] = value
		case !sysfs.Absent(err):
			errs = append(errs, a.failure(r.quantity, err))
		}
	}
	if len(a.values) > 0 {
		total, _ := a.totals[first].Sum(a.values)
		add(o, r.tier, device.Reading{Quantity: r.quantity, Details: [2]string{r.detail}, Value: total})
	}
	return errors.Join(errs...)
}

// value reads the first of the rows whose file the port has, and that row from then on.
func (a *adapter) value(p port, alternatives []row) (value float64, err error) {
	key := portCounter{p.part, alternatives[0].quantity, alternatives[0].detail}
	for _, r := range alternatives {
		if chosen := a.chosen[key]; chosen != "" && chosen != r.file {
			continue // it may have counted from another time
		}
		value, err = a.files.Number(filepath.Join(p.folder, r.file))
		if err == nil {
			a.chosen[key] = r.file
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return value * r.scale, err
		}
	}
	return 0, err
}

// state adds the states of a port: 1 for the present one, 0 for the others.
func (a *adapter) state(o *device.Observation, p port) error {
	present, err := a.linkState(p)
	if err != nil {
		if sysfs.Absent(err) {
			return nil
		}
		return a.failure(device.NetworkLinks, err)
	}
	for _, state := range linkStates() {
		reading := device.Reading{Quantity: device.NetworkLinks, Details: [2]string{p.name, state}}
		if state == present {
			reading.Value = 1
		}
		add(o, device.Fast, reading)
	}
	return nil
}

// failure returns an error that names the quantity and the function.
func (a *adapter) failure(quantity device.Quantity, err error) error {
	return fmt.Errorf("read %s of %s: %w", device.Specs()[quantity].Name, a.key, err)
}

// add appends a reading to those of its tier.
func add(o *device.Observation, tier device.Tier, reading device.Reading) {
	if tier == device.Slow {
		o.Slow = append(o.Slow, reading)
		return
	}
	o.Readings = append(o.Readings, reading)
}

// identify reads the function's identity. Its model is the driver's name for it
// (MT4129), else the board's identification, else its PCI number.
func (a *adapter) identify(devices []string) error {
	function, err := a.files.Function(a.folder)
	if err != nil {
		return err
	}
	id := &a.identity
	id.Vendor, id.DriverVersion, id.Model = functionVendor(function), function.DriverVersion, function.ID()
	for _, file := range []string{"board_id", "hca_type"} {
		if len(devices) == 0 {
			break
		}
		// Some drivers have no such file.
		if text, err := a.files.Text(filepath.Join(a.folder, "infiniband", devices[0], file)); err == nil && text != "" {
			id.Model = text
		}
	}
	id.Nodes = a.nodes()
	a.known = true
	return nil
}

// nodes are the device files through which programs use the function.
func (a *adapter) nodes() []string {
	names, err := sysfs.Names(filepath.Join(a.folder, "infiniband_verbs"))
	if err != nil {
		return nil // the function is then matched by other attributes
	}
	var nodes []string
	for _, name := range names {
		nodes = append(nodes, "/dev/infiniband/"+name)
	}
	return nodes
}

// functionVendor names the maker of a function by its PCI number; an unknown one is
// the number. Those that also make accelerators, whose own DRA drivers publish
// no adapters, are distinguished from these.
func functionVendor(function sysfs.Function) string {
	switch function.Vendor {
	case "15b3":
		return "mellanox"
	case "14e4":
		return "broadcom"
	case "1d0f":
		return "amazon"
	case "1dd8":
		return "pensando"
	case "1077":
		return "qlogic"
	case "1425":
		return "chelsio"
	case "1414":
		return "microsoft"
	case "19e5":
		return "huawei"
	case "1ded":
		return "alibaba"
	case "434e":
		return "cornelis"
	case "8086":
		return "intel-network"
	case "1ae0":
		return "google-network"
	default:
		return function.Vendor
	}
}

// linkStates are the states that a port's link can be in: active, the two
// stages of its coming up that a subnet manager sees (initialized, armed), and
// down, of which the physical state says more: it looks for a partner
// (polling) or has been switched off (disabled).
func linkStates() []string {
	return []string{"active", "armed", "init", "down", "polling", "disabled"}
}

// linkState reads the state of a port's link.
func (a *adapter) linkState(p port) (string, error) {
	logical, err := a.number(filepath.Join(p.folder, "state"))
	if err != nil {
		return "", err
	}
	state, err := portState(logical)
	if err != nil {
		return "", &fs.PathError{Op: "parse", Path: filepath.Join(p.folder, "state"), Err: err}
	}
	if state != "down" {
		return state, nil
	}
	// A port without a physical state is down nevertheless.
	physical, err := a.number(filepath.Join(p.folder, "phys_state"))
	if err != nil {
		return state, nil
	}
	return downState(physical), nil
}

// number reads the number before the colon in a file such as "4: ACTIVE".
func (a *adapter) number(path string) (int, error) {
	text, err := a.files.Text(path)
	if err != nil {
		return 0, err
	}
	number, err := parseState(text)
	if err != nil {
		return 0, &fs.PathError{Op: "parse", Path: path, Err: err}
	}
	return number, nil
}

func parseState(text string) (int, error) {
	number, _, found := strings.Cut(text, ":")
	parsed, err := strconv.ParseUint(strings.TrimSpace(number), 10, 8)
	if !found || err != nil {
		return 0, fmt.Errorf("no number of a state: %.40q", text)
	}
	return int(parsed), nil
}

// portState names a port's logical state, the enumeration ib_port_state. An
// active port that defers its traffic for a moment is active.
func portState(number int) (string, error) {
	switch number {
	case 1:
		return "down", nil
	case 2:
		return "init", nil
	case 3:
		return "armed", nil
	case 4, 5:
		return "active", nil
	default:
		return "", fmt.Errorf("no state has the number %d", number)
	}
}

// downState names the state of a link that is down by its physical state, the
// enumeration ib_port_phys_state. While it trains it looks for a partner, too.
func downState(physical int) string {
	switch physical {
	case 2, 4:
		return "polling"
	case 3:
		return "disabled"
	default:
		return "down"
	}
}
