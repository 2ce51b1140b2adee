package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/common/version"

	"github.com/dra-exporter/dra-exporter/collector/self"
)

// buildVersion returns the version that was linked in, or the one that the Go
// command recorded.
func buildVersion() self.Build {
	v := self.Build{Version: version.Version, Revision: version.Revision, GoVersion: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(v.Version, info.Main.Version)
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Revision = cmp.Or(v.Revision, setting.Value)
			}
		}
	}
	v.Version, v.Revision = cmp.Or(v.Version, "unknown"), cmp.Or(v.Revision, "unknown")
	return v
}

func versionText() string {
	v := buildVersion()
	return fmt.Sprintf("dra-exporter %s (revision %s, %s)", v.Version, v.Revision, v.GoVersion)
}

// addVersion adds the subcommand that prints which program this is.
func addVersion(c *commands, stdout io.Writer) {
	command := c.app.Command("version", "Print the version.").HelpLong("  dra-exporter version\n  dra-exporter version -o json")
	output := &outputFlag{}
	output.addTo(command)
	c.byName[command.FullCommand()] = func(context.Context) error { return printVersion(output, stdout) }
}

// printVersion writes one line, or a JSON document whose names do not change.
func printVersion(output *outputFlag, stdout io.Writer) error {
	v := buildVersion()
	document := struct {
		Version   string `json:"version"`
		Revision  string `json:"revision"`
		GoVersion string `json:"goVersion"`
		Platform  string `json:"platform"`
	}{v.Version, v.Revision, v.GoVersion, runtime.GOOS + "/" + runtime.GOARCH}
	return output.write(stdout, "version", document, func() string { return versionText() + "\n" })
}
