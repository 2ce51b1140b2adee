// Command image builds a target of a Dockerfile as an image that containerd
// can import, without a container engine. BuildKit's own parser reads the
// Dockerfile. Its steps are executed on this machine, as root. Base images are
// folders: no image is pulled.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run builds, or lists the base images of a target. The output of the steps
// goes to the log.
func run(ctx context.Context, args []string, stdout, log io.Writer) error {
	b := &build{args: map[string]string{}, bases: map[string]string{}, stages: map[int]*stage{}, log: log}
	var list bool
	var name, out string
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.StringVar(&b.context, "context", ".", "`folder` with the Dockerfile and what it copies")
	flags.StringVar(&b.target, "target", "", "`stage` to build; empty: the last one")
	flags.StringVar(&b.arch, "arch", hostArch(), "`architecture` to build for")
	flags.StringVar(&name, "name", "", "`name` of the image, with host and tag")
	flags.StringVar(&out, "out", "", "`file` to write the image to")
	flags.BoolVar(&list, "bases", false, "list the base images of the target, and build nothing")
	flags.Func("arg", "build argument `NAME=VALUE`; repeatable", setInto(b.args))
	flags.Func("base", "`IMAGE=FOLDER` in whose place it stands, or IMAGE=host for this machine; repeatable", setInto(b.bases))
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := b.read(); err != nil {
		return err
	}
	if list {
		names, err := b.externalBases()
		for _, name := range names {
			fmt.Fprintln(stdout, name)
		}
		return err
	}
	if name == "" || out == "" {
		return errors.New("-name and -out are needed")
	}
	return b.image(ctx, name, out)
}

// setInto decodes KEY=VALUE. It splits at the last =, because names of images
// contain none.
func setInto(values map[string]string) func(string) error {
	return func(text string) error {
		key, value, found := strings.Cut(text, "=")
		if !found {
			return fmt.Errorf("%q is not NAME=VALUE", text)
		}
		values[key] = value
		return nil
	}
}
