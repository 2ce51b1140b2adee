package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

const checkout = "../../.."

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{checkout}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// captures returns the first group of each match.
func captures(expression, text string) (all []string) {
	for _, found := range regexp.MustCompile(expression).FindAllStringSubmatch(text, -1) {
		all = append(all, found[1])
	}
	return all
}

// TestStepsOfTheWorkflow: workflow and rehearsal call the same steps of
// .ci/publish in the same order, and none is left out. Both build the images
// before they are signed, and use one version of cosign.
func TestStepsOfTheWorkflow(t *testing.T) {
	workflow := read(t, ".github", "workflows", "release.yaml")
	want := captures(`\.ci/publish (\S+)`, workflow)
	var got []string
	for _, s := range (&rehearsal{}).steps() {
		if s.publish != "" {
			got = append(got, s.publish)
		}
		if (s.publish == "") == (s.run == nil) {
			t.Errorf("%q is not one of both", s.name)
		}
	}
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("the rehearsal calls %q, the workflow %q", got, want)
	}
	if there := captures(`(?m)^#   \.ci/publish (\S+)`, read(t, ".ci", "publish")); !slices.Equal(there, want) {
		t.Errorf(".ci/publish documents %q, the workflow calls %q", there, want)
	}
	version := captures(`cosign-release: (\S+)`, workflow)
	if len(version) != 1 || !strings.Contains(read(t, "test", "programs", "cosign", "go.mod"), "\tgithub.com/sigstore/cosign/v3 "+version[0]+" ") {
		t.Errorf("the workflow has cosign %q, and the module another one", version)
	}
}

// TestDocumentedVerification: the documented commands verify each artifact, and
// each forgery is tried on at least one of them.
func TestDocumentedVerification(t *testing.T) {
	d, err := readDocument(filepath.Join(checkout, verifyDocument))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(d.commands, "\n")
	for _, artifact := range []string{
		"cosign verify \"${signer[@]}\" ghcr.io/dra-exporter/dra-exporter:v$VERSION\n",
		"cosign verify \"${signer[@]}\" ghcr.io/dra-exporter/dra-exporter:v$VERSION-static\n",
		"cosign verify \"${signer[@]}\" ghcr.io/dra-exporter/charts/dra-exporter:$VERSION\n",
		"cosign verify-attestation", "cosign verify-blob", "sha256sum --check",
	} {
		if !strings.Contains(all, artifact) {
			t.Errorf("no command verifies %s", artifact)
		}
	}
	for _, f := range (&rehearsal{}).forgeries() {
		if !strings.Contains(all, f.commands) {
			t.Errorf("%s: no command has %q", f.name, f.commands)
		}
	}
	got := script([]string{"cosign verify ghcr.io/dra-exporter/x"}, "1.2.3", "127.0.0.1:5000/o", []string{"--key=a", "--b"})
	if want := "set -euo pipefail\nVERSION=1.2.3\nsigner=(--key=a --b)\ncosign verify 127.0.0.1:5000/o/x\n"; got != want {
		t.Errorf("the script is %q, not %q", got, want)
	}
}

// TestDocumentWithoutSection: a document from which nothing would be verified is
// an error.
func TestDocumentWithoutSection(t *testing.T) {
	for text, words := range map[string]string{
		"# Install\n": "has no section",
		"# Install\n\n## Verify a release\n\nText.\n":                                              "has no shell block",
		"# Install\n\n## Verify a release\n\n```sh\ncosign verify x\n```\n":                        "does not begin with",
		"# Install\n\n## Verify a release\n\n```sh\nVERSION=1\nsigner=(a)\ncosign verify x\n```\n": "names too few images",
	} {
		file := filepath.Join(t.TempDir(), "install.md")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readDocument(file); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v, not %q", text, err, words)
		}
	}
}

// TestWithVersion: the changelog gets the version unless it has it.
func TestWithVersion(t *testing.T) {
	date := time.Date(2026, 12, 1, 23, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ before, after, words string }{
		"unreleased":       {"# C\n\n## Unreleased\n\n* a\n", "# C\n\n## 1.2.3 / 2026-12-01\n\n* a\n", ""},
		"released":         {"# C\n\n## 1.2.3 / 2026-11-01\n\n* a\n", "# C\n\n## 1.2.3 / 2026-11-01\n\n* a\n", ""},
		"another version":  {"# C\n\n## 1.2.30 / 2026-11-01\n\n* a\n", "", "no section 1.2.3"},
		"nothing":          {"# C\n", "", "no section 1.2.3"},
		"next and another": {"# C\n\n## Unreleased\n\n## 1.2.2\n", "# C\n\n## 1.2.3 / 2026-12-01\n\n## 1.2.2\n", ""},
	} {
		after, err := withVersion(c.before, "1.2.3", date)
		if after != c.after || (err == nil) != (c.words == "") || (err != nil && !strings.Contains(err.Error(), c.words)) {
			t.Errorf("%s: %q, %v", name, after, err)
		}
	}
}

// TestAttachedModules: an SBOM of another image, another version or another kind
// is refused.
func TestAttachedModules(t *testing.T) {
	digest := v1.Hash{Algorithm: "sha256", Hex: "aa"}
	good := `{"subject":[{"digest":{"sha256":"aa"}}],"predicate":{"bomFormat":"CycloneDX","metadata":{"component":{"version":"v1.2.3"}},` +
		`"components":[{"name":"std","version":"go1.26.8"},{"name":"example.com/m","version":"v1.0.0"}]}}`
	attest := func(payload string) []byte {
		text, err := json.Marshal(envelope{Payload: []byte(payload)})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	modules, err := attachedModules(attest(good), digest, "v1.2.3")
	if err != nil || len(modules) != 1 || modules["example.com/m"] != "v1.0.0" {
		t.Errorf("it has %v (%v)", modules, err)
	}
	for change, words := range map[string][2]string{
		"another image":   {`"aa"`, `"bb"`},
		"another version": {`v1.2.3`, `v1.2.4`},
		"another kind":    {`CycloneDX`, `SPDX`},
		"no JSON":         {`{"subject"`, `subject`},
	} {
		if _, err := attachedModules(attest(strings.Replace(good, words[0], words[1], 1)), digest, "v1.2.3"); err == nil {
			t.Errorf("%s is accepted", change)
		}
	}
}

// TestUnpackChart: the chart of a commit has its files, whether git has them or
// `make chart-files` writes them.
func TestUnpackChart(t *testing.T) {
	r := &rehearsal{options: options{repository: t.TempDir()}, out: io.Discard}
	put := func(name, text string) {
		file := filepath.Join(r.repository, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git := func(args ...string) {
		if _, err := r.git(t.Context(), append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet")
	put("deploy/helm/dra-exporter/files/rules/alerts.yaml", "in git")
	put("Makefile", "chart-files:\n\tfalse\n")
	git("add", "--all")
	git("commit", "--quiet", "--message=a")
	git("rm", "--quiet", "-r", "deploy/helm/dra-exporter/files")
	put("deploy/helm/dra-exporter/Chart.yaml", "name: dra-exporter\n")
	put("Makefile", "chart-files:\n\tmkdir -p deploy/helm/dra-exporter/files/rules\n\tprintf made >deploy/helm/dra-exporter/files/rules/alerts.yaml\n")
	git("add", "--all")
	git("commit", "--quiet", "--message=b")
	for commit, want := range map[string]string{"HEAD~1": "in git", "HEAD": "made"} {
		folder := t.TempDir()
		if err := r.unpackChart(t.Context(), commit, folder); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(filepath.Join(folder, chartFolder, "files", "rules", "alerts.yaml")); string(text) != want {
			t.Errorf("%s: %q, not %q (%v)", commit, text, want, err)
		}
	}
}
