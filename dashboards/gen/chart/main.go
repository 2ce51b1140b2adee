// Command chart writes the dashboards and rules into the Helm chart, which git does
// not have there.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/chart/copies"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

func main() {
	repository := flag.String("repository", "../../..", "`folder` with dashboards and alerts")
	chart := flag.String("chart", "", "`folder` of the chart to write to; that of the repository if empty")
	flag.Parse()
	if *chart == "" {
		*chart = filepath.Join(*repository, "deploy", "helm", "dra-exporter")
	}
	belongs, err := sets.Read(*repository)
	if err == nil {
		err = copies.Write(*repository, *chart, belongs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1) //nolint:forbidigo // this is a command
	}
}
