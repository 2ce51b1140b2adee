// Package sysfstest plants trees of files like those below /sys for tests,
// from descriptions under test/fakes/fixtures/sysfs, and breaks them. Descriptions
// are one file each because paths of the kernel hold colons and symbolic
// links, which Go modules cannot carry.
package sysfstest

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// Tree is a planted tree.
type Tree struct {
	Root string
	t    testing.TB
}

// Plant plants the named descriptions into one new tree.
func Plant(t testing.TB, names ...string) *Tree {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		if err := Unpack(root, name); err != nil {
			t.Fatal(err)
		}
	}
	return &Tree{Root: root, t: t}
}

// Unpack plants the named description into a folder.
func Unpack(root, name string) error {
	_, here, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(here), "../fixtures/sysfs", name+".tree")
	description, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the description of a tree: %w", err)
	}
	folder := root
	lines := bufio.NewScanner(bytes.NewReader(description))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		switch inner, isFolder := strings.CutPrefix(line, "["); {
		case line == "" || strings.HasPrefix(line, "#"):
		case isFolder:
			folder = filepath.Join(root, strings.TrimSuffix(inner, "]"))
			err = os.MkdirAll(folder, 0o755)
		default:
			err = entry(folder, line)
		}
		if err != nil {
			return fmt.Errorf("plant %q of %s: %w", line, name, err)
		}
	}
	return lines.Err()
}

// entry plants what one line describes: "path -> target" is a symbolic link,
// "path = text" a file with the text and a line's end (\n stands for one), and
// "path x digits" a file with the bytes that hexadecimal digits stand for.
func entry(folder, line string) error {
	path, rest, found := strings.Cut(line, " ")
	kind, value, _ := strings.Cut(rest, " ")
	path = filepath.Join(folder, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch {
	case !found:
	case kind == "->":
		return os.Symlink(value, path)
	case kind == "=":
		return os.WriteFile(path, []byte(strings.ReplaceAll(value, `\n`, "\n")+"\n"), 0o644)
	case kind == "x":
		raw, err := hex.DecodeString(strings.ReplaceAll(value, " ", ""))
		return errors.Join(err, os.WriteFile(path, raw, 0o644))
	}
	return errors.New("it is no entry")
}

// Path is the path of a file of the tree.
func (tree *Tree) Path(path string) string { return filepath.Join(tree.Root, path) }

// Set writes a file, replacing whatever was there.
func (tree *Tree) Set(path, text string) {
	tree.t.Helper()
	tree.Remove(path)
	tree.must(os.MkdirAll(filepath.Dir(tree.Path(path)), 0o755))
	tree.must(os.WriteFile(tree.Path(path), []byte(text), 0o644))
}

// Remove takes a file or a folder away, if it is there.
func (tree *Tree) Remove(path string) {
	tree.t.Helper()
	tree.must(os.RemoveAll(tree.Path(path)))
}

// Rename gives a file or a folder another name.
func (tree *Tree) Rename(source, target string) {
	tree.t.Helper()
	tree.must(os.Rename(tree.Path(source), tree.Path(target)))
}

// Link makes a symbolic link, whatever was there.
func (tree *Tree) Link(path, target string) {
	tree.t.Helper()
	tree.Remove(path)
	tree.must(os.Symlink(target, tree.Path(path)))
}

// Break makes the reading of a file fail with EIO, as that of the first page
// of one's own memory does.
func (tree *Tree) Break(path string) {
	tree.t.Helper()
	tree.Link(path, "/proc/self/mem")
}

// Pipe replaces a file with a pipe that is never written to.
func (tree *Tree) Pipe(path string) {
	tree.t.Helper()
	tree.Remove(path)
	tree.must(syscall.Mkfifo(tree.Path(path), 0o644))
}

func (tree *Tree) must(err error) {
	tree.t.Helper()
	if err != nil {
		tree.t.Fatal(err)
	}
}
