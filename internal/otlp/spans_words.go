package otlp

import (
	"go.opentelemetry.io/otel/attribute"
	otelconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/dra-exporter/dra-exporter/collector/trace"
)

// readySpan is the name of a trace's root. Lists of traces show it beside the
// service's name alone, where "ready" would say nothing.
const readySpan = "claim ready"

// spanName is the name of a phase's span. Names have no numbers and no names of
// objects, so that backends can group by them; the attempt is an attribute.
func spanName(phase string) string {
	if phase == trace.PhaseReady {
		return readySpan
	}
	return clean(phase, nameLimit)
}

// Keys of the attributes of spans and events. Those of Kubernetes that have no
// convention yet are spelt as its proposal for metrics spells them.
const (
	keyNamespace  = otelconv.K8SNamespaceNameKey
	keyPodName    = otelconv.K8SPodNameKey
	keyPodUID     = otelconv.K8SPodUIDKey
	keyNode       = otelconv.K8SNodeNameKey
	keyErrorType  = otelconv.ErrorTypeKey
	keyClaimName  = attribute.Key("k8s.resourceclaim.name")
	keyClaimUID   = attribute.Key("k8s.resourceclaim.uid")
	keyClass      = attribute.Key("k8s.deviceclass.name")
	keyDevices    = attribute.Key("dra.devices")
	keyLost       = attribute.Key("dra.attempts.lost")
	keyPhase      = attribute.Key("dra.phase")
	keyAttempt    = attribute.Key("dra.phase.attempt")
	keyBeginBy    = attribute.Key("dra.phase.begin.evidence")
	keyBeginError = attribute.Key("dra.phase.begin.error_seconds")
	keyEndBy      = attribute.Key("dra.phase.end.evidence")
	keyEndError   = attribute.Key("dra.phase.end.error_seconds")
	keyReason     = attribute.Key("dra.event.reason")
	keyMessage    = attribute.Key("dra.event.message")
)

// spanWord documents one attribute.
type spanWord struct {
	key     attribute.Key
	kind    attribute.Type
	on      string // which spans or events have it
	meaning string
}

// spanWords are all attributes of spans and their events, for the
// documentation.
func spanWords() []spanWord {
	const every, root, failed, events = "every span", "`" + readySpan + "`", "spans that failed", "events"
	return []spanWord{
		{keyNamespace, attribute.STRING, every, "namespace of the claim and the pod"},
		{keyClaimName, attribute.STRING, every, "the claim"},
		{keyClaimUID, attribute.STRING, every, "its UID"},
		{keyClass, attribute.STRING, every, "its device class, or `multiple`; absent if it has none"},
		{keyPodName, attribute.STRING, every, "the pod that uses the claim"},
		{keyPodUID, attribute.STRING, every, "its UID"},
		{keyNode, attribute.STRING, every, "the pod's node; absent if it was never bound"},
		{keyDevices, attribute.STRINGSLICE, root, "what was allocated, as `driver/pool/device`; absent if nothing was"},
		{keyLost, attribute.INT64, root, "number of omitted attempts in the middle; absent if none"},
		{keyPhase, attribute.STRING, every, "the phase, as in the label `phase` of `dra_allocation_duration_seconds`; `ready` is the whole span"},
		{keyAttempt, attribute.INT64, every, "number of the attempt: 1, more if the phase was repeated"},
		{keyBeginBy, attribute.STRING, every, "evidence of the beginning: `watch` (observed live, exporter's clock) or `timestamp` (written by a server)"},
		{keyBeginError, attribute.FLOAT64, every, "error of the beginning in seconds, in both directions; absent if it is milliseconds"},
		{keyEndBy, attribute.STRING, every, "evidence of the end"},
		{keyEndError, attribute.FLOAT64, every, "error of the end in seconds; absent if it is milliseconds"},
		{keyErrorType, attribute.STRING, failed, "why the phase did not complete; the span's status is Error with a sentence"},
		{keyReason, attribute.STRING, events, "the pending reason, or the failure: one of a closed set"},
		{keyMessage, attribute.STRING, events, "the message of the component that reported it; absent if there is none"},
	}
}
