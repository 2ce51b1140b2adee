// Command chart writes the dashboards and rules into the Helm chart, which git does
// not have there, and for a release what its version changes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/chart/changes"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/chart/copies"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

func main() {
	repository := flag.String("repository", "../../..", "`folder` with dashboards and alerts")
	chart := flag.String("chart", "", "`folder` of the chart to write to; that of the repository if empty")
	version := flag.String("changes", "", "`version` whose changes are added to Chart.yaml; none if empty")
	flag.Parse()
	if *chart == "" {
		*chart = filepath.Join(*repository, "deploy", "helm", "dra-exporter")
	}
	belongs, err := sets.Read(*repository)
	if err == nil {
		err = copies.Write(*repository, *chart, belongs)
	}
	if err == nil && *version != "" {
		err = writeChanges(*repository, *chart, *version)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1) //nolint:forbidigo // this is a command
	}
}

func writeChanges(repository, chart, version string) error {
	changelog, err := os.ReadFile(filepath.Join(repository, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	all, err := changes.Read(string(changelog), version)
	if err != nil {
		return fmt.Errorf("read CHANGELOG.md: %w", err)
	}
	file := filepath.Join(chart, "Chart.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if text, err = changes.Annotate(text, all, version); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
