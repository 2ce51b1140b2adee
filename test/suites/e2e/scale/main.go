// Command scale is the environment of a benchmark: a real API server with its
// etcd and no other component (no scheduler, controllers or kubelets: the
// generator replaces all of them), as a process that creates a cluster in it
// and reads commands from standard input. See Stage in package generator.
//
// DRA_E2E_KUBERNETES names the folder of the programs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/dra-exporter/dra-exporter/test/fakes/generator"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	size, err := generator.SizeOf(os.Getenv(generator.AsStage))
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "dra-scale-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	plane, err := startPlane(ctx, os.Getenv("DRA_E2E_KUBERNETES"), folder)
	if err != nil {
		return err
	}
	defer plane.stop()
	store, err := newStore(ctx, plane.server, plane.token)
	if err != nil {
		return err
	}
	stage := generator.Stage{Size: size, Store: store, Parallel: 16, Kubeconfig: generator.Connection(plane.server, plane.token)}
	return stage.Serve(ctx, os.Stdin, os.Stdout)
}
