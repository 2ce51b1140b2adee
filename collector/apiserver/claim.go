package apiserver

import (
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// decodeClaim returns what a ResourceClaim says about who holds which
// device. It neither keeps nor changes anything of the claim.
func decodeClaim(claim *resourcev1.ResourceClaim) dra.Claim {
	decoded := dra.Claim{
		Ref:              dra.ClaimRef{Namespace: clean(claim.Namespace), Name: clean(claim.Name)},
		UID:              clean(string(claim.UID)),
		Allocated:        claim.Status.Allocation != nil,
		ExtendedResource: claim.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true",
		Requests:         decodeRequests(claim.Spec.Devices.Requests),
		ReservedFor:      decodeConsumers(claim.Status.ReservedFor),
	}
	if allocation := claim.Status.Allocation; allocation != nil {
		decoded.Node = onlyNode(allocation.NodeSelector)
		decoded.Results = decodeResults(allocation.Devices.Results)
		decoded.Sharing = sharingOf(allocation.Devices.Config)
		decoded.DeviceStatus = decodeStatuses(claim.Status.Devices)
	}
	return decoded
}

// decodeRequests names the subrequests of a prioritized list "main/sub", as
// the results of an allocation do.
func decodeRequests(requests []resourcev1.DeviceRequest) []dra.Request {
	var decoded []dra.Request
	for _, request := range requests {
		if request.Exactly != nil {
			decoded = append(decoded, dra.Request{Name: clean(request.Name), DeviceClass: clean(request.Exactly.DeviceClassName)})
		}
		for _, alternative := range request.FirstAvailable {
			decoded = append(decoded, dra.Request{
				Name:        clean(request.Name + "/" + alternative.Name),
				DeviceClass: clean(alternative.DeviceClassName),
			})
		}
	}
	return decoded
}

func decodeResults(results []resourcev1.DeviceRequestAllocationResult) []dra.Result {
	var decoded []dra.Result
	for _, result := range results {
		device := dra.Result{
			Request:     clean(result.Request),
			Device:      dra.DeviceID{Driver: clean(result.Driver), Pool: clean(result.Pool), Name: clean(result.Device)},
			AdminAccess: result.AdminAccess != nil && *result.AdminAccess,
		}
		if result.ShareID != nil {
			device.ShareID = clean(string(*result.ShareID))
		}
		if len(result.ConsumedCapacity) > 0 {
			device.Consumed = make(map[string]float64, len(result.ConsumedCapacity))
			for name, quantity := range result.ConsumedCapacity {
				putAmount(device.Consumed, name, quantity)
			}
		}
		decoded = append(decoded, device)
	}
	return decoded
}

func decodeConsumers(consumers []resourcev1.ResourceClaimConsumerReference) []dra.Consumer {
	var decoded []dra.Consumer
	for _, consumer := range consumers {
		decoded = append(decoded, dra.Consumer{
			Resource: clean(consumer.Resource),
			Name:     clean(consumer.Name),
			UID:      clean(string(consumer.UID)),
		})
	}
	return decoded
}
