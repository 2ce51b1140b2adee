package helm

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestReleaseFits: Helm stores chart, values and manifests of a release in one
// Secret, which the API server limits to 1 MiB. A third remains free for
// future dashboards.
func TestReleaseFits(t *testing.T) {
	const limit = 1 << 20 * 2 / 3
	out := render(t, install{file: "everything-values.yaml"})
	secrets := fake.NewClientset().CoreV1().Secrets("ns")
	if err := driver.NewSecrets(secrets).Create("sh.helm.release.v1.r.v1", out.release); err != nil {
		t.Fatal(err)
	}
	secret, err := secrets.Get(context.Background(), "sh.helm.release.v1.r.v1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	size := len(secret.Data["release"])
	t.Logf("%d KiB", size>>10)
	if size == 0 || size > limit {
		t.Errorf("the release has %d bytes, and should have at most %d", size, limit)
	}
	for key, one := range out.objects {
		for name, text := range mapOf(one["data"]) {
			if text, _ := text.(string); len(text) > limit {
				t.Errorf("%s: %s has %d bytes", key, name, len(text))
			}
		}
	}
}

// TestPackage: `helm package` packs exactly what the chart needs, with every
// dashboard and every rule. Of alerts.yaml, which has places for thresholds, the
// rendered rules are compared by TestDefaultRulesAreTheFiles.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	if output, err := helm(t, "package", chart, "-d", dir); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	packed, err := filepath.Glob(filepath.Join(dir, "dra-exporter-*.tgz"))
	if err != nil || len(packed) != 1 {
		t.Fatalf("it packs %v (%v)", packed, err)
	}
	files := archived(t, packed[0])
	for _, needed := range []string{"values.schema.json", "README.md", "templates/NOTES.txt", "files/rules/alerts.yaml", "files/rules/recording.yaml", "files/rules/sets.yaml"} {
		if files["dra-exporter/"+needed] == "" {
			t.Errorf("it lacks %s", needed)
		}
	}
	copied := 0
	for file, text := range files {
		if strings.Contains(file, "/ci/") || strings.HasSuffix(file, "~") || strings.HasSuffix(file, ".tmp") {
			t.Errorf("it has %s", file)
		}
		copied += strings.Count(file, "/files/")
		if source, ok := sourceOf(file); ok && file != "dra-exporter/files/rules/alerts.yaml" && text != read(t, source) {
			t.Errorf("%s is not %s", file, source)
		}
	}
	sources := 0
	for _, pattern := range []string{"/dashboards/*/*.json", "/alerts/*.yaml"} {
		paths, err := filepath.Glob(root + pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no %s (%v)", pattern, err)
		}
		sources += len(paths)
	}
	if copied != sources+1 { // and which belongs to which set
		t.Errorf("it has %d files of dashboards and rules, and there are %d", copied, sources)
	}
}

// sourceOf returns the file of the repository of which a packed one is a copy.
func sourceOf(packed string) (string, bool) {
	if name, ok := strings.CutPrefix(packed, "dra-exporter/files/dashboards/"); ok {
		return filepath.Join(root, "dashboards", name), true
	}
	name, ok := strings.CutPrefix(packed, "dra-exporter/files/rules/")
	if name == "sets.yaml" {
		return "", false
	}
	return filepath.Join(root, "alerts", name), ok
}

// archived returns the texts in a compressed archive by their names.
func archived(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for entries := tar.NewReader(unpacked); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		texts[entry.Name] = string(text)
	}
}

func mapOf(value any) map[string]any {
	table, _ := value.(map[string]any)
	return table
}
