package main

import (
	"os"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// refused names the flag, argument or variable whose value the parser did not
// take, followed by ": "; it is empty where something else is wrong. Kingpin's
// own messages name none. Values are set to find out, so the application must be
// a new one: a flag of several would find its values there already.
func refused(app *kingpin.Application, args []string) string {
	parsed, err := app.ParseContext(args)
	if err != nil || parsed.SelectedCommand == nil {
		return ""
	}
	for _, element := range parsed.Elements {
		switch clause := element.Clause.(type) {
		case *kingpin.FlagClause:
			if flag := clause.Model(); flag.Value.Set(*element.Value) != nil {
				return "--" + flag.Name + ": "
			}
		case *kingpin.ArgClause:
			if argument := clause.Model(); argument.Value.Set(*element.Value) != nil {
				return argument.Name + ": "
			}
		}
	}
	return refusedVariable(app.Model().CmdGroupModel, parsed.SelectedCommand.FullCommand())
}

// refusedVariable looks at the variables of a command's flags, to which those of
// the command above it belong.
func refusedVariable(group *kingpin.CmdGroupModel, command string) string {
	for _, one := range group.Commands {
		if one.FullCommand != command && !strings.HasPrefix(command, one.FullCommand+" ") {
			continue
		}
		for _, flag := range one.Flags {
			for line := range strings.Lines(os.Getenv(flag.Envar)) {
				if flag.Value.Set(strings.TrimRight(line, "\r\n")) != nil {
					return flag.Envar + ": "
				}
			}
		}
		return refusedVariable(one.CmdGroupModel, command)
	}
	return ""
}
