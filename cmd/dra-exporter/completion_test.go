package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// install puts this program as dra-exporter into a directory for PATH, with the
// completion script of a shell.
func install(t *testing.T, shell string) (environment []string, script string) {
	t.Helper()
	directory := t.TempDir()
	wrapper := "#!/bin/sh\n" + asProgram + "=1 exec '" + os.Args[0] + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(directory, "dra-exporter"), []byte(wrapper), 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := program(t.Context(), "completion", shell).Output()
	if err != nil {
		t.Fatal(err)
	}
	script = filepath.Join(directory, "script")
	if err := os.WriteFile(script, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+directory+":"+os.Getenv("PATH"), "HOME="+directory), script
}

// completions returns the completions at the end of a line.
type completions struct {
	words []string // as readline divides the line
	line  string
	want  []string // among those that are offered; nil: nothing is
	never string
}

func cases() []completions {
	return []completions{
		{[]string{"dra-exporter", ""}, "dra-exporter ", []string{"node", "top", "explain", "completion", "version"}, "--once"},
		{[]string{"dra-exporter", "to"}, "dra-exporter to", []string{"top"}, "node"},
		{[]string{"dra-exporter", "top", "--so"}, "dra-exporter top --so", []string{"--sort"}, "--once"},
		{[]string{"dra-exporter", "top", "--sort"}, "dra-exporter top --sort", []string{"--sort"}, "utilization"},
		{[]string{"dra-exporter", "top", "--sort", "ut"}, "dra-exporter top --sort ut", []string{"utilization"}, "memory"},
		{[]string{"dra-exporter", "top", "--sort", "=", "ut"}, "dra-exporter top --sort=ut", []string{"utilization"}, "memory"},
		{[]string{"dra-exporter", "top", "--sort", "="}, "dra-exporter top --sort=", []string{"utilization", "memory"}, "table"},
		{[]string{"dra-exporter", "top", "--sort=me"}, "dra-exporter top --sort=me", []string{"--sort=memory"}, "utilization"},
		{[]string{"dra-exporter", "node", "--device.source", "=", "d"}, "dra-exporter node --device.source=d", []string{"dcgm"}, "nvml"},
		{[]string{"dra-exporter", "node", "--log.level", ""}, "dra-exporter node --log.level ", []string{"debug", "warn"}, "node"},
		{[]string{"dra-exporter", "completion", "f"}, "dra-exporter completion f", []string{"fish"}, "bash"},
		{[]string{"dra-exporter", "explain", ""}, "dra-exporter explain ", []string{"claim", "pod"}, "node"},
		{[]string{"dra-exporter", "check", ""}, "dra-exporter check ", []string{"node", "cluster", "agent"}, "top"},
		{[]string{"dra-exporter", "check", "ag"}, "dra-exporter check ag", []string{"agent"}, "node"},
		{[]string{"dra-exporter", "check", "agent", "zz"}, "dra-exporter check agent zz", nil, "node"},
		{[]string{"dra-exporter", "top", "--sort", "nothing"}, "dra-exporter top --sort nothing", nil, "memory"},
	}
}

func (c completions) check(t *testing.T, offered []string) {
	t.Helper()
	for _, want := range c.want {
		if !slices.Contains(offered, want) {
			t.Errorf("%q: %s is not offered, but %q", c.words, want, offered)
		}
	}
	if slices.Contains(offered, c.never) || (c.want == nil && len(offered) > 0) {
		t.Errorf("%q: offered are %q", c.words, offered)
	}
}

func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash here")
	}
	environment, script := install(t, "bash")
	for _, c := range cases() {
		command := exec.CommandContext(t.Context(), bash, append([]string{"--norc", "-c", `set -eu; source "$1"; shift
			COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
			"$(complete -p dra-exporter | sed 's/.*-F \([^ ]*\).*/\1/')"
			for offered in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do echo "$offered"; done`, "bash", script}, c.words...)...)
		command.Env = environment
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", c.words, err, output)
		}
		c.check(t, strings.Fields(string(output)))
	}
}

func TestFishCompletion(t *testing.T) {
	fish, err := exec.LookPath("fish")
	if err != nil {
		t.Skip("no fish here")
	}
	environment, script := install(t, "fish")
	for _, c := range cases() {
		command := exec.CommandContext(t.Context(), fish, "--no-config", "-c", "source "+script+`; complete -C "`+c.line+`"`)
		command.Env = environment
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", c.line, err, output)
		}
		offered := strings.Fields(string(output))
		if before, _, is := strings.Cut(c.words[len(c.words)-1], "="); is && before != "" { // as bash has it without =
			c.check(t, offered)
			continue
		}
		for i := range offered { // fish offers the flag with its value
			if _, value, is := strings.Cut(offered[i], "="); is {
				offered[i] = value
			}
		}
		c.check(t, offered)
	}
}

// TestZshCompletion checks the syntax of the script: zsh completes only in its editor.
func TestZshCompletion(t *testing.T) {
	zsh, err := exec.LookPath("zsh")
	if err != nil {
		t.Skip("no zsh here")
	}
	environment, script := install(t, "zsh")
	command := exec.CommandContext(t.Context(), zsh, "-f", "-c", `autoload -Uz compinit && compinit -u -D && source "$1" && print -r -- $_comps[dra-exporter]`, "zsh", script)
	command.Env = environment
	if output, err := command.CombinedOutput(); err != nil || strings.TrimSpace(string(output)) != "_dra_exporter" {
		t.Errorf("%v\n%s", err, output)
	}
}

func TestVersion(t *testing.T) {
	text, err := program(t.Context(), "version").Output()
	if err != nil || !strings.HasPrefix(string(text), "dra-exporter ") || strings.Count(string(text), "\n") != 1 {
		t.Errorf("%v: %q", err, text)
	}
	if flag, err := program(t.Context(), "--version").CombinedOutput(); err != nil || string(flag) != string(text) {
		t.Errorf("--version says %q, version %q", flag, text)
	}
	var version struct{ Version, Revision, GoVersion, Platform string }
	document, err := program(t.Context(), "version", "-o", "json").Output()
	if err == nil {
		err = json.Unmarshal(document, &version)
	}
	if err != nil || version.Version == "" || version.Revision == "" || !strings.HasPrefix(version.GoVersion, "go") || !strings.Contains(version.Platform, "/") {
		t.Errorf("%v: %s", err, document)
	}
}
