package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// firstChart is the commit whose chart stands for the previous release until there
// is one.
const firstChart = "f0288b0"

// chartFolder is where the repository has the chart.
const chartFolder = "deploy/helm/dra-exporter"

// previousVersion is the version that the previous chart gets.
const previousVersion = "0.0.1"

// packagePrevious packages the chart of the last release, or an early one.
func (r *rehearsal) packagePrevious(ctx context.Context) error {
	commit := firstChart
	if tag, err := r.git(ctx, "describe", "--tags", "--abbrev=0", "--match=v*", "--exclude=v"+r.version); err == nil {
		commit = strings.TrimSpace(tag)
	}
	if _, err := r.git(ctx, "cat-file", "-e", commit+"^{commit}"); err != nil {
		return fmt.Errorf("find the previous chart, which needs the history of the repository: %w", err)
	}
	folder := filepath.Join(r.work, "previous")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return err
	}
	if err := r.unpackChart(ctx, commit, folder); err != nil {
		return err
	}
	r.logf("the previous chart is that of %s", commit)
	return r.do(r.command(ctx, filepath.Join(r.bin, "helm", "helm"), "package", filepath.Join(folder, chartFolder),
		"--version="+previousVersion, "--destination="+folder))
}

// unpackChart writes the chart of a commit below a folder. Git has its dashboards
// and rules in early commits; in later ones they are made from the rest.
func (r *rehearsal) unpackChart(ctx context.Context, commit, folder string) error {
	arguments := []string{"archive", commit}
	_, missing := r.git(ctx, "cat-file", "-e", commit+":"+chartFolder+"/files")
	if missing == nil {
		arguments = append(arguments, chartFolder)
	}
	archive, err := r.git(ctx, arguments...)
	if err != nil {
		return err
	}
	unpack := exec.CommandContext(ctx, "tar", "--extract", "--directory", folder)
	unpack.Stdin = strings.NewReader(archive)
	if err := r.do(unpack); err != nil || missing == nil {
		return err
	}
	return r.do(r.command(ctx, "make", "-C", folder, "chart-files"))
}

// install runs the end-to-end test of a release, which must not have been skipped.
func (r *rehearsal) install(ctx context.Context) error {
	digest, err := os.ReadFile(r.path("dist", "images", "glibc.digest"))
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "test", "-v", "-count=1", "-timeout=20m", "-run=^TestReleaseInstall$", ".")
	command.Dir = filepath.Join(r.repository, "test", "suites", "e2e")
	command.Env = append(os.Environ(), "DRA_E2E_BIN="+r.bin, "DRA_E2E_KUBERNETES_VERSION="+r.kubernetes,
		"DRA_E2E_RELEASE="+r.version, "DRA_E2E_RELEASE_REGISTRY="+r.release.registry, "DRA_E2E_RELEASE_DIGEST="+string(digest),
		"DRA_E2E_RELEASE_PREVIOUS="+filepath.Join(r.work, "previous", "dra-exporter-"+previousVersion+".tgz"))
	var output bytes.Buffer
	command.Stdout, command.Stderr = io.MultiWriter(r.out, &output), r.out
	if err := command.Run(); err != nil {
		return fmt.Errorf("run TestReleaseInstall: %w", err)
	}
	if !strings.Contains(output.String(), "\n--- PASS: TestReleaseInstall ") {
		return errors.New("TestReleaseInstall did not run")
	}
	return nil
}
