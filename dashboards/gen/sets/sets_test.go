package sets

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// repository is the folder with dashboards and alerts.
const repository = "../../.."

// TestRepository: everything that is shipped is in one set, and no set reads or links
// to what another one has, but for core.
func TestRepository(t *testing.T) {
	belongs, err := Read(repository)
	if err != nil {
		t.Fatal(err)
	}
	size := map[string]int{}
	for _, set := range belongs.Records {
		size[set]++
	}
	t.Logf("recorded names by set: %v", size)
	for _, set := range All() {
		if set.Answers == "" {
			t.Errorf("%s answers nothing", set.Name)
		}
	}
	if size[Core] == 0 || size[Core] > 110 {
		t.Errorf("core has %d recorded names", size[Core])
	}
}

// TestCompute: what a set needs is found through other rules, and each way to be in no
// set, or in two, is an error that names it.
func TestCompute(t *testing.T) {
	boards := map[string]string{
		"claims":   `{"expr": "claim:a:sum", "url": "/d/dra-claims?x"}`,
		"capacity": `{"expr": "node:b:sum + claim:a:sum", "url": "/d/dra-claims"}`,
	}
	rules := []Rule{
		{Record: "claim:a:sum", Expr: "sum(device:c:rate5m)"},
		{Record: "device:c:rate5m", Expr: "rate(c[5m])"},
		{Record: "device:c:rate5m", Expr: "rate(pod:e:sum[5m])"},
		{Record: "pod:e:sum", Expr: "sum(e)"},
		{Record: "node:b:sum", Expr: "b"},
		{Record: "other:d:sum", Expr: "d"},
		{Alert: "A", Expr: "up == 0", Annotations: map[string]string{"dashboard_url": "/d/dra-claims"}},
		{Alert: "B", Expr: "up", Annotations: map[string]string{"description": `{{ query "node:b:sum" }}`}},
	}
	core := Set{Name: Core, Dashboards: []string{"claims"}, Alerts: []string{"A"}}
	capacity := Set{Name: "capacity", Dashboards: []string{"capacity"}, Alerts: []string{"B"}, Records: []string{"other:*"}}
	belongs, err := Compute([]Set{core, capacity}, boards, rules)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"claim:a:sum": Core, "device:c:rate5m": Core, "pod:e:sum": Core, "node:b:sum": "capacity", "other:d:sum": "capacity",
	}
	if !maps.Equal(belongs.Records, want) {
		t.Errorf("got %v, want %v", belongs.Records, want)
	}

	with := func(change func(*Set)) Set {
		changed := capacity
		change(&changed)
		return changed
	}
	link := maps.Clone(boards)
	link["claims"] += "/d/dra-capacity"
	for name, c := range map[string]struct {
		sets   []Set
		boards map[string]string
		want   string
	}{
		"no set":           {[]Set{core, with(func(s *Set) { s.Alerts = nil })}, boards, "no set has the alert B"},
		"two sets":         {[]Set{core, capacity, {Name: "x", Alerts: []string{"B"}}}, boards, "B is in capacity and in x"},
		"read by two":      {[]Set{core, capacity, {Name: "x", Records: []string{"node:b:sum"}}}, boards, "node:b:sum is in capacity and in x"},
		"no alert":         {[]Set{core, capacity, {Name: "x", Alerts: []string{"C"}}}, boards, "x: there is no alert C"},
		"no dashboard":     {[]Set{core, capacity, {Name: "x", Dashboards: []string{"y"}}}, boards, "x: there is no dashboard y"},
		"not recorded":     {[]Set{core, capacity, {Name: "x", Records: []string{"y:*"}}}, boards, "x: nothing recorded is y:*"},
		"nothing reads it": {[]Set{core, with(func(s *Set) { s.Records = nil })}, boards, "no set has the recorded name other:d:sum"},
		"link":             {[]Set{core, capacity}, link, "claims of core links to capacity of capacity"},
	} {
		if _, err := Compute(c.sets, c.boards, rules); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestDocuments: the tables of dashboards, alerts and sets say to which set each
// belongs, and how many names each set records.
func TestDocuments(t *testing.T) {
	belongs, err := Read(repository)
	if err != nil {
		t.Fatal(err)
	}
	records := map[string]int{}
	for _, set := range belongs.Records {
		records[set]++
	}
	want := map[string]string{}
	for _, set := range All() {
		want[set.Name] = fmt.Sprintf("%s | %d", set.Answers, records[set.Name])
	}
	for _, c := range []struct {
		file, row string
		want      map[string]string
	}{
		{"dashboards.md", `(?m)^\| \[DRA / .+\]\(\.\./dashboards/[a-z]+/([a-z-]+)\.json\) \| .+ \| ([a-z]+) \|$`, belongs.Dashboards},
		{"alerts.md", `(?m)^\| \[(DRA\w+)\]\(runbooks/.+ \| ([a-z]+) \|$`, belongs.Alerts},
		{"dashboards.md", `(?m)^\| ([a-z]+) \| (.+ \| \d+) \|$`, want},
	} {
		text, err := os.ReadFile(filepath.Join(repository, "docs", c.file))
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, row := range regexp.MustCompile(c.row).FindAllStringSubmatch(string(text), -1) {
			got[row[1]] = row[2]
		}
		if !maps.Equal(got, c.want) {
			t.Errorf("%s has\n%v\nand should have\n%v", c.file, got, c.want)
		}
	}
}
