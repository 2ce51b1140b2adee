package main

import (
	"cmp"
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
)

const repository = "../../.."

// labels are the build arguments of the images. The rehearsal of a release sets
// them.
type labels struct{ version, revision, created string }

func givenLabels() labels {
	return labels{
		version:  cmp.Or(os.Getenv("DRA_IMAGE_VERSION"), "1.2.3-test"),
		revision: cmp.Or(os.Getenv("DRA_IMAGE_REVISION"), "0123456789abcdef0123456789abcdef01234567"),
		created:  cmp.Or(os.Getenv("DRA_IMAGE_CREATED"), "2026-11-22T10:00:00Z"),
	}
}

// TestImages builds both targets of the Dockerfile and checks their contents.
// DRA_IMAGE_DIR names the folder in which the files remain for the end-to-end
// tests.
func TestImages(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("it mounts and changes roots: run it as root")
	}
	for target, dynamic := range map[string]bool{"": true, "static": false} {
		name := map[bool]string{true: "glibc", false: "static"}[dynamic]
		t.Run(name, func(t *testing.T) {
			file := buildImage(t, target, name, hostArch())
			image, err := tarball.ImageFromPath(file, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkSettings(t, image)
			root := extractImage(t, image)
			checkExecutables(t, root)
			program := filepath.Join(root, "dra-exporter")
			if libraries := neededLibraries(t, program); dynamic != (len(libraries) > 0) {
				t.Errorf("the program needs %q", libraries)
			}
			checkVersion(t, root)
			if dynamic {
				checkLibraries(t, root)
			} else {
				checkOtherImageNamed(t, root)
			}
		})
	}
}

// TestOtherArchitecture builds what can be built without another compiler. It
// compiles everything once more, which takes minutes, and a real engine builds
// both architectures in the workflow `ci`, so it runs only on request.
func TestOtherArchitecture(t *testing.T) {
	if os.Getenv("DRA_IMAGE_OTHER") == "" {
		t.Skip("DRA_IMAGE_OTHER=1 compiles the program for another architecture too")
	}
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[hostArch()]
	image, err := tarball.ImageFromPath(buildImage(t, "static", "static-"+other, other), nil)
	if err != nil {
		t.Fatal(err)
	}
	if config, err := image.ConfigFile(); err != nil || config.Architecture != other {
		t.Errorf("the image is for %s (%v)", config.Architecture, err)
	}
	program, err := elf.Open(filepath.Join(extractImage(t, image), "dra-exporter"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	if want := map[string]elf.Machine{"arm64": elf.EM_AARCH64, "amd64": elf.EM_X86_64}[other]; program.Machine != want {
		t.Errorf("the program is for %s, not %s", program.Machine, want)
	}
}

// buildImage builds a target and returns the file.
func buildImage(t *testing.T, target, name, arch string) string {
	t.Helper()
	folder := os.Getenv("DRA_IMAGE_DIR")
	if folder == "" {
		folder = t.TempDir()
	}
	file := filepath.Join(folder, name+".tar")
	given := givenLabels()
	args := []string{
		"-context", repository, "-target", target, "-arch", arch, "-name", "localhost/dra-exporter:" + name, "-out", file,
		"-arg", "VERSION=" + given.version, "-arg", "REVISION=" + given.revision, "-arg", "CREATED=" + given.created,
	}
	var messages strings.Builder // of compilers, printed only if they fail
	if err := run(t.Context(), append(args, bases(t, target, stubs.Build(t).DCGM)...), io.Discard, &messages); err != nil {
		t.Fatalf("%v\n%s", err, messages.String())
	}
	return file
}

// bases returns the replacement of each image on which a target is based: this
// machine for the builder, folders for the others.
func bases(t *testing.T, target, libdcgm string) (flags []string) {
	t.Helper()
	var list strings.Builder
	if err := run(t.Context(), []string{"-context", repository, "-target", target, "-bases"}, &list, io.Discard); err != nil {
		t.Fatal(err)
	}
	for image := range strings.FieldsSeq(list.String()) {
		folder := ""
		switch {
		case strings.HasPrefix(image, "golang:"):
			folder = onHost
		case strings.HasPrefix(image, "nvcr.io/nvidia/cloud-native/dcgm:4."):
			folder = dcgmImage(t, libdcgm)
		case image == "gcr.io/distroless/static-debian12:nonroot", image == "gcr.io/distroless/cc-debian12:nonroot":
			kind, _, _ := strings.Cut(filepath.Base(image), "-")
			folder = filepath.Join(distroless(t), kind)
		default:
			t.Fatalf("nothing stands for %s", image)
		}
		flags = append(flags, "-base", image+"="+folder)
	}
	return flags
}

// distroless returns the folder that distroless.sh has filled.
func distroless(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv("DRA_IMAGE_DISTROLESS"); folder != "" {
		return folder
	}
	folder := t.TempDir()
	if out, err := exec.Command("./distroless.sh", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return folder
}

// dcgmImage returns a folder with the library where NVIDIA's image has it, as
// a link to a file with the full version.
func dcgmImage(t *testing.T, library string) string {
	t.Helper()
	folder := t.TempDir()
	libraries := filepath.Join(folder, "rootfs", "usr", "lib", "x86_64-linux-gnu")
	if err := os.MkdirAll(libraries, 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(libraries, "libdcgm.so.4.6.1"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("libdcgm.so.4.6.1", filepath.Join(libraries, "libdcgm.so.4")); err != nil {
		t.Fatal(err)
	}
	return folder
}

// checkSettings fails the test unless the image has the expected user,
// entrypoint, ports and labels.
func checkSettings(t *testing.T, image v1.Image) {
	t.Helper()
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := file.Config
	if config.User != "65532:65532" || !slices.Equal(config.Entrypoint, []string{"/dra-exporter"}) || len(config.Cmd) > 0 {
		t.Errorf("it runs %q %q as %q", config.Entrypoint, config.Cmd, config.User)
	}
	if _, node := config.ExposedPorts["9420/tcp"]; !node || len(config.ExposedPorts) != 2 {
		t.Errorf("its ports are %v", config.ExposedPorts)
	}
	given := givenLabels()
	for label, want := range map[string]string{"version": given.version, "revision": given.revision, "created": given.created, "licenses": "Apache-2.0", "title": "dra-exporter"} {
		if got := config.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("its label %s is %q, not %q", label, got, want)
		}
	}
}

// extractImage extracts the image's files into a folder, and logs their size.
func extractImage(t *testing.T, image v1.Image) string {
	t.Helper()
	root := t.TempDir()
	files := mutate.Extract(image)
	defer files.Close()
	unpack := exec.Command("tar", "--extract", "--directory", root)
	unpack.Stdin = files
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var all int64
	err := filepath.WalkDir(root, func(_ string, entry fs.DirEntry, err error) error {
		if info, errInfo := entry.Info(); err == nil && errInfo == nil && info.Mode().IsRegular() {
			all += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Stat(filepath.Join(root, "dra-exporter"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB, %.1f of them the program", float64(all)/1e6, float64(program.Size())/1e6)
	return root
}

// checkExecutables fails the test if there is anything other than libraries
// beside the program, or a file that raises privileges.
func checkExecutables(t *testing.T, root string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		if info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			t.Errorf("%s raises rights: %s", path, info.Mode())
		}
		inside, _ := filepath.Rel(root, path)
		if info.Mode().Perm()&0o111 != 0 && inside != "dra-exporter" && !strings.Contains(inside, ".so") && !strings.HasPrefix(inside, "usr/share/doc/") {
			t.Errorf("%s can be run", inside)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"bin/sh", "usr/bin/sh", "bin/bash", "busybox/sh"} {
		if _, err := os.Lstat(filepath.Join(root, shell)); err == nil {
			t.Errorf("there is a shell, %s", shell)
		}
	}
}

// runInImage runs the program in the image's files, as its user.
func runInImage(t *testing.T, root string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "chroot", append([]string{"--userspec=65532:65532", root, "/dra-exporter"}, args...)...)
	command.Env = []string{}
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%q in the image: %v: %s", args, err, out)
	}
	return string(out)
}

func checkVersion(t *testing.T, root string) {
	t.Helper()
	given := givenLabels()
	if output := runInImage(t, root, "--version"); !strings.Contains(output, given.version) || !strings.Contains(output, given.revision) {
		t.Errorf("it says that it is %q", output)
	}
}

// neededLibraries returns the libraries that the loader looks for.
func neededLibraries(t *testing.T, file string) []string {
	t.Helper()
	program, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	libraries, err := program.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	return libraries
}

// checkLibraries fails the test unless the libraries of the program and of
// DCGM's library exist.
func checkLibraries(t *testing.T, root string) {
	t.Helper()
	for _, file := range []string{"dra-exporter", "usr/lib/libdcgm.so.4"} {
		for _, library := range neededLibraries(t, filepath.Join(root, file)) {
			found := false
			for _, folder := range []string{"lib/*-linux-gnu", "usr/lib/*-linux-gnu", "lib64", "usr/lib"} {
				paths, err := filepath.Glob(filepath.Join(root, folder, library))
				found = found || err == nil && len(paths) > 0
			}
			if !found {
				t.Errorf("%s needs %s, which is not in the image", file, library)
			}
		}
	}
}
