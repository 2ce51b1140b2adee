package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// checkInjected compares, for every running container of a namespace, the
// devices and claims that the page reports with those that the drivers
// injected as variables.
func checkInjected(t *testing.T, p *scrape.Page, namespace string) {
	t.Helper()
	pods, err := shared.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		for _, container := range pod.Spec.Containers {
			injected, err := injectedClaims(pod, container.Name)
			if err != nil {
				t.Fatal(err)
			}
			if used := usedOnPage(p, pod, container.Name); !slices.Equal(used, injected) {
				t.Errorf("%s/%s is said to use %q, and has injected %q", pod.Name, container.Name, used, injected)
			}
		}
	}
}

// injectedClaims returns the variables of a container that name a device, each
// with its claim's UID as the value.
func injectedClaims(pod *corev1.Pod, container string) ([]string, error) {
	env, err := shared.ContainerEnv(pod, container)
	if err != nil {
		return nil, err
	}
	var variables []string
	for name, value := range env {
		if strings.HasPrefix(name, "SHAPES_") || strings.HasSuffix(name, "_RESOURCE_CLAIM") {
			variables = append(variables, name+"="+value)
		}
	}
	slices.Sort(variables)
	return variables, nil
}

// usedOnPage returns what the page reports of a container, in the same format.
func usedOnPage(p *scrape.Page, pod *corev1.Pod, container string) []string {
	var variables []string
	consumers := scrape.Labels{"namespace": pod.Namespace, "pod": pod.Name, "pod_uid": string(pod.UID), "container": container}
	for _, consumer := range p.Rows("dra_claim_consumer_info", consumers) {
		claim := scrape.Labels{"namespace": pod.Namespace, "resourceclaim": consumer.Labels["resourceclaim"]}
		info, err := p.One("dra_claim_info", claim)
		if err != nil {
			return []string{err.Error()}
		}
		for _, device := range p.Rows("dra_claim_device_info", with(claim, "uuid", consumer.Labels["uuid"])) {
			variables = append(variables, variableOf(device.Labels)+"="+info.Labels["claim_uid"])
		}
	}
	slices.Sort(variables)
	return variables
}

// variableOf returns the variable that a driver injects for a device.
func variableOf(device scrape.Labels) string {
	shell := func(name string) string {
		return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
	}
	isShapes := device["driver"] == "part.example.com" && !shared.Has(releases.CountersOfOtherSlices)
	if strings.HasSuffix(device["driver"], ".example.com") && !isShapes {
		return "GPU_DEVICE_" + shell(device["device"]) + "_RESOURCE_CLAIM"
	}
	if share := device["share_id"]; share != "" {
		return "SHAPES_" + shell(device["device"]+"-"+share)
	}
	return "SHAPES_" + shell(device["device"])
}
