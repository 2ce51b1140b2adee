package main

import (
	"context"
	"errors"
	"net"
	"strings"

	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/dra-exporter/dra-exporter/collector/price"
	"github.com/dra-exporter/dra-exporter/internal/check"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
)

// readSettings tries what flags name: files, and the collector's address.
// Traces are the cluster role's alone.
func readSettings(ctx context.Context, flagsError error, prices string, pushFlags *otlp.Flags, traces bool, webFlags *webFlags) check.Settings {
	settings := check.Settings{FlagsError: flagsError, Prices: prices, WebConfig: *webFlags.toolkit.WebConfigFile}
	if prices != "" {
		_, settings.PricesError = price.Load(prices)
	}
	if settings.WebConfig != "" {
		settings.WebConfigError = toolkit.Validate(settings.WebConfig)
	}
	push, err := pushSettings(pushFlags)
	if err != nil {
		settings.PushError = errors.Unwrap(err)
		return settings
	}
	settings.PushWithheld = push.Withheld()
	push.Traces.On = push.Traces.On && traces
	settings.Pushes = dialAll(ctx, push)
	return settings
}

// dialAll opens and closes a connection to each endpoint. Nothing is pushed.
func dialAll(ctx context.Context, push otlp.Settings) []check.Push {
	var pushes []check.Push
	for _, signal := range []struct {
		name string
		otlp.Signal
	}{{"metrics", push.Metrics}, {"traces", push.Traces}} {
		switch last := len(pushes) - 1; {
		case !signal.On:
		case last >= 0 && pushes[last].Endpoint == signal.Endpoint:
			pushes[last].Signals += " and " + signal.name
		default:
			pushes = append(pushes, check.Push{Signals: signal.name, Endpoint: signal.Endpoint, DialError: dial(ctx, signal.Signal)})
		}
	}
	return pushes
}

func dial(ctx context.Context, signal otlp.Signal) error {
	network, address := "tcp", signal.Endpoint
	if path, isSocket := strings.CutPrefix(address, "unix://"); isSocket {
		network, address = "unix", path
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		port := "443"
		if signal.Insecure {
			port = "80"
		}
		address = net.JoinHostPort(strings.Trim(address, "[]"), port)
	}
	connection, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	return connection.Close()
}
