package simulated

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Config is a checked file.
type Config struct {
	Devices []Device
	Faults  []Fault // of the whole source
}

// Device is a whole device with its partitions, or one of those.
type Device struct {
	Identity   device.Device
	Load       float64
	Partitions []Device
	Faults     []Fault
	Processes  []Process // nil: they cannot be listed

	series []series
}

// hardwareFile is a device, a partition or a template as the file spells it.
type hardwareFile struct {
	Template      string                     `json:"template"`
	UUID          string                     `json:"uuid"`
	Vendor        string                     `json:"vendor"`
	Model         string                     `json:"model"`
	PCIBusID      string                     `json:"pciBusID"`
	Minor         *int                       `json:"minor"`
	RenderMinor   *int                       `json:"renderMinor"`
	DriverVersion string                     `json:"driverVersion"`
	LinkDomain    string                     `json:"linkDomain"`
	Nodes         []string                   `json:"nodes"`
	Serial        string                     `json:"serial"`
	PartNumber    string                     `json:"boardPartNumber"`
	VBIOS         string                     `json:"vbios"`
	Slot          string                     `json:"slot"`
	Profile       string                     `json:"profile"`
	Placement     *int                       `json:"placement"`
	GPUInstance   *int                       `json:"gpuInstance"`
	Compute       *int                       `json:"computeInstance"`
	Load          *float64                   `json:"load"`
	Quantities    map[string]json.RawMessage `json:"quantities"`
	Partitions    []json.RawMessage          `json:"partitions"`
	Faults        []Fault                    `json:"faults"`
	Processes     []Process                  `json:"processes"`
}

// Parse reads a file. Unknown keys are errors; an error names the device and
// the key. A blank file is an error too: it is one that is just being written.
func Parse(data []byte) (Config, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return Config{}, errors.New("parse simulated devices: the file is empty")
	}
	converted, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return Config{}, fmt.Errorf("parse simulated devices: %w", err)
	}
	var file struct {
		Seed      uint64                     `json:"seed"`
		Templates map[string]json.RawMessage `json:"templates"`
		Devices   []json.RawMessage          `json:"devices"`
		Faults    []Fault                    `json:"faults"`
	}
	if err := strict(converted, &file); err != nil {
		return Config{}, fmt.Errorf("parse simulated devices: %w", err)
	}
	p := parser{seed: file.Seed, templates: file.Templates}
	config := Config{Faults: file.Faults}
	for _, fault := range file.Faults {
		if err := fault.check("error", "hang"); err != nil || fault.Quantity != "" {
			return Config{}, fmt.Errorf("parse simulated devices: faults: a source has errors and hangs as a whole: %+v", fault)
		}
	}
	for i, raw := range file.Devices {
		d, err := p.device(raw)
		if err != nil {
			return Config{}, fmt.Errorf("parse simulated devices: devices[%d]%s: %w", i, named(d.Identity), err)
		}
		config.Devices = append(config.Devices, d)
	}
	return config, nil
}

// named is the name of a device in an error, as far as it has one.
func named(d device.Device) string {
	switch {
	case d.UUID != "":
		return " (" + d.UUID + ")"
	case d.PCIBusID != "":
		return " (" + d.PCIBusID + ")"
	}
	return ""
}

type parser struct {
	seed      uint64
	templates map[string]json.RawMessage
}

// spelled decodes a device over the template that it names.
func (p parser) spelled(raw json.RawMessage) (hardwareFile, error) {
	var named struct {
		Template string `json:"template"`
		UUID     string `json:"uuid"`
	}
	// What cannot be decoded here fails below, in the strict decoding.
	_ = json.Unmarshal(raw, &named)
	h := hardwareFile{UUID: named.UUID}
	if named.Template != "" {
		template, ok := p.templates[named.Template]
		if !ok {
			return h, fmt.Errorf("template: there is no %q", named.Template)
		}
		if err := strict(template, &h); err != nil {
			return h, fmt.Errorf("template %s: %w", named.Template, err)
		}
		if h.Template != "" {
			return h, fmt.Errorf("template %s: a template has no template", named.Template)
		}
	}
	return h, strict(raw, &h)
}

var address = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// device reads a whole device. Beside an error it returns its identity as far
// as it is known.
func (p parser) device(raw json.RawMessage) (Device, error) {
	h, err := p.spelled(raw)
	d := Device{Identity: device.Device{
		UUID: h.UUID, Vendor: h.Vendor, Model: h.Model, PCIBusID: strings.ToLower(h.PCIBusID),
		Minor: number(h.Minor), RenderMinor: number(h.RenderMinor),
		Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
		DriverVersion: h.DriverVersion, LinkDomain: h.LinkDomain, Nodes: h.Nodes,
		Hardware: h.hardware(),
	}}
	switch id := &d.Identity; {
	case err != nil:
		return d, err
	case id.PCIBusID != "" && !address.MatchString(id.PCIBusID):
		return d, fmt.Errorf("pciBusID: %q is not like 0000:1a:00.0", h.PCIBusID)
	case id.UUID == "" && id.PCIBusID == "":
		return d, errors.New("uuid: a device has a uuid or a pciBusID")
	case h.Profile != "" || h.Placement != nil || h.GPUInstance != nil || h.Compute != nil:
		return d, errors.New("profile: only partitions have a profile, a placement and instances")
	case id.Nodes == nil && id.Vendor == "nvidia" && id.Minor != device.Unknown:
		id.Nodes = []string{fmt.Sprintf("/dev/nvidia%d", id.Minor)}
	}
	if err := p.behaviour(&d, h); err != nil {
		return d, err
	}
	d.Processes = h.Processes
	if err := checkProcesses(d.Processes); err != nil {
		return d, err
	}
	if d.Processes != nil && len(h.Partitions) > 0 {
		return d, errors.New("processes: a device with partitions has no processes")
	}
	for i, raw := range h.Partitions {
		partition, err := p.partition(raw, d.Identity)
		if err != nil {
			return d, fmt.Errorf("partitions[%d]%s: %w", i, named(partition.Identity), err)
		}
		d.Partitions = append(d.Partitions, partition)
	}
	for i, fault := range d.Faults {
		if err := fault.checkOn(d); err != nil {
			return d, fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	return d, nil
}

// hardware returns what identifies the board.
func (h hardwareFile) hardware() device.Hardware {
	return device.Hardware{Serial: h.Serial, BoardPartNumber: h.PartNumber, VBIOS: h.VBIOS, Slot: h.Slot}
}

// partition reads a part of the parent. It has the parent's address, and the
// parent's model and versions where it says nothing else.
func (p parser) partition(raw json.RawMessage, parent device.Device) (Device, error) {
	h, err := p.spelled(raw)
	id := parent
	id.UUID, id.ParentUUID, id.Profile, id.LinkDomain, id.Hardware = h.UUID, parent.UUID, h.Profile, "", device.Hardware{}
	id.Minor, id.RenderMinor, id.Placement, id.Nodes = device.Unknown, device.Unknown, number(h.Placement), h.Nodes
	id.GPUInstance, id.ComputeInstance = number(h.GPUInstance), number(h.Compute)
	if h.Model != "" {
		id.Model = h.Model
	}
	d := Device{Identity: id}
	switch {
	case err != nil:
		return d, err
	case id.UUID == "" || parent.UUID == "":
		return d, errors.New("uuid: a partition and its device have one")
	case h.PCIBusID != "" || h.Minor != nil || h.RenderMinor != nil || h.Vendor != "" || h.DriverVersion != "" || h.LinkDomain != "" || h.hardware() != (device.Hardware{}):
		return d, errors.New("a partition has the vendor, driver, address and minors of its device, and no linkDomain, serial, boardPartNumber, vbios and slot")
	case len(h.Partitions) > 0 || len(h.Faults) > 0:
		return d, errors.New("a partition has no partitions, and no faults but those of its device")
	case h.Processes != nil:
		return d, errors.New("processes: only whole devices have them")
	}
	return d, p.behaviour(&d, h)
}

// behaviour reads what a device shows.
func (p parser) behaviour(d *Device, h hardwareFile) (err error) {
	d.Load = 1
	if h.Load != nil {
		d.Load = *h.Load
	}
	if d.Load < 0 || d.Load > 1 {
		return fmt.Errorf("load: %g is not between 0 and 1", d.Load)
	}
	for i, fault := range h.Faults {
		if err := fault.check("error", "hang", "disappear", "lost", "reset", "set", "xid"); err != nil {
			return fmt.Errorf("faults[%d]: %w", i, err)
		}
	}
	d.Faults = h.Faults
	d.series, err = parseQuantities(h.Quantities, p.seed, d.Identity.UUID+d.Identity.PCIBusID)
	return err
}

func number(n *int) int {
	if n == nil {
		return device.Unknown
	}
	return *n
}

// duration is a time.Duration as people write it: 1m30s.
type duration time.Duration

func (d *duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return fmt.Errorf("%s is not a duration such as 1m30s", raw)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 {
		return fmt.Errorf("%q is not a duration such as 1m30s", text)
	}
	*d = duration(parsed)
	return nil
}

func (d duration) seconds() float64 { return time.Duration(d).Seconds() }
