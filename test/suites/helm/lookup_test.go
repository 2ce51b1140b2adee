package helm

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// cluster is what a cluster has, as the chart's lookups find it.
type cluster []object

// parseCluster returns the objects of a text of YAML documents.
func parseCluster(t *testing.T, text string) cluster {
	t.Helper()
	var all cluster
	for document := range strings.SplitSeq(text, "---\n") {
		if strings.TrimSpace(document) != "" {
			all = append(all, parse(t, document))
		}
	}
	return all
}

// GetClientFor returns the resource of a kind. A kind that the cluster does not serve is
// an error, as with a real one.
func (c cluster) GetClientFor(version, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	resource := lookupResource{objects: map[string]object{}}
	served := version == "v1" || version == "apps/v1" || version == "node.k8s.io/v1"
	for _, item := range c {
		if item.text("apiVersion") == version && item.text("kind") == kind {
			resource.objects[item.text("metadata", "namespace")+"/"+item.text("metadata", "name")] = item
			served = true
		}
	}
	if !served {
		return nil, false, fmt.Errorf("the server could not find the requested resource %s %s", version, kind)
	}
	return resource, true, nil
}

// apis returns the kinds of the cluster beside those of Kubernetes.
func (c cluster) apis() chartutil.VersionSet {
	versions := append(chartutil.VersionSet{}, chartutil.DefaultVersionSet...)
	for _, item := range c {
		versions = append(versions, item.text("apiVersion"), item.text("apiVersion")+"/"+item.text("kind"))
	}
	return versions
}

// lookupResource answers to get, and panics on everything else.
type lookupResource struct {
	dynamic.NamespaceableResourceInterface
	objects   map[string]object
	namespace string
}

func (r lookupResource) Namespace(namespace string) dynamic.ResourceInterface {
	r.namespace = namespace
	return r
}

func (r lookupResource) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if found := r.objects[r.namespace+"/"+name]; found != nil {
		return &unstructured.Unstructured{Object: found}, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

// forbidden is a cluster of which the user may read nothing.
type forbidden struct{}

func (forbidden) GetClientFor(version, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return nil, false, fmt.Errorf("%s of %s is forbidden", kind, version)
}

// renderIn renders the chart for a cluster that can be queried. It returns the objects and
// the notes.
func renderIn(t *testing.T, queried cluster, values string) (rendered, string) {
	t.Helper()
	files, err := renderFiles(t, queried, queried.apis(), values)
	if err != nil {
		t.Fatal(err)
	}
	out := rendered{objects: map[string]object{}}
	for path, text := range files {
		if !strings.HasSuffix(path, ".yaml") {
			continue
		}
		for document := range strings.SplitSeq(text, "---\n") {
			var item object
			if err := yaml.UnmarshalStrict([]byte(document), &item); err != nil {
				t.Fatalf("%s: %v in\n%s", path, err, document)
			}
			if item != nil {
				out.objects[item.key()] = item
			}
		}
	}
	return out, files["dra-exporter/templates/NOTES.txt"]
}

// renderFiles renders the chart with the answers of a provider, by the paths of templates.
func renderFiles(t *testing.T, provider engine.ClientProvider, apis chartutil.VersionSet, values string) (map[string]string, error) {
	t.Helper()
	loaded, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion = chartutil.KubeVersion{Version: "v1.37.1", Major: "1", Minor: "37"}
	capabilities.APIVersions = apis
	options := chartutil.ReleaseOptions{Name: "dra-exporter", Namespace: "dra-exporter", IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, parse(t, values), options, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	return engine.RenderWithClientProvider(loaded, all, provider)
}
