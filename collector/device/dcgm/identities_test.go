package dcgm

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

func TestIdentitiesAreRemembered(t *testing.T) {
	gpu, other, ci := entity{wholeGPU, 0}, entity{wholeGPU, 1}, entity{computeInstance, 20}
	hierarchy := mig(0, 2, 9, 1, 1)
	all := identity{name: "NVIDIA H100", uuid: "GPU-a", pci: "00000000:1A:00.0", driver: "580", minor: 3, hardware: device.Hardware{Serial: "165", Slot: "9"}}
	part := identity{name: "1g.10gb", uuid: "MIG-1"}
	r := newIdentityCache()
	merge := func(hierarchy []instance, reported map[entity]identity) map[entity]identity {
		return r.merge([]uint{0, 1}, hierarchy, reported)
	}
	expect := func(what string, got, want identity) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	identities := merge(hierarchy, map[entity]identity{gpu: all, ci: part})
	expect("what is reported", identities[gpu], all)
	expect("one that never reported", identities[other], identity{})

	identities = merge(hierarchy, map[entity]identity{gpu: {minor: device.Unknown}, ci: {minor: device.Unknown}})
	expect("a GPU that reports nothing any more", identities[gpu], all)
	if identities[ci].uuid != part.uuid || identities[ci].name != part.name {
		t.Errorf("its instance is %+v", identities[ci])
	}
	expect("a GPU that reports an error", merge(hierarchy, map[entity]identity{gpu: {uuid: "GPU is lost", name: "GPU is lost"}})[gpu], all)

	// The same ids of other instances are others.
	identities = merge(mig(0, 2, 7, 1, 1), nil)
	expect("another instance", identities[ci], identity{})

	// In another connection the ids may be others', but a UUID is not.
	r.startConnection()
	identities = merge(nil, map[entity]identity{other: {uuid: "GPU-a", minor: device.Unknown}})
	expect("an id of another connection", identities[gpu], identity{})
	expect("a UUID of another connection", identities[other], all)
}
