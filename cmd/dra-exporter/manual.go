package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// manualFlag prints the man page, which archives of a release have. Kingpin declares it.
const manualFlag = "--help-man"

// manualTemplate is the man page. Kingpin's own has no variables, examples or groups of
// commands, and takes dashes for hyphens and a dot at the begin of a line for a request.
const manualTemplate = `{{define "Rows"}}{{range .}}.TP
\fB{{index . 0|TrimSpace|Roff}}\fR
{{index . 1|Roff}}
{{end}}{{end -}}
{{define "Command"}}{{if not .Hidden}}.SS dra\-exporter {{.FullCommand|Roff}}{{range .Args}} {{if not .Required}}[{{end}}\fI{{.Name|Roff}}\fR{{if not .Required}}]{{end}}{{end}}
{{.Help|Roff}}
{{template "Rows" .Args|ArgsToTwoColumns}}{{template "Rows" .Flags|FlagsToTwoColumns}}{{with .HelpLong}}.PP
.EX
{{.|Roff}}
.EE
{{end}}{{range .Commands}}{{template "Command" .}}{{end}}{{end}}{{end -}}
.TH DRA\-EXPORTER 1 "" "{{.App.Version|Release|Roff}}" "User Commands"
.nh
.ad l
.SH NAME
dra\-exporter \- observability of Kubernetes Dynamic Resource Allocation
.SH SYNOPSIS
.B dra\-exporter
.I command
.RI [ flags ]
.SH DESCRIPTION
{{.App.Help|Roff}}
.PP
Every flag is also an environment variable, which its text has in parentheses. Flags take precedence.
.SH OPTIONS
{{template "Rows" .App.Flags|FlagsToTwoColumns -}}
.SH COMMANDS
{{range .App.Commands}}{{template "Command" .}}{{end -}}
.SH EXIT STATUS
.TP
.B 0
Done.
.TP
.B 1
What was asked for could not be done, or check found a failure.
.TP
.B 2
The command line or a variable is wrong.
.TP
.B 3
Fewer pods fit than requested, which only fit reports.
.SH EXAMPLES
.EX
{{Examples|Roff}}
.EE
.SH SEE ALSO
.BR kubectl (1)
.PP
https://github.com/dra\-exporter/dra\-exporter
`

// writeManual writes the man page to the application's writer.
func writeManual(app *kingpin.Application) error {
	parsed, err := app.ParseContext(nil) // names the variables
	if err != nil {
		return fmt.Errorf("prepare the man page: %w", err)
	}
	if err := app.UsageForContextWithTemplate(parsed, 0, manualTemplate); err != nil {
		return fmt.Errorf("write the man page: %w", err)
	}
	return nil
}

// release returns the program and its version, without the revision.
func release(version string) string {
	short, _, _ := strings.Cut(version, " (rev")
	return short
}

// roff returns text that a man page shows as it is.
func roff(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
