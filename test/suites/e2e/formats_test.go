package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestFormats reads the page in each format that Prometheus requests, while
// claims of each kind are held.
func TestFormats(t *testing.T) {
	covers(t)
	deployFaultClaims(t)
	text := get(t, "text/plain;version=0.0.4", "")
	t.Run("promtool", func(t *testing.T) { testPromtool(t, text) })
	want := families(t, text)
	t.Run("OpenMetrics", func(t *testing.T) {
		open := get(t, "application/openmetrics-text;version=1.0.0", "")
		if !bytes.HasSuffix(open, []byte("# EOF\n")) {
			t.Errorf("the page ends in %q", open[len(open)-min(len(open), 20):])
		}
		if got, want := seriesOf(t, open), seriesOf(t, text); !slices.Equal(got, want) {
			t.Errorf("there are %d series, and %d as text", len(got), len(want))
		}
		if bytes.Contains(open, []byte("_created{")) {
			t.Error("counters have series of their starts without --metrics.created")
		}
	})
	t.Run("protobuf", func(t *testing.T) {
		page := get(t, string(expfmt.NewFormat(expfmt.TypeProtoDelim)), "")
		got := protobuf(t, page)
		if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
			t.Errorf("the families are %q, and as text %q", names, want)
		}
		for _, m := range got["dra_claim_held_seconds_total"].GetMetric() {
			if m.Counter.GetCreatedTimestamp() == nil {
				t.Errorf("%v has no created timestamp", m)
			}
		}
	})
	t.Run("gzip", func(t *testing.T) {
		reader, err := gzip.NewReader(bytes.NewReader(get(t, "text/plain;version=0.0.4", "gzip")))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if got := families(t, plain); !slices.Equal(got, want) {
			t.Errorf("the families are %q, and plain %q", got, want)
		}
	})
}

// get reads the agent's page in one format and, unless it is empty, encoding.
func get(t *testing.T, format, encoding string) []byte {
	t.Helper()
	url, err := agentURL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", format)
	if encoding != "" {
		request.Header.Set("Accept-Encoding", encoding)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableCompression: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v\n%s", response.Status, err, body)
	}
	kind, _, _ := strings.Cut(format, ";")
	if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, kind) {
		t.Fatalf("asked for %s, the page is %s", kind, got)
	}
	if got := response.Header.Get("Content-Encoding"); got != encoding {
		t.Fatalf("asked for the encoding %q, the page's is %q", encoding, got)
	}
	return body
}

// families returns the sorted names of a page's families.
func families(t *testing.T, text []byte) []string {
	t.Helper()
	p, err := scrape.Parse(time.Now(), bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p.Names("")
}

// seriesOf returns the agent's own series without the creation times of
// counters, which only OpenMetrics has. It skips comments, because the parser
// supports only the older format's, and buckets, because their bounds are
// spelled differently.
func seriesOf(t *testing.T, page []byte) (all []string) {
	t.Helper()
	var samples bytes.Buffer
	for line := range bytes.Lines(page) {
		if bytes.HasPrefix(line, []byte("dra_")) && !bytes.Contains(line, []byte("_bucket{")) {
			samples.Write(line)
		}
	}
	p, err := scrape.Parse(time.Now(), &samples)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range p.Names("") {
		for _, row := range p.Rows(name, nil) {
			all = append(all, name+row.Labels.String())
		}
	}
	return all
}

func protobuf(t *testing.T, page []byte) map[string]*dto.MetricFamily {
	t.Helper()
	found := map[string]*dto.MetricFamily{}
	decoder := expfmt.NewDecoder(bytes.NewReader(page), expfmt.NewFormat(expfmt.TypeProtoDelim))
	for {
		family := &dto.MetricFamily{}
		err := decoder.Decode(family)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		if found[family.GetName()] != nil {
			t.Errorf("the family %s is there twice", family.GetName())
		}
		found[family.GetName()] = family
	}
}

// testPromtool: promtool reports nothing about the page.
func testPromtool(t *testing.T, text []byte) {
	promtool := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("DRA_E2E_BIN"), "prometheus", "promtool"), "check", "metrics")
	promtool.Stdin = bytes.NewReader(text)
	output, err := promtool.CombinedOutput()
	if err != nil || len(output) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, output)
	}
}
