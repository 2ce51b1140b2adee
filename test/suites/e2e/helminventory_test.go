package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// transient returns the resources that the cluster itself writes continually.
func transient() []string {
	return []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses", "ipaddresses.networking.k8s.io", "resourceslices.resource.k8s.io"}
}

// inventory returns every object of every kind that the API server lists, by
// its resource, namespace and name, sorted.
func inventory(ctx context.Context) (all []string, err error) {
	resources, err := shared.Client().Discovery().ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("discover resources: %w", err)
	}
	config := shared.RESTConfig()
	config.WarningHandler = rest.NoWarnings{} // about deprecated kinds
	config.QPS = -1
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	for _, group := range resources {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, resource := range group.APIResources {
			kind := version.WithResource(resource.Name)
			if !slices.Contains(resource.Verbs, "list") || slices.Contains(transient(), kind.GroupResource().String()) {
				continue
			}
			list, err := client.Resource(kind).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", kind.GroupResource(), err)
			}
			for _, object := range list.Items {
				all = append(all, strings.Join([]string{kind.GroupResource().String(), object.Namespace, object.Name}, " "))
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// currentInventory returns the inventory, or fails the test.
func currentInventory(t *testing.T) []string {
	t.Helper()
	all, err := inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// waitNothingLeft waits until only the objects of before exist.
func waitNothingLeft(t *testing.T, before []string) {
	t.Helper()
	var left []string
	err := cluster.Eventually(t.Context(), "nothing to be left", func(ctx context.Context) error {
		now, err := inventory(ctx)
		if err != nil {
			return err
		}
		if left = missingFrom(now, before); len(left) > 0 {
			return fmt.Errorf("there are still %d", len(left))
		}
		return nil
	})
	if err != nil {
		t.Errorf("%v: %q", err, left)
	}
}

// missingFrom returns the elements of one sorted list that the other lacks.
func missingFrom(one, other []string) (more []string) {
	for _, item := range one {
		if _, has := slices.BinarySearch(other, item); !has {
			more = append(more, item)
		}
	}
	return more
}
