package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// checkOtherImageNamed: if the static image is configured for a source that it
// does not have, the program names the image that has it, at its start.
func checkOtherImageNamed(t *testing.T, root string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "chroot", "--userspec=65532:65532", root, "/dra-exporter", "node",
		"--node.name=n", "--kubernetes.disable", "--web.listen-address="+address,
		"--device.source=nvml", "--device.source=dcgm", "--dcgm.host-engine=127.0.0.1:1")
	command.Env = []string{}
	words, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{"libnvidia-ml.so.1": true, "libdcgm.so.4": true}
	var all strings.Builder
	for lines := bufio.NewScanner(words); len(missing) > 0 && lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		for library := range missing {
			if strings.Contains(lines.Text(), library) && strings.Contains(lines.Text(), "use the image whose tag does not end in -static") {
				delete(missing, library)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("of %v it says nothing:\n%s", missing, all.String())
	}
	cancel()
	_ = command.Wait() // it was killed
}

// TestMissingDependencyEndsBuild: the build fails if DCGM's library needs a
// library that the image does not have.
func TestMissingDependencyEndsBuild(t *testing.T) {
	folder := t.TempDir()
	compile := func(args ...string) {
		gcc := exec.Command("gcc", args...)
		gcc.Dir = folder
		if out, err := gcc.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "empty.c"), []byte("int odd(void) { return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	compile("-shared", "-fPIC", "-Wl,-soname,libodd.so.1", "-o", "libodd.so.1", "empty.c")
	compile("-shared", "-fPIC", "-Wl,--no-as-needed", "-o", "libdcgm.so.4", "empty.c", "libodd.so.1")
	var words strings.Builder
	b := &build{
		context: repository, target: "libraries", arch: hostArch(), args: map[string]string{},
		bases: map[string]string{}, stages: map[int]*stage{}, log: &words,
	}
	for _, flag := range bases(t, "libraries", filepath.Join(folder, "libdcgm.so.4")) {
		if flag != "-base" {
			if err := setInto(b.bases)(flag); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.read(); err != nil {
		t.Fatal(err)
	}
	err := b.image(t.Context(), "localhost/x:1", filepath.Join(folder, "x.tar"))
	if err == nil || !strings.Contains(words.String(), "libdcgm.so.4 needs libodd.so.1, which the image does not have") {
		t.Errorf("the build says %v: %s", err, words.String())
	}
}

// TestUnsupportedInstructions: the program returns an error for instructions
// that it cannot execute as BuildKit does.
func TestUnsupportedInstructions(t *testing.T) {
	for dockerfile, want := range map[string]string{
		"FROM odd:1\nUSER 1\n":                                      "no -base says what stands in the place of odd:1",
		"FROM scratch\nADD a /\n":                                   "ADD, in stage 0: this program does not know how",
		"FROM scratch\nCOPY none /\n":                               "nothing is called none",
		"FROM scratch\nCOPY --chmod=700 a /\n":                      "flags and here-documents are not known",
		"FROM scratch\nRUN true\n":                                  "the stage has no programs",
		"FROM scratch\nENTRYPOINT sleep 1\n":                        "write it as a JSON array",
		"FROM scratch\nCOPY --from=odd a /\n":                       "there is no stage odd",
		"FROM host:1 AS x\nRUN exit 3\n":                            "exit status 3",
		"FROM host:1 AS x\nRUN touch /usr/odd\n":                    "exit status 1",
		"FROM host:1 AS x\nRUN --mount=type=tmpfs,target=/x true\n": "a mount of type tmpfs is not known",
	} {
		folder := t.TempDir()
		for name, text := range map[string]string{"Dockerfile": dockerfile, ".dockerignore": "", "a": ""} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := run(t.Context(), []string{"-context", folder, "-base", "host:1=host", "-name", "localhost/x:1", "-out", filepath.Join(folder, "x.tar")}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: it says %v, not %q", dockerfile, err, want)
		}
	}
}
