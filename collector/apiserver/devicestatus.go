package apiserver

import (
	"encoding/json"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// decodeStatuses returns what drivers wrote of their devices into the
// claim's status, so far as it identifies hardware; entries that do not are
// left out.
func decodeStatuses(statuses []resourcev1.AllocatedDeviceStatus) []dra.DeviceStatus {
	var found []dra.DeviceStatus
	for _, status := range statuses {
		if status.Data == nil {
			continue
		}
		uuid, address := identityIn(status.Data.Raw)
		if uuid == "" && address == "" {
			continue
		}
		found = append(found, dra.DeviceStatus{
			Device:     dra.DeviceID{Driver: clean(status.Driver), Pool: clean(status.Pool), Name: clean(status.Device)},
			ShareID:    cleanOr(status.ShareID),
			UUID:       uuid,
			PCIAddress: address,
		})
	}
	return found
}

// identityIn looks for a UUID and a PCI address among the members of a JSON
// object, under the names that drivers give attributes. A member is a string,
// or has the shape of an attribute: {"string": "…"}.
func identityIn(data []byte) (uuid, address string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return "", ""
	}
	names := driverSpellings()
	for _, name := range names.uuid {
		if uuid == "" {
			uuid = stringIn(members[name])
		}
	}
	for _, name := range names.address {
		if address == "" {
			address = pciAddress(stringIn(members[name]))
		}
	}
	return uuid, address
}

func stringIn(member json.RawMessage) string {
	var text string
	if json.Unmarshal(member, &text) == nil {
		return cut(text, maxName)
	}
	var attribute struct {
		String string `json:"string"`
	}
	if json.Unmarshal(member, &attribute) == nil {
		return cut(attribute.String, maxName)
	}
	return ""
}
