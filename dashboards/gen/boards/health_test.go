package boards

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"
)

// TestXidsAreThoseOfTheDocumentation: docs/health.md is generated from the
// exporter's own table.
func TestXidsAreThoseOfTheDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../../docs/health.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []xid
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| \w+ \| *(\w*) *\| *\w* *\| (.*?) \|$`).FindAllStringSubmatch(string(text), -1) {
		want = append(want, xid{code: row[1], severity: row[2], meaning: row[3]})
	}
	if len(want) < 40 {
		t.Fatalf("docs/health.md has %d Xids", len(want))
	}
	if got := xids(); !slices.Equal(got, want) {
		t.Errorf("Xids of the dashboard\n%v\nand of docs/health.md\n%v", got, want)
	}
}

// TestNamesAreLastAndHidden: Grafana's merge gives a row to each answer that does
// not fit an earlier one. A name that came first would be in one row of its device
// alone.
func TestNamesAreLastAndHidden(t *testing.T) {
	type table struct {
		Title           string
		Targets         []struct{ RefID string }
		Transformations []struct {
			ID      string
			Options struct {
				RenameByName  map[string]string
				ExcludeByName map[string]bool
			}
		}
	}
	var read struct {
		Panels []struct {
			table
			Panels []table // of a folded row
		}
	}
	if err := json.Unmarshal(generated(t, health()), &read); err != nil {
		t.Fatal(err)
	}
	var tables []table
	for _, p := range read.Panels {
		tables = append(append(tables, p.table), p.Panels...)
	}
	found := 0
	for _, p := range tables {
		for _, transformation := range p.Transformations {
			for field, name := range transformation.Options.RenameByName {
				if name != "Named" {
					continue
				}
				found++
				if last := "Value #" + p.Targets[len(p.Targets)-1].RefID; field != last || !transformation.Options.ExcludeByName[field] {
					t.Errorf("%s: the names are %s, not %s, or are shown", p.Title, field, last)
				}
			}
		}
	}
	if found < 8 {
		t.Errorf("%d tables have names", found)
	}
}
