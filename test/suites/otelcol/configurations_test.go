package otelcol

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// deployed returns the shipped configurations, and the variables that each
// requires.
func deployed() map[string][]string {
	return map[string][]string{
		"agent.yaml":      {"BACKEND_ENDPOINT=backend.example:4317"},
		"delta.yaml":      {"BACKEND_URL=https://backend.example"},
		"prometheus.yaml": {"PROMETHEUS_URL=http://prometheus.example:9090"},
		"scrape.yaml":     {"BACKEND_ENDPOINT=backend.example:4317"},
	}
}

func validate(file string, env []string) (string, error) {
	command := exec.Command(collector(), "validate", "--config="+file)
	command.Env = append(cleanEnvironment(), env...)
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestConfigurations: the collector accepts every shipped configuration with
// the variables that its first lines name, and refuses it without any of them.
func TestConfigurations(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(repository, "deploy", "otel", "*.yaml"))
	if err != nil || len(files) != len(deployed()) {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		env := deployed()[filepath.Base(file)]
		tested := configuration(t, filepath.Base(file))
		output, err := validate(tested, env)
		if err != nil || strings.Contains(output, "deprecated") {
			t.Errorf("%s: %v\n%s", file, err, output)
		}
		name, _, _ := strings.Cut(env[0], "=")
		if head, _, _ := strings.Cut(read(t, file), "\nextensions:"); !strings.Contains(head, "\n#   "+name+" ") {
			t.Errorf("%s does not document that it needs %s", file, name)
		}
		if output, err := validate(tested, nil); err == nil && name != "PROMETHEUS_URL" { // it is followed by a path, so that the URL is not empty
			t.Errorf("%s goes without %s:\n%s", file, name, output)
		}
	}
}

// TestBrokenConfigurations: validation refuses broken configurations, so that
// TestConfigurations is meaningful.
func TestBrokenConfigurations(t *testing.T) {
	breaks := map[string][2]string{
		"agent.yaml":      {"processors: [memory_limiter, batch]", "processors: [memory_limiter, batches]"},
		"delta.yaml":      {"initial_value: auto", "initial_value: first"},
		"prometheus.yaml": {"num_consumers: 1", "num_consumer: 1"},
		"scrape.yaml":     {"action: keep", "action: keeps"},
	}
	for name, change := range breaks {
		text := read(t, configuration(t, name))
		if !strings.Contains(text, change[0]) {
			t.Fatalf("%s has no %q", name, change[0])
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(strings.Replace(text, change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := validate(file, deployed()[name]); err == nil {
			t.Errorf("%s with %s is valid:\n%s", name, change[1], output)
		}
	}
}
