package e2e

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deployForBoards creates what dashboards show: held claims of each kind,
// claims that are pending for different reasons, and claims that cannot be
// deleted. What a dashboard shows as a rate happens twice, some scrapes apart:
// the series of a component may begin with the first.
func deployForBoards(t *testing.T) {
	t.Helper()
	twoNodes(t)
	setBehaviour(t, "{bindingDelay: 1s}")
	deployText(t, "turns", heldPods)
	deploy(t, "exclusive")
	deployText(t, "unhealthy", boundLate)
	deploy(t, "boards")
	t.Cleanup(func() { removeFinalizers(t, "boards", "stuck") })
	claims := shared.Client().ResourceV1().ResourceClaims("boards")
	if err := claims.Delete(t.Context(), "stuck", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	running(t, "turns", "first")
	running(t, "exclusive", "train")
	running(t, "unhealthy", "cable")
	deleteWorkloads(t, "exclusive")
	deleteWorkloads(t, "unhealthy")

	deployTeams(t)
	running(t, "boards", "mig")
	deployText(t, "turns", secondPod)
	deployText(t, "alerts", latePods)
	time.Sleep(2 * scraped)
	deploy(t, "exclusive")
	deployText(t, "unhealthy", boundLate)
	running(t, "exclusive", "train")
	running(t, "unhealthy", "cable")
	deleteWorkloads(t, "exclusive")
	deleteWorkloads(t, "unhealthy")

	setBehaviour(t, "{prepareError: no such cable, bindingDelay: 1h, unhealthy: [only-0]}")
	deployText(t, "prepared", preparedPod)
	deployText(t, "unhealthy", boundLate)
}

// removeFinalizers removes a claim's finalizers, so that it can be deleted.
func removeFinalizers(t *testing.T, namespace, claim string) {
	t.Helper()
	free := []byte(`{"metadata":{"finalizers":null}}`)
	ctx := context.WithoutCancel(t.Context())
	if _, err := shared.Client().ResourceV1().ResourceClaims(namespace).Patch(ctx, claim, types.MergePatchType, free, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}
