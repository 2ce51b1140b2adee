package otlp

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
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
