// Command nri-plugin runs the NRI plugin of NVIDIA's Container Toolkit, which
// nvidia-ctk-installer runs when the GPU operator enables it: without the rest
// of the installer, which would rewrite the configuration of the machine's
// container runtimes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sirupsen/logrus"

	"github.com/NVIDIA/nvidia-container-toolkit/cmd/nvidia-ctk-installer/container/runtime/nri"
)

func main() {
	socket := flag.String("socket", "", "NRI socket of the container runtime")
	namespace := flag.String("namespace", "", "namespace whose pods the plugin listens to")
	flag.Parse()
	if err := run(*socket, *namespace); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until the process receives a signal to end. 10 is the installer's own index.
func run(socket, namespace string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	plugin := nri.NewPlugin(ctx, logrus.StandardLogger(), namespace)
	if err := plugin.Start(ctx, socket, "10"); err != nil {
		return fmt.Errorf("start the plugin: %w", err)
	}
	fmt.Println("registered")
	<-ctx.Done()
	plugin.Stop()
	return nil
}
