package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

// copy executes COPY from the context, a stage or an image. As BuildKit does,
// it follows a link that is named, and root owns the copy.
func (s *stage) copy(ctx context.Context, c *instructions.CopyCommand) error {
	if c.Chown != "" || c.Chmod != "" || c.Parents || len(c.ExcludePatterns) > 0 || len(c.SourceContents) > 0 {
		return errors.New("flags and here-documents are not known")
	}
	from, ignored, err := s.source(ctx, c.From)
	if err != nil {
		return err
	}
	target := c.DestPath
	if !path.IsAbs(target) {
		target = path.Join(s.config.WorkingDir, target) + map[bool]string{true: "/"}[strings.HasSuffix(target, "/") || target == "."]
	}
	for _, pattern := range c.SourcePaths {
		found, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("nothing is called %s", pattern)
		}
		for _, source := range found {
			if err := copyTo(filepath.Join(s.root, target), strings.HasSuffix(target, "/"), from, source, ignored); err != nil {
				return err
			}
		}
	}
	return nil
}

// source returns the folder from which COPY copies, and the patterns that it
// excludes.
func (s *stage) source(ctx context.Context, from string) (string, *patternmatcher.PatternMatcher, error) {
	if from == "" {
		ignored, err := ignoredIn(s.build.context)
		return s.build.context, ignored, err
	}
	if number, found := s.build.find(from); found {
		built, err := s.build.stage(ctx, number)
		if err != nil {
			return "", nil, err
		}
		return built.root, nil, nil
	}
	return "", nil, fmt.Errorf("there is no stage %s", from)
}

// ignoredIn reads .dockerignore.
func ignoredIn(folder string) (*patternmatcher.PatternMatcher, error) {
	file, err := os.Open(filepath.Join(folder, ".dockerignore"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	patterns, err := ignorefile.ReadAll(file)
	if err != nil {
		return nil, err
	}
	return patternmatcher.New(patterns)
}

// copyTo copies a file to target, or into it if target is a folder. Of a
// folder it copies the contents.
func copyTo(target string, isFolder bool, base, source string, ignored *patternmatcher.PatternMatcher) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if isFolder {
			target = filepath.Join(target, filepath.Base(source))
		}
		return copyFile(target, source, info.Mode())
	}
	return filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inContext, err := filepath.Rel(base, file)
		if err != nil || inContext == "." {
			return err
		}
		if ignored != nil {
			// Our patterns have no exceptions, so the contents of an ignored
			// folder are ignored too.
			if left, err := ignored.MatchesOrParentMatches(inContext); err != nil || left {
				if err == nil && entry.IsDir() {
					return filepath.SkipDir
				}
				return err
			}
		}
		inside, err := filepath.Rel(source, file)
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return errors.New(file + " is a link, which is not known here")
		}
		return copyFile(filepath.Join(target, inside), file, info.Mode())
	})
}

func copyFile(target, source string, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
