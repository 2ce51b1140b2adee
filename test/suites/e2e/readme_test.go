package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// readmeNamespace enforces the Pod Security level restricted.
const readmeNamespace = "readme"

const readmeObjects = `
{apiVersion: v1, kind: Namespace, metadata: {name: readme, labels: {pod-security.kubernetes.io/enforce: restricted}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: readme-pods}}
`

const readmePod = `
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: impossible, namespace: readme-pods}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: no-such-class}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: readme-pods}
spec:
  containers: [{name: main, image: "localhost/pause:1", resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: impossible}]
`

// testReadme runs the README's command that installs the cluster role alone, except
// for the names of image, release (the tests' cluster has a ClusterRole of that name) and
// namespace, and waits for its first answer.
func testReadme(t *testing.T) {
	applyFor(t, readmeObjects)
	before := currentInventory(t)
	deployText(t, "readme-pods", readmePod)
	arguments := readmeInstall(t)
	t.Cleanup(func() {
		if _, err := helm(context.WithoutCancel(t.Context()), "uninstall", readmeNamespace, "--namespace="+readmeNamespace, "--ignore-not-found", "--wait"); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	if output, err := helm(t.Context(), arguments...); err != nil {
		t.Fatal(err)
	} else if strings.Contains(output, "violates PodSecurity") {
		t.Errorf("the notes warn of Pod Security:\n%s", output)
	}
	var pod string
	err := cluster.Eventually(t.Context(), "the cluster role's answer about the pod", func(ctx context.Context) error {
		pods, err := shared.Client().CoreV1().Pods(readmeNamespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) != 1 {
			return fmt.Errorf("there are %d pods", len(pods.Items))
		}
		pod = pods.Items[0].Name
		answer, err := shared.Kubectl(ctx, "get", "--raw", "/api/v1/namespaces/"+readmeNamespace+"/pods/"+pod+":9421/proxy/api/v1/pending")
		if err != nil {
			return err
		}
		if !strings.Contains(answer, `"readme-pods"`) || !strings.Contains(answer, `"no_device_class"`) {
			return fmt.Errorf("the answer is %s", answer)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, release{readmeNamespace, readmeNamespace}.describePods(t.Context()))
	}
	t.Logf("%s after the command, pod %s says why a pod is pending", time.Since(began).Round(100*time.Millisecond), pod)
	readOnly(t, readmeNamespace)
	for _, object := range missingFrom(currentInventory(t), before) {
		t.Logf("the command made %s", object)
	}
}

// readmeInstall returns the arguments of the README's `helm install`.
func readmeInstall(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^helm (install dra-exporter deploy/helm/dra-exporter (?:.*\\\n)*.*)$`).FindStringSubmatch(string(text))
	if command == nil {
		t.Fatal("README.md does not install the chart")
	}
	arguments := strings.Fields(strings.ReplaceAll(command[1], "\\\n", " "))
	if !slices.Contains(arguments, "node.enabled=false") {
		t.Fatalf("it does not install the cluster role alone: %v", arguments)
	}
	others := map[string]string{
		"deploy/helm/dra-exporter": chartFolder,
		"dra-exporter":             readmeNamespace, // after -n
		"image.repository=registry.example.com/dra-exporter": "image.repository=localhost/dra-exporter",
		"image.tag=v0.1.0": "image.tag=e2e,image.pullPolicy=Never",
	}
	arguments[1] = readmeNamespace // the release
	for i := 2; i < len(arguments); i++ {
		if other, ok := others[arguments[i]]; ok {
			delete(others, arguments[i])
			arguments[i] = other
		}
	}
	if len(others) > 0 {
		t.Fatalf("the command lacks %v", others)
	}
	return arguments
}
