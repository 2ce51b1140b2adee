package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/test/fakes/generator"
)

// store writes objects to a real API server, which assigns UIDs of its own and
// has separate requests for specs, statuses and bindings. It is safe for
// concurrent use with different objects.
type store struct {
	ctx    context.Context
	client kubernetes.Interface

	mu         sync.Mutex
	namespaces map[string]bool
	made       map[string]bool         // by kind and name
	uids       map[types.UID]types.UID // of pods: the server's UID by the generator's
	bound      map[types.UID]bool      // pods, by the generator's UID
}

func newStore(ctx context.Context, server, token string) (*store, error) {
	config := &rest.Config{
		Host: server, BearerToken: token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &store{
		ctx: ctx, client: client,
		namespaces: make(map[string]bool), made: make(map[string]bool), uids: make(map[types.UID]types.UID), bound: make(map[types.UID]bool),
	}, nil
}

// Put implements generator.Store.
func (s *store) Put(objects ...generator.Object) error {
	for _, object := range objects {
		if err := s.put(object); err != nil {
			return fmt.Errorf("put %T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
		}
	}
	return nil
}

func (s *store) put(object generator.Object) error {
	if err := s.namespace(object.GetNamespace()); err != nil {
		return err
	}
	first := s.isNew(fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), object.GetName()))
	var err error
	switch given := object.(type) {
	case *corev1.Pod:
		return s.putPod(given, first)
	case *resourcev1.ResourceClaim:
		return s.putClaim(given, first)
	case *corev1.Node:
		var made *corev1.Node
		if made, err = s.client.CoreV1().Nodes().Create(s.ctx, given, metav1.CreateOptions{}); err == nil {
			made.Status = given.Status
			_, err = s.client.CoreV1().Nodes().UpdateStatus(s.ctx, made, metav1.UpdateOptions{})
		}
	case *resourcev1.ResourceSlice:
		_, err = s.client.ResourceV1().ResourceSlices().Create(s.ctx, given, metav1.CreateOptions{})
	case *resourcev1.DeviceClass:
		_, err = s.client.ResourceV1().DeviceClasses().Create(s.ctx, given, metav1.CreateOptions{})
	case *resourcev1.DeviceTaintRule:
		_, err = s.client.ResourceV1().DeviceTaintRules().Create(s.ctx, given, metav1.CreateOptions{})
	default:
		err = fmt.Errorf("no way is known to put a %T", object)
	}
	return err
}

// putPod creates the pod, binds it and writes its status, each if it has not
// been done.
func (s *store) putPod(given *corev1.Pod, first bool) error {
	pods := s.client.CoreV1().Pods(given.Namespace)
	if first {
		fresh := given.DeepCopy()
		fresh.UID, fresh.Spec.NodeName, fresh.Status = "", "", corev1.PodStatus{}
		made, err := pods.Create(s.ctx, fresh, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		s.recordUID(given.UID, made.UID)
	}
	if given.Spec.NodeName != "" && s.markBound(given.UID) {
		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: given.Namespace, Name: given.Name},
			Target:     corev1.ObjectReference{Kind: "Node", Name: given.Spec.NodeName},
		}
		if err := pods.Bind(s.ctx, binding, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if len(given.Status.Conditions) == 0 {
		return nil
	}
	now := given.DeepCopy()
	now.UID, now.ResourceVersion = s.uid(given.UID), ""
	_, err := pods.UpdateStatus(s.ctx, now, metav1.UpdateOptions{})
	return err
}

func (s *store) putClaim(given *resourcev1.ResourceClaim, first bool) error {
	claims := s.client.ResourceV1().ResourceClaims(given.Namespace)
	now := given.DeepCopy()
	now.UID, now.Finalizers = "", nil // the finalizer belongs to the controllers, which do not run here
	if first {
		if _, err := claims.Create(s.ctx, now.DeepCopy(), metav1.CreateOptions{}); err != nil || given.Status.Allocation == nil {
			return err
		}
	}
	for i := range now.Status.ReservedFor {
		now.Status.ReservedFor[i].UID = s.uid(now.Status.ReservedFor[i].UID)
	}
	_, err := claims.UpdateStatus(s.ctx, now, metav1.UpdateOptions{})
	return err
}

// Delete implements generator.Store.
func (s *store) Delete(objects ...generator.Object) error {
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	for _, object := range objects {
		var err error
		switch given := object.(type) {
		case *corev1.Pod:
			err = s.client.CoreV1().Pods(given.Namespace).Delete(s.ctx, given.Name, now)
		case *resourcev1.ResourceClaim:
			err = s.client.ResourceV1().ResourceClaims(given.Namespace).Delete(s.ctx, given.Name, now)
		case *resourcev1.DeviceTaintRule:
			err = s.client.ResourceV1().DeviceTaintRules().Delete(s.ctx, given.Name, now)
		default:
			err = fmt.Errorf("no way is known to delete a %T", object)
		}
		if err != nil {
			return fmt.Errorf("delete %s/%s: %w", object.GetNamespace(), object.GetName(), err)
		}
	}
	return nil
}

// namespace creates a namespace unless it has been created.
func (s *store) namespace(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.namespaces[name] {
		return nil
	}
	_, err := s.client.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	s.namespaces[name] = true
	return nil
}

// isNew reports whether the object has not been put before.
func (s *store) isNew(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.made[key]
	s.made[key] = true
	return !had
}

func (s *store) recordUID(given, made types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uids[given] = made
}

func (s *store) uid(given types.UID) types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uids[given]
}

// markBound reports whether the pod must still be bound.
func (s *store) markBound(given types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	had := s.bound[given]
	s.bound[given] = true
	return !had
}
