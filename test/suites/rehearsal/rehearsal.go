package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// rehearsal is one run. It is not safe for concurrent use.
type rehearsal struct {
	options
	work     string // temporary folder
	out      io.Writer
	began    time.Time
	sources  string   // copy of the checkout, as the tag would have it
	release  release  // what is known of the release
	registry *service // nil until it runs
}

// release is what the workflow knows of the release from its tag.
type release struct {
	revision string
	created  time.Time
	registry string // with the owner: 127.0.0.1:5000/dra-exporter
}

// step is a part of the rehearsal with the words that the log has for it.
type step struct {
	name    string
	run     func(context.Context) error
	publish string // step of .ci/publish, in place of run
}

// steps returns all steps in the order of the workflow, followed by what a user
// does.
func (r *rehearsal) steps() []step {
	return []step{
		{name: "copy the sources, with the version in CHANGELOG.md", run: r.copySources},
		{name: "start the registry, make a key", run: r.prepare},
		{name: "notes", publish: "notes"},
		{name: "build and test the images", run: r.buildImages},
		{name: "push the images", run: r.pushImages},
		{name: "sign the images", publish: "sign-images"},
		{name: "archives, chart, SBOMs and checksums", run: r.makeRelease},
		{name: "attach the SBOMs to the images", publish: "attest-sboms"},
		{name: "sign the checksums", publish: "sign-checksums"},
		{name: "push the chart, sign it", publish: "push-chart"},
		{name: "verify by the documented commands", run: r.verify},
		{name: "compare the attached SBOMs with the images", run: r.compareSBOMs},
		{name: "refuse what is forged", run: r.refuse},
		{name: "package the previous chart", run: r.packagePrevious},
		{name: "install from the registry, and upgrade from the previous chart", run: r.install},
	}
}

// all runs the steps, and logs how long each one took.
func (r *rehearsal) all(ctx context.Context) error {
	steps := r.steps()
	took := make([]time.Duration, len(steps))
	for i, s := range steps {
		r.logf("== %d/%d %s", i+1, len(steps), s.name)
		began := time.Now()
		if err := r.step(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		took[i] = time.Since(began)
	}
	r.logf("== passed: %s", r.version)
	for i, s := range steps {
		r.logf("%7.1fs  %s", took[i].Seconds(), s.name)
	}
	return nil
}

// close ends the registry and removes the temporary files.
func (r *rehearsal) close() error {
	var errs []error
	if r.registry != nil {
		errs = append(errs, r.registry.stop())
	}
	return errors.Join(append(errs, os.RemoveAll(r.work))...)
}

// logf writes a line with the seconds since the start.
func (r *rehearsal) logf(format string, args ...any) {
	fmt.Fprintf(r.out, "%6.1fs  %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// command returns a command that runs in the copy of the sources with the
// release's variables, in addition to the environment.
func (r *rehearsal) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = r.sources
	command.Env = append(os.Environ(),
		"VERSION="+r.version, "REVISION="+r.release.revision, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.release.created.Unix()),
		"PLATFORMS="+strings.Join(platforms(), " "),
		"REGISTRY="+r.release.registry, "HELM="+filepath.Join(r.bin, "helm", "helm"), "HELM_FLAGS=--plain-http",
		"COSIGN="+r.cosign(), "COSIGN_FLAGS="+strings.Join(signFlags(r.key("signer")), " "), "COSIGN_PASSWORD=",
		"HELM_CACHE_HOME="+filepath.Join(r.work, "helm"), "HELM_CONFIG_HOME="+filepath.Join(r.work, "helm"), "HELM_DATA_HOME="+filepath.Join(r.work, "helm"),
	)
	return command
}

// platforms are those that need no compiler for another architecture.
func platforms() []string {
	return []string{"linux/" + runtime.GOARCH, "linux/" + runtime.GOARCH + "/nvidia"}
}

// do runs a command and writes its output to the log.
func (r *rehearsal) do(command *exec.Cmd) error {
	command.Stdout, command.Stderr = r.out, r.out
	if err := command.Run(); err != nil {
		return fmt.Errorf("run %s: %w", strings.Join(command.Args, " "), err)
	}
	return nil
}

func (r *rehearsal) step(ctx context.Context, s step) error {
	if s.publish != "" {
		return r.do(r.command(ctx, r.path(".ci", "publish"), s.publish))
	}
	return s.run(ctx)
}

// makeRelease makes the files of the release with the script of the workflow.
func (r *rehearsal) makeRelease(ctx context.Context) error {
	digest, err := os.ReadFile(r.path("dist", "images", "glibc.digest"))
	if err != nil {
		return err
	}
	command := r.command(ctx, r.path(".ci", "release"), "dist/release")
	command.Env = append(command.Env, "IMAGE_DIGEST="+string(digest))
	return r.do(command)
}

// path returns a path in the copy of the sources.
func (r *rehearsal) path(parts ...string) string {
	return filepath.Join(append([]string{r.sources}, parts...)...)
}
