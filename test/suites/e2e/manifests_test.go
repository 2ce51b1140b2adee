package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// deploy applies testdata/claims/<name>.yaml, whose objects are in the
// namespace <name>. At the end of the test it deletes them and waits until
// pods and claims are gone and their devices free.
func deploy(t *testing.T, name string) {
	t.Helper()
	manifests, err := os.ReadFile("testdata/claims/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	deployText(t, name, string(manifests))
}

// deployText is deploy for manifests written in the test.
func deployText(t *testing.T, namespace, manifests string) {
	t.Helper()
	t.Cleanup(func() { deleteWorkloads(t, namespace) })
	err := cluster.Eventually(t.Context(), "manifests of "+namespace, func(ctx context.Context) error {
		return shared.Apply(ctx, manifests) // a new namespace has no service account at first
	})
	if err != nil {
		t.Fatal(err)
	}
}

// deleteWorkloads deletes the pods, claims and templates of a namespace and
// waits until they are gone. The namespace remains, so that the next test may
// use it immediately.
func deleteWorkloads(t *testing.T, namespace string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	core, dra := shared.Client().CoreV1(), shared.Client().ResourceV1()
	err := errors.Join(
		core.Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		shared.EvictFrom(ctx, otherNode, namespace), // on the node without a kubelet
		dra.ResourceClaimTemplates(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		dra.ResourceClaims(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
		cluster.Eventually(ctx, "namespace "+namespace+" empty", func(ctx context.Context) error {
			return isEmpty(ctx, namespace)
		}),
	)
	if err != nil {
		t.Error(err)
	}
}

func isEmpty(ctx context.Context, namespace string) error {
	pods, err := shared.Client().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	claims, err := shared.Client().ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(pods.Items)+len(claims.Items) > 0 {
		if err := changeExtendedClaims(ctx, claims.Items); err != nil {
			return err
		}
		return fmt.Errorf("%d pods and %d claims are left", len(pods.Items), len(claims.Items))
	}
	return nil
}

// changeExtendedClaims changes the claims of extended resources. Kubernetes 1.34
// does not look at the claim of a pod that has gone, unless it has changed.
func changeExtendedClaims(ctx context.Context, claims []resourceapi.ResourceClaim) error {
	if shared.Has(releases.ImplicitResources) {
		return nil
	}
	for _, claim := range claims {
		if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "" {
			continue
		}
		patch := fmt.Sprintf(`{"metadata": {"annotations": {"e2e.example.com/changed": "%d"}}}`, time.Now().UnixNano())
		_, err := shared.Client().ResourceV1().ResourceClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// running waits until a pod runs and returns it.
func running(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod, err := shared.WaitPod(t.Context(), namespace, name, corev1.PodRunning)
	if err != nil {
		t.Fatal(err)
	}
	return pod
}
