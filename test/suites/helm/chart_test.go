// Package helm tests the chart without a cluster: rendered by Helm's own code,
// and by its binary where the output to users matters.
package helm

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	"sigs.k8s.io/yaml"
)

const (
	root  = "../../.."
	chart = root + "/deploy/helm/dra-exporter"
	// The kinds by which auto decides.
	podMonitors     = "monitoring.coreos.com/v1/PodMonitor"
	serviceMonitors = "monitoring.coreos.com/v1/ServiceMonitor"
	prometheusRules = "monitoring.coreos.com/v1/PrometheusRule"
	constraints     = "security.openshift.io/v1/SecurityContextConstraints"
)

// object is a Kubernetes object as decoded from JSON.
type object map[string]any

// install is one `helm install`.
type install struct {
	release, namespace string   // dra-exporter if empty
	values             string   // YAML
	file               string   // a values file of ci/, before values
	apis               []string // kinds that the cluster serves
	chart              string   // folder; that of the repository if empty
}

// rendered is the result of an install.
type rendered struct {
	release *release.Release
	objects map[string]object // by kind/namespace/name; hooks too
}

// render renders without a cluster. It fails the test if Helm returns an
// error.
func render(t *testing.T, in install) rendered {
	t.Helper()
	out, err := tryRender(t, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tryRender is render for values that may be refused.
func tryRender(t *testing.T, in install) (rendered, error) {
	t.Helper()
	values := map[string]any{}
	if in.file != "" {
		values = parse(t, read(t, filepath.Join(chart, "ci", in.file)))
	}
	values = chartutil.MergeTables(parse(t, in.values), values)
	loaded, err := loader.Load(or(in.chart, chart))
	if err != nil {
		t.Fatal(err)
	}
	config := &action.Configuration{
		Releases:     storage.Init(driver.NewMemory()),
		KubeClient:   &kubefake.PrintingKubeClient{Out: io.Discard, LogOutput: io.Discard},
		Capabilities: chartutil.DefaultCapabilities,
		Log:          func(string, ...any) {},
	}
	do := action.NewInstall(config)
	do.ReleaseName, do.Namespace = or(in.release, "dra-exporter"), or(in.namespace, "dra-exporter")
	do.ClientOnly, do.DryRun = true, true
	do.KubeVersion = &chartutil.KubeVersion{Version: "v1.37.1", Major: "1", Minor: "37"}
	do.APIVersions = in.apis
	made, err := do.Run(loaded, values)
	if err != nil {
		return rendered{}, err
	}
	return rendered{release: made, objects: objects(t, made)}, nil
}

// objects returns the objects of the manifest and of the hooks.
func objects(t *testing.T, made *release.Release) map[string]object {
	t.Helper()
	texts := []string{made.Manifest}
	for _, hook := range made.Hooks {
		texts = append(texts, hook.Manifest)
	}
	all := map[string]object{}
	for _, document := range strings.Split(strings.Join(texts, "\n---\n"), "\n---\n") {
		var one object
		if err := yaml.UnmarshalStrict([]byte(document), &one); err != nil {
			t.Fatalf("%v in\n%s", err, document)
		}
		if one == nil {
			continue
		}
		if key := one.key(); all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[one.key()] = one
	}
	return all
}

// key returns kind/namespace/name, without the namespace if there is none.
func (o object) key() string {
	parts := []string{o.text("kind"), o.text("metadata", "namespace"), o.text("metadata", "name")}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/")
}

// at returns the value at a path, or nil.
func (o object) at(path ...string) any {
	var value any = map[string]any(o)
	for _, key := range path {
		table, _ := value.(map[string]any)
		value = table[key]
	}
	return value
}

// text returns the string at a path, or empty.
func (o object) text(path ...string) string {
	text, _ := o.at(path...).(string)
	return text
}

// pod returns the specification of the pods that an object creates.
func (o object) pod() object {
	if o.text("kind") == "Pod" {
		return o.at("spec").(map[string]any)
	}
	spec, _ := o.at("spec", "template", "spec").(map[string]any)
	return spec
}

// container returns the container of the exporter, which is the first.
func (o object) container(t *testing.T) object {
	t.Helper()
	list, _ := o.pod().at("containers").([]any)
	if len(list) == 0 {
		t.Fatalf("%s has no containers", o.key())
	}
	return list[0].(map[string]any)
}

// need returns an object that must exist.
func (r rendered) need(t *testing.T, key string) object {
	t.Helper()
	if r.objects[key] == nil {
		t.Fatalf("there is no %s, but\n%s", key, strings.Join(r.keys(), "\n"))
	}
	return r.objects[key]
}

// keys returns the sorted keys.
func (r rendered) keys() []string { return slices.Sorted(maps.Keys(r.objects)) }

// kinds counts the objects of each kind.
func (r rendered) kinds() map[string]int {
	count := map[string]int{}
	for _, one := range r.objects {
		count[one.text("kind")]++
	}
	return count
}

// valuesFiles returns the names in ci/.
func valuesFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(chart + "/ci/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d values files (%v)", len(paths), err)
	}
	for i, path := range paths {
		paths[i] = filepath.Base(path)
	}
	return paths
}

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return values
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func or(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// texts returns the items of a list as text.
func texts(list any) []string {
	var out []string
	items, _ := list.([]any)
	for _, item := range items {
		out = append(out, fmt.Sprint(item))
	}
	return out
}
