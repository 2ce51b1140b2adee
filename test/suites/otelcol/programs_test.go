package otelcol

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const repository = "../../.."

// program returns the path of a program that the makefile has built.
func program(name string) string { return filepath.Join("..", "..", ".bin", name) }

// oldest reports whether the oldest supported collector is tested in place of
// the newest. It takes minutes to build.
func oldest() bool { return os.Getenv("DRA_TEST_VERSIONS") == "oldest" }

// collector returns the path of the collector that is tested.
func collector() string {
	if oldest() {
		return program("otelcol-oldest/otelcol")
	}
	return program("otelcol/otelcol")
}

// configuration returns the path of a shipped configuration. For the oldest
// collector it is a copy with the older names of components, as README.md of
// deploy/otel describes it.
func configuration(t *testing.T, name string) string {
	t.Helper()
	folder := filepath.Join(repository, "deploy", "otel")
	file := filepath.Join(folder, name)
	if !oldest() {
		return file
	}
	text := read(t, file)
	renamed := regexp.MustCompile("`([a-z]+)` for `([a-z_]+)`").FindAllStringSubmatch(read(t, filepath.Join(folder, "README.md")), -1)
	if len(renamed) != 3 {
		t.Fatalf("README.md names the older names %v", renamed)
	}
	for _, names := range renamed {
		text = regexp.MustCompile(`\b`+names[2]+`\b`).ReplaceAllString(text, names[1])
	}
	file = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// exporter builds the program of this repository, once, without vendor
// libraries.
var exporter = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "dra-exporter-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "dra-exporter")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, "./cmd/dra-exporter")
	build.Dir, build.Env = repository, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, output)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := exporter(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// process is a program that runs until the test ends, or until end is called.
type process struct {
	command *exec.Cmd
	log     string
	ended   chan struct{} // closed when it has ended
}

// start runs a program with these variables and without our own variables for
// OpenTelemetry, and waits until the URL answers.
func start(t *testing.T, name, ready string, env []string, arguments ...string) *process {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{command: exec.Command(name, arguments...), log: log.Name(), ended: make(chan struct{})}
	p.command.Stdout, p.command.Stderr = log, log
	p.command.Env = append(cleanEnvironment(), env...)
	err = p.command.Start()
	log.Close()
	if err != nil {
		t.Fatalf("%v: see `make -C test otelcol`", err)
	}
	go func() { p.command.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		p.end()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(name), read(t, p.log))
		}
	})
	eventually(t, filepath.Base(name)+" to be ready", func() error {
		select {
		case <-p.ended:
			t.Fatalf("%s has ended", filepath.Base(name))
		default:
		}
		return answers(ready)
	})
	return p
}

// cleanEnvironment returns this process's environment without the variables of
// OpenTelemetry.
func cleanEnvironment() []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "OTEL_") && !strings.HasPrefix(variable, "DRA_EXPORTER_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// end sends a signal to the program to end, and waits until it has.
func (p *process) end() {
	p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		p.command.Process.Kill()
		<-p.ended
	}
}

// answers returns an error unless a URL answers with 200.
func answers(url string) error {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// eventually calls check every 200 ms until it succeeds, for at most two
// minutes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	err := errors.New("not asked")
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("wait for %s: %v", what, err)
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
