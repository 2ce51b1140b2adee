package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// Apply creates or updates the objects of a YAML text, in its order, as
// `kubectl apply --server-side --force-conflicts` does. An object without a
// namespace that needs one goes to default.
func (c *Cluster) Apply(ctx context.Context, manifests string) error {
	return c.each(ctx, manifests, func(client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
		_, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "e2e", Force: true})
		return err
	})
}

// Delete deletes the objects of a YAML text and does not wait until they are
// gone. Objects that do not exist are no error.
func (c *Cluster) Delete(ctx context.Context, manifests string) error {
	return c.each(ctx, manifests, func(client dynamic.ResourceInterface, object *unstructured.Unstructured) error {
		err := client.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// each calls do for every object, with a client for its kind and namespace.
func (c *Cluster) each(ctx context.Context, manifests string, do func(dynamic.ResourceInterface, *unstructured.Unstructured) error) error {
	resources, err := restmapper.GetAPIGroupResources(c.client.Discovery())
	if err != nil {
		return fmt.Errorf("discover resources: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(resources)
	client, err := dynamic.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifests), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("parse manifests: %w", err)
		}
		if len(object.Object) == 0 {
			continue
		}
		target, err := resourceFor(client, mapper, &object)
		if err != nil {
			return err
		}
		if err := do(target, &object); err != nil {
			return fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}

func resourceFor(client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, fmt.Errorf("find resource of %s: %w", kind.Kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource), nil
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return client.Resource(mapping.Resource).Namespace(namespace), nil
}
