package apiserver

import (
	"encoding/json"

	resourcev1 "k8s.io/api/resource/v1"
)

// sharingOf finds how the driver was told to share the claim's devices: the
// strategy in the opaque configuration, time_slicing, mps, or empty. The
// shape {"sharing":{"strategy":"TimeSlicing"}} is NVIDIA's; it is understood
// of any driver. Configurations are in order of rising precedence (the
// class's before the claim's), so the last that names a strategy counts.
func sharingOf(configurations []resourcev1.DeviceAllocationConfiguration) string {
	strategy := ""
	for _, configuration := range configurations {
		if configuration.Opaque == nil {
			continue
		}
		if found := sharingStrategy(configuration.Opaque.Parameters.Raw); found != "" {
			strategy = found
		}
	}
	return strategy
}

// sharingStrategy reads the strategy out of one opaque configuration. What
// is not JSON, or of another shape, has none.
func sharingStrategy(parameters []byte) string {
	var shape struct {
		Sharing struct {
			Strategy string `json:"strategy"`
		} `json:"sharing"`
	}
	if json.Unmarshal(parameters, &shape) != nil {
		return ""
	}
	switch shape.Sharing.Strategy {
	case "TimeSlicing":
		return "time_slicing"
	case "MPS":
		return "mps"
	default:
		return ""
	}
}
