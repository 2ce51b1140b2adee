//go:build cgo

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// fallenOffTheBus is the XID of a GPU that the driver cannot reach any more.
const fallenOffTheBus = 79

// eventFunctions are what listening for errors takes; the wait there is in
// two versions.
func eventFunctions() (all, wait []string) {
	return []string{
		"nvmlEventSetCreate", "nvmlEventSetFree",
		"nvmlDeviceRegisterEvents", "nvmlDeviceGetSupportedEventTypes",
	}, []string{"nvmlEventSetWait", "nvmlEventSetWait_v2"}
}

// listen listens for the errors of the GPUs that have been found, as far as
// they support it, and to no others. It belongs to Readers.
func (c *connection) listen(found []*reader) {
	if c.parked != nil && !c.parked.hung() {
		c.parked = nil
	}
	there := make(map[string]bool, len(found))
	for _, r := range found {
		f := r.found.Load()
		registered := c.listener != nil && c.listener.of(f.gpu) == r
		c.ear.listen(r.uuid, !f.missing && (registered || c.register(r, f)))
		there[r.uuid] = true
	}
	c.ear.ignore(there)
}

// register adds the errors of a GPU to the events that are waited for, and
// reports whether that was possible.
func (c *connection) register(r *reader, f *finding) bool {
	all, wait := eventFunctions()
	if c.parked != nil || !f.symbols.has(all...) || !f.symbols.any(wait...) {
		return false
	}
	types, ret := f.gpu.GetSupportedEventTypes()
	if ret != nvml.SUCCESS || types&nvml.EventTypeXidCriticalError == 0 {
		return false
	}
	if c.listener == nil {
		set, ret := c.library.EventSetCreate()
		if ret != nvml.SUCCESS {
			return false
		}
		c.listener = newListener(set, c.hear)
	}
	if f.gpu.RegisterEvents(nvml.EventTypeXidCriticalError, c.listener.set) != nvml.SUCCESS {
		return false
	}
	c.listener.add(f.gpu, r)
	return true
}

// hear takes in the error that an event is about. It is called by the
// listener.
func (c *connection) hear(r *reader, event nvml.EventData) {
	code := int(event.EventData)
	if code == fallenOffTheBus {
		r.lost.Store(true)
	}
	c.ear.hear(r.uuid, event.GpuInstanceId, event.ComputeInstanceId, code)
}

// unlisten ends the listener. One whose wait does not return is left behind,
// and nobody listens until it has ended.
func (c *connection) unlisten() {
	if c.listener != nil && !c.listener.end() {
		c.parked = c.listener
	}
	c.listener = nil
}
