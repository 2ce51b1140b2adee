package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/cost"
)

func sample() Report {
	return Report{
		Date: time.Date(2026, 11, 24, 12, 0, 0, 0, time.FixedZone("", 3600)), Machine: "Linux 6.12, 32 CPUs",
		Devices: []string{"NVIDIA H200 (GPU-1)"}, DriverVersion: "580.65.06", AgentVersion: "1.2.3",
		Sections: []Section{
			{Title: "Devices", Text: "What the agent exports of each device.", Results: []compare.Result{
				{Row: "memory free", Device: "GPU-1", Against: compare.Library, Status: compare.NotReported, Agent: "not exported", Other: "5 bytes", Detail: "the agent does not export this quantity"},
				{Row: "power", Device: "GPU-1", Against: compare.NVIDIASMI, Status: compare.Passed, Agent: "412.5 watts", Other: "412.5 watts", Detail: "60 of 60 samples"},
				{Row: "energy", Device: "GPU-1", Against: compare.Library, Status: compare.Failed, Agent: "1 joules", Other: "1000 joules", Detail: "they differ"},
				{Row: "model", Device: "GPU-1", Against: compare.Library, Status: compare.Passed, Agent: "NVIDIA H200", Other: "NVIDIA H200"},
			}},
			{Title: "Loads"},
		},
		Cost: &Cost{
			Phases: []Usage{{"No load", 30, 0.0123, 40 << 20}},
			Recording: cost.Recording{
				Calls: []cost.Calls{{Function: "nvmlDeviceGetPowerUsage", Count: 30, P50: 0.0001, P99: 0.002, Most: 0.003}},
				Reads: []cost.Reads{{Device: "d0", Tier: cost.Tiers, Count: 6, Calls: 41.5, P50: 0.01, P99: 0.02, Most: 0.03}},
			},
		},
	}
}

// hostile has markup in everything that a driver, a cluster or a machine names.
func hostile() Report {
	bad := "a|b<script>alert(1)</script> `x` [l](http://e.example) **b** _i_ #1 \\ &amp; @user ![i](x)\n| next |\x1b[31m\xff www.e.example $x$"
	return Report{
		Machine: bad, Devices: []string{bad, "second"}, DriverVersion: bad, AgentVersion: bad, Imitated: bad,
		Sections: []Section{{Title: bad, Text: bad, Results: []compare.Result{
			{Row: bad, Device: bad, Against: bad, Status: compare.Status(bad), Agent: bad, Other: bad, Detail: bad + strings.Repeat("x", 400)},
		}}},
		Cost: &Cost{
			Phases: []Usage{{Phase: bad}}, Problem: bad,
			Recording: cost.Recording{Calls: []cost.Calls{{Function: bad}}, Reads: []cost.Reads{{Device: bad, Tier: cost.Tier(bad)}}},
		},
	}
}

func TestGolden(t *testing.T) {
	for name, r := range map[string]Report{"sample": sample(), "hostile": hostile(), "empty": {}} {
		for extension, write := range map[string]func(io.Writer, Report) error{".md": Markdown, ".json": JSON} {
			var got bytes.Buffer
			if err := write(&got, r); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+extension)
			if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
				if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s is\n%s\nnot\n%s (%v)", path, got.Bytes(), want, err)
			}
		}
	}
}

// Every line of a table has as many cells as its head, whatever the texts are.
func TestTablesKeepTheirShape(t *testing.T) {
	var page bytes.Buffer
	if err := Markdown(&page, hostile()); err != nil {
		t.Fatal(err)
	}
	cells := 0
	for line := range strings.Lines(page.String()) {
		if !strings.HasPrefix(line, "|") {
			cells = 0
			continue
		}
		now := strings.Count(strings.ReplaceAll(strings.ReplaceAll(line, `\\`, ""), `\|`, ""), "|")
		if cells != 0 && now != cells {
			t.Errorf("%d cells, not %d: %s", now, cells, line)
		}
		cells = now
	}
	for _, markup := range []string{"<script", "](http", "\x1b", "://"} {
		if strings.Contains(strings.ReplaceAll(page.String(), `\]`, ""), markup) {
			t.Errorf("the page has %q", markup)
		}
	}
}

// The schema is stable: these are its fields.
func TestSchema(t *testing.T) {
	var text bytes.Buffer
	if err := JSON(&text, sample()); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version  int
		Summary  map[string]int
		Sections []struct {
			Title   string
			Results []map[string]string
		}
	}
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != Version || got.Summary["passed"] != 2 || got.Summary["failed"] != 1 || got.Summary["not_reported"] != 1 ||
		got.Sections[0].Results[2]["status"] != "failed" || got.Sections[1].Results == nil {
		t.Errorf("it is %+v", got)
	}
}

// A status that is not known is a failure.
func TestUnknownStatus(t *testing.T) {
	if got := hostile().Summary(); got != (Summary{Failed: 1}) {
		t.Errorf("the summary is %+v", got)
	}
}

func TestWrite(t *testing.T) {
	folder := t.TempDir()
	if err := Write(folder, sample()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{MarkdownFile, JSONFile} {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || len(text) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Write(filepath.Join(folder, "none"), sample()); err == nil {
		t.Error("a folder that does not exist is no error")
	}
}
