package dcgm

import (
	"cmp"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// identityCache remembers who GPUs and instances are: one that is lost answers
// every question with a blank, also the one for its UUID, and it must not go
// missing for that. What an engine calls a GPU or an instance is good for one
// connection alone; a UUID is for ever.
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

// startConnection begins a connection.
func (r *identityCache) startConnection() {
	r.byEntity, r.byInstance = make(map[entity]identity), make(map[instance]identity)
}

// merge takes in what an engine has told just now, and returns that together
// with what it told before of those that do not tell it any more. Who has
// never told a UUID of a GPU has none.
func (r *identityCache) merge(gpus []uint, hierarchy []instance, told map[entity]identity) map[entity]identity {
	who := make(map[entity]identity, len(told))
	for _, id := range gpus {
		gpu := entity{wholeGPU, id}
		who[gpu] = r.mergeGPU(gpu, told[gpu])
	}
	parts := make(map[instance]identity)
	for _, i := range hierarchy {
		if i.entity.kind != computeInstance {
			continue
		}
		known, before := told[i.entity], r.byInstance[i]
		known.name = cmp.Or(known.name, before.name)
		if !isMIG(known.uuid) {
			known.uuid = before.uuid
		}
		parts[i], who[i.entity] = known, known
	}
	r.byInstance = parts
	return who
}

// mergeGPU is who a GPU is by what it tells now, or else by what it told before.
func (r *identityCache) mergeGPU(of entity, told identity) identity {
	if !isGPU(told.uuid) {
		return r.byEntity[of]
	}
	if before, is := r.byUUID[told.uuid]; is {
		told.name = cmp.Or(told.name, before.name)
		told.pci = cmp.Or(told.pci, before.pci)
		told.driver = cmp.Or(told.driver, before.driver)
		if told.minor == device.Unknown {
			told.minor = before.minor
		}
	}
	r.byEntity[of], r.byUUID[told.uuid] = told, told
	return told
}
