//go:build linux

package prometheus

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

const (
	// between is the time between the two pages from which the speed of
	// counters is computed.
	between = 10 * time.Second
	// demoNode is the node of the demo's agent.
	demoNode = "gpu-node-1"
)

// pageRow is a series of a target at two times.
type pageRow struct {
	labels  labels.Labels
	counter bool
	faults  bool // it counts faults
	before  float64
	after   float64
}

// demoPages are real pages: of the demo's agent while all devices are healthy
// and while some are unhealthy, and of its cluster role.
type demoPages struct {
	healthy, unhealthy, cluster []pageRow
}

// scrapedDemo runs the demo, the binary that DRA_EXPORTER_BINARY names or one
// that is built here, and scrapes both of its roles.
func scrapedDemo(b *testing.B) demoPages {
	b.Helper()
	command := exec.CommandContext(b.Context(), demoBinary(b), "demo", "--web.listen-address=127.0.0.1:0", "--cluster.listen-address=127.0.0.1:0", "--training.listen-address=")
	output, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait()
	}()
	addresses, role := map[string]string{}, regexp.MustCompile(`(http\S+/)\s+(?:a|its) (node|cluster):`)
	for lines := bufio.NewScanner(output); len(addresses) < 2 && lines.Scan(); {
		if found := role.FindStringSubmatch(lines.Text()); found != nil {
			addresses[found[2]] = found[1] + "metrics"
		}
	}
	if len(addresses) < 2 {
		b.Fatalf("the demo has ended, or does not say where its roles are: %v", addresses)
	}
	go func() { _, _ = io.Copy(io.Discard, output) }()
	waitFor(b, addresses["cluster"], "dra_claim_pending_reason_info{")
	time.Sleep(between)
	healthy := scraped(b, addresses["node"])
	time.Sleep(between)
	pages := demoPages{healthy: paired(b, healthy, scraped(b, addresses["node"]))}
	waitFor(b, addresses["node"], "dra_device_taint_info{") // the last change when a device becomes unhealthy
	unhealthy, cluster := scraped(b, addresses["node"]), scraped(b, addresses["cluster"])
	time.Sleep(between)
	pages.unhealthy = paired(b, unhealthy, scraped(b, addresses["node"]))
	pages.cluster = paired(b, cluster, scraped(b, addresses["cluster"]))
	return pages
}

func demoBinary(b testing.TB) string {
	if binary := os.Getenv("DRA_EXPORTER_BINARY"); binary != "" {
		return binary
	}
	binary := filepath.Join(b.TempDir(), "dra-exporter")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "./cmd/dra-exporter")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build the demo: %v\n%s", err, output)
	}
	return binary
}

// waitFor polls a page until it contains a text.
func waitFor(b testing.TB, address, text string) {
	b.Helper()
	for range 180 {
		if strings.Contains(scraped(b, address), "\n"+text) {
			return
		}
		time.Sleep(time.Second)
	}
	b.Fatalf("%s never has %s", address, text)
}

func scraped(b testing.TB, address string) string {
	b.Helper()
	request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s %v", address, response.Status, err)
	}
	return string(text)
}

// paired returns the rows of the later page, with their values in the earlier
// one.
func paired(b *testing.B, earlier, later string) []pageRow {
	b.Helper()
	before := map[string]float64{}
	for _, row := range parsed(b, earlier) {
		before[row.labels.String()] = row.after
	}
	rows := parsed(b, later)
	for i, row := range rows {
		rows[i].before = row.after
		if value, was := before[row.labels.String()]; was {
			rows[i].before = value
		} else if row.counter {
			rows[i].before = 0
		}
	}
	return rows
}

// parsed returns the rows of one page, decoded by Prometheus.
func parsed(b testing.TB, text string) (rows []pageRow) {
	b.Helper()
	parser := textparse.NewPromParser([]byte(text), labels.NewSymbolTable(), false)
	counts := false
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			b.Fatal(err)
		}
		switch entry {
		case textparse.EntryType:
			_, kind := parser.Type()
			counts = kind == model.MetricTypeCounter || kind == model.MetricTypeHistogram || kind == model.MetricTypeSummary
		case textparse.EntrySeries:
			row := pageRow{counter: counts}
			parser.Labels(&row.labels)
			_, _, row.after = parser.Series()
			rows = append(rows, row)
		}
	}
}

// upstream returns the recorded rows of a component of Kubernetes or of
// NVIDIA's driver. Its counters double within ten minutes.
func upstream(b *testing.B, name string) []pageRow {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("%s/test/fixtures/upstream-metrics/%s-metrics.txt", root, name))
	if err != nil {
		b.Fatal(err)
	}
	rows := parsed(b, string(text))
	for i, row := range rows {
		rows[i].before = row.after
		if row.counter {
			rows[i].before -= row.after * between.Minutes() / 10
		}
	}
	return rows
}
