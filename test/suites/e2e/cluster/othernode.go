package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const leaseNamespace = "kube-node-lease"

// AddNode adds a node without a kubelet: the scheduler may bind pods to it,
// but they never run. It is ready while its lease is renewed, until remove is
// called, which deletes its pods and the node.
func (c *Cluster) AddNode(ctx context.Context, name string) (remove func(context.Context) error, err error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux",
	}}}
	if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("add node %s: %w", name, err)
	}
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	remove = func(ctx context.Context) error {
		stop()
		return c.removeNode(ctx, name)
	}
	if err := c.renewLease(ctx, name); err != nil {
		return nil, errors.Join(err, remove(ctx))
	}
	go c.keepLease(renewing, name)
	if err := c.reportReady(ctx, name); err != nil {
		return nil, errors.Join(err, remove(ctx))
	}
	err = Eventually(ctx, "node "+name+" without taints", func(ctx context.Context) error {
		found, err := c.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(found.Spec.Taints) > 0 {
			return fmt.Errorf("it has %v", found.Spec.Taints)
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(err, remove(ctx))
	}
	return remove, nil
}

// reportReady writes the status that a kubelet of this release would. It
// retries on conflicts, because the node controller writes to a new node as
// well.
func (c *Cluster) reportReady(ctx context.Context, name string) error {
	nodes := c.client.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Status.Capacity = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("110"),
		}
		node.Status.Allocatable = node.Status.Capacity
		node.Status.NodeInfo.KubeletVersion = c.options.KubernetesVersion
		node.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
			LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
		}}
		_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("say that node %s is ready: %w", name, err)
	}
	return nil
}

// keepLease renews the lease as often as a kubelet does. It retries after
// failures, because a test may stop the API server.
func (c *Cluster) keepLease(ctx context.Context, name string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
		}
		if err := c.renewLease(ctx, name); err != nil && ctx.Err() == nil {
			c.options.Logf("%v", err)
		}
	}
}

func (c *Cluster) renewLease(ctx context.Context, name string) error {
	leases := c.client.CoordinationV1().Leases(leaseNamespace)
	seconds := int32(40)
	now := metav1.NowMicro()
	spec := coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	case err == nil:
		lease.Spec = spec
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renew the lease of node %s: %w", name, err)
	}
	return nil
}

// removeNode deletes the node and the pods that are bound to it, which no
// kubelet deletes.
func (c *Cluster) removeNode(ctx context.Context, name string) error {
	err := c.EvictFrom(ctx, name, metav1.NamespaceAll)
	err = errors.Join(err, c.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}))
	lease := c.client.CoordinationV1().Leases(leaseNamespace).Delete(ctx, name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(lease) {
		err = errors.Join(err, lease)
	}
	if err != nil {
		return fmt.Errorf("remove node %s: %w", name, err)
	}
	return nil
}

// EvictFrom deletes the pods of a namespace, or of all, that are bound to a
// node without a kubelet, immediately.
func (c *Cluster) EvictFrom(ctx context.Context, node, namespace string) error {
	pods, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	var errs []error
	for _, pod := range pods.Items {
		err := c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewDeleteOptions(0))
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
