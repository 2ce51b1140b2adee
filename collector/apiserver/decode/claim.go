package decode

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
)

// Claim returns which devices a ResourceClaim was allocated and for whom. It
// neither keeps nor changes anything of the claim.
func Claim(claim *resourcev1.ResourceClaim) dra.Claim {
	decoded := dra.Claim{
		Ref:              dra.ClaimRef{Namespace: Text(claim.Namespace), Name: Text(claim.Name)},
		UID:              Text(string(claim.UID)),
		Allocated:        claim.Status.Allocation != nil,
		ExtendedResource: claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true",
		Requests:         requests(claim.Spec.Devices.Requests),
		ReservedFor:      consumers(claim.Status.ReservedFor),
	}
	if allocation := claim.Status.Allocation; allocation != nil {
		decoded.Node = onlyNode(allocation.NodeSelector)
		decoded.Results = results(allocation.Devices.Results)
		decoded.Sharing = sharingStrategy(allocation.Devices.Config)
		decoded.DeviceStatus = deviceStatuses(claim.Status.Devices)
	}
	return decoded
}

// requests names the subrequests of a prioritized list "main/sub", as the
// results of an allocation do.
func requests(all []resourcev1.DeviceRequest) []dra.Request {
	var decoded []dra.Request
	for _, request := range all {
		if request.Exactly != nil {
			decoded = append(decoded, dra.Request{Name: Text(request.Name), DeviceClass: Text(request.Exactly.DeviceClassName)})
		}
		for _, alternative := range request.FirstAvailable {
			decoded = append(decoded, dra.Request{
				Name:        Text(request.Name + "/" + alternative.Name),
				DeviceClass: Text(alternative.DeviceClassName),
			})
		}
	}
	return decoded
}

func results(all []resourcev1.DeviceRequestAllocationResult) []dra.Result {
	var decoded []dra.Result
	for _, result := range all {
		device := dra.Result{
			Request:     Text(result.Request),
			Device:      dra.DeviceID{Driver: Text(result.Driver), Pool: Text(result.Pool), Name: Text(result.Device)},
			AdminAccess: result.AdminAccess != nil && *result.AdminAccess,
		}
		if result.ShareID != nil {
			device.ShareID = Text(string(*result.ShareID))
		}
		if len(result.ConsumedCapacity) > 0 {
			device.Consumed = make(map[string]float64, len(result.ConsumedCapacity))
			for name, quantity := range result.ConsumedCapacity {
				putQuantity(device.Consumed, name, quantity)
			}
		}
		decoded = append(decoded, device)
	}
	return decoded
}

func consumers(all []resourcev1.ResourceClaimConsumerReference) []dra.Consumer {
	var decoded []dra.Consumer
	for _, consumer := range all {
		decoded = append(decoded, dra.Consumer{
			Resource: Text(consumer.Resource),
			Name:     Text(consumer.Name),
			UID:      Text(string(consumer.UID)),
		})
	}
	return decoded
}

// onlyNode returns the node that an allocation is bound to. The allocator writes
// a selector of this shape when a device is local to a node; other selectors may
// select several nodes.
func onlyNode(selector *corev1.NodeSelector) string {
	if selector == nil || len(selector.NodeSelectorTerms) != 1 {
		return ""
	}
	for _, field := range selector.NodeSelectorTerms[0].MatchFields {
		if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
			return Text(field.Values[0])
		}
	}
	return ""
}

// sharingStrategy returns how the driver was configured to share the claim's
// devices, see vendors.SharingStrategy. Configurations are in order of rising
// precedence (the class's before the claim's), so the last that names a
// strategy counts.
func sharingStrategy(configurations []resourcev1.DeviceAllocationConfiguration) string {
	strategy := ""
	for _, configuration := range configurations {
		if configuration.Opaque == nil {
			continue
		}
		if found := vendors.SharingStrategy(configuration.Opaque.Parameters.Raw); found != "" {
			strategy = found
		}
	}
	return strategy
}

// deviceStatuses returns what drivers wrote of their devices into the claim's
// status, as far as it identifies hardware. Other entries are left out.
func deviceStatuses(statuses []resourcev1.AllocatedDeviceStatus) []dra.DeviceStatus {
	var found []dra.DeviceStatus
	for _, status := range statuses {
		if status.Data == nil {
			continue
		}
		members := jsonMembers(status.Data.Raw)
		uuid, address := members.UUID(), members.Address()
		if uuid == "" && address == "" {
			continue
		}
		found = append(found, dra.DeviceStatus{
			Device:     dra.DeviceID{Driver: Text(status.Driver), Pool: Text(status.Pool), Name: Text(status.Device)},
			ShareID:    OptionalText(status.ShareID),
			UUID:       uuid,
			PCIAddress: address,
		})
	}
	return found
}

// jsonMembers looks up members of a JSON object under the names that drivers
// give attributes. A member is a string, or has the shape of an attribute:
// {"string": "…"}.
func jsonMembers(data []byte) vendors.Lookup {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(data, &members) // anything else has no members
	return func(name string) (string, bool) {
		var text string
		if json.Unmarshal(members[name], &text) == nil {
			return shortText(text, maxName), text != ""
		}
		var attribute struct {
			String string `json:"string"`
		}
		if json.Unmarshal(members[name], &attribute) == nil {
			return shortText(attribute.String, maxName), attribute.String != ""
		}
		return "", false
	}
}
