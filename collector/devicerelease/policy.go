// Package devicerelease decides when the agent keeps the GPUs of its node open, and when it
// lets others have them: who replaces the driver, resets a GPU, changes its MIG mode or
// passes it to a virtual machine.
//
// A Policy is pure: Facts are values, and Step returns the reason to release, if there
// is one. internal/role reads the facts and closes the sources.
package devicerelease

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// Reason is why devices are released, out of a closed set.
type Reason string

// The reasons, the most important first, as dra_exporter_device_access names them.
const (
	ReasonNone        Reason = ""
	ReasonStarting    Reason = "starting"    // the labels of the node have not been read yet
	ReasonFile        Reason = "file"        // --device.release-file exists
	ReasonLabel       Reason = "label"       // a label of the node is not "true"
	ReasonPassthrough Reason = "passthrough" // a claim of the node gets a GPU for a virtual machine
	ReasonUnbind      Reason = "unbind"      // the driver is to be unbound from a GPU
	ReasonIdle        Reason = "idle"        // no claim of the node holds a GPU
)

// Options configure a Policy.
type Options struct {
	Labels      []string // keys of labels of the node: a value other than "true" releases
	Passthrough bool     // claims of devices for virtual machines release
	Idle        bool     // release while nothing holds a GPU
}

// Facts are what a step decides on.
type Facts struct {
	File       bool              // the release file exists
	Labels     map[string]string // of the node
	LabelsDue  bool              // they are to be read, and have neither been read nor failed
	Published  []dra.PublishedDevice
	Claims     []dra.Claim
	Plugins    []dra.PluginAssignment
	Bound      map[string]bool // PCI addresses of the GPUs to which their driver is bound
	BoundKnown bool
	Unbinding  bool // since the step before, the driver announced that it is to be unbound
	Read       bool // every device has been read since they were opened
}

const (
	// startLimit is for how long the labels of the node are awaited after a start.
	startLimit = 5 * time.Second
	// idleInterval is how often idle GPUs are opened, to look at their health.
	idleInterval = time.Minute
	// idleLimit is how long that may take.
	idleLimit = 15 * time.Second
	// unbindPause is for how long no driver was bound or unbound when an unbinding
	// counts as over: a driver that is replaced is unbound from one GPU after another.
	unbindPause = 10 * time.Second
	// unbindLimit is how long an unbinding is awaited that others may keep from
	// happening.
	unbindLimit = 10 * time.Minute
)

// Policy is the state between two steps.
type Policy struct {
	options Options
	began   clock.Instant // the first step

	opened clock.Instant // when idle GPUs were opened; zero: they are closed, or held
	closed clock.Instant // when they were closed; zero: they are open

	unbind *unbinding // nil: none is under way
}

// unbinding is an unbinding of the driver that was announced.
type unbinding struct {
	bound     map[string]bool // when it was announced, and then after each change
	announced clock.Instant
	changed   clock.Instant // zero: no driver has been bound or unbound yet
}

// New returns the state before the first step.
func New(options Options) *Policy { return &Policy{options: options} }

// Step returns the reason to release the devices at an instant; ReasonNone to keep them
// open.
func (p *Policy) Step(facts *Facts, now clock.Instant) Reason {
	if p.began.IsZero() {
		p.began = now
	}
	unbinding := p.isUnbinding(facts, now)
	idle := p.isIdle(facts, now)
	_, labelled := dra.FindRelease(facts.Labels, p.options.Labels)
	switch {
	case facts.File:
		return ReasonFile
	case facts.LabelsDue && now.Since(p.began) < startLimit:
		return ReasonStarting
	case labelled:
		return ReasonLabel
	case p.options.Passthrough && awaitsPassthrough(facts):
		return ReasonPassthrough
	case unbinding:
		return ReasonUnbind
	case idle:
		return ReasonIdle
	default:
		return ReasonNone
	}
}

// awaitsPassthrough reports whether a claim has a GPU for a virtual machine to which its
// driver is still bound. NVIDIA's DRA driver waits until no process has the GPU open, and
// only then unbinds the driver. Where it is not known which GPU it is, or what is bound,
// the claim awaits it for as long as it has it.
func awaitsPassthrough(facts *Facts) bool {
	published := make(map[dra.DeviceID]*dra.PublishedDevice, len(facts.Published))
	for i := range facts.Published {
		published[facts.Published[i].ID] = &facts.Published[i]
	}
	for i := range facts.Claims {
		claim := &facts.Claims[i]
		for _, result := range claim.Results {
			device := published[result.Device]
			if !isPassthrough(claim, result, device) {
				continue
			}
			if device == nil || device.PCIAddress == "" || !facts.BoundKnown || facts.Bound[device.PCIAddress] {
				return true
			}
		}
	}
	return false
}

// passthroughClass is the class of GPUs for virtual machines that NVIDIA's DRA driver
// installs.
const passthroughClass = "vfio.gpu.nvidia.com"

// isPassthrough reports whether an allocated device is a GPU of NVIDIA for a virtual
// machine: by what the driver publishes of it, or by its class.
func isPassthrough(claim *dra.Claim, result dra.Result, device *dra.PublishedDevice) bool {
	if result.Device.Driver != vendors.NVIDIADriver {
		return false
	}
	if device != nil {
		return device.Passthrough
	}
	for _, request := range claim.Requests {
		if request.Name == result.Request && request.DeviceClass == passthroughClass {
			return true
		}
	}
	return false
}

// isUnbinding reports whether an unbinding is under way: from its announcement until the
// driver has been unbound and nothing has changed for a while.
func (p *Policy) isUnbinding(facts *Facts, now clock.Instant) bool {
	if facts.Unbinding {
		p.unbind = &unbinding{bound: facts.Bound, announced: now}
	}
	if p.unbind == nil {
		return false
	}
	if facts.BoundKnown && !sameAddresses(p.unbind.bound, facts.Bound) {
		p.unbind.bound, p.unbind.changed = facts.Bound, now
	}
	ended := !p.unbind.changed.IsZero() && now.Since(p.unbind.changed) >= unbindPause
	if ended || now.Since(p.unbind.announced) >= unbindLimit {
		p.unbind = nil
	}
	return p.unbind != nil
}

// isIdle reports whether nothing holds a GPU, and it is not time to look at their
// health.
func (p *Policy) isIdle(facts *Facts, now clock.Instant) bool {
	switch {
	case !p.options.Idle || isHeld(facts):
		p.opened, p.closed = clock.Instant{}, clock.Instant{}
		return false
	case p.closed.IsZero() && p.opened.IsZero():
		p.opened = now
	case p.closed.IsZero():
		if facts.Read || now.Since(p.opened) >= idleLimit {
			p.opened, p.closed = clock.Instant{}, now
		}
	case now.Since(p.closed) >= idleInterval:
		p.opened, p.closed = now, clock.Instant{}
	}
	return !p.closed.IsZero()
}

// isHeld reports whether a claim or a device plugin of the node has a GPU of NVIDIA,
// whose library keeps all of them open. Admin access does not hold a device.
func isHeld(facts *Facts) bool {
	for i := range facts.Claims {
		for _, result := range facts.Claims[i].Results {
			if result.Device.Driver == vendors.NVIDIADriver && !result.AdminAccess {
				return true
			}
		}
	}
	for _, plugin := range facts.Plugins {
		if vendor, _ := vendors.ByResource(plugin.Resource); vendor == vendors.NVIDIA && len(plugin.DeviceIDs) > 0 {
			return true
		}
	}
	return false
}

func sameAddresses(a, b map[string]bool) bool {
	if len(a) != len(b) {
		return false
	}
	for address := range a {
		if !b[address] {
			return false
		}
	}
	return true
}
