package upstream

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/compatibility.md")

const (
	document = "../../docs/compatibility.md"
	begin    = "<!-- generated from collector/upstream by go test -update -->\n"
	end      = "<!-- end -->\n"
)

// The document has the table of bugs.
func TestDocument(t *testing.T) {
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(content), begin)
	written, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the tables", document)
	}
	if want := tables(); written != want {
		if !*update {
			t.Fatalf("%s is out of date: go test ./collector/upstream -run TestDocument -update", document)
		}
		if err := os.WriteFile(document, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tables renders what can be seen, and what cannot.
func tables() string {
	var text strings.Builder
	text.WriteString("\n| bug | of | versions | sign | remedy |\n|---|---|---|---|---|\n")
	for _, bug := range Bugs() {
		seen := bug.Seen
		if bug.Other != "" {
			seen += " (or " + bug.Other + ")"
		}
		fmt.Fprintf(&text, "| [%s](%s) | %s | %s | %s | %s |\n", bug.Name(), bug.Link(), bug.Component, bug.Versions(), seen, bug.Remedy)
	}
	text.WriteString("\nThe signs of these are in no object that is read:\n\n| bug | versions | why it cannot be seen |\n|---|---|---|\n")
	for _, bug := range Unseen() {
		fmt.Fprintf(&text, "| [%s](%s) | %s | %s |\n", bug.Name(), bug.Link(), bug.Versions(), bug.Seen)
	}
	return text.String() + "\n"
}

// A finding ends its sentence once.
func TestWords(t *testing.T) {
	for _, bug := range append(Bugs(), unseen()...) {
		for name, text := range map[string]string{"Seen": bug.Seen, "Other": bug.Other} {
			if strings.HasSuffix(text, ".") {
				t.Errorf("%s: %s ends with a full stop: %s", bug.ID, name, text)
			}
		}
		if bug.find != nil && !strings.HasSuffix(bug.Remedy, ".") {
			t.Errorf("%s: the remedy is no sentence: %s", bug.ID, bug.Remedy)
		}
		if (bug.Component == Driver) != (bug.Releases != "") || bug.Component == Driver && len(bug.Affected) > 0 {
			t.Errorf("%s: %s has versions %v and releases %q", bug.ID, bug.Component, bug.Affected, bug.Releases)
		}
		for _, r := range bug.Affected {
			if r.From != "" && parse(r.From) == nil || r.Fixed != "" && parse(r.Fixed) == nil {
				t.Errorf("%s: the range %s is of no versions", bug.ID, r)
			}
		}
	}
}

func unseen() []*Bug {
	var bugs []*Bug
	for _, bug := range Unseen() {
		bugs = append(bugs, &bug)
	}
	return bugs
}
