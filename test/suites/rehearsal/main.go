// Command rehearsal does on this machine what the workflow release.yaml does on
// GitHub: it builds the images and the files of a release from a copy of the
// sources, publishes and signs them with the workflow's own script (.ci/publish),
// to an OCI registry and with a key of its own. It then verifies them by the
// documented commands, makes sure that forged ones fail, and installs the chart
// from the registry on a real Kubernetes node.
//
// It leaves out what needs GitHub or a container engine: the build by BuildKit for
// the other architecture, its provenance, signatures without a key, and the
// release's page. `make rehearsal` builds the programs that it runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "rehearsal:", err)
		os.Exit(1)
	}
}

// options are the command's flags. All paths are absolute.
type options struct {
	repository string // the checkout
	bin        string // test/.bin
	version    string // without the leading v
	kubernetes string // with the leading v
}

func run(ctx context.Context, args []string, stdout io.Writer) (err error) {
	var o options
	var logFile string
	flags := flag.NewFlagSet("rehearsal", flag.ContinueOnError)
	flags.StringVar(&o.repository, "repository", "../../..", "`folder` of the checkout")
	flags.StringVar(&o.bin, "bin", "../../.bin", "`folder` of the programs that test/Makefile builds")
	flags.StringVar(&o.version, "version", "", "`version` to release, as 1.2.3")
	flags.StringVar(&o.kubernetes, "kubernetes", "", "`version` of the node that the chart is installed on, as v1.2.3")
	flags.StringVar(&logFile, "log", "", "`file` to which the output is written too")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.version == "" || o.kubernetes == "" {
		return errors.New("-version and -kubernetes are needed")
	}
	for _, path := range []*string{&o.repository, &o.bin} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if logFile != "" {
		file, err := os.Create(logFile)
		if err != nil {
			return err
		}
		defer file.Close()
		stdout = io.MultiWriter(stdout, file)
	}
	work, err := os.MkdirTemp("", "rehearsal-")
	if err != nil {
		return err
	}
	r := &rehearsal{options: o, work: work, out: stdout, began: time.Now()}
	return errors.Join(r.all(ctx), r.close())
}
