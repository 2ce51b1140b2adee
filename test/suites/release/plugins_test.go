package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugins returns the plugins of kubectl that a release has manifests for.
func plugins() []string { return []string{"dra-explain", "dra-fit", "dra-top", "dra-topology"} }

// TestPluginsAreCommands: the manifests are those of the commands that the program runs
// by the name of a plugin.
func TestPluginsAreCommands(t *testing.T) {
	source := read(t, filepath.Join(repository, "cmd", "dra-exporter", "explain.go"))
	var commands []string
	for _, match := range regexp.MustCompile(`command == "(\w+)"`).FindAllStringSubmatch(source, -1) {
		commands = append(commands, "dra-"+match[1])
	}
	slices.Sort(commands)
	if !slices.Equal(commands, plugins()) {
		t.Errorf("the program knows %q, and there are manifests of %q", commands, plugins())
	}
}

// checkPlugin fails the test unless krew accepts the manifest by its own checks for its
// index, installs the archive by it, and the installed plugin runs its command.
func checkPlugin(t *testing.T, folder, plugin, archive string) {
	manifest := filepath.Join(folder, plugin+".yaml")
	validate := exec.CommandContext(t.Context(), tool(t, "validate-krew-manifest"), "-manifest", manifest, "-skip-install")
	if output, err := validate.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	checkDescription(t, manifest)
	root := t.TempDir()
	environment := append(os.Environ(), "KREW_ROOT="+root, "KREW_NO_UPGRADE_CHECK=1", "KUBECONFIG=/dev/null")
	install := exec.CommandContext(t.Context(), tool(t, "krew"), "install", "--manifest="+manifest, "--archive="+archive)
	install.Env = environment
	if output, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	store := filepath.Join(root, "store", plugin, "v"+version)
	if got, want := namesIn(t, store), []string{"LICENSE", "dra-exporter"}; !slices.Equal(got, want) {
		t.Errorf("krew has installed %q, not %q", got, want)
	}
	installed := filepath.Join(root, "bin", "kubectl-"+strings.ReplaceAll(plugin, "-", "_"))
	output, err := exec.CommandContext(t.Context(), installed, "--help").CombinedOutput()
	if command := strings.TrimPrefix(plugin, "dra-"); err != nil || !strings.Contains(string(output), "Usage: dra-exporter "+command+" ") {
		t.Errorf("%v: it says %s", err, output)
	}
}

// checkDescription fails the test unless the short description is as krew's naming guide
// wants it, and the archives are those of the release.
func checkDescription(t *testing.T, manifest string) {
	t.Helper()
	var fields struct {
		Spec struct {
			Version          string `json:"version"`
			ShortDescription string `json:"shortDescription"`
			Platforms        []struct {
				URI string `json:"uri"`
			} `json:"platforms"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, manifest)), &fields); err != nil {
		t.Fatal(err)
	}
	if short := fields.Spec.ShortDescription; len(short) > 50 || strings.HasSuffix(short, ".") || strings.Contains(strings.ToLower(short), "kubectl") {
		t.Errorf("the short description is %q", short)
	}
	if len(fields.Spec.Platforms) != 1 { // of those that were built, one has no vendor libraries
		t.Errorf("the platforms are %+v", fields.Spec.Platforms)
	}
	for _, platform := range fields.Spec.Platforms {
		if file, ok := strings.CutPrefix(platform.URI, "https://github.com/dra-exporter/dra-exporter/releases/download/v"+version+"/"); !ok || strings.Contains(file, "nvidia") {
			t.Errorf("an archive is %s", platform.URI)
		} else if _, err := os.Stat(filepath.Join(filepath.Dir(manifest), file)); err != nil {
			t.Error(err)
		}
	}
}

// tool returns a program of test/tools/release.
func tool(t *testing.T, name string) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(repository, "test", ".bin", "release", name))
	if err != nil {
		t.Fatal(err)
	}
	return file
}
