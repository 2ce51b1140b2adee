package site

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A version that is published replaces itself and leaves the others as they are;
// the branch has one commit. A pre-release is not published.
func TestPublish(t *testing.T) {
	remote, out := filepath.Join(t.TempDir(), "remote.git"), t.TempDir()
	git := func(arguments ...string) string {
		t.Helper()
		output, err := exec.Command("git", append([]string{"-C", remote}, arguments...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", arguments, err, output)
		}
		return strings.TrimSpace(string(output))
	}
	publish := func(ref, name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(out, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(out, name, "index.html"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(filepath.Join(repository, ".ci", "site"), "publish")
		command.Env = append(os.Environ(), "REF="+ref, "OUT="+out, "REMOTE="+remote)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf(".ci/site publish: %v: %s", err, output)
		}
	}
	if output, err := exec.Command("git", "init", "--quiet", "--bare", remote).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v: %s", err, output)
	}
	publish("main", "main", "first")
	publish("v0.9.1", "v0.9", "release")
	publish("main", "main", "second")
	publish("main", "main", "second") // nothing to do
	publish("v1.0.0-rc.1", "v1.0", "pre-release")
	if files, want := strings.Fields(git("ls-tree", "--name-only", "gh-pages")), ".nojekyll index.html main v0.9 versions.js"; strings.Join(files, " ") != want {
		t.Errorf("the branch has %q, not %q", files, want)
	}
	for file, want := range map[string]string{
		"main/index.html": "second", "v0.9/index.html": "release",
		"versions.js": `globalThis.draVersions = ["v0.9","main"];`,
	} {
		if got := git("show", "gh-pages:"+file); got != want {
			t.Errorf("%s is %q, not %q", file, got, want)
		}
	}
	if commits := git("rev-list", "--count", "gh-pages"); commits != "1" {
		t.Errorf("the branch has %s commits", commits)
	}
}
