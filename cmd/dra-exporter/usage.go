package main

import (
	"strings"
	"text/template"

	"github.com/alecthomas/kingpin/v2"
)

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

// commandRows are the commands that can be run, each with its help.
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
