package naming

import "go.opentelemetry.io/otel/attribute"

// SchemaURL names the version of the semantic conventions that all names follow.
const SchemaURL = "https://opentelemetry.io/schemas/1.44.0"

// ownNamespace begins every name that the conventions do not define. It is no namespace of
// theirs, in which they could define the name with another meaning.
// https://opentelemetry.io/docs/specs/semconv/general/naming/#recommendations-for-application-developers
const ownNamespace = "dra."

// Attributes that the conventions do not define. A part after the namespace is the label's
// name in Prometheus, if there is one. No name is the beginning of another, which backends
// with nested fields reject.
const (
	ResourceClaimName attribute.Key = ownNamespace + "resourceclaim.name"
	ResourceClaimUID  attribute.Key = ownNamespace + "resourceclaim.uid"
	DeviceClassName   attribute.Key = ownNamespace + "deviceclass.name"

	// Of points.
	attribution    attribute.Key = ownNamespace + "attribution"
	errorKind      attribute.Key = ownNamespace + "error.kind" // ecc, xid_79 and so on: what was counted
	link           attribute.Key = ownNamespace + "link"       // that transferred the bytes: pcie, nvlink
	port           attribute.Key = ownNamespace + "port"       // of a network device
	throttleReason attribute.Key = ownNamespace + "throttle.reason"

	// Of spans and their events.
	Devices       attribute.Key = ownNamespace + "devices"
	LostAttempts  attribute.Key = ownNamespace + "attempts.lost"
	Phase         attribute.Key = ownNamespace + "phase.name"
	PhaseAttempt  attribute.Key = ownNamespace + "phase.attempt"
	BeginEvidence attribute.Key = ownNamespace + "phase.begin.evidence"
	BeginError    attribute.Key = ownNamespace + "phase.begin.error_seconds"
	EndEvidence   attribute.Key = ownNamespace + "phase.end.evidence"
	EndError      attribute.Key = ownNamespace + "phase.end.error_seconds"
	EventReason   attribute.Key = ownNamespace + "event.reason"
	EventMessage  attribute.Key = ownNamespace + "event.message"
)

// Beginnings of the names of metrics that the conventions do not define. With underscores
// and a unit, as in Prometheus, they are no family of a role.
const (
	ownDeviceMetric = ownNamespace + "device."
	ownClaimMetric  = ownNamespace + "resourceclaim.device."
	ownPodMetric    = ownNamespace + "pod.device."
)
