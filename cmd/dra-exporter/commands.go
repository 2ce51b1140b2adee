package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
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
	command, ok := c.byName[name]
	if !ok {
		return errors.New("a command is needed")
	}
	return command(ctx)
}

// examples are the commands that --help without a command shows.
const examples = `  dra-exporter demo                          # both roles over a simulated cluster
  dra-exporter explain pod team-a/train-0    # why is this pod pending?
  dra-exporter top                           # which claims use which devices?
  dra-exporter topology pod team-a/train-0   # how near are its devices to each other?
  dra-exporter fit -f job.yaml               # would these pods fit, and how many more?
  dra-exporter advise --prometheus.url=URL   # which claims hold more than they use?
  dra-exporter check                         # what is missing here?`

// usageTemplate is the text of --help: a sentence, examples, and then how the
// command is used.
const usageTemplate = `{{define "Arguments"}}{{range .Args}}{{if not .Hidden}} {{if not .Required}}[{{end}}<{{.Name}}>{{if not .Required}}]{{end}}{{end}}{{end}}{{end -}}
{{$command := .Context.SelectedCommand -}}
{{if $command}}{{$command.Help|Wrap 0}}{{else}}{{.App.Help|Wrap 0}}{{end}}
{{with $command}}{{with .HelpLong}}Examples:
{{.}}

{{end}}{{else}}Examples:
{{Examples}}

{{end -}}
Usage: {{.App.Name}}
{{- with $command}} {{.FullCommand}}{{template "Arguments" .}}{{if .Commands}} <command>{{end}}{{else}} <command>{{end}} [<flags>]
{{with $command}}{{if .Commands}}
Commands:
{{.Commands|CommandsToTwoColumns|FormatTwoColumns}}{{end}}{{else}}
Commands:
{{.App.Commands|CommandsToTwoColumns|FormatTwoColumns}}{{end -}}
{{if .Context.Args}}
Arguments:
{{.Context.Args|ArgsToTwoColumns|FormatTwoColumns}}{{end -}}
{{if .Context.Flags}}
Flags:
{{.Context.Flags|FlagsToTwoColumns|FormatTwoColumns}}{{end -}}
`

// setUsage sets the text of --help. Kingpin's own templates have no examples and
// show boolean flags as --[no-]name.
func setUsage(app *kingpin.Application) {
	app.UsageFuncs(template.FuncMap{
		"CommandsToTwoColumns": commandRows, "FlagsToTwoColumns": flagRows,
		"Examples": func() string { return examples },
		"Roff":     roff, "TrimSpace": strings.TrimSpace, "Release": release,
	})
	app.UsageTemplate(usageTemplate)
}

// flagRows returns the flags, each with its help and its variable. A boolean flag is
// shown as it is given; one that is on by default, as it is switched off.
func flagRows(flags []*kingpin.FlagModel) (rows [][2]string) {
	for _, flag := range flags {
		if flag.Hidden {
			continue
		}
		name, help := "--"+flag.Name, flag.HelpWithEnvar()
		switch enabled := slices.Contains(flag.Default, "true"); {
		case flag.IsBoolFlag() && enabled:
			help += " On by default; --no-" + flag.Name + " switches it off."
		case !flag.IsBoolFlag():
			name += "=" + flag.FormatPlaceHolder()
		}
		if value, ok := flag.Value.(interface{ IsCumulative() bool }); ok && value.IsCumulative() {
			name += " ..."
		}
		if flag.Short != 0 {
			name = fmt.Sprintf("-%c, %s", flag.Short, name)
		} else {
			name = "    " + name
		}
		rows = append(rows, [2]string{name, help})
	}
	return rows
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

// refusedSetting returns the flag, argument or variable whose value the parser has
// refused, followed by ": "; empty if something else is wrong. Kingpin's own
// messages name none. Values are set to find it, so the application must be
// new: a repeatable flag would have them already.
func refusedSetting(app *kingpin.Application, args []string) string {
	parsed, err := app.ParseContext(args)
	if err != nil || parsed.SelectedCommand == nil {
		return ""
	}
	given := make(map[string]bool) // their variables are not read
	for _, element := range parsed.Elements {
		switch clause := element.Clause.(type) {
		case *kingpin.FlagClause:
			flag := clause.Model()
			if flag.Value.Set(*element.Value) != nil {
				return "--" + flag.Name + ": "
			}
			given[flag.Name] = true
		case *kingpin.ArgClause:
			if argument := clause.Model(); argument.Value.Set(*element.Value) != nil {
				return argument.Name + ": "
			}
		}
	}
	return refusedVariable(app.Model().CmdGroupModel, parsed.SelectedCommand.FullCommand(), given)
}

// refusedVariable is like refusedSetting for the variables of a command's flags, and
// of the commands above it, without those of flags that are given.
func refusedVariable(group *kingpin.CmdGroupModel, command string, given map[string]bool) string {
	for _, model := range group.Commands {
		if model.FullCommand != command && !strings.HasPrefix(command, model.FullCommand+" ") {
			continue
		}
		for _, flag := range model.Flags {
			if given[flag.Name] {
				continue
			}
			for line := range strings.Lines(os.Getenv(flag.Envar)) {
				if flag.Value.Set(strings.TrimRight(line, "\r\n")) != nil {
					return flag.Envar + ": "
				}
			}
		}
		return refusedVariable(model.CmdGroupModel, command, given)
	}
	return ""
}

// onHangup calls reload at each SIGHUP until ctx ends; SIGHUP no longer ends
// the process.
func onHangup(ctx context.Context, reload func(context.Context)) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				reload(ctx)
			}
		}
	}()
}
