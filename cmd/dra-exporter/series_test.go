package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/internal/series"
	"github.com/dra-exporter/dra-exporter/internal/words"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// TestSeriesDocument: the FAQ's table has what the command says of five fleets.
func TestSeriesDocument(t *testing.T) {
	const path, begin, end = "../../docs/faq.md", "<!-- series -->\n", "<!-- end of series -->\n"
	counts, err := series.ReadCounts()
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| nodes | an agent, `lean` to `full` | cluster role | recorded by core | samples a second | a day |\n|---|---|---|---|---|---|\n")
	for _, nodes := range []int{1, 10, 100, 1000, 10000} {
		r := counts.Estimate(series.Nodes{Count: nodes, Devices: 8, Claims: 8}, metric.LevelDefault.String(), []string{"core"}, 30*time.Second)
		fmt.Fprintf(&table, "| %d | %d, %d, %d | %d | %d | %.0f | %s |\n", nodes, r.Agent["lean"], r.Agent["default"], r.Agent["full"],
			r.Cluster["default"], r.Recorded["core"], r.Samples, words.Bytes(r.Bytes))
	}
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(document), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatal("docs/faq.md has lost the marks around its table of series")
	}
	metrictest.CompareGolden(t, path, before+begin+table.String()+end+after)
}

// TestSeriesCommand: the command says what a fleet costs, and what it cannot answer.
func TestSeriesCommand(t *testing.T) {
	output, err := program(t.Context(), "series", "--nodes=100", "--sets=core,exporter").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"100 nodes, each with 8 GPUs and 8 claims of one GPU\n", "an agent  ", "the cluster role", "exporter  ", "level default with core and exporter: "} {
		if !strings.Contains(string(output), part) {
			t.Errorf("it does not say %q:\n%s", part, output)
		}
	}
	for flag, parts := range map[string][]string{
		"--sets=":           {"level default with no recorded series: "},
		"--sets=kubernetes": {"kubernetes               unknown  chosen\n", "level default with no recorded series, and without kubernetes: "},
	} {
		output, err := program(t.Context(), "series", flag).Output()
		for _, part := range parts {
			if err != nil || !strings.Contains(string(output), part) {
				t.Errorf("%s: %v: it does not say %q:\n%s", flag, err, part, output)
			}
		}
	}
	if output, err := program(t.Context(), "series", "--metrics.level=lean", "--sets=core,capacity").CombinedOutput(); err == nil || !strings.Contains(string(output), "the set capacity needs the level default") {
		t.Errorf("lean with capacity: %v: %s", err, output)
	}
	for flag, part := range map[string]string{
		"--nodes=0":            "--nodes=0 is not between 1 and 1000000",
		"--devices=-1":         "--devices=-1",
		"--claims=9":           "each claim of a node holds one device",
		"--sets=core,x":        "there is no set x: there are capacity, core, exporter",
		"--interval=1ms":       "--interval=1ms is shorter than a second",
		"--metrics.level=much": "--metrics.level",
	} {
		output, err := program(t.Context(), "series", flag).CombinedOutput()
		if err == nil || !strings.Contains(string(output), part) {
			t.Errorf("%s: %v: %s", flag, err, output)
		}
	}
}
