// Package simulated is a device.Source without hardware. It is driven by a
// YAML file, and what it shows is a function of that file, its seed and the
// time since the source was made, plus what SetLoad, SetProcesses and Replace
// were given. A source that was opened from a file follows it when it changes.
//
//	seed: 7
//	templates:                    # parts that devices and partitions share
//	  h100:
//	    vendor: nvidia
//	    model: NVIDIA H100 80GB HBM3
//	    driverVersion: 580.65.06
//	    quantities:
//	      utilization: {curve: sine, min: 0.2, max: 0.9, period: 60s, noise: 0.05}
//	      memory_used: 40e9       # a number is a constant
//	      memory_size: 80e9
//	      power: {curve: random, min: 300, max: 650, period: 10s, idle: 75}
//	      energy: {rate: 400, idle: 75}
//	      temperature: {gpu: 60, memory: 70}
//	      nvlink_transmit: {rate: {curve: square, min: 0, max: 2e9, period: 30s}}
//	      pcie_receive: {rate: 1e9, sampled: 10s}
//	      nvlink_link_transmit: {"0": {switch: {rate: 1e9}}, "1": {switch: {rate: 1e9}}}
//	      recovery_action: {none: 1, gpu_reset: 0}
//	devices:
//	- template: h100
//	  uuid: GPU-4d6f2f0c-0000-0000-0000-000000000001
//	  pciBusID: "0000:1a:00.0"
//	  minor: 0                    # also: renderMinor, nodes
//	  serial: "1650923004310"     # also: boardPartNumber, vbios, slot
//	  load: 1                     # how busy it is at first, see below
//	  partitions:
//	  - {uuid: MIG-1, profile: 1g.10gb, placement: 0, gpuInstance: 7, computeInstance: 0}
//	  faults:
//	  - {kind: error, after: 10s, for: 5s}
//	  - {kind: xid, code: 79, after: 1m, every: 10m}
//	  - {kind: set, quantity: recovery_action, details: [gpu_reset], value: 1, after: 1m, for: 30s}
//	- template: h100
//	  uuid: GPU-4d6f2f0c-0000-0000-0000-000000000002
//	  processes:                  # of a device without partitions
//	  - {pid: 4711, memory: 0.5, utilization: 0.3}
//	  - {pid: 4712, memory: 0.25, utilization: 0.6, proxied: true}
//	faults: []                    # of the whole source: error and hang
//
// Every quantity of device.Specs can be simulated, by its name there. A
// quantity with details is a map from each detail to what it shows, in which
// a second detail is a map again. Of a set of states all are spelled out.
//
// Curves are constant (value), sine, square and ramp (from min to max within
// each period) and random (a walk between min and max that turns at each
// period). noise is added to a gauge, evenly between -noise and +noise. A
// counter has a rate a second, which may be a curve, and a start; a bare
// number is a counter that stands still.
//
// A quantity that is sampled every so often stands still in between, as where a
// library samples it by itself. The first read of each period takes the sample,
// and readings of it say when that was.
//
// The load of a device, 0 to 1, says how much of its curves shows: a quantity
// is idle + load × (curve - idle). idle is 0 for activity (utilization,
// memory used, traffic, throttling) and, unless the file says otherwise, the
// curve itself for everything else. With ready, it is ready + load × (curve - ready)
// under any load: a GPU draws more than at rest as soon as a process has it.
//
// Processes use shares of what their device shows, 0 to 1: of its memory_used
// and its utilization, of all processes together no more than 1. One that is
// proxied works through a server, as the clients of MPS do. A device without
// the key reports no list of processes, one with an empty list has none. They are
// reported only while ListProcesses allows it.
//
// Faults begin after a time, counted from when the file that has them was
// read, and last for a time, or for ever. An error makes reads fail, of one
// quantity where it names one; a hang makes calls block until it is over,
// whatever becomes of their context; disappear takes the device away; lost
// makes reads fail and reports the quantity lost alone, as a driver does of a
// GPU that fell off the bus; reset starts its counters at zero again; set
// puts a value in place of the curve of one of its gauges.
//
// A fault of the kind xid has an XID reported of the device, or of one of its
// partitions where it names its UUID: once, or every so often. The source
// receives it at once, whatever hangs or has disappeared. It watches the devices
// whose vendor is nvidia.
package simulated
