package otlp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

const (
	spansDocument   = "../../docs/opentelemetry.md"
	spansTableBegin = "<!-- table of span attributes -->\n"
	spansTableEnd   = "<!-- end of span attributes -->\n"
)

// The table of attributes in the document is the code's; go test -update
// writes it.
func TestSpansDocument(t *testing.T) {
	text, err := os.ReadFile(spansDocument)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), spansTableBegin)
	_, after, ends := strings.Cut(rest, spansTableEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", spansDocument)
	}
	var table strings.Builder
	table.WriteString("| attribute | type | on | meaning |\n|---|---|---|---|\n")
	kinds := map[attribute.Type]string{
		attribute.STRING: "string", attribute.STRINGSLICE: "strings", attribute.INT64: "int", attribute.FLOAT64: "double",
	}
	for _, word := range spanAttributes() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", word.key, kinds[word.kind], word.on, word.meaning)
	}
	metrictest.CompareGolden(t, spansDocument, before+spansTableBegin+table.String()+spansTableEnd+after)
}

// spanAttribute documents one attribute.
type spanAttribute struct {
	key     attribute.Key
	kind    attribute.Type
	on      string // which spans or events have it
	meaning string
}

// spanAttributes are all attributes of spans and their events, for the
// documentation.
func spanAttributes() []spanAttribute {
	const every, root, failed, events = "every span", "`" + rootSpanName + "`", "spans that failed", "events"
	return []spanAttribute{
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
