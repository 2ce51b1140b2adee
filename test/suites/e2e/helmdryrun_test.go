package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

// dryNamespace is the namespace of objects without one. It allows claims with
// admin access, because a dry run does not create the labelled namespace of
// the manifests.
const dryNamespace = "manifests"

// dryNamespaces are the namespaces of manifests. Its argument is the name of
// the first.
const dryNamespaces = `
{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {resource.kubernetes.io/admin-access: "true"}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: web}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: monitoring}}
`

// TestManifestsAccepted: the API server accepts all shipped manifests in a
// strict dry run, in which an unknown field is an error. No object is created.
func TestManifestsAccepted(t *testing.T) {
	covers(t)
	withOperator(t)
	withOtherOperators(t)
	withDefinition(t, "scaledobjects.keda.sh", readKEDA(t, "keda.sh_scaledobjects.yaml"))
	applyFor(t, fmt.Sprintf(dryNamespaces, dryNamespace))
	t.Run("misspelt", testMisspelt)
	t.Run("kustomize", testKustomizations)
	t.Run("files", testPlainManifests)
	t.Run("chart", testRenderedChart)
}

// testKustomizations: each kustomization alone, and each component over the
// base and over each overlay.
func testKustomizations(t *testing.T) {
	bases, components := []string{"base"}, []string{""}
	for _, overlay := range entries(t, "../../../deploy/kustomize/overlays") {
		bases = append(bases, filepath.Join("overlays", overlay))
	}
	components = append(components, entries(t, "../../../deploy/kustomize/components")...)
	for _, base := range bases {
		for _, component := range components {
			accepted(t, strings.TrimSpace(base+" "+component), strings.Join(rendered(t, base, component, "namespace: "+dryNamespace), "\n---\n"))
		}
	}
	folders := []string{"../../../examples/training"}
	for _, set := range sets.All() {
		folders = append(folders, "../../../dashboards/"+set.Name)
		if set.Name != sets.Core {
			component := "prometheusrule/" + set.Name
			accepted(t, "base "+component, strings.Join(rendered(t, "base", component, "namespace: "+dryNamespace), "\n---\n"))
		}
	}
	for _, folder := range folders {
		text, err := shared.Kubectl(t.Context(), "kustomize", folder)
		if err != nil {
			t.Fatal(err)
		}
		accepted(t, folder, text)
	}
}

// testPlainManifests: each file with objects that does not belong to a
// kustomization or the chart.
func testPlainManifests(t *testing.T) {
	isObject := regexp.MustCompile(`(?m)^apiVersion: .*\nkind: `)
	count := 0
	for _, root := range []string{"../../../deploy", "../../../examples"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && slices.Contains([]string{"kustomize", "helm", "compose"}, entry.Name()):
				return filepath.SkipDir
			case filepath.Ext(path) != ".yaml" || entry.Name() == "kustomization.yaml":
				return nil
			}
			text, err := os.ReadFile(path)
			if err == nil && isObject.Match(text) {
				count++
				accepted(t, path, string(text))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if count == 0 {
		t.Error("there are no manifests")
	}
}

// testRenderedChart: the chart with each file of its folder ci, and with each
// access mode, except OpenShift's own kinds, which this cluster does not have.
func testRenderedChart(t *testing.T) {
	variants := map[string][]string{
		"none":         {"--set=node.access.mode=none"},
		"dcgm":         {"--set=node.access.mode=dcgm,node.access.dcgm.hostEngine=nvidia-dcgm.gpu-operator.svc:5555"},
		"runtimeClass": {"--set=node.access.mode=runtimeClass"},
		"exporter":     {"--set=node.access.mode=exporter"},
		"cdi":          {"--set=node.access.mode=cdi"},
		"claim":        {"--set=node.access.mode=claim"},
		"VictoriaMetrics": {
			"--set=monitoring.kind=VMPodScrape,rules.enabled=true,monitoring.namespace=monitoring,monitoring.basicAuth.username.name=a,monitoring.basicAuth.username.key=b",
			"--set-json=sets=" + allSets(t),
		},
		"Grafana's operator": {"--set=dashboards.kind=GrafanaDashboard,dashboards.namespace=monitoring", "--set-json=sets=" + allSets(t)},
		"services":           {"--set=monitoring.kind=ServiceMonitor,networkPolicy.enabled=true,networkPolicy.egress.enabled=true,cluster.podDisruptionBudget.enabled=true"},
	}
	for _, file := range entries(t, filepath.Join(chartFolder, "ci")) {
		variants[file] = []string{"--values=" + filepath.Join(chartFolder, "ci", file), "--set=openshift.scc=false"}
	}
	for name, flags := range variants {
		text, err := helm(t.Context(), append([]string{"template", helmRelease, chartFolder, "--validate", "--namespace=" + dryNamespace}, flags...)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		accepted(t, name, text)
	}
}

// allSets returns the names of the sets, as JSON.
func allSets(t *testing.T) string {
	t.Helper()
	var names []string
	for _, set := range sets.All() {
		names = append(names, set.Name)
	}
	text, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// entries returns the names in a folder.
func entries(t *testing.T, folder string) (names []string) {
	t.Helper()
	all, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range all {
		names = append(names, entry.Name())
	}
	return names
}

// accepted fails the test unless the API server would accept the objects.
// Objects without a namespace go to that of the tests. Objects that exist
// already have other field managers, so that conflicts are forced.
func accepted(t *testing.T, name, manifests string) {
	t.Helper()
	args := []string{"apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--filename", written(t, manifests)}
	if !strings.Contains(manifests, "\n  namespace: ") {
		args = append(args, "--namespace", dryNamespace)
	}
	output, err := shared.Kubectl(t.Context(), args...)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	t.Logf("%s: %d objects", name, strings.Count(output, "serverside-applied"))
}

// testMisspelt: the API server refuses an unknown field.
func testMisspelt(t *testing.T) {
	right := strings.Join(rendered(t, "base", "", ""), "\n---\n")
	wrong := strings.Replace(right, "automountServiceAccountToken:", "automountServiceAccountTokens:", 1)
	if err := dryRunCreate(t.Context(), written(t, wrong)); err == nil || !strings.Contains(err.Error(), "automountServiceAccountTokens") {
		t.Errorf("a misspelt field was not refused: %v", err)
	}
}
