package watch

import (
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// Version is one version in which API servers serve a collection.
type Version struct {
	Group schema.GroupVersion
	Empty func() runtime.Object // an empty list
}

// CollectionReader reads a collection in whichever version the API server serves. It is
// safe for concurrent use.
type CollectionReader struct {
	Client    *Client
	Resource  string
	Namespace string    // empty: all
	Selector  string    // of fields; empty: all
	Versions  []Version // the preferred one first
	Optional  bool      // the API server may not serve it, which is no failure then

	served atomic.Int32 // index of the version that was served last
}

// request calls a function with one version after the other until one is served. It
// begins with the version that was served last. With a single version that is not
// optional, the error is that of the API server.
func (s *CollectionReader) request(send func(Version, Collection) error) error {
	first := int(s.served.Load())
	var err error
	for i := range s.Versions {
		at := (first + i) % len(s.Versions)
		version := s.Versions[at]
		err = send(version, Collection{Group: version.Group, Namespace: s.Namespace, Resource: s.Resource})
		if len(s.Versions) == 1 && !s.Optional || !isUnserved(err) {
			s.served.Store(int32(at))
			return err
		}
	}
	return fmt.Errorf("%w: %w", errNotServed, err)
}

// list reads a page and replaces each of its objects by what admit returns.
func (s *CollectionReader) list(ctx context.Context, query metav1.ListOptions, admit func(runtime.Object) runtime.Object) (runtime.Object, error) {
	query.FieldSelector = s.Selector
	admitted := &metainternalversion.List{}
	err := s.request(func(version Version, collection Collection) error {
		page := version.Empty()
		if err := s.Client.List(ctx, collection, query, page); err != nil {
			return err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return fmt.Errorf("decode a list of %s: %w", s.Resource, err)
		}
		admitted.ResourceVersion, admitted.Continue = list.GetResourceVersion(), list.GetContinue()
		admitted.RemainingItemCount = list.GetRemainingItemCount()
		// Each object is allocated by itself, so that none keeps the page in memory.
		err = meta.EachListItemWithAlloc(page, func(object runtime.Object) error {
			admitted.Items = append(admitted.Items, admit(object))
			return nil
		})
		if err != nil {
			return fmt.Errorf("store a list of %s: %w", s.Resource, err)
		}
		return nil
	})
	return admitted, err
}

func (s *CollectionReader) watch(ctx context.Context, query metav1.ListOptions) (apiwatch.Interface, error) {
	query.FieldSelector = s.Selector
	var opened apiwatch.Interface
	err := s.request(func(_ Version, collection Collection) error {
		var err error
		opened, err = s.Client.watch(ctx, collection, query)
		return err
	})
	return opened, err
}
