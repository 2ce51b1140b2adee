package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// What a pod that requests two devices of the demo would wait for: one of three is held
// soon after the start, and a pool is not complete.
func TestFitOfTheDemo(t *testing.T) {
	_, _, tour := touringDemo(t)
	kubeconfig := ""
	for kubeconfig == "" && tour.Scan() {
		if found := regexp.MustCompile(`--kubeconfig=(\S+)`).FindStringSubmatch(tour.Text()); found != nil {
			kubeconfig = found[1]
		}
	}
	output := ""
	for patience := 0; patience < 200; patience++ {
		command := program(t.Context(), "fit", "--kubeconfig="+kubeconfig, "--filename=testdata/fit.yaml")
		var messages strings.Builder // on a busy machine, what it is still reading
		command.Stderr = &messages
		text, err := command.Output()
		if err == nil || command.ProcessState.ExitCode() != exitUnfit {
			t.Fatalf("%v\n%s", err, messages.String())
		}
		if output = string(text); strings.Contains(output, "now: held") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	metrictest.CompareGolden(t, "testdata/fit.txt", output)
	for _, flags := range [][]string{{"-f", "-"}, {"--filename", "-"}, {"--filename=-"}, {"-f-"}} {
		command := program(t.Context(), append([]string{"fit", "--kubeconfig=" + kubeconfig}, flags...)...)
		manifest, err := os.Open("testdata/fit.yaml")
		if err != nil {
			t.Fatal(err)
		}
		defer manifest.Close()
		command.Stdin = manifest
		if text, err := command.CombinedOutput(); err == nil || command.ProcessState.ExitCode() != exitUnfit {
			t.Errorf("%s: %v\n%s", flags, err, text)
		}
	}
}

// A file that is not regular may never end, or never begin.
func TestManifestOfNoRegularFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		pipe:              "is not a regular file; -f - reads the standard input",
		"/dev/zero":       "is not a regular file; -f - reads the standard input",
		t.TempDir():       "is not a regular file; -f - reads the standard input",
		"testdata/absent": "read the manifest: open testdata/absent: no such file or directory",
	} {
		if _, err := readManifest(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

// An interrupt ends the wait for a standard input that does not end.
func TestManifestOfAnEndlessInput(t *testing.T) {
	input, writer := io.Pipe()
	defer writer.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := decodeInput(ctx, input); err == nil || !strings.Contains(err.Error(), "read the manifest: context canceled") {
		t.Error(err)
	}
}
