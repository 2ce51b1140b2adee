package dra

import (
	"os"
	"strings"
	"testing"
)

// Every reason is in the table of docs/pending.md, in the order of precedence,
// with its meaning and its remedy.
func TestReasonsDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/pending.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(document), "| `reason` | meaning | evidence | remedy |\n|---|---|---|---|\n")
	if !found {
		t.Fatal("docs/pending.md has no table of reasons")
	}
	rows := strings.Split(table, "\n")
	for i, info := range ReasonInfos() {
		cells := strings.Split(rows[i], " | ")
		if len(cells) != 4 {
			t.Fatalf("row %d of the reasons is %q", i+1, rows[i])
		}
		if want := "| `" + string(info.Reason) + "`"; cells[0] != want || cells[1] != info.Meaning || !strings.HasPrefix(cells[3], info.Remedy) {
			t.Errorf("row %d of the reasons is %q, want %s with %q and %q", i+1, rows[i], want, info.Meaning, info.Remedy)
		}
	}
	if strings.HasPrefix(rows[len(ReasonInfos())], "|") {
		t.Errorf("%q is not a reason", rows[len(ReasonInfos())])
	}
}

func TestInfo(t *testing.T) {
	seen := make(map[string]bool)
	for _, reason := range PendingReasons() {
		info := reason.Info()
		if info.Reason != reason || info.Meaning == "" || info.Remedy == "" || seen[info.Meaning] {
			t.Errorf("%s is described by %+v", reason, info)
		}
		seen[info.Meaning] = true
	}
	if info := ReasonNone.Info(); info.Meaning != "" {
		t.Errorf("no reason is described by %+v", info)
	}
	if info := PendingReason("new").Info(); info.Meaning != "" {
		t.Errorf("a reason that is not in the set is described by %+v", info)
	}
}
