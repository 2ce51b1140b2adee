// Package agenttest builds the agent for tests.
package agenttest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Build builds the agent with cgo, as it is released, and returns its path. It
// needs Go and gcc. Tests of one checkout share the program: it lies in the user's
// cache and is linked again only if the sources have changed.
func Build(t testing.TB) string {
	t.Helper()
	list, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/dra-exporter/dra-exporter").Output()
	if err != nil {
		t.Fatalf("find the agent's module: %v", err)
	}
	root := strings.TrimSpace(string(list))
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	folder := filepath.Join(cache, "dra-exporter", "agent", fmt.Sprintf("%x", sha256.Sum256([]byte(root)))[:16])
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatalf("make a folder for the agent: %v", err)
	}
	lock, err := os.OpenFile(folder+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatalf("lock the agent: %v", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatalf("lock the agent: %v", err)
	}
	path := filepath.Join(folder, "dra-exporter")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -extldflags=-Wl,-z,lazy", "-o", path, "./cmd/dra-exporter")
	build.Dir = root
	build.Env = append(build.Environ(), "CGO_ENABLED=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, out)
	}
	return path
}
