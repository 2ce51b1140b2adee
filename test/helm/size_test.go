package helm

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
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

// TestPackage: `helm package` packs exactly what the chart needs.
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
	for _, needed := range []string{"values.schema.json", "README.md", "templates/NOTES.txt", "files/dashboards/claims.json", "files/rules/alerts.yaml"} {
		if !slices.Contains(files, "dra-exporter/"+needed) {
			t.Errorf("it lacks %s", needed)
		}
	}
	for _, file := range files {
		if strings.Contains(file, "/ci/") || strings.HasSuffix(file, "~") {
			t.Errorf("it has %s", file)
		}
	}
}

// archived returns the names in a compressed archive.
func archived(t *testing.T, path string) []string {
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
	var names []string
	for entries := tar.NewReader(unpacked); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, entry.Name)
	}
}

func mapOf(value any) map[string]any {
	table, _ := value.(map[string]any)
	return table
}
