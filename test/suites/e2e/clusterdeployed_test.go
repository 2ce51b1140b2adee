package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const clusterSelector = "app.kubernetes.io/name=dra-exporter,app.kubernetes.io/component=cluster"

// TestClusterDeployment: the shipped Deployment runs unchanged, serves the
// same page as the process beside it, and has read permissions only.
func TestClusterDeployment(t *testing.T) {
	covers(t)
	var pod *corev1.Pod
	err := cluster.Eventually(t.Context(), "the cluster role's pod", func(ctx context.Context) (err error) {
		pods, err := shared.Client().CoreV1().Pods(agentNamespace).List(ctx, metav1.ListOptions{LabelSelector: clusterSelector})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d", len(pods.Items))
		}
		pod, err = shared.WaitPod(ctx, agentNamespace, pods.Items[0].Name, corev1.PodRunning)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = cluster.Eventually(t.Context(), "two pages that agree", func(ctx context.Context) error {
		deployed, err := scrape.Fetch(ctx, fmt.Sprintf("http://%s:9421/metrics", pod.Status.PodIP))
		if err != nil {
			return err
		}
		process := clusterPage(t)
		var errs []error
		for _, family := range []string{"dra_devices", "dra_class_devices", "dra_claims", "dra_claim_pending_since_timestamp_seconds"} {
			for _, row := range process.Rows(family, nil) {
				errs = append(errs, hasGauge(deployed, family, row.Labels, row.Value))
			}
			if one, other := deployed.Count(family, nil), process.Count(family, nil); one != other || other == 0 && family != "dra_claim_pending_since_timestamp_seconds" && family != "dra_claims" {
				errs = append(errs, fmt.Errorf("%s has %d rows and %d", family, one, other))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
	everybody := permissions(t, "default", "default")
	for _, rule := range permissions(t, agentNamespace, clusterAccount) {
		verb, _, _ := strings.Cut(rule, " ")
		if verb != "get" && verb != "list" && verb != "watch" && !slices.Contains(everybody, rule) {
			t.Errorf("the cluster role may %s", rule)
		}
	}
}
