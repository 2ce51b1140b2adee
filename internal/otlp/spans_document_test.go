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
	for _, word := range spanWords() {
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", word.key, kinds[word.kind], word.on, word.meaning)
	}
	metrictest.CompareGolden(t, spansDocument, before+spansTableBegin+table.String()+spansTableEnd+after)
}
