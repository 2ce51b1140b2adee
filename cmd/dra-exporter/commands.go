package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
)

// commands is the command line, with the function of each subcommand.
type commands struct {
	app    *kingpin.Application
	byName map[string]func(context.Context) error
}

func (c *commands) run(ctx context.Context, name string) error {
	command, known := c.byName[name]
	if !known {
		return errors.New("a command is needed")
	}
	return command(ctx)
}

// setUsage makes --help show the help of each command. Kingpin's compact template
// lists their names alone, the others also all flags of all commands.
func setUsage(app *kingpin.Application) {
	app.UsageFuncs(template.FuncMap{"CommandsToTwoColumns": commandRows})
	app.UsageTemplate(strings.NewReplacer(
		`{{template "FormatCommandList" .App.Commands}}`, `{{.App.Commands|CommandsToTwoColumns|FormatTwoColumns}}`,
		`{{template "FormatCommandList" .Context.SelectedCommand.Commands}}`, `{{.Context.SelectedCommand.Commands|CommandsToTwoColumns|FormatTwoColumns}}`,
		"Commands:\n  {{.Context.SelectedCommand}}\n", "Commands:\n",
	).Replace(kingpin.CompactUsageTemplate))
}

// commandRows returns the commands that can be run, each with its help.
func commandRows(commands []*kingpin.CmdModel) (rows [][2]string) {
	for _, command := range commands {
		if command.Hidden {
			continue
		}
		if len(command.Commands) > 0 {
			rows = append(rows, commandRows(command.Commands)...)
			continue
		}
		name := command.FullCommand
		if command.Default {
			name = strings.Replace(name, " "+command.Name, " ["+command.Name+"]", 1)
		}
		for _, arg := range command.Args {
			name += " <" + arg.Name + ">"
		}
		rows = append(rows, [2]string{name, command.Help})
	}
	return rows
}

// refusedSetting returns the flag, argument or variable whose value the parser
// refusedSetting, followed by ": "; empty if something else is wrong. Kingpin's own
// messages name none. Values are set to find it, so the application must be
// new: a repeatable flag would have them already.
func refusedSetting(app *kingpin.Application, args []string) string {
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

// refusedVariable is like refused for the variables of a command's flags, and of the
// commands above it.
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

// onHangup calls reload at each SIGHUP until ctx ends; SIGHUP no longer ends
// the process.
func onHangup(ctx context.Context, reload func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				reload()
			}
		}
	}()
}
