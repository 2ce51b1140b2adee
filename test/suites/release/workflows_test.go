package release

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestWorkflows: workflows run the commands of developers, and pin actions by
// commit, so that a moved tag does not change them.
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
		"fuzz.yaml":    "- run: make fuzz FUZZTIME=3m\n",
		"release.yaml": "uses: ./.github/workflows/ci.yaml\n",
		"site.yaml":    "- run: make site-test\n",
	} {
		if !strings.Contains(read(t, filepath.Join(repository, ".github", "workflows", file)), step) {
			t.Errorf("%s lacks %q", file, step)
		}
	}
}

// TestWorkflowsMayDoLittle: tokens have read permissions, except where a job
// declares others; each job has a timeout, none leaves its token in the
// checkout, and none runs the code of a foreign pull request with write
// permissions.
func TestWorkflowsMayDoLittle(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, ".github", "workflows", "*.yaml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("there are %q (%v)", files, err)
	}
	for _, file := range files {
		name, text := filepath.Base(file), read(t, file)
		if !strings.Contains(text, "\npermissions:\n  contents: read\n\n") {
			t.Errorf("%s: the permissions of all jobs are not contents: read", name)
		}
		for _, trigger := range []string{"pull_request_target", "workflow_run:"} {
			if strings.Contains(text, trigger) {
				t.Errorf("%s is triggered by %s", name, trigger)
			}
		}
		for _, injected := range []string{"github.event.", "github.head_ref"} {
			if strings.Contains(text, "{{ "+injected) {
				t.Errorf("%s: %s, which a pull request writes, is put into a script", name, injected)
			}
		}
		if checkouts, kept := strings.Count(text, "actions/checkout@"), strings.Count(text, "persist-credentials: false"); checkouts != kept {
			t.Errorf("%s: of %d checkouts %d leave no token behind", name, checkouts, kept)
		}
		if runners, limits := strings.Count(text, "runs-on:"), strings.Count(text, "timeout-minutes:"); runners != limits {
			t.Errorf("%s: of %d jobs %d have a time limit", name, runners, limits)
		}
	}
}

// TestEveryModuleIsUpdated: Renovate's preset excludes test/ and examples/,
// which contain most modules. Its expressions find what test/Makefile pins.
func TestEveryModuleIsUpdated(t *testing.T) {
	var config struct {
		IgnorePaths    *[]string `json:"ignorePaths"`
		CustomManagers []struct {
			Files   []string `json:"managerFilePatterns"`
			Strings []string `json:"matchStrings"`
			Name    string   `json:"depNameTemplate"`
		} `json:"customManagers"`
		PackageRules []struct {
			Files []string `json:"matchFileNames"`
		} `json:"packageRules"`
	}
	if err := json.Unmarshal([]byte(read(t, filepath.Join(repository, ".github", "renovate.json"))), &config); err != nil {
		t.Fatal(err)
	}
	if config.IgnorePaths == nil || len(*config.IgnorePaths) != 0 {
		t.Errorf("ignorePaths is %v: modules are left out", config.IgnorePaths)
	}
	for _, manager := range config.CustomManagers {
		file := map[string]string{
			`/^test/Makefile$/`:                    "test/Makefile",
			`/^\.github/workflows/release\.yaml$/`: ".github/workflows/release.yaml",
		}[manager.Files[0]]
		if file == "" {
			t.Errorf("no file is known by %s", manager.Files[0])
			continue
		}
		text := read(t, filepath.Join(repository, file))
		for _, pattern := range manager.Strings {
			found := regexp.MustCompile(strings.ReplaceAll(pattern, "(?<", "(?P<")).FindAllStringSubmatch(text, -1)
			if len(found) != 1 {
				t.Errorf("%s finds %d versions in %s", pattern, len(found), file)
				continue
			}
			if manager.Name == "" { // of an image, next to its name
				continue
			}
			if pin := manager.Name + " " + found[0][1]; !strings.Contains(modules(t), pin) {
				t.Errorf("no go.mod has %s", pin)
			}
		}
	}
	for _, rule := range config.PackageRules {
		for _, pattern := range rule.Files {
			if paths, err := filepath.Glob(filepath.Join(repository, strings.Replace(pattern, "**", "go.mod", 1))); err != nil || len(paths) == 0 {
				t.Errorf("a rule is for %s, which is not there (%v)", pattern, err)
			}
		}
	}
	releases, err := filepath.Glob(filepath.Join(repository, "test", "programs", "kubernetes", "v*"))
	if err != nil || len(releases) == 0 {
		t.Fatalf("releases: %q (%v)", releases, err)
	}
	for _, release := range releases {
		if name := "test/programs/kubernetes/" + filepath.Base(release) + "/**"; !strings.Contains(read(t, filepath.Join(repository, ".github", "renovate.json")), name) {
			t.Errorf("nothing holds %s to its release", name)
		}
	}
}

// modules returns the text of all go.mod files.
func modules(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(repository, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && entry.Name() != "." && entry.Name() != ".." {
			return fs.SkipDir
		}
		if entry.Name() == "go.mod" {
			all.WriteString(read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// TestOneGoVersion: everything is built by one version of Go, on one release
// of Debian where its C library matters.
func TestOneGoVersion(t *testing.T) {
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

// TestLibraryIsNotOlder: DCGM refuses structures that are newer than its
// library, and go-dcgm has the structures of the DCGM version on which it is
// based.
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
