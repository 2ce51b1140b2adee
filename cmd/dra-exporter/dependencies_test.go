package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDirectDependencies: the root go.mod requires directly what the binary
// imports and what CONTRIBUTING.md lists for tests alone.
func TestDirectDependencies(t *testing.T) {
	root := filepath.Join("..", "..")
	direct := directDependencies(t, filepath.Join(root, "go.mod"))
	if len(direct) < 20 {
		t.Fatalf("go.mod requires %v", direct)
	}
	const ours = "github.com/dra-exporter/dra-exporter/"
	imports := importsOf(t, root)
	used, queue := map[string]bool{}, []string{"cmd/dra-exporter"}
	for reached := map[string]bool{}; len(queue) > 0; queue = queue[1:] {
		if reached[queue[0]] {
			continue
		}
		reached[queue[0]] = true
		for _, path := range imports[queue[0]] {
			if own, is := strings.CutPrefix(path, ours); is {
				queue = append(queue, own)
			} else {
				used[owner(direct, path)] = true
			}
		}
	}
	_, table, _ := strings.Cut(readText(t, filepath.Join(root, "CONTRIBUTING.md")), "| test-only dependency |")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for _, row := range regexp.MustCompile(`(?m)^\| (`+"`"+`.*?) \|`).FindAllStringSubmatch(table, -1) {
		for _, name := range strings.Split(row[1], ", ") {
			listed = append(listed, strings.Trim(name, "`"))
		}
	}
	var forTests []string
	for _, module := range direct {
		if !used[module] {
			forTests = append(forTests, module)
		}
	}
	slices.Sort(listed)
	if slices.Sort(forTests); !slices.Equal(forTests, listed) {
		t.Errorf("the binary does not import %q of go.mod's direct dependencies; CONTRIBUTING.md lists %q", forTests, listed)
	}
}

// directDependencies returns the dependencies of a go.mod that are not marked
// as indirect.
func directDependencies(t *testing.T, file string) (direct []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(text), -1) {
		direct = append(direct, line[1])
	}
	return direct
}

// owner returns the module of a package; empty if it is none of these.
func owner(modules []string, path string) string {
	longest := ""
	for _, module := range modules {
		if (path == module || strings.HasPrefix(path, module+"/")) && len(module) > len(longest) {
			longest = module
		}
	}
	return longest
}

// importsOf returns the imports of each package's files without tests, for all
// systems and build tags, by directory in the root module.
func importsOf(t *testing.T, root string) map[string][]string {
	t.Helper()
	imports := map[string][]string{}
	for _, folder := range []string{"cmd", "collector", "internal", "kubelet"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, filepath.Dir(path))
			for _, spec := range file.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value) // the parser has read it
				imports[filepath.ToSlash(name)] = append(imports[filepath.ToSlash(name)], imported)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return imports
}
