package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/common/model"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/advise"
)

// adviseFlags are what to read, and how Prometheus is reached.
type adviseFlags struct {
	url        string
	configFile string
	namespace  string
	window     model.Duration
	output     outputFlag
	timeout    time.Duration
}

// addAdvise adds the subcommand that says which claims hold more than they use.
func addAdvise(c *commands, stdout, stderr io.Writer) {
	command := c.app.Command("advise", "Which claims hold more of their devices than they use, and which partition, share or number of devices would be enough.").HelpLong(`  dra-exporter advise --prometheus.url=http://localhost:9090
  dra-exporter advise --prometheus.url=https://prometheus.example.com --http.config.file=client.yaml
  dra-exporter advise --prometheus.url=http://localhost:9090 -n team-a --window=28d -o json`)
	flags := &adviseFlags{}
	command.Flag("prometheus.url", "URL of the Prometheus, or of a server with its API, that has the series of the recording rules.").PlaceHolder("URL").Required().StringVar(&flags.url)
	command.Flag("http.config.file", "File with credentials and TLS for Prometheus: the HTTP client configuration that promtool has too.").PlaceHolder("FILE").StringVar(&flags.configFile)
	command.Flag("namespace", "Namespace of the claims. Default: all.").Short('n').StringVar(&flags.namespace)
	command.Flag("window", "How much of the past to look at, at least 1d.").Default("7d").SetValue(&flags.window)
	flags.output.addTo(command)
	command.Flag("timeout", "Time limit for all queries.").Default("1m").DurationVar(&flags.timeout)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runAdvise(ctx, flags, stdout, stderr) }
}

func runAdvise(ctx context.Context, flags *adviseFlags, stdout, stderr io.Writer) error {
	switch {
	case flags.timeout <= 0:
		return usagef("--timeout=%s is too short to query Prometheus", flags.timeout)
	case time.Duration(flags.window) < advise.Enough:
		return usagef("--window=%s is too short: there is no advice without a day of history", flags.window)
	}
	client, err := advise.NewClient(flags.url, flags.configFile)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, flags.timeout)
	defer cancel()
	report, err := advise.Run(ctx, client, advise.Options{Namespace: flags.namespace, Window: time.Duration(flags.window), Until: clock.System()().Wall})
	if err != nil {
		return err
	}
	return flags.output.write(stdout, "report", report, func() string {
		for _, warning := range report.Warnings {
			fmt.Fprintf(stderr, "Prometheus warns: %s\n", source.Text(warning))
		}
		return report.Text()
	})
}
