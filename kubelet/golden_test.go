package kubelet

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// render renders a response as text: each pod, and under it the devices of its
// containers.
func render(resources dra.PodResources) string {
	var page strings.Builder
	for _, pod := range resources.Pods {
		fmt.Fprintf(&page, "pod %s\n", pod)
		for _, a := range resources.Assignments {
			if a.Pod == pod {
				fmt.Fprintf(&page, "  %s: claim %s: %s share=%q cdi=%q\n", a.Container, a.Claim, a.Device, a.ShareID, a.CDIDevices)
			}
		}
		for _, p := range resources.Plugins {
			if p.Pod == pod {
				fmt.Fprintf(&page, "  %s: plugin %s: %q\n", p.Container, p.Resource, p.DeviceIDs)
			}
		}
	}
	return page.String()
}

// golden compares with a file under testdata. UPDATE_GOLDEN=1 rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (UPDATE_GOLDEN=1 rewrites it)\n--- want\n%s\n--- got\n%s", path, want, got)
	}
}
