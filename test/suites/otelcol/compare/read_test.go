package compare

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestReadPage(t *testing.T) {
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, family := range testPage(5).Families {
		if err := encoder.Encode(family); err != nil {
			t.Fatal(err)
		}
	}
	page, err := ReadPage(&text)
	if err != nil || len(page.Families) != 4 {
		t.Errorf("%v of %v", page, err)
	}
	if _, err := ReadPage(strings.NewReader("dra_claim_held 1\n")); err == nil {
		t.Error("text is taken for protobuf")
	}
}

func TestReadMetrics(t *testing.T) {
	line, err := (&pmetric.JSONMarshaler{}).MarshalMetrics(pushedPage())
	if err != nil {
		t.Fatal(err)
	}
	whole := string(line) + "\n"
	for text, want := range map[string]int{"": 0, whole: 1, whole + whole: 2, whole + whole[:100]: 1, whole[:100] + "\n" + whole: -1} {
		file := filepath.Join(t.TempDir(), "metrics.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		all, err := ReadMetrics(file)
		if (want < 0) != (err != nil) || want >= 0 && len(all) != want {
			t.Errorf("%d requests and %v, not %d", len(all), err, want)
		}
	}
}
