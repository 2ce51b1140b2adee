package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/alecthomas/kingpin/v2"

	"github.com/dra-exporter/dra-exporter/collector/spelling"
)

// The exit statuses of all commands.
const (
	exitFailure = 1 // what was asked for could not be done, or found a failure
	exitUsage   = 2 // the command line, or a variable in place of a flag, is wrong
	exitUnfit   = 3 // fit: fewer pods fit than requested
)

// errUnfit means that fewer pods fit than requested, which the report says.
var errUnfit = errors.New("fewer pods fit than requested")

// usageError is an error of the command line. It unwraps to what its message wraps.
type usageError struct{ error }

func (e usageError) Unwrap() error { return errors.Unwrap(e.error) }

// usagef returns an error of the command line; the message names the flag.
func usagef(format string, values ...any) error {
	return usageError{fmt.Errorf(format, values...)}
}

// usageStatus returns the exit status of an error.
func usageStatus(err error) int {
	var wrong usageError
	if errors.As(err, &wrong) {
		return exitUsage
	}
	return exitFailure
}

// describeUsage describes what is wrong with a command line that cannot be parsed, and
// what may be meant. The application must be new; see refusedSetting.
func describeUsage(app *kingpin.Application, args []string, err error) error {
	parsed, syntax := app.ParseContext(args)
	if syntax == nil {
		if setting := refusedSetting(app, args); setting != "" {
			return usagef("%s%w", setting, err)
		}
		if repeated := regexp.MustCompile(`^flag '(.*)' cannot be repeated$`).FindStringSubmatch(err.Error()); repeated != nil {
			return usagef("--%s is set twice", repeated[1])
		}
		if incomplete := regexp.MustCompile(`^must select a subcommand of '(.*)'$`).FindStringSubmatch(err.Error()); incomplete != nil {
			group := findCommand(app, incomplete[1])
			return usagef("%s needs one of: %s", incomplete[1], strings.Join(names(group.Commands), ", "))
		}
		return usageError{err}
	}
	command := ""
	if parsed != nil && parsed.SelectedCommand != nil {
		command = parsed.SelectedCommand.FullCommand()
	}
	for _, kind := range []struct {
		message  *regexp.Regexp
		describe func(app *kingpin.Application, command, token string) error
	}{
		{regexp.MustCompile(`^unknown (?:long|short) flag '(.*)'$`), unknownFlag},
		{regexp.MustCompile(`^expected command but got "(.*)"$`), unknownCommand},
		{regexp.MustCompile(`^unexpected (.*)$`), unexpected},
		{regexp.MustCompile(`^expected argument for flag '(.*)'$`), func(_ *kingpin.Application, _, flag string) error { return usagef("%s needs a value", flag) }},
	} {
		if match := kind.message.FindStringSubmatch(syntax.Error()); match != nil {
			return kind.describe(app, command, match[1])
		}
	}
	return usageError{syntax}
}

// unknownFlag suggests a flag of the command, or names the command that has it.
func unknownFlag(app *kingpin.Application, command, flag string) error {
	place := ""
	if command != "" {
		place = " of " + command
	}
	name := strings.TrimPrefix(strings.TrimLeft(flag, "-"), "no-")
	var known, having []string
	model := app.Model()
	for _, flag := range model.Flags {
		known = append(known, flag.Name)
	}
	eachCommand(model.Commands, func(other *kingpin.CmdModel) {
		related := other.FullCommand == command || strings.HasPrefix(command, other.FullCommand+" ") || strings.HasPrefix(other.FullCommand, command+" ") && command != ""
		for _, flag := range other.Flags {
			switch {
			case flag.Hidden:
			case related:
				known = append(known, flag.Name)
			case flag.Name == name && !slices.Contains(having, other.FullCommand):
				having = append(having, other.FullCommand)
			}
		}
	})
	hint := nearest(name, known)
	switch {
	case len(name) == 1: // a short one
		return usagef("there is no flag %s%s", flag, place)
	case slices.Contains(known, name) && "--"+name != flag:
		return usagef("there is no flag %s%s: --%s takes a value", flag, place, name)
	case len(having) > 0 && strings.TrimSuffix(hint, "s") != strings.TrimSuffix(name, "s"): // one or several is most likely a slip
		return usagef("there is no flag %s%s; it is a flag of %s", flag, place, strings.Join(having, ", "))
	case hint != "":
		return usagef("there is no flag %s%s; did you mean --%s?", flag, place, hint)
	default:
		return usagef("there is no flag %s%s", flag, place)
	}
}

// unknownCommand suggests a command, or the kind of an object with its name.
func unknownCommand(app *kingpin.Application, command, word string) error {
	group, message := app.Model().CmdGroupModel, "there is no command"
	if command != "" {
		group, message = findCommand(app, command).CmdGroupModel, command+" does not know"
	}
	kind, name, _ := strings.Cut(word, "/")
	if hint := likelyCommand(group.Commands, kind); hint != "" {
		return usagef("%s %q; did you mean %s?", message, word, strings.TrimSpace(hint+" "+name))
	}
	return usagef("%s %q; use one of: %s", message, word, strings.Join(names(group.Commands), ", "))
}

// likelyCommand returns the command that is probably meant by an alias, by the kind of a
// workload, or by a misspelt name; empty if none is.
func likelyCommand(commands []*kingpin.CmdModel, word string) string {
	workload := regexp.MustCompile(`(?i)^(deploy|ds|sts|.*(deployment|job|set)s?)$`).MatchString(word)
	for _, command := range commands {
		if slices.Contains(command.Aliases, word) || workload && command.Name == string(clusterread.KindWorkload) {
			return command.Name
		}
	}
	return nearest(word, names(commands))
}

// unexpected describes an argument that a command does not take. It may be a
// misspelt command in place of the default one.
func unexpected(app *kingpin.Application, command, word string) error {
	if at := strings.LastIndex(command, " "); at >= 0 {
		parent := command[:at]
		if hint := nearest(word, names(findCommand(app, parent).Commands)); hint != "" {
			return usagef("%s does not know %q; did you mean %s?", parent, word, hint)
		}
	}
	return usagef("%s does not take %q", command, word)
}

// checkBooleans refuses values of boolean flags: the parser would take the value
// for the next argument, and report that one or none.
func checkBooleans(app *kingpin.Application, args []string) error {
	boolean := make(map[string]bool)
	add := func(flags []*kingpin.FlagModel) {
		for _, flag := range flags {
			boolean[flag.Name] = flag.IsBoolFlag()
		}
	}
	model := app.Model()
	add(model.Flags)
	eachCommand(model.Commands, func(command *kingpin.CmdModel) { add(command.Flags) })
	for _, word := range args {
		if word == "--" {
			break
		}
		flag, value, valued := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if strings.HasPrefix(word, "--") && valued && boolean[strings.TrimPrefix(flag, "no-")] {
			name := strings.TrimPrefix(flag, "no-")
			return usagef("--%s takes no value, such as %q: use --%s or --no-%s", flag, value, name, name)
		}
	}
	return nil
}

// nearest returns the known name that is probably meant; empty if none is. The last
// part of a name, as of --log.level, stands for all of it.
func nearest(word string, known []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, name := range known {
		distance := spelling.Distance(word, name)
		if _, last, dotted := strings.Cut(name, "."); dotted {
			distance = min(distance, spelling.Distance(word, last))
		}
		if len(word) >= 3 && strings.HasPrefix(name, word) {
			distance = min(distance, 1)
		}
		if distance < least {
			best, least = name, distance
		}
	}
	if len(word) <= least { // as different as any word
		return ""
	}
	return best
}

// findCommand returns the command with the full name.
func findCommand(app *kingpin.Application, full string) *kingpin.CmdModel {
	found := &kingpin.CmdModel{CmdGroupModel: &kingpin.CmdGroupModel{}, FlagGroupModel: &kingpin.FlagGroupModel{}}
	eachCommand(app.Model().Commands, func(command *kingpin.CmdModel) {
		if command.FullCommand == full {
			found = command
		}
	})
	return found
}

// eachCommand calls visit with each command and those below it.
func eachCommand(commands []*kingpin.CmdModel, visit func(*kingpin.CmdModel)) {
	for _, command := range commands {
		visit(command)
		eachCommand(command.Commands, visit)
	}
}

// names returns the names of the commands that are not hidden.
func names(commands []*kingpin.CmdModel) []string {
	var all []string
	for _, command := range commands {
		if !command.Hidden {
			all = append(all, command.Name)
		}
	}
	return all
}
