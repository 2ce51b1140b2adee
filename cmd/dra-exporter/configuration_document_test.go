package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"

	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

const configurationHead = `# Configuration

Generated from the code by ` + "`make docs`" + `; a test fails when the two differ.

Every setting is a flag, and every flag is also an environment variable. A flag takes precedence over its variable. To disable a boolean flag, use ` + "`--no-NAME`" + `, or set its variable to ` + "`false`" + `. The variable of a repeatable flag has one value per line. Write durations as ` + "`500ms`, `30s`, `10m`" + `.

The program rejects invalid settings at its start, with the name of the flag and the reason. A command, kind or flag that does not exist is named with the one that is probably meant. All commands have the same exit statuses:

| exit status | meaning |
|---|---|
| 0 | done |
| 1 | what was asked for could not be done (an object, a file or a server is missing or refuses), or ` + "`check`" + ` found a failure |
| 2 | the command line, or a variable in place of a flag, is wrong |

` + "`--help`" + ` of each command begins with examples. The chart has [values](../deploy/helm/dra-exporter/README.md) for common settings, and ` + "`node.extraArgs`, `cluster.extraArgs`" + ` for the others. Settings that are not flags:

| what | where |
|---|---|
| TLS and basic auth of the pages | the file of ` + "`--web.config.file`, in the [format of all Prometheus exporters](https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md)" + ` |
| prices | the file of ` + "`--cost.prices`" + `: [Cost](cost.md) |
| other settings of the push | the standard variables ` + "`OTEL_*`: [OpenTelemetry](opentelemetry.md)" + ` |
| soft memory limit of the garbage collector | Go's own ` + "`GOMEMLIMIT`" + `; without it nine tenths of the cgroup's memory limit in the cluster role, two thirds in the node role |
| series of one family in the cluster role | ` + "`--metrics.max-series`" + `; ` + "`auto`" + ` allows one for each 10 KiB of the soft memory limit, at least 10,000 and at most 1,000,000, and 100,000 without a limit |
| number of threads | Go's own ` + "`GOMAXPROCS`" + ` |
`

// setting is one flag of one command.
type setting struct{ name, variable, value, help string }

// settings returns the flags of a command without hidden ones, in the order of its
// help.
func settings(command *kingpin.CmdModel) []setting {
	var all []setting
	for _, flag := range command.Flags {
		if flag.Hidden {
			continue
		}
		s := setting{name: "--" + flag.Name, variable: flag.Envar, help: flag.Help}
		if value, repeats := flag.Value.(interface{ IsCumulative() bool }); repeats && value.IsCumulative() && !strings.Contains(s.help, "Repeatable") {
			s.help += " Repeatable."
		}
		if !flag.IsBoolFlag() || slices.Contains(flag.Default, "true") {
			s.value = strings.Join(flag.Default, ", ")
		}
		all = append(all, s)
	}
	return all
}

// without returns the settings that are not among others.
func without(all, others []setting) []setting {
	return slices.DeleteFunc(slices.Clone(all), func(s setting) bool { return slices.Contains(others, s) })
}

// common returns the settings that are among others.
func common(all, others []setting) []setting {
	return slices.DeleteFunc(slices.Clone(all), func(s setting) bool { return !slices.Contains(others, s) })
}

func writeSettings(to io.Writer, title, text string, all []setting) {
	fmt.Fprintf(to, "\n## %s\n", title)
	if text != "" {
		fmt.Fprintf(to, "\n%s\n", text)
	}
	if len(all) == 0 {
		return
	}
	help := strings.NewReplacer("|", `\|`, "<", `\<`) // else the end of a cell, and an element of HTML
	fmt.Fprint(to, "\n| flag | variable | default | |\n|---|---|---|---|\n")
	for _, s := range all {
		code := func(text string) string {
			if text == "" {
				return ""
			}
			return "`" + text + "`"
		}
		fmt.Fprintf(to, "| %s | %s | %s | %s |\n", code(s.name), code(s.variable), code(s.value), help.Replace(s.help))
	}
}

// leaves returns the commands that can be run, by their full names.
func leaves(commands []*kingpin.CmdModel, above []setting, path string) (names []string, byName map[string]*kingpin.CmdModel, inherited map[string][]setting) {
	byName, inherited = map[string]*kingpin.CmdModel{}, map[string][]setting{}
	for _, command := range commands {
		name := strings.TrimSpace(path + " " + command.Name)
		if command.Hidden || command.Name == "help" {
			continue
		}
		if len(command.Commands) == 0 {
			names, byName[name], inherited[name] = append(names, name), command, above
			continue
		}
		below, models, more := leaves(command.Commands, append(slices.Clone(above), settings(command)...), name)
		names = append(names, below...)
		for _, leaf := range below {
			byName[leaf], inherited[leaf] = models[leaf], more[leaf]
		}
	}
	return names, byName, inherited
}

// TestConfigurationDocument compares docs/configuration.md with the flags. Flags of two
// commands are described once.
func TestConfigurationDocument(t *testing.T) {
	app := newApp()
	if _, err := app.ParseContext(nil); err != nil { // names the variables
		t.Fatal(err)
	}
	model := app.Model()
	global := settings(&kingpin.CmdModel{FlagGroupModel: model.FlagGroupModel})
	names, byName, inherited := leaves(model.Commands, nil, "")
	of := func(name string) []setting {
		return without(append(slices.Clone(inherited[name]), settings(byName[name])...), global)
	}
	both := common(of("node"), of("cluster"))
	var document strings.Builder
	document.WriteString(configurationHead)
	writeSettings(&document, "Both roles", "", both)
	writeSettings(&document, "dra-exporter node", byName["node"].Help, without(of("node"), both))
	writeSettings(&document, "dra-exporter cluster", byName["cluster"].Help, without(of("cluster"), both))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "node" || name == "cluster" })
	for i := 0; i < len(names); i++ {
		title, text, all := "dra-exporter "+names[i], byName[names[i]].Help, of(names[i])
		for len(all) > 0 && i+1 < len(names) && slices.Equal(of(names[i+1]), all) {
			i++
			title, text = title+", "+names[i], text+" "+byName[names[i]].Help
		}
		own, as := apart(all, of("node"), of("cluster"), both)
		writeSettings(&document, title, strings.TrimSpace(text+" "+as), own)
	}
	metrictest.CompareGolden(t, "../../docs/configuration.md", document.String())
}

// apart removes the flags of the roles from a command's settings, and refers to them.
func apart(all, node, cluster, both []setting) (own []setting, as string) {
	switch {
	case len(common(all, node)) == len(node):
		return without(all, node), "Takes all flags of `dra-exporter node` too."
	case len(common(all, cluster)) == len(cluster):
		return without(all, cluster), "Takes all flags of `dra-exporter cluster` too."
	}
	var names []string
	for _, s := range common(all, both) {
		names = append(names, "`"+s.name+"`")
	}
	if len(names) < 2 { // a reference would be longer
		return all, ""
	}
	return without(all, both), "Of both roles' flags it takes " + strings.Join(names, ", ") + "."
}
