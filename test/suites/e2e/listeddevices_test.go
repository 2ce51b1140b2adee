package e2e

import (
	"context"
	"fmt"
	"path"
	"slices"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// waitListed waits until the kubelet lists exactly these devices for a
// container, each as a pattern of driver/device in the order of their names,
// and fails the test if it does not in time. A device that it lists twice, as
// some kubelets do after a restart, counts once.
func waitListed(t *testing.T, namespace, pod, container string, want ...string) {
	t.Helper()
	what := fmt.Sprintf("%s/%s/%s to hold %s", namespace, pod, container, want)
	err := cluster.Eventually(t.Context(), what, func(ctx context.Context) error {
		got, err := listedDevices(ctx, namespace, pod, container)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(got, want, matches) {
			return fmt.Errorf("the kubelet lists %s", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func matches(device, pattern string) bool {
	matched, err := path.Match(pattern, device)
	return err == nil && matched
}

// listedDevices returns the devices that the kubelet lists for a container,
// sorted.
func listedDevices(ctx context.Context, namespace, pod, container string) ([]string, error) {
	pods, err := shared.PodResources(ctx)
	if err != nil {
		return nil, err
	}
	var devices []string
	for _, p := range pods {
		for _, c := range p.Containers {
			if p.Namespace == namespace && p.Name == pod && c.Name == container {
				devices = append(devices, devicesOf(c)...)
			}
		}
	}
	slices.Sort(devices)
	return slices.Compact(devices), nil
}

func devicesOf(container *podresources.ContainerResources) []string {
	var devices []string
	for _, claim := range container.DynamicResources {
		for _, r := range claim.ClaimResources {
			devices = append(devices, r.DriverName+"/"+r.DeviceName)
		}
	}
	return devices
}
