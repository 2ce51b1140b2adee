package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/explain"
	"github.com/dra-exporter/dra-exporter/internal/fit"
)

// fitFlags are named as in kubectl.
type fitFlags struct {
	kubectlFlags
	file    string
	count   int32
	output  outputFlag
	timeout time.Duration
}

// addFit adds the subcommand that says how often the pods of a manifest fit into a
// cluster.
func addFit(c *commands, stdout, stderr io.Writer) {
	command := c.app.Command("fit", "How many pods of a manifest could run now, where, and what keeps more from running. Nothing is created.").HelpLong(`  dra-exporter fit -f job.yaml               # all pods of a Job, a JobSet, a Deployment and others
  dra-exporter fit -f pod.yaml --count=8     # eight of them
  kubectl get job train -o yaml | dra-exporter fit -f -
  dra-exporter fit -f pod.yaml -o json       # for programs; the exit status is 3 if not all fit`)
	flags := &fitFlags{}
	flags.addTo(command)
	command.Flag("filename", "File with the pod or with what makes pods, and with their claims or templates that do not exist yet; - for the standard input.").Short('f').Required().StringVar(&flags.file)
	command.Flag("count", "Number of pods. Default: as many as the manifest runs at once.").PlaceHolder("N").Int32Var(&flags.count)
	command.Flag("namespace", "Namespace of pods without one. Default: the namespace of the context.").Short('n').StringVar(&flags.namespace)
	flags.output.addTo(command)
	command.Flag("timeout", "Time limit for reading the cluster, and for the diagnosis after that.").Default("30s").DurationVar(&flags.timeout)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return runFit(ctx, flags, stdout, stderr) }
}

// withStandardInput returns the arguments with -f - as one: the parser takes a single -
// for an empty value.
func withStandardInput(args []string) []string {
	var all []string
	for _, arg := range args {
		if last := len(all) - 1; arg == "-" && last >= 0 && (all[last] == "-f" || all[last] == "--filename") {
			all[last] = "--filename=-"
			continue
		}
		all = append(all, arg)
	}
	return all
}

// runFit fails with errUnfit if fewer pods fit than requested.
func runFit(ctx context.Context, flags *fitFlags, stdout, stderr io.Writer) error {
	switch {
	case flags.timeout <= 0:
		return usagef("--timeout=%s is too short to read a cluster", flags.timeout)
	case flags.count < 0:
		return usagef("--count=%d is no number of pods", flags.count)
	}
	manifest, err := readManifest(ctx, flags.file)
	if err != nil {
		return err
	}
	config, namespace, err := flags.connection()
	if err != nil {
		return err
	}
	if manifest.Namespace != "" && flags.namespace != "" && manifest.Namespace != flags.namespace {
		return usagef("%s %s is in namespace %s, not in that of --namespace=%s", manifest.Kind, manifest.Name, manifest.Namespace, flags.namespace)
	}
	if manifest.Namespace != "" {
		namespace = manifest.Namespace
	}
	reader := clusterread.Reader{Config: config, Clock: clock.System(), Log: discardLogs(), Stderr: stderr, Timeout: flags.timeout}
	cluster, err := reader.Trial(ctx, namespace)
	if err != nil {
		return err
	}
	counting, cancel := context.WithTimeout(ctx, flags.timeout)
	defer cancel()
	report, err := fit.Fit(counting, cluster, manifest, fit.Options{Namespace: namespace, Count: int(flags.count), Explain: explain.Supposed})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: it took longer than --timeout=%s", err, flags.timeout)
	}
	if err != nil {
		return err
	}
	if err := flags.output.write(stdout, "report", report, report.Text); err != nil {
		return err
	}
	switch {
	case !report.IsKnown():
		return errors.New("it is not known whether all pods fit: see what is not read or not considered")
	case !report.Fits:
		return errUnfit
	}
	return nil
}

// readManifest reads a regular file, or the standard input until ctx ends.
func readManifest(ctx context.Context, name string) (*fit.Manifest, error) {
	if name == "-" {
		return decodeInput(ctx, os.Stdin)
	}
	// Without O_NONBLOCK, opening a named pipe waits for its other end.
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read the manifest: %s is not a regular file; -f - reads the standard input", name)
	}
	manifest, err := fit.Decode(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return manifest, nil
}

// decodeInput decodes what may never end: a terminal, or a pipe. When ctx ends, the
// process ends too, and the read with it.
func decodeInput(ctx context.Context, input io.Reader) (*fit.Manifest, error) {
	type decoded struct {
		manifest *fit.Manifest
		err      error
	}
	done := make(chan decoded, 1)
	go func() {
		manifest, err := fit.Decode(input)
		done <- decoded{manifest, err}
	}()
	select {
	case result := <-done:
		return result.manifest, result.err
	case <-ctx.Done():
		return nil, fmt.Errorf("read the manifest: %w", ctx.Err())
	}
}
