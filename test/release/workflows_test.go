package release

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWorkflows: what runs elsewhere is what runs here, and nobody can change it
// by moving a tag.
func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("there are %q (%v)", files, err)
	}
	action := regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	pinned := regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, file := range files {
		for _, used := range action.FindAllStringSubmatch(read(t, file), -1) {
			if !strings.HasPrefix(used[1], "./") && !pinned.MatchString(used[1]) {
				t.Errorf("%s uses %s, which is no commit with its version", filepath.Base(file), used[1])
			}
		}
	}
	for file, step := range map[string]string{
		"ci.yaml":      "- run: .ci/run\n",
		"release.yaml": "uses: ./.github/workflows/ci.yaml\n",
	} {
		if !strings.Contains(read(t, filepath.Join(repository, ".github", "workflows", file)), step) {
			t.Errorf("%s lacks %q", file, step)
		}
	}
}

// TestOneGo: everything is built by one version of Go, on one release of Debian
// where its C library matters.
func TestOneGo(t *testing.T) {
	dockerfile := read(t, filepath.Join(repository, "Dockerfile"))
	version := regexp.MustCompile(`ARG GO_VERSION=(\S+)`).FindStringSubmatch(dockerfile)
	if version == nil {
		t.Fatal("the Dockerfile names no version of Go")
	}
	image := regexp.MustCompile(`golang:([\d.]+)-(\w+)`)
	for _, file := range []string{"ci.yaml", "release.yaml"} {
		text := read(t, filepath.Join(repository, ".github", "workflows", file))
		found := image.FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no image of Go", file)
		}
		for _, name := range found {
			if name[1] != version[1] {
				t.Errorf("%s has %s, the Dockerfile %s", file, name[0], version[1])
			}
			if file == "release.yaml" && !strings.Contains(dockerfile, "golang:${GO_VERSION}-"+name[2]) {
				t.Errorf("%s has %s, whose Debian is not the Dockerfile's", file, name[0])
			}
		}
	}
	module := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, filepath.Join(repository, "go.mod")))
	if module == nil || module[1] != version[1] {
		t.Errorf("go.mod says %q, the Dockerfile %s", module, version[1])
	}
}

// TestLibraryIsNotOlder: DCGM refuses structures that are newer than its library,
// and go-dcgm has those of the version that its own version is made of.
func TestLibraryIsNotOlder(t *testing.T) {
	library := regexp.MustCompile(`ARG DCGM_VERSION=(\d+)\.(\d+)\.(\d+)-`).FindStringSubmatch(read(t, filepath.Join(repository, "Dockerfile")))
	binding := regexp.MustCompile(`github.com/NVIDIA/go-dcgm v1\.(\d)(\d)(\d)\d\.`).FindStringSubmatch(read(t, filepath.Join(repository, "go.mod")))
	if library == nil || binding == nil {
		t.Fatalf("the library is %q, the binding %q", library, binding)
	}
	if have, want := numbers(t, library[1:]), numbers(t, binding[1:]); slices.Compare(have, want) < 0 {
		t.Errorf("the image has DCGM %v, and go-dcgm is of %v", have, want)
	}
}

func numbers(t *testing.T, words []string) (all []int) {
	t.Helper()
	for _, word := range words {
		number, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, number)
	}
	return all
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
