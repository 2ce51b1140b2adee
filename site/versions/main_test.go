package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Versions are listed with the newest first, by their numbers, and what is no
// version is not listed.
func TestWrite(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"main", "v0.9", "v0.10", "v1.0-rc", "images", ".git"} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lost := "<!doctype html>\n<html>\n<head>\n<link href=\"site.css\">\n</head>\n</html>\n"
	if err := os.WriteFile(filepath.Join(folder, "v0.10", "404.html"), []byte(lost), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := write(folder, "/dra-exporter/"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"versions.js": `globalThis.draVersions = ["v0.10","v0.9","main"];`,
		"index.html":  `content="0; url=v0.10/index.html"`,
		"404.html":    `<base href="/dra-exporter/v0.10/">`,
		".nojekyll":   "",
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(text), want) {
			t.Errorf("%s has no %s:\n%s", name, want, text)
		}
	}
	if err := write(t.TempDir(), "/"); err == nil {
		t.Error("a folder without versions is accepted")
	}
}
