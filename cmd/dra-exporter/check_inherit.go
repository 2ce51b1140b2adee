package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// inherit adds to a command line that checks a role the flags of the exporter
// of that role that this container runs, so that "kubectl exec" checks what
// really runs: its arguments are not in the environment. Flags that the line
// has itself stay. inherited are those that were added; nil: there is no such
// exporter.
func inherit(procfs string, line []string) (whole, inherited []string, err error) {
	if _, _, ok := selected(line); !ok {
		return line, nil, nil
	}
	return inheritFrom(commandOfContainer(procfs), line)
}

// inheritFrom is inherit from a command line that runs.
func inheritFrom(running, line []string) (whole, inherited []string, err error) {
	own, role, ok := selected(line)
	if !ok {
		return line, nil, nil
	}
	if len(running) < 2 || !isProgram(running[0]) || running[1] != role {
		return line, nil, nil
	}
	theirs, _, err := flagsOf(running[1:])
	if err != nil {
		return line, nil, err
	}
	inherited = []string{}
	for _, flag := range theirs {
		if !slices.ContainsFunc(own, func(f givenFlag) bool { return f.name == flag.name }) {
			inherited = append(inherited, flag.String())
		}
	}
	return append(slices.Clone(line), inherited...), inherited, nil
}

// selected are the flags of a line that checks a role, and the role.
func selected(line []string) (flags []givenFlag, role string, ok bool) {
	if len(line) == 0 || line[0] != "check" {
		return nil, "", false
	}
	flags, command, err := flagsOf(line)
	role, ok = strings.CutPrefix(command, "check ")
	return flags, role, err == nil && ok && (role == "node" || role == "cluster")
}

// givenFlag is a flag of a command line.
type givenFlag struct {
	name    string
	value   string
	boolean bool
}

func (f givenFlag) String() string {
	switch {
	case f.boolean && f.value == "false":
		return "--no-" + f.name
	case f.boolean:
		return "--" + f.name
	default:
		return "--" + f.name + "=" + f.value
	}
}

// flagsOf reads a command line as the program does, but sets nothing.
func flagsOf(line []string) (flags []givenFlag, command string, err error) {
	parsed, err := newCommands(io.Discard, io.Discard).app.ParseContext(line)
	if err != nil {
		return nil, "", err
	}
	for _, element := range parsed.Elements {
		switch clause := element.Clause.(type) {
		case *kingpin.FlagClause:
			flag := givenFlag{name: clause.Model().Name, boolean: clause.Model().IsBoolFlag()}
			if element.Value != nil {
				flag.value = *element.Value
			}
			flags = append(flags, flag)
		case *kingpin.CmdClause:
			command = clause.FullCommand()
		}
	}
	return flags, command, nil
}

// isProgram reports whether the path is that of this program, by its name.
func isProgram(path string) bool {
	name := filepath.Base(path)
	own, err := os.Executable()
	return name == "dra-exporter" || err == nil && name == filepath.Base(own)
}

// commandOfContainer is the command line of the process that began first in
// this process' control group. In a container that is what the container was
// started with, process 1 of its pid namespace unless that is the host's; nil
// where it cannot be told.
func commandOfContainer(procfs string) []string {
	own, err := os.ReadFile(filepath.Join(procfs, "self", "cgroup"))
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(procfs)
	if err != nil {
		return nil
	}
	first, began := "", uint64(0)
	for _, entry := range entries {
		if _, err := strconv.ParseUint(entry.Name(), 10, 32); err != nil {
			continue
		}
		folder := filepath.Join(procfs, entry.Name())
		if group, err := os.ReadFile(filepath.Join(folder, "cgroup")); err != nil || !bytes.Equal(group, own) {
			continue
		}
		if start, ok := startOf(folder); ok && (first == "" || start < began) {
			first, began = folder, start
		}
	}
	if first == "" {
		return nil
	}
	line, err := os.ReadFile(filepath.Join(first, "cmdline"))
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
}

// startOf is when a process began, in ticks since the boot: field 22 of its
// stat, the 20th after its name in parentheses (proc_pid_stat(5)).
func startOf(folder string) (uint64, bool) {
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return 0, false
	}
	return decodeStart(stat)
}

func decodeStart(stat []byte) (uint64, bool) {
	const field = 22 - 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= field {
		return 0, false
	}
	start, err := strconv.ParseUint(string(fields[field]), 10, 64)
	return start, err == nil
}
