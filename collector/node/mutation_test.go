package node

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mutantVariable names the mutant that is alive, in the environment.
const mutantVariable = "DRA_EXPORTER_MUTANT"

// TestMutants builds the package's tests once, with every mutant in it, and
// expects for each of them that the test beside it fails while it alone is
// alive, and that all those tests pass while none is.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package again")
	}
	all := mutants()
	binary := buildMutants(t, all)
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		var tests []string
		for _, m := range all {
			test, _, _ := strings.Cut(m.test, "/")
			tests = append(tests, test)
		}
		slices.Sort(tests)
		pattern := "^(" + strings.Join(slices.Compact(tests), "|") + ")$"
		if output, err := runMutant(t, binary, "", pattern); err != nil {
			t.Fatalf("without any mutant: %v\n%s", err, output)
		}
	})
	for _, m := range all {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			expectFailure(t, binary, m)
		})
	}
}

func expectFailure(t *testing.T, binary string, m mutant) {
	t.Helper()
	output, err := runMutant(t, binary, m.name, "^"+strings.ReplaceAll(m.test, "/", "$/^")+"$")
	if err == nil {
		t.Fatalf("%s passes with %s", m.test, m.name)
	}
	if !strings.Contains(output, "--- FAIL: "+m.test) {
		t.Fatalf("%s did not run: %v\n%s", m.test, err, output)
	}
	for line := range strings.Lines(output) {
		if strings.Contains(line, "_test.go:") {
			t.Log(strings.TrimSpace(line))
			break
		}
	}
}

// runMutant runs tests with one mutant alive until the first fails.
func runMutant(t *testing.T, binary, alive, pattern string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), binary, "-test.failfast", "-test.run", pattern)
	command.Env = append(os.Environ(), mutantVariable+"="+alive)
	output, err := command.CombinedOutput()
	return string(output), err
}

// buildMutants compiles the package's tests with copies of the mutated files,
// which the compiler sees in the place of the files.
func buildMutants(t *testing.T, all []mutant) (binary string) {
	t.Helper()
	dir := t.TempDir()
	replaced := map[string]string{}
	write := func(file, source string) {
		original, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		replaced[original] = filepath.Join(dir, file)
		if err := os.WriteFile(replaced[original], []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for file, source := range mutate(t, all) {
		write(file, source)
	}
	write("mutant.go", fmt.Sprintf("package node\n\nimport \"os\"\n\nvar aliveMutant = os.Getenv(%q)\n", mutantVariable))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	binary = filepath.Join(dir, "mutants.test")
	if output, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", path, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("compile the mutants: %v\n%s", err, output)
	}
	return binary
}

// mutate returns the files that mutants change. A mutant is found by the text
// that it replaces: exactly one place of the package has it, and no other
// mutant has changed that place.
func mutate(t *testing.T, all []mutant) map[string]string {
	t.Helper()
	originals, mutated := packageSources(t), map[string]string{}
	for _, m := range all {
		at, count := "", 0
		for file, source := range originals {
			if places := strings.Count(source, m.old); places > 0 {
				at, count = file, count+places
			}
		}
		if count != 1 {
			t.Errorf("%s has %d places to mutate, want 1: %q", m.name, count, m.old)
			continue
		}
		source, changed := mutated[at]
		if !changed {
			source = originals[at]
		}
		if !strings.Contains(source, m.old) {
			t.Errorf("%s: another mutant has changed %q in %s", m.name, m.old, at)
			continue
		}
		condition := fmt.Sprintf("(aliveMutant == %q)", m.name)
		mutated[at] = strings.Replace(source, m.old, strings.ReplaceAll(m.new, "$", condition), 1)
	}
	return mutated
}

// packageSources returns the files of the package without its tests.
func packageSources(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sources[file] = string(source)
	}
	return sources
}

// TestMutantsHavePlaces expects that every mutant finds the one place that it
// changes.
func TestMutantsHavePlaces(t *testing.T) { mutate(t, mutants()) }
