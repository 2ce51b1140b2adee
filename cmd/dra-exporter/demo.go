package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/internal/simulation"
)

// addDemo adds the subcommand that needs neither a GPU nor a cluster.
func (c *commands) addDemo(stdout, stderr io.Writer) {
	command := c.app.Command("demo", "Run the node role on a simulated node: no GPU, no cluster.")
	web := addWebFlags(command, "127.0.0.1:9420", stderr)
	seed := command.Flag("seed", "Seed of the simulation: the same seed plays the same story.").Default("1").Uint64()
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runDemo(ctx, *seed, web, stdout) }
}

// runDemo wires the agent as on a real node; only what lies around it is
// simulated.
func runDemo(ctx context.Context, seed uint64, webFlags *webFlags, stdout io.Writer) (err error) {
	log := webFlags.logger()
	directory, err := os.MkdirTemp("", "dra-exporter-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the simulated node: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	now := clock.System()
	simulated, err := simulation.Start(ctx, simulation.Options{Dir: directory, Clock: now, Log: log, Seed: seed})
	if err != nil {
		return fmt.Errorf("start the simulated node: %w", err)
	}
	defer simulated.Close()
	around := surroundings{
		node: simulated.NodeName(), clock: now, sources: []device.Source{simulated.Source()},
		socket: simulated.KubeletSocket(), cdiDirs: []string{simulated.CDIDir()}, cluster: simulated.Config(),
	}
	agent, err := newAgent(demoFlags(), around, log)
	if err != nil {
		return err
	}
	server, err := agent.server(webFlags, log)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	played := make(chan error, 1)
	go func() { played <- simulated.Run(ctx) }()
	tellWhere(stdout, server.Addresses()[0], webFlags.path)
	err = agent.run(ctx, server)
	stop()
	return errors.Join(err, <-played)
}

// demoFlags are the defaults of the node role, with a grace that lets people
// see a claim come and go.
func demoFlags() *agentFlags {
	return &agentFlags{
		interval: time.Second, slowInterval: 30 * time.Second, grace: time.Minute,
		idle: 0.01, restartAfter: 10 * time.Minute, maxSeries: 20000,
		healthHold: 30 * time.Second, throttle: 0.25,
	}
}

func tellWhere(stdout io.Writer, address net.Addr, metrics string) {
	base := "http://" + address.String()
	fmt.Fprintf(stdout, `A simulated node: 8 GPUs and a network adapter, and claims that come and go. Ctrl-C ends it.

  the page   %s/
  metrics    curl -s %s%s | grep dra_claim
  as JSON    curl -s %s/api/v1/claims

`, base, base, metrics, base)
}
