package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"
)

// TestManual: the man page has a section of each command, with all its flags and its
// examples.
func TestManual(t *testing.T) {
	text, err := program(t.Context(), manualFlag).Output()
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n.SS dra\\-exporter ")[1:] {
		heading, rest, _ := strings.Cut(part, "\n")
		name, _, _ := strings.Cut(strings.ReplaceAll(heading, " [", " "), ` \fI`)
		rest, _, _ = strings.Cut(rest, "\n.SH ")
		sections[name] = rest
	}
	app := newApp()
	if _, err := app.ParseContext(nil); err != nil { // names the variables
		t.Fatal(err)
	}
	shown := 0
	check := func(name, section string, flags []*kingpin.FlagModel) {
		t.Helper()
		for _, flag := range flags {
			if flag.Hidden {
				continue
			}
			for _, want := range []string{roff("--" + flag.Name), roff(flag.Help), roff(flag.Envar)} {
				if !strings.Contains(section, want) {
					t.Errorf("%s: there is no %q", name, want)
				}
			}
		}
	}
	head, _, _ := strings.Cut(string(text), "\n.SH COMMANDS")
	check("dra-exporter", head, app.Model().Flags)
	eachCommand(app.Model().Commands, func(command *kingpin.CmdModel) {
		if command.Hidden {
			return
		}
		shown++
		section, ok := sections[roff(command.FullCommand)]
		if !ok || !strings.Contains(section, roff(command.Help)) || !strings.Contains(section, roff(command.HelpLong)) {
			t.Errorf("there is no section of %s: %q", command.FullCommand, section)
		}
		check(command.FullCommand, section, command.Flags)
	})
	if len(sections) != shown {
		t.Errorf("of %d commands there are %d sections", shown, len(sections))
	}
}

// TestManualIsValid: the programs that show man pages have no complaints.
func TestManualIsValid(t *testing.T) {
	page, err := program(t.Context(), manualFlag).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{
		{"groff", "-man", "-Tutf8", "-Kutf8", "-ww", "-Wbreak", "-z"}, // long words cannot be broken
		{"mandoc", "-T", "lint", "-W", "warning"},
	} {
		if _, err := exec.LookPath(arguments[0]); err != nil {
			t.Logf("no %s here", arguments[0])
			continue
		}
		command := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...)
		command.Stdin = strings.NewReader(string(page))
		output, _ := command.CombinedOutput() // it fails with a complaint
		for complaint := range strings.Lines(string(output)) {
			if !strings.Contains(complaint, "missing date") { // a release has the same bytes at any time
				t.Errorf("%q: %s", arguments, complaint)
			}
		}
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"a-b":            `a\-b`,
		`C:\x`:           `C:\ex`,
		".hidden\n'x' y": "\\&.hidden\n\\&'x' y",
		"  indented\n":   "  indented",
	} {
		if got := roff(text); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}
