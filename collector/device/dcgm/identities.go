package dcgm

import (
	"cmp"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// identityCache remembers the identities of GPUs and instances. A lost GPU
// returns blanks for every field, including its UUID, and must still be
// reported. The engine's ids of GPUs and instances are valid for one
// connection; UUIDs are permanent.
type identityCache struct {
	byEntity   map[entity]identity   // GPUs of this connection
	byInstance map[instance]identity // compute instances of this connection
	byUUID     map[string]identity   // GPUs of any connection, by UUID
}

func newIdentityCache() *identityCache {
	r := &identityCache{byUUID: make(map[string]identity)}
	r.startConnection()
	return r
}

// startConnection forgets what is valid for one connection only.
func (r *identityCache) startConnection() {
	r.byEntity, r.byInstance = make(map[entity]identity), make(map[instance]identity)
}

// merge records the identities that an engine reports and returns them,
// completed with what it reported earlier. A GPU that has never reported a UUID
// has an empty identity.
func (r *identityCache) merge(gpus []uint, hierarchy []instance, reported map[entity]identity) map[entity]identity {
	identities := make(map[entity]identity, len(reported))
	for _, id := range gpus {
		gpu := entity{wholeGPU, id}
		identities[gpu] = r.mergeGPU(gpu, reported[gpu])
	}
	parts := make(map[instance]identity)
	for _, i := range hierarchy {
		if i.entity.kind != computeInstance {
			continue
		}
		known, previous := reported[i.entity], r.byInstance[i]
		known.name = cmp.Or(known.name, previous.name)
		if !isMIG(known.uuid) {
			known.uuid = previous.uuid
		}
		parts[i], identities[i.entity] = known, known
	}
	r.byInstance = parts
	return identities
}

// mergeGPU returns the identity of a GPU from what it reports now, or else from
// what it reported earlier.
func (r *identityCache) mergeGPU(e entity, reported identity) identity {
	if !isGPU(reported.uuid) {
		return r.byEntity[e]
	}
	if previous, ok := r.byUUID[reported.uuid]; ok {
		reported.name = cmp.Or(reported.name, previous.name)
		reported.pci = cmp.Or(reported.pci, previous.pci)
		reported.driver = cmp.Or(reported.driver, previous.driver)
		reported.hardware = reported.hardware.With(previous.hardware)
		if reported.minor == device.Unknown {
			reported.minor = previous.minor
		}
	}
	r.byEntity[e], r.byUUID[reported.uuid] = reported, reported
	return reported
}
