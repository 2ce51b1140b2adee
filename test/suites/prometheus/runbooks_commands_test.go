package prometheus

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestRunbookCommandsExist: dra-exporter parses every command line of its own,
// which then fails only because there is no cluster, and has every flag that a
// runbook mentions. Other programs are known ones.
func TestRunbookCommandsExist(t *testing.T) {
	program := exporter(t)
	flags := help(t, program, "node") + help(t, program, "cluster") + help(t, program, "explain")
	flag := regexp.MustCompile(`--([a-z]+(?:\.[a-z-]+)+)`)
	for name, text := range allPages(t) {
		for _, match := range flag.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`--(\[no-\])?` + regexp.QuoteMeta(match[1]) + `[ =\n]`).MatchString(flags) {
				t.Errorf("%s: there is no flag %s", name, match[0])
			}
		}
		for _, line := range commands(text) {
			words := strings.Fields(line)
			if !slices.Contains(knownPrograms(), words[0]) {
				t.Errorf("%s: what is %q?", name, words[0])
			}
			if words[0] == "dra-exporter" {
				checkCommand(t, name, program, words[1:])
			}
		}
	}
}

// knownPrograms returns the programs that a cluster's administrator, or a
// node, has.
func knownPrograms() []string {
	return []string{
		"dra-exporter", "kubectl", "curl", "nvidia-smi", "nvidia-bug-report.sh", "ipmitool", "lspci",
		"dmesg", "journalctl", "ls", "timeout",
	}
}

// checkCommand fails the test unless the command fails only because there is
// no cluster. It runs in a folder with the one file that runbooks name.
func checkCommand(t *testing.T, name, program string, arguments []string) {
	t.Helper()
	folder := t.TempDir()
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: pod}\n" +
		"spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}], containers: [{name: main, image: main}]}\n"
	if err := os.WriteFile(filepath.Join(folder, "pod.yaml"), []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program, arguments...)
	command.Dir = folder
	command.Env = []string{"KUBECONFIG=" + filepath.Join(t.TempDir(), "none"), "HOME=" + t.TempDir()}
	output, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(output), "no API server") {
		t.Errorf("%s: dra-exporter %s: %v\n%s", name, strings.Join(arguments, " "), err, output)
	}
}

// TestRunbookCommandsAreSafe: no command does what cannot be undone, or gives
// a device to two pods.
func TestRunbookCommandsAreSafe(t *testing.T) {
	dangerous := regexp.MustCompile(`--force|--grace-period|kubectl.* (patch|replace|edit) |finalizers"?:|delete (-A|--all|resourceslice)|--disable-eviction`)
	for name, text := range allPages(t) {
		inline := regexp.MustCompile("`[^`]+`").FindAllString(withoutBlocks(text), -1)
		code := strings.Join(slices.Concat(inline, commands(text)), "\n")
		if found := dangerous.FindString(code); found != "" {
			t.Errorf("%s has a command with %q", name, found)
		}
	}
}

// commands returns the lines of a page's shell blocks.
func commands(text string) (lines []string) {
	for _, block := range blocks(text, "sh") {
		for line := range strings.Lines(block) {
			if line = strings.TrimSpace(line); line != "" {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

func allPages(t *testing.T) map[string]string {
	t.Helper()
	pages := runbooks(t)
	pages["README"] = read(t, filepath.Join(runbooksFolder, "README.md"))
	return pages
}

// exporter builds the program.
func exporter(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "dra-exporter")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, "./cmd/dra-exporter")
	build.Dir, build.Env = "../../..", append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return program
}

func help(t *testing.T, program, command string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), program, command, "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return string(output)
}
