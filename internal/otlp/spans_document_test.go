package otlp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/dra-exporter/dra-exporter/internal/otlp/naming"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

const (
	spansDocument = "../../docs/opentelemetry.md"
	spansBegin    = "<!-- span attributes -->\n"
	spansEnd      = "<!-- end of span attributes -->\n"
)

// The list of attributes in the document is the code's; go test -update writes
// it. What most attributes are is said once.
func TestSpansDocument(t *testing.T) {
	text, err := os.ReadFile(spansDocument)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), spansBegin)
	_, after, ends := strings.Cut(rest, spansEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the list", spansDocument)
	}
	var list strings.Builder
	list.WriteString("Attributes are strings on every span, unless stated:\n\n")
	kinds := map[attribute.Type]string{attribute.STRINGSLICE: "strings", attribute.INT64: "int", attribute.FLOAT64: "double"}
	for _, word := range spanAttributes() {
		var stated []string
		if word.kind != attribute.STRING {
			stated = append(stated, kinds[word.kind])
		}
		if word.on != "" {
			stated = append(stated, word.on)
		}
		fmt.Fprintf(&list, "- `%s`", word.key)
		if len(stated) > 0 {
			fmt.Fprintf(&list, " (%s)", strings.Join(stated, ", "))
		}
		fmt.Fprintf(&list, ": %s\n", word.meaning)
	}
	list.WriteString("\n")
	metrictest.CompareGolden(t, spansDocument, before+spansBegin+list.String()+spansEnd+after)
}

// spanAttribute documents one attribute.
type spanAttribute struct {
	key     attribute.Key
	kind    attribute.Type
	on      string // which spans or events have it; empty: every span
	meaning string
}

// spanAttributes are all attributes of spans and their events, for the
// documentation.
func spanAttributes() []spanAttribute {
	const every, root, failed, events = "", "`" + rootSpanName + "`", "spans that failed", "events"
	return []spanAttribute{
		{semconv.K8SNamespaceNameKey, attribute.STRING, every, "namespace of the claim and the pod"},
		{naming.ResourceClaimName, attribute.STRING, every, "the claim"},
		{naming.ResourceClaimUID, attribute.STRING, every, "its UID"},
		{naming.DeviceClassName, attribute.STRING, every, "its device class, or `multiple`; absent if it has none"},
		{semconv.K8SPodNameKey, attribute.STRING, every, "the pod that uses the claim"},
		{semconv.K8SPodUIDKey, attribute.STRING, every, "its UID"},
		{semconv.K8SNodeNameKey, attribute.STRING, every, "the pod's node; absent if it was never bound"},
		{naming.Devices, attribute.STRINGSLICE, root, "what was allocated, as `driver/pool/device`; absent if nothing was"},
		{naming.LostAttempts, attribute.INT64, root, "number of omitted attempts in the middle; absent if none"},
		{naming.Phase, attribute.STRING, every, "the phase, as in the label `phase` of `dra_allocation_duration_seconds`; `ready` is the whole span"},
		{naming.PhaseAttempt, attribute.INT64, every, "number of the attempt: 1, more if the phase was repeated"},
		{naming.BeginEvidence, attribute.STRING, every, "evidence of the beginning: `watch` (observed live, exporter's clock) or `timestamp` (written by a server)"},
		{naming.BeginError, attribute.FLOAT64, every, "error of the beginning in seconds, in both directions; absent if it is milliseconds"},
		{naming.EndEvidence, attribute.STRING, every, "evidence of the end"},
		{naming.EndError, attribute.FLOAT64, every, "error of the end in seconds; absent if it is milliseconds"},
		{semconv.ErrorTypeKey, attribute.STRING, failed, "why the phase did not complete; the span's status is Error with a sentence"},
		{naming.EventReason, attribute.STRING, events, "the pending reason, or the failure: one of a closed set"},
		{naming.EventMessage, attribute.STRING, events, "the message of the component that reported it; absent if there is none"},
	}
}
