package e2e

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// features has what TestFeatures has found.
var features struct {
	sync.Mutex
	found map[releases.ID]bool
}

// TestFeatures: the cluster has each feature of its release, and lacks each
// feature that came later.
func TestFeatures(t *testing.T) {
	covers(t)
	for _, f := range releases.Features() {
		if f.Probe.IsZero() {
			continue
		}
		t.Run(string(f.ID), func(t *testing.T) {
			found, err := probe(t.Context(), f.Probe)
			if err != nil {
				t.Fatal(err)
			}
			if want := shared.Has(f.ID); found != want {
				t.Errorf("Kubernetes %s has %s: %t, want %t", shared.Version(), f.Name, found, want)
			}
			features.Lock()
			defer features.Unlock()
			if features.found == nil {
				features.found = map[releases.ID]bool{}
			}
			features.found[f.ID] = found
		})
	}
}

// lacks reports whether the cluster lacks the feature that the test is about. The
// test must then assert what the exporter reports without it, and its outcome is
// "absent".
func lacks(t *testing.T, id releases.ID) bool {
	t.Helper()
	if shared.Has(id) {
		return false
	}
	outcomes.Lock()
	defer outcomes.Unlock()
	if outcomes.absent == nil {
		outcomes.absent = map[string]bool{}
	}
	outcomes.absent[t.Name()] = true
	return true
}

func probe(ctx context.Context, p releases.Probe) (bool, error) {
	switch {
	case p.KubeletFile != "":
		return fileExists(filepath.Join(shared.KubeletDir(), p.KubeletFile))
	case p.Resource != "":
		return served(p.APIVersion, p.Resource)
	}
	return keepsField(ctx, p.Manifest, p.Field)
}

func fileExists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// served reports whether the API server serves a resource in a version.
func served(apiVersion, resource string) (bool, error) {
	list, err := shared.Client().Discovery().ServerResourcesForGroupVersion(apiVersion)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, r := range list.APIResources {
		if r.Name == resource {
			return true, nil
		}
	}
	return false, nil
}

// keepsField reports whether an object has a field after a dry run of its
// creation. An object that the API server refuses as invalid lacks it.
func keepsField(ctx context.Context, manifest, field string) (bool, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		return false, err
	}
	client, err := dynamic.NewForConfig(shared.RESTConfig())
	if err != nil {
		return false, err
	}
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	created, err := client.Resource(resource).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return hasField(created.Object, strings.Split(field, ".")), nil
}

func hasField(value any, path []string) bool {
	if len(path) == 0 {
		return value != nil
	}
	switch v := value.(type) {
	case map[string]any:
		return hasField(v[path[0]], path[1:])
	case []any:
		i, err := strconv.Atoi(path[0])
		return err == nil && i < len(v) && hasField(v[i], path[1:])
	}
	return false
}
