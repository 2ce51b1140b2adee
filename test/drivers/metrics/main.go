// Metrics serves device metrics of a DRA driver with the kit of
// plugin/devicemetrics: those of a file, read again each time. It is the process
// beside a driver in end-to-end tests.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	options := devicemetrics.Options{Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	flag.StringVar(&options.Driver, "driver-name", "", "name of the DRA driver")
	flag.StringVar(&options.Folder, "folder", devicemetrics.DefaultFolder, "where to create the socket")
	path := flag.String("devices", "", "JSON file of the devices, an array of devicemetrics.Device")
	flag.Parse()
	options.Read = func(context.Context) (devices []devicemetrics.Device, err error) {
		text, err := os.ReadFile(*path)
		if err != nil {
			return nil, err
		}
		return devices, json.Unmarshal(text, &devices)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return devicemetrics.Serve(ctx, options)
}
