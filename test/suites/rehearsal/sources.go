package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// copySources copies the checkout's files, also those that are not committed yet,
// and changes CHANGELOG.md as CONTRIBUTING.md says.
func (r *rehearsal) copySources(ctx context.Context) error {
	r.sources = filepath.Join(r.work, "sources")
	names, err := r.git(ctx, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		if err := copyFile(filepath.Join(r.repository, name), r.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) { // it may be deleted
			return err
		}
	}
	if err := os.Symlink(r.bin, r.path("test", ".bin")); err != nil {
		return err
	}
	if err := r.readCommit(ctx); err != nil {
		return err
	}
	text, err := os.ReadFile(r.path("CHANGELOG.md"))
	if err != nil {
		return err
	}
	changed, err := withVersion(string(text), r.version, r.release.created)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path("CHANGELOG.md"), []byte(changed), 0o644) //nolint:gosec // as in the checkout
}

// readCommit sets what the workflow knows from the commit of the tag.
func (r *rehearsal) readCommit(ctx context.Context) error {
	text, err := r.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	revision, seconds, _ := strings.Cut(strings.TrimSpace(text), " ")
	created, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of the commit: %w", err)
	}
	r.release.revision, r.release.created = revision, time.Unix(created, 0).UTC()
	r.logf("version %s, of commit %s", r.version, revision)
	return nil
}

// git runs git in the checkout and returns its output.
func (r *rehearsal) git(ctx context.Context, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "git", append([]string{"-C", r.repository}, args...)...).Output()
	if err != nil {
		return "", fmt.Errorf("run git %s: %w", strings.Join(args, " "), err)
	}
	return string(output), nil
}

// withVersion returns the changelog with the section of a version: as it is if it
// has one, otherwise with the version and the date in place of Unreleased.
func withVersion(changelog, version string, date time.Time) (string, error) {
	const unreleased = "\n## Unreleased\n"
	heading := "\n## " + version
	if strings.Contains(changelog, heading+" ") || strings.Contains(changelog, heading+"\n") {
		return changelog, nil
	}
	if strings.Count(changelog, unreleased) != 1 {
		return "", fmt.Errorf("CHANGELOG.md has no section %s, and not one section Unreleased", version)
	}
	return strings.Replace(changelog, unreleased, fmt.Sprintf("%s / %s\n", heading, date.Format(time.DateOnly)), 1), nil
}

// copyFile copies a file or a link, and creates the folders above it.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm())
}
