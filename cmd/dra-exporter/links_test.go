package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	fencedCode   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notInAnchor  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestLinks: every relative link of every document leads to a file, and to a
// heading of it where it names one.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	links := 0
	for _, document := range documents(t, root) {
		text := fencedCode.ReplaceAllString(readText(t, document), "")
		for _, link := range markdownLink.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			file := document
			if target != "" {
				file = filepath.Join(filepath.Dir(document), filepath.FromSlash(target))
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: the link %s leads nowhere", document, link[1])
			} else if anchor != "" && !anchors(readText(t, file))[anchor] {
				t.Errorf("%s: the link %s names a heading that is not there", document, link[1])
			}
		}
	}
	if links < 200 {
		t.Errorf("only %d links were found", links)
	}
}

// documents returns the Markdown files of the project, without those of built
// tools and those that tests compare with.
func documents(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && strings.HasPrefix(entry.Name(), ".") && entry.Name() != ".github":
			return filepath.SkipDir
		case entry.IsDir() && entry.Name() == "testdata":
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".md"):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anchors returns the names by which GitHub links to a document's headings.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for line := range strings.Lines(fencedCode.ReplaceAllString(text, "")) {
		title, isHeading := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !isHeading || !strings.HasPrefix(line, "#") {
			continue
		}
		title = markdownLink.ReplaceAllString(strings.TrimSpace(title), "]")
		title = notInAnchor.ReplaceAllString(strings.ToLower(title), "")
		names[strings.ReplaceAll(title, " ", "-")] = true
	}
	return names
}
