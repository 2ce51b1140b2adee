package diagnosis

import (
	"math"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// ask is what is counted by itself: a request of a claim, or one alternative
// of a request that is a prioritized list.
type ask struct {
	inventory.Request
	parent string // the request as the claim names it: all alternatives of a list have the same
	name   string // "main", or "main/sub"
	count  int64  // 0: all that match on the node
}

// needs is how many devices there must be at least.
func (a ask) needs() int {
	return int(min(max(a.count, 1), math.MaxInt32))
}

// asksOf lists what a claim asks for, in its order.
func asksOf(spec *resourcev1.ResourceClaimSpec) []ask {
	var asks []ask
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			asks = append(asks, ask{
				Request: inventory.Exactly(exactly),
				parent:  request.Name, name: request.Name,
				count: countOf(exactly.AllocationMode, exactly.Count),
			})
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			asks = append(asks, ask{
				Request: inventory.Alternative(sub),
				parent:  request.Name, name: resourceclaim.CreateSubRequestRef(request.Name, sub.Name),
				count: countOf(sub.AllocationMode, sub.Count),
			})
		}
	}
	return asks
}

// countOf is how many devices a request is for, 0 for all. The API server
// defaults both fields; what reads a manifest that it has not seen finds them
// empty.
func countOf(mode resourcev1.DeviceAllocationMode, count int64) int64 {
	if mode == resourcev1.DeviceAllocationModeAll {
		return 0
	}
	return max(count, 1)
}

// extendedSpec is the claim that the scheduler makes for an amount of an
// extended resource. It makes a request for each container; for what can be
// allocated only their sum matters, because such requests differ in nothing.
func extendedSpec(resource, class string, amount int64) *resourcev1.ResourceClaimSpec {
	return &resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{
			Name: resource,
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: class,
				AllocationMode:  resourcev1.DeviceAllocationModeExactCount,
				Count:           amount,
			},
		}},
	}}
}

// leastDevices is how many devices a claim takes at least, where that can be
// told before anything is counted: of a prioritized list the smallest
// alternative, of all devices one.
func leastDevices(asks []ask) int64 {
	least := make(map[string]int64)
	for _, a := range asks {
		if n, ok := least[a.parent]; !ok || int64(a.needs()) < n {
			least[a.parent] = int64(a.needs())
		}
	}
	var total int64
	for _, n := range least {
		total += n
	}
	return total
}

// tally is what is left of the devices for one ask.
type tally struct {
	inventory.Count
	noClass bool // the class does not exist
}

func (t tally) funnel(a ask) dra.RequestFunnel {
	return dra.RequestFunnel{Request: clean(a.name), Class: clean(a.Class), Asked: a.count, Left: t.Left}
}
