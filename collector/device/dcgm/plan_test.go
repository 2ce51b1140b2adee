package dcgm

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// mig is a GPU instance with so many slices and its compute instances.
func mig(gpu, id uint, gi int, slices uint, compute ...uint) (list []instance) {
	of := entity{gpuInstance, id}
	list = append(list, instance{entity: of, parent: entity{wholeGPU, gpu}, gi: gi, ci: device.Unknown, slices: slices})
	for ci, s := range compute {
		list = append(list, instance{entity: entity{computeInstance, id*10 + uint(ci)}, parent: of, gi: gi, ci: ci, slices: s})
	}
	return list
}

// lines are the targets with the entities that answer for them.
func (p watchPlan) lines() string {
	var b strings.Builder
	for i := range p.targets {
		t := &p.targets[i]
		fmt.Fprintf(&b, "%s %s", t.device.UUID, t.device.Profile)
		for _, level := range []entityKind{wholeGPU, gpuInstance, computeInstance} {
			if e, is := t.entityFor(level); is {
				fmt.Fprintf(&b, " %d:%d/%d", level, e.kind, e.id)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestPlan(t *testing.T) {
	hierarchy := append(mig(0, 2, 9, 1, 1), mig(0, 1, 1, 3, 1)...)
	hierarchy = append(hierarchy, mig(0, 3, 2, 3, 1, 2)...)
	hierarchy = append(hierarchy, mig(0, 4, 5, 1)...) // without a compute instance: no device
	hierarchy = append(hierarchy, mig(7, 9, 0, 1, 1)...)
	p := makePlan([]uint{0, 1, 7}, hierarchy, map[entity]identity{
		{wholeGPU, 0}:         {uuid: "GPU-a", name: "NVIDIA H100", pci: "00000000:1A:00.0", driver: "580", minor: 3},
		{wholeGPU, 1}:         {uuid: "GPU-b", minor: device.Unknown},
		{wholeGPU, 7}:         {uuid: "NVML isn't loaded"}, // an error in place of a UUID
		{computeInstance, 20}: {name: "1g.10gb", uuid: "MIG-1"},
		{computeInstance, 10}: {name: "MIG 1c.3g.40gb", uuid: "MIG-2"},
		{computeInstance, 30}: {name: "<<<", uuid: "GPU-a"}, // an engine that reports the parent's
	})
	// A device that is a whole GPU instance has all of its values. A part of one
	// has its own activity only: what several share belongs to none of them.
	want := `GPU-a  1:1/0
MIG-2 1c.3g.40gb 4:4/1 5:5/10
MIG-GPU-a/2/0  5:5/30
MIG-GPU-a/2/1  5:5/31
MIG-1 1g.10gb 4:4/2 5:4/2
GPU-b  1:1/1
`
	if got := p.lines(); got != want {
		t.Errorf("the plan is\n%swant\n%s", got, want)
	}
	if fmt.Sprint(p.unidentified) != "[{1 7}]" || p.err() == nil || !strings.Contains(p.err().Error(), "GPU 7") {
		t.Errorf("unidentified are %v: %v", p.unidentified, p.err())
	}
	if len(p.gpus) != 2 || fmt.Sprint(p.partitions) != "[{4 1} {5 10} {5 30} {5 31} {4 2}]" || len(p.instances) != 8 {
		t.Errorf("queried are %v, %v and %v", p.gpus, p.partitions, p.instances)
	}

	d := p.targets[0].device
	if d.PCIBusID != "0000:1a:00.0" || d.Model != "NVIDIA H100" || d.DriverVersion != "580" || d.Minor != 3 ||
		fmt.Sprint(d.Nodes) != "[/dev/nvidia3]" || d.GPUInstance != device.Unknown || d.Placement != device.Unknown || d.IsPartition() {
		t.Errorf("the GPU is %+v", d)
	}
	d = p.targets[1].device
	if d.ParentUUID != "GPU-a" || d.PCIBusID != "0000:1a:00.0" || d.GPUInstance != 1 || d.ComputeInstance != 0 ||
		d.Minor != device.Unknown || d.Nodes != nil || d.Placement != device.Unknown || d.DriverVersion != "580" {
		t.Errorf("the MIG device is %+v", d)
	}
	if d = p.targets[5].device; d.Nodes != nil || d.PCIBusID != "" {
		t.Errorf("the GPU that reports little is %+v", d)
	}
}

// A MIG device never has a value of its parent, even if an engine returns one
// because another client watches it.
func TestPartitionsInheritNothing(t *testing.T) {
	b := newConverter(Options{Profiling: true}.complete())
	gpu, gi := entity{wholeGPU, 0}, entity{gpuInstance, 2}
	b.applyPlan(makePlan([]uint{0}, mig(0, 2, 9, 1, 1), map[entity]identity{gpu: {uuid: "GPU-a"}}))
	b.grid.begin()
	for _, e := range []entity{gpu, gi} {
		for _, r := range append(wholeRows(), partitionRows()...) {
			v := integer(1)
			v.entity, v.field = e, r.field
			b.grid.apply(&v, &callTime{})
		}
	}
	own := map[device.Quantity]bool{
		device.MemoryUsed: true, device.MemorySize: true, device.MemoryReserved: true,
		device.EngineActive: true, device.SMOccupancy: true, device.Utilization: true,
	}
	found := b.observe(&b.plan.targets[1], device.Slow, 0)
	for _, r := range append(found.Readings, found.Slow...) {
		if !own[r.Quantity] || r.Details[0] == "encoder" || r.Details[0] == "decoder" {
			t.Errorf("the partition has %s %s", device.Specs()[r.Quantity].Name, r.Details[0])
		}
	}
	if len(found.Readings) != 3+8+1 {
		t.Errorf("%d readings of the partition", len(found.Readings))
	}
}

// The states of MIG devices are removed with them; those of GPUs are kept.
func TestDeviceStatesAreBounded(t *testing.T) {
	b := newConverter(Options{}.complete())
	who := map[entity]identity{{wholeGPU, 0}: {uuid: "GPU-a"}}
	for i := range 100 {
		b.applyPlan(makePlan([]uint{0}, mig(0, 1, i, 1, 1), who))
	}
	b.applyPlan(makePlan(nil, nil, nil))
	if _, kept := b.states["GPU-a"]; len(b.states) != 1 || !kept {
		t.Errorf("%d devices are remembered", len(b.states))
	}
}
