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

This page lists all settings by command. ` + "`make docs`" + ` writes it.

Every flag is also an environment variable: that of ` + "`--web.config.file` is `DRA_EXPORTER_WEB_CONFIG_FILE`, that of `--node.name` is `NODE_NAME`" + `. Flags take precedence. Disable a boolean with ` + "`--no-NAME`" + `, or ` + "`false`" + ` in its variable. Variables of repeatable flags have one value per line. Durations: ` + "`500ms`" + `, ` + "`30s`" + `, ` + "`10m`" + `. Invalid settings are rejected at start with the reason. Defaults are in parentheses.

Exit status:

- 0: done
- 1: an object, a file or a server is missing or refuses, or ` + "`check`" + ` found a failure
- 2: wrong command line or variable

` + "`--help`" + ` of each command begins with examples. The chart has [values](../deploy/helm/dra-exporter/README.md), and ` + "`node.extraArgs`" + `, ` + "`cluster.extraArgs`" + ` for other flags. Other settings:

- TLS and basic auth of the pages: file of ` + "`--web.config.file`" + `, in the [format of all Prometheus exporters](https://github.com/prometheus/exporter-toolkit/blob/master/docs/web-configuration.md)
- prices: file of ` + "`--cost.prices`" + `: [Cost](cost.md)
- push: ` + "`OTEL_*`" + `: [OpenTelemetry](opentelemetry.md)
- soft memory limit: ` + "`GOMEMLIMIT`" + `; default: of the cgroup's limit, nine tenths in the cluster role, two thirds in the node role
- series of one family in the cluster role: ` + "`--metrics.max-series`" + `; ` + "`auto`" + `: one for each 10 KiB of the soft memory limit, 10,000 to 1,000,000; without a limit 100,000
- number of threads: ` + "`GOMAXPROCS`" + `
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

// writeSettings writes a chapter. A long text that an earlier chapter has for a flag of
// the same name, whose default may differ, is a reference to it. Written has the chapters
// by what they describe.
func writeSettings(to io.Writer, written map[setting]string, title, text string, all []setting) {
	const long = 12 // words; a reference has four
	fmt.Fprintf(to, "\n## %s\n", title)
	if text != "" {
		fmt.Fprintf(to, "\n%s\n", text)
	}
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(to)
	for _, s := range all {
		name := "`" + s.name + "`"
		if s.value != "" {
			name += " (`" + s.value + "`)"
		}
		help := strings.ReplaceAll(s.help, "<", `\<`) // else an element of HTML
		described := setting{name: s.name, help: s.help}
		if earlier, ok := written[described]; !ok {
			written[described] = title
		} else if len(strings.Fields(s.help)) >= long {
			help = fmt.Sprintf("As of [%s](#%s).", earlier, strings.ReplaceAll(strings.ToLower(earlier), " ", "-"))
		}
		fmt.Fprintf(to, "- %s: %s\n", name, help)
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
	written := map[setting]string{}
	writeSettings(&document, written, "Both roles", "", both)
	writeSettings(&document, written, "dra-exporter node", byName["node"].Help, without(of("node"), both))
	writeSettings(&document, written, "dra-exporter cluster", byName["cluster"].Help, without(of("cluster"), both))
	names = slices.DeleteFunc(names, func(name string) bool { return name == "node" || name == "cluster" })
	var chapters []chapter
	for i := 0; i < len(names); i++ {
		title, text, all := "dra-exporter "+names[i], byName[names[i]].Help, of(names[i])
		for len(all) > 0 && i+1 < len(names) && slices.Equal(of(names[i+1]), all) {
			i++
			title, text = title+", "+names[i], text+" "+byName[names[i]].Help
		}
		own, as := apart(all, of("node"), of("cluster"), both)
		chapters = append(chapters, chapter{title, strings.TrimSpace(text + " " + as), own})
	}
	shared := sharedSettings(chapters)
	writeSettings(&document, written, "Several commands", "", shared)
	for _, c := range chapters {
		if names := settingNames(common(c.settings, shared)); names != "" {
			c.text += " Of [several commands](#several-commands): " + names + "."
		}
		writeSettings(&document, written, c.title, c.text, without(c.settings, shared))
	}
	for name := range byName {
		for _, s := range of(name) {
			if want := "DRA_EXPORTER_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(strings.TrimPrefix(s.name, "--"))); s.variable != want && s.variable != "NODE_NAME" {
				t.Errorf("the variable of %s is %s, and the document says %s", s.name, s.variable, want)
			}
		}
	}
	metrictest.CompareGolden(t, "../../docs/configuration.md", document.String())
}

// chapter is one or several commands with the same flags.
type chapter struct {
	title, text string
	settings    []setting
}

// sharedSettings returns the flags that several chapters have alike. Of those that have a
// name in common, there is the first.
func sharedSettings(chapters []chapter) (shared []setting) {
	for i := range chapters {
		for _, s := range chapters[i].settings {
			isSame := func(other setting) bool { return other == s }
			has := func(c chapter) bool { return slices.ContainsFunc(c.settings, isSame) }
			isNamed := func(other setting) bool { return other.name == s.name }
			if slices.ContainsFunc(chapters[i+1:], has) && !slices.ContainsFunc(shared, isNamed) {
				shared = append(shared, s)
			}
		}
	}
	return shared
}

func settingNames(all []setting) string {
	var names []string
	for _, s := range all {
		names = append(names, "`"+s.name+"`")
	}
	return strings.Join(names, ", ")
}

// apart removes the flags of the roles from a command's settings, and refers to them.
func apart(all, node, cluster, both []setting) (own []setting, as string) {
	switch {
	case len(common(all, node)) == len(node):
		return without(all, node), "Takes all flags of `dra-exporter node` too."
	case len(common(all, cluster)) == len(cluster):
		return without(all, cluster), "Takes all flags of `dra-exporter cluster` too."
	}
	inBoth := common(all, both)
	if len(inBoth) < 2 { // a reference would be longer
		return all, ""
	}
	return without(all, both), "Of both roles' flags it takes " + settingNames(inBoth) + "."
}
