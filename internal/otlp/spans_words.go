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
		{keyPodName, attribute.STRING, every, "the pod that waited for the claim"},
		{keyPodUID, attribute.STRING, every, "its UID"},
		{keyNode, attribute.STRING, every, "the pod's node; absent if it was never bound"},
		{keyDevices, attribute.STRINGSLICE, root, "what was allocated, as `driver/pool/device`; absent if nothing was"},
		{keyLost, attribute.INT64, root, "attempts in the middle that are left out, because there were too many; absent: none"},
		{keyPhase, attribute.STRING, every, "the phase as the label `phase` of `dra_allocation_duration_seconds` has it; `ready` is the whole"},
		{keyAttempt, attribute.INT64, every, "1, and more where the phase was gone through again"},
		{keyBeginBy, attribute.STRING, every, "how the beginning is known: `watch` (told as it happened, the exporter's clock), `timestamp` (a server had written it down)"},
		{keyBeginError, attribute.FLOAT64, every, "by how much the beginning may be off, in seconds, to either side; absent: milliseconds"},
		{keyEndBy, attribute.STRING, every, "how the end is known"},
		{keyEndError, attribute.FLOAT64, every, "by how much the end may be off; absent: milliseconds"},
		{keyErrorType, attribute.STRING, failed, "why the phase did not come to its end; the span's status is Error, with the sentence"},
		{keyReason, attribute.STRING, events, "why it waits, or what failed: a word of a closed set"},
		{keyMessage, attribute.STRING, events, "the words of who said so; absent if there are none"},
	}
}
