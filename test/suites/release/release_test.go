// Package release tests the output of `make release`.
package release

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"sigs.k8s.io/yaml"
)

const (
	repository = "../../.."
	version    = "1.2.3"
	revision   = "0123456789abcdef0123456789abcdef01234567"
	epoch      = "1700000000"
	digest     = "sha256:00000000000000000000000000000000000000000000000000000000000000aa"
)

// TestRelease makes a release twice, from the same sources in two folders, and
// checks its contents.
func TestRelease(t *testing.T) {
	host := "linux/" + runtime.GOARCH
	first, second := t.TempDir(), t.TempDir()
	sources := copied(t, repository) // a copy, because the repository may change during the test
	makeRelease(t, sources, first, host+" "+host+"/nvidia")
	makeRelease(t, copied(t, sources), second, host+" "+host+"/nvidia")
	name := "dra-exporter-" + version + ".linux-" + runtime.GOARCH
	dashboards := "dra-exporter-" + version + ".dashboards"
	want := []string{
		"dra-exporter-" + version + ".tgz", dashboards + ".tar.gz", name + "-nvidia.cdx.json", name + "-nvidia.tar.gz",
		name + ".cdx.json", name + ".tar.gz", "sha256sums.txt",
	}
	for _, plugin := range plugins() {
		want = append(want, plugin+".yaml")
	}
	slices.Sort(want)
	if got := namesIn(t, first); !slices.Equal(got, want) {
		t.Fatalf("there are %q, not %q", got, want)
	}
	for _, file := range want {
		if a, b := sum(t, filepath.Join(first, file)), sum(t, filepath.Join(second, file)); a != b {
			t.Errorf("%s is not the same twice: %s, %s", file, a, b)
		}
	}
	t.Run("checksums", func(t *testing.T) { checkChecksums(t, first) })
	t.Run("archive", func(t *testing.T) { checkArchive(t, filepath.Join(first, name+".tar.gz"), name) })
	t.Run("nvidia", func(t *testing.T) { checkArchive(t, filepath.Join(first, name+"-nvidia.tar.gz"), name+"-nvidia") })
	t.Run("chart", func(t *testing.T) { checkChart(t, filepath.Join(first, "dra-exporter-"+version+".tgz")) })
	t.Run("dashboards", func(t *testing.T) { checkDashboards(t, filepath.Join(first, dashboards+".tar.gz"), dashboards) })
	for _, plugin := range plugins() {
		t.Run(plugin, func(t *testing.T) { checkPlugin(t, first, plugin, filepath.Join(first, name+".tar.gz")) })
	}
	t.Run("sbom", func(t *testing.T) {
		nvml := "github.com/NVIDIA/go-nvml"
		checkModules(t, filepath.Join(first, name+".cdx.json"), []string{"k8s.io/client-go", "github.com/prometheus/client_golang"}, []string{nvml})
		checkModules(t, filepath.Join(first, name+"-nvidia.cdx.json"), []string{"k8s.io/client-go", nvml}, nil)
	})
}

// TestRefusedReleases: a release with wrong parameters fails, names the error,
// and writes no checksums.
func TestRefusedReleases(t *testing.T) {
	for words, env := range map[string]string{
		"is no version":     "VERSION=one two",
		"no compiler known": "PLATFORMS=linux/riscv64/nvidia",
		"is not sha256:":    "IMAGE_DIGEST=latest",
		"odd/amd64 is none": "PLATFORMS=odd/amd64",
	} {
		out := t.TempDir()
		command := script(t, repository, out, "linux/"+runtime.GOARCH)
		command.Env = append(command.Env, env)
		output, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(output), words) {
			t.Errorf("%s: %v, and it says %s", env, err, output)
		}
		if _, err := os.Stat(filepath.Join(out, "sha256sums.txt")); err == nil {
			t.Errorf("%s: there are checksums of it", env)
		}
	}
}

func script(t *testing.T, sources, out, platforms string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(sources, ".ci", "release"), out)
	command.Env = append(os.Environ(), "VERSION="+version, "REVISION="+revision, "SOURCE_DATE_EPOCH="+epoch,
		"IMAGE_DIGEST="+digest, "PLATFORMS="+platforms)
	return command
}

func makeRelease(t *testing.T, sources, out, platforms string) {
	t.Helper()
	if output, err := script(t, sources, out, platforms).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// copied copies the sources to another folder, without a repository above it,
// and with links to the tools.
func copied(t *testing.T, sources string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "elsewhere")
	copying := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c",
		`mkdir -p "$1/test" && tar --create --exclude=./test --exclude=./.git --exclude=./dist --exclude=./bin . | tar --extract --directory "$1" && ln -s "$PWD/test/.bin" "$1/test/.bin"`,
		"copy", folder)
	copying.Dir = sources
	if output, err := copying.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return folder
}

func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func sum(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// checkChecksums fails the test unless each file except the list itself is in
// the list.
func checkChecksums(t *testing.T, folder string) {
	text, err := os.ReadFile(filepath.Join(folder, "sha256sums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, name := range namesIn(t, folder) {
		if name != "sha256sums.txt" {
			fmt.Fprintf(&want, "%s  %s\n", sum(t, filepath.Join(folder, name)), name)
		}
	}
	if string(text) != want.String() {
		t.Errorf("it says\n%s\nand not\n%s", text, want.String())
	}
}

// entry is one file of an archive.
type entry struct {
	header *tar.Header
	text   []byte
}

func unpacked(t *testing.T, file string) map[string]entry {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	plain, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]entry{}
	for archive := tar.NewReader(plain); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		entries[header.Name] = entry{header, text}
		if header.Uid != 0 || header.Gid != 0 || header.Uname != "" || fmt.Sprint(header.ModTime.Unix()) != epoch {
			t.Errorf("%s is of %d:%d %q, %s", header.Name, header.Uid, header.Gid, header.Uname, header.ModTime)
		}
	}
}

// checkArchive fails the test unless all files are in one folder, and the
// program in it runs and prints its version.
func checkArchive(t *testing.T, file, folder string) {
	entries := unpacked(t, file)
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md", "dra-exporter", "completions/dra-exporter.bash", "completions/dra-exporter.zsh", "completions/dra-exporter.fish", "man/dra-exporter.1"} {
		if len(entries[folder+"/"+name].text) == 0 {
			t.Errorf("%s is missing or empty", name)
		}
	}
	for name := range entries {
		if !strings.HasPrefix(name, folder+"/") {
			t.Errorf("%s is outside of %s", name, folder)
		}
	}
	if page := string(entries[folder+"/man/dra-exporter.1"].text); !strings.HasPrefix(page, ".TH ") || !strings.Contains(page, `"dra\-exporter `+version+`"`) {
		t.Errorf("the man page begins with %.100q", page)
	}
	program := filepath.Join(t.TempDir(), "dra-exporter")
	if err := os.WriteFile(program, entries[folder+"/dra-exporter"].text, entries[folder+"/dra-exporter"].header.FileInfo().Mode()); err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput()
	if err != nil || !strings.Contains(string(output), "dra-exporter "+version+" (revision "+revision) {
		t.Errorf("%v: it says %s", err, output)
	}
}

// checkChart fails the test unless the chart has the version, and its pods run
// the image by its digest.
func checkChart(t *testing.T, file string) {
	unpacked(t, file) // unpacked checks each file
	helm, err := filepath.Abs(filepath.Join(repository, "test", ".bin", "helm", "helm"))
	if err != nil {
		t.Fatal(err)
	}
	output, err := exec.CommandContext(t.Context(), helm, "show", "chart", file).CombinedOutput()
	if err != nil || !strings.Contains(string(output), "\nversion: "+version+"\n") || !strings.Contains(string(output), "appVersion: "+version+"\n") {
		t.Errorf("%v: it says %s", err, output)
	}
	for _, image := range []string{"dra-exporter:v" + version + "\n", "dra-exporter:v" + version + "-static\n"} {
		if !strings.Contains(string(output), image) {
			t.Errorf("the annotations for Artifact Hub lack %q: %s", image, output)
		}
	}
	checkChanges(t, output)
	manifests, err := exec.CommandContext(t.Context(), helm, "template", "x", file, "--kube-version", "v1.37.1").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, manifests)
	}
	images := 0
	for line := range strings.Lines(string(manifests)) {
		if _, image, found := strings.Cut(line, " image: "); found && strings.Contains(image, "dra-exporter") {
			images++
			if !strings.Contains(image, "@"+digest) {
				t.Errorf("a container runs %s", image)
			}
		}
	}
	if images < 2 {
		t.Errorf("%d containers run the image", images)
	}
}

// checkChanges fails the test unless the annotations for Artifact Hub have the changes
// of CHANGELOG.md, of kinds that it knows.
func checkChanges(t *testing.T, chart []byte) {
	t.Helper()
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(chart, &metadata); err != nil {
		t.Fatal(err)
	}
	var changes []struct{ Kind, Description string }
	if err := yaml.UnmarshalStrict([]byte(metadata.Annotations["artifacthub.io/changes"]), &changes); err != nil || len(changes) == 0 {
		t.Errorf("the changes are %v (%v)", changes, err)
	}
	for _, change := range changes {
		if !slices.Contains([]string{"added", "changed", "deprecated", "removed", "fixed", "security"}, change.Kind) || !strings.Contains(read(t, filepath.Join(repository, "CHANGELOG.md")), change.Description+"\n") {
			t.Errorf("a change is %+v", change)
		}
	}
	if prerelease := metadata.Annotations["artifacthub.io/prerelease"]; prerelease != "false" {
		t.Errorf("prerelease is %q", prerelease)
	}
}

// checkDashboards fails the test unless each dashboard is in the folder of its set, in
// the form for sharing.
func checkDashboards(t *testing.T, file, folder string) {
	entries := unpacked(t, file)
	files, err := filepath.Glob(filepath.Join(repository, "dashboards", "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are %q (%v)", files, err)
	}
	for _, file := range files {
		name := filepath.Join(folder, filepath.Base(filepath.Dir(file)), filepath.Base(file))
		if text := string(entries[name].text); !strings.HasPrefix(text, "{\n  \"__inputs\": [") {
			t.Errorf("%s is %.40q", name, text)
		}
		delete(entries, name)
	}
	for name := range entries {
		if strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".yaml") {
			t.Errorf("%s is no dashboard", name)
		}
	}
}

// checkModules fails the test unless the list is valid CycloneDX, has these
// modules with versions, and Go's own library, and does not have the others.
func checkModules(t *testing.T, file string, with, without []string) {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var list cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(in, cyclonedx.BOMFileFormatJSON).Decode(&list); err != nil {
		t.Fatal(err)
	}
	if list.Metadata == nil || list.Metadata.Component == nil || list.Metadata.Component.Version != "v"+version {
		t.Errorf("it is of %+v", list.Metadata)
	}
	versions := map[string]string{}
	for _, component := range *list.Components {
		versions[component.Name] = component.Version
	}
	for _, module := range append(with, "std") {
		if versions[module] == "" {
			t.Errorf("%s lacks %s", filepath.Base(file), module)
		}
	}
	for _, module := range without {
		if versions[module] != "" {
			t.Errorf("%s has %s, which the program does not", filepath.Base(file), module)
		}
	}
}
