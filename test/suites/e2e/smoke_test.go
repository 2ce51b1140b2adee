package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// TestClusterSmoke checks the cluster itself: pods reach the API server, the
// host reaches pods, and components that the agent does not read can be killed
// and restarted without a change of the agent's page.
func TestClusterSmoke(t *testing.T) {
	t.Run("pod network", testPodNetwork)
	t.Run("restarts", testRestarts)
}

const networkPods = `
apiVersion: v1
kind: Namespace
metadata: {name: network}
---
apiVersion: v1
kind: Pod
metadata: {name: caller, namespace: network}
spec:
  restartPolicy: OnFailure
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, args: [apiserver]}]
---
apiVersion: v1
kind: Pod
metadata: {name: server, namespace: network}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, args: [serve, ":8080"]}]
`

func testPodNetwork(t *testing.T) {
	deployText(t, "network", networkPods)
	if _, err := shared.WaitPod(t.Context(), "network", "caller", corev1.PodSucceeded); err != nil {
		t.Error(err)
	}
	server := running(t, "network", "server")
	err := cluster.Eventually(t.Context(), "an answer from a pod", func(context.Context) error {
		response, err := http.Get("http://" + server.Status.PodIP + ":8080")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err == nil && !strings.Contains(string(body), "HOSTNAME=server") {
			return fmt.Errorf("the pod answers %q", body)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := shared.Kubectl(t.Context(), "logs", "--namespace=network", "server"); err != nil {
		t.Error(err)
	}
}

// testRestarts ends one component after the other while pods run, and checks
// that each works again by starting another pod.
func testRestarts(t *testing.T) {
	before := deployFaultClaims(t)
	check := watcher.CheckRule(seriesUnchanged(before))
	for _, component := range []struct {
		name string
		end  func(*cluster.Process) error
	}{
		{"scheduler", (*cluster.Process).Kill},
		{"controller-manager", (*cluster.Process).Kill},
		{"containerd", (*cluster.Process).Kill},
		{"etcd", (*cluster.Process).Stop},
	} {
		t.Run(component.name, func(t *testing.T) {
			restart(t, shared.Process(component.name), component.end)
			waitListed(t, "exclusive", "train", "main", "gpu.example.com/gpu-?")
			deploy(t, "shared-claim")
			running(t, "shared-claim", "shared-0")
			running(t, "shared-claim", "shared-1")
		})
	}
	endRuleCheck(t, check, 10)
}

func restart(t *testing.T, p *cluster.Process, end func(*cluster.Process) error) {
	t.Helper()
	if err := end(p); err != nil {
		t.Fatal(err)
	}
	if p.PID() != 0 {
		t.Fatal("it still runs")
	}
	start(t, p)
}
