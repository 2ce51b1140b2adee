// Package agenttest builds the agent for tests.
package agenttest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Build builds the agent with cgo, as it is released, into a folder that goes
// with the test. It needs Go and gcc.
func Build(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dra-exporter")
	list, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/dra-exporter/dra-exporter").Output()
	if err != nil {
		t.Fatalf("find the agent's module: %v", err)
	}
	root := string(list[:len(list)-1])
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -extldflags=-Wl,-z,lazy", "-o", path, "./cmd/dra-exporter")
	build.Dir = root
	build.Env = append(build.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	return path
}
