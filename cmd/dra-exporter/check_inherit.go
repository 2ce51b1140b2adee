package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// inherit adds to a command line that checks a role the flags of the exporter
// that runs in this container with that role: "kubectl exec" passes none of
// them. Flags on the line take precedence. running returns the command line of
// that exporter; it is called for such a check alone. inherited are the flags
// that were added; nil: there is no such exporter.
func inherit(newApp func() *kingpin.Application, running func() []string, line []string) (whole, inherited []string, err error) {
	if len(line) == 0 || line[0] != "check" {
		return line, nil, nil
	}
	flags, command, err := parseFlags(newApp(), line)
	role, isRole := strings.CutPrefix(command, "check ")
	if err != nil || !isRole || role != "node" && role != "cluster" {
		return line, nil, nil // the parser reports errors of the line
	}
	exporter := running()
	if len(exporter) < 2 || !isProgram(exporter[0]) || exporter[1] != role {
		return line, nil, nil
	}
	theirs, _, err := parseFlags(newApp(), exporter[1:])
	if err != nil {
		return line, nil, err
	}
	inherited = []string{}
	for _, flag := range theirs {
		if !slices.ContainsFunc(flags, func(f givenFlag) bool { return f.name == flag.name }) {
			inherited = append(inherited, flag.String())
		}
	}
	return append(slices.Clone(line), inherited...), inherited, nil
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

// parseFlags parses a command line and sets no flag.
func parseFlags(app *kingpin.Application, line []string) (flags []givenFlag, command string, err error) {
	parsed, err := app.ParseContext(line)
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
	executable, err := os.Executable()
	return name == "dra-exporter" || err == nil && name == filepath.Base(executable)
}
