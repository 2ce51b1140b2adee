package report

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
)

// The files from which the table of docs/hardware.md is written.
const (
	hardwarePage   = "../../../../docs/hardware.md"
	hardwareFolder = "../../../../docs/hardware"
	stubModels     = "../../../fakes/stubs/hardware/model.c"
)

const (
	tableBegins = "docs/hardware/*.json and test/fakes/stubs/hardware/model.c -->\n"
	tableEnds   = "<!-- end of reports -->\n"
)

// TestHardwarePage compares the table of docs/hardware.md with the reports in
// docs/hardware, and with the models that the stub imitates. The flag -update
// writes it.
func TestHardwarePage(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(hardwareFolder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	reports := make(map[string]Report)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := readReport(text)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		reports[filepath.Base(file)] = r
	}
	models, err := os.ReadFile(stubModels)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(hardwarePage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", hardwarePage)
	}
	want := before + tableBegins + hardwareTable(reports, imitatedModels(models)) + tableEnds + after
	if update := flag.Lookup("update"); update != nil && update.Value.String() == "true" {
		if err := os.WriteFile(hardwarePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("the table of %s is not that of the reports: go test ./report -update", hardwarePage)
	}
}

// readReport decodes a report of real hardware.
func readReport(text []byte) (Report, error) {
	var found struct {
		Version int `json:"version"`
		Report
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return Report{}, err
	}
	switch {
	case found.Version != Version:
		return Report{}, fmt.Errorf("it has the version %d, not %d", found.Version, Version)
	case found.Imitated != "":
		return Report{}, fmt.Errorf("it is not of real hardware: %s", found.Imitated)
	case len(found.Devices) == 0 || found.DriverVersion == "" || found.AgentVersion == "" || found.Date.IsZero() || found.Report.Summary().Passed == 0:
		return Report{}, fmt.Errorf("it lacks the device, the driver, the agent's version, the date or results")
	}
	return found.Report, nil
}

// imitatedModels are the names of the models in the stub's C text, in its order.
func imitatedModels(text []byte) []string {
	var names []string
	for _, match := range regexp.MustCompile(`\{"name", "([^"]+)"\}`).FindAllSubmatch(text, -1) {
		names = append(names, string(match[1]))
	}
	return names
}

// hardwareTable has a row for each report, and one for each imitated model that has
// no report.
func hardwareTable(reports map[string]Report, imitated []string) string {
	var b strings.Builder
	b.WriteString("\n| hardware | driver | date | agent | passed | failed | not reported | state |\n|---|---|---|---|---|---|---|---|\n")
	measured := make(map[string]bool)
	names := make([]string, 0, len(reports))
	for name := range reports {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r := reports[name]
		var models []string
		for _, d := range r.Devices {
			model, _, _ := strings.Cut(d, " (")
			measured[model] = true
			models = append(models, model)
		}
		slices.Sort(models)
		sum := r.Summary()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %d | %d | [report](hardware/%s) |\n", escape(strings.Join(slices.Compact(models), ", ")),
			escape(r.DriverVersion), r.Date.UTC().Format(time.DateOnly), escape(r.AgentVersion), sum.Passed, sum.Failed, sum.NotReported, name)
	}
	for _, model := range imitated {
		if !measured[model] {
			fmt.Fprintf(&b, "| %s | | | | | | | imitated library |\n", escape(model))
		}
	}
	return b.String() + "\n"
}

// A model with a report is no longer imitated alone; its files must be complete.
func TestHardwareTable(t *testing.T) {
	r := sample()
	r.Devices = []string{"NVIDIA H100 (GPU-1)", "NVIDIA H100 (GPU-2)"}
	got := hardwareTable(map[string]Report{"h100-580.65.06.json": r}, []string{"NVIDIA H100", "NVIDIA B200"})
	want := `
| hardware | driver | date | agent | passed | failed | not reported | state |
|---|---|---|---|---|---|---|---|
| NVIDIA H100 | 580.65.06 | 2026-11-24 | 1.2.3 | 2 | 1 | 1 | [report](hardware/h100-580.65.06.json) |
| NVIDIA B200 | | | | | | | imitated library |

`
	if got != want {
		t.Errorf("the table is\n%s\nnot\n%s", got, want)
	}
	if models := imitatedModels([]byte(`{"name", "NVIDIA H100"},` + "\n" + `{"name", "NVIDIA B200"},`)); !slices.Equal(models, []string{"NVIDIA H100", "NVIDIA B200"}) {
		t.Errorf("the models are %q", models)
	}
	encode := func(change func(*Report)) []byte {
		r := sample()
		change(&r)
		var text strings.Builder
		if err := JSON(&text, r); err != nil {
			t.Fatal(err)
		}
		return []byte(text.String())
	}
	if again, err := readReport(encode(func(*Report) {})); err != nil || again.Summary() != sample().Summary() {
		t.Errorf("of a good report: %v", err)
	}
	for name, text := range map[string][]byte{
		"no JSON":     []byte("{"),
		"imitated":    encode(func(r *Report) { r.Imitated = "the library" }),
		"no driver":   encode(func(r *Report) { r.DriverVersion = "" }),
		"no results":  encode(func(r *Report) { r.Sections = nil }),
		"nothing":     []byte(`{"version":1}`),
		"old version": []byte(`{"version":0}`),
		"all failed":  encode(func(r *Report) { r.Sections = []Section{{Results: []compare.Result{{Status: compare.Failed}}}} }),
	} {
		if _, err := readReport(text); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}
