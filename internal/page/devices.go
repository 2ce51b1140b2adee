package page

// DeviceCount is how many devices a node has, as docs/glossary.md defines it. A
// device is what can be allocated by itself: a whole device, or a partition of
// one. The page, the JSON and top have their numbers from here.
type DeviceCount struct {
	Devices    int `json:"devices"` // Whole and Partitions together
	Whole      int `json:"whole"`
	Partitions int `json:"partitions"`
	Held       int `json:"held"` // by claims, each once
}

// Count is how many devices the node has. A partition whose whole device is not
// known is a partition all the same.
func (v View) Count() DeviceCount {
	var count DeviceCount
	for _, device := range v.Devices {
		count.Devices += 1 + len(device.Partitions)
		count.Partitions += len(device.Partitions)
		if device.ParentUUID != "" {
			count.Partitions++
		}
	}
	count.Whole = count.Devices - count.Partitions
	held := map[string]bool{}
	for _, claim := range v.Claims {
		for _, device := range claim.Devices {
			if device.Held {
				held[device.UUID] = true
			}
		}
	}
	count.Held = len(held)
	return count
}
