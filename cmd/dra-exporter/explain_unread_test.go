package main

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

// Collections that cannot be read are named, with what is unknown because of
// it; the rest is explained without them.
func TestExplainWithoutPermission(t *testing.T) {
	forbid := func(refuse func(apiserver.Request) bool) apiserver.Options {
		return apiserver.Options{Intercept: func(request apiserver.Request) int {
			if refuse(request) {
				return http.StatusForbidden
			}
			return 0
		}}
	}
	resource := func(names ...string) apiserver.Options {
		return forbid(func(request apiserver.Request) bool { return slices.Contains(names, request.Resource) })
	}
	for name, test := range map[string]struct {
		options apiserver.Options
		args    []string
		code    int
		want    []string
		never   []string
	}{
		"one namespace alone": {
			forbid(func(request apiserver.Request) bool {
				return request.Namespace == "" && slices.Contains([]string{"pods", "resourceclaims", "resourceclaimtemplates", "events"}, request.Resource)
			}),
			[]string{"claim", "too-many"}, 0,
			[]string{"insufficient_devices", "resourceclaims outside of namespace h-pending (permission_denied)", "count as free here"}, nil,
		},
		"no slices": {
			resource("resourceslices"), []string{"claim", "too-many"}, 0,
			[]string{"unknown", "resourceslices (permission_denied)", "no stage is diagnosed"}, []string{"Devices after each stage", "no driver publishes", "insufficient_devices", "devices are free;"},
		},
		"no classes": {
			resource("deviceclasses"), []string{"claim", "too-many"}, 0,
			[]string{"unknown", "deviceclasses (permission_denied)"}, []string{"create DeviceClass", "insufficient_devices"},
		},
		"no pods": {
			resource("pods"), []string{"claim", "too-many"}, 0,
			[]string{"whether a pod needs it is unknown", "pods (permission_denied)"}, []string{"is unused"},
		},
		"a pod, and no claims": {
			resource("resourceclaims"), []string{"pod", "wants-nine"}, 0,
			[]string{"has not started; whether it has its claims is unknown", "resourceclaims (permission_denied)"}, []string{"has all its claims", "devices are free;"},
		},
		"a pod, and no pods": {resource("pods"), []string{"pod", "wants-nine"}, 1, []string{"nothing is known about pod h-pending/wants-nine", "forbidden"}, nil},
		"no claims":          {resource("resourceclaims"), []string{"claim", "too-many"}, 1, []string{"nothing is known about ResourceClaim h-pending/too-many", "forbidden"}, []string{"there is no"}},
		"nothing at all":     {forbid(func(apiserver.Request) bool { return true }), []string{"claim", "too-many"}, 1, []string{"nothing can be read from the API server", "forbidden"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			kubeconfig := kubeconfigOf(t, snapshotServer(t, "01-round1", test.options).Config().Host)
			code, stdout, stderr := runExplainCommand(kubeconfig, test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, want := range test.want {
				if !strings.Contains(stdout+stderr, want) {
					t.Errorf("no %q", want)
				}
			}
			for _, never := range test.never {
				if strings.Contains(stdout+stderr, never) {
					t.Errorf("says %q", never)
				}
			}
			t.Logf("\n%s%s", stdout, stderr)
		})
	}
}

// Without an API server, or with a version that is too old, one sentence
// states this.
func TestExplainWithoutAPIServer(t *testing.T) {
	old := snapshotServer(t, "01-round1", apiserver.Options{Intercept: func(request apiserver.Request) int {
		if slices.Contains([]string{"resourceclaims", "resourceslices", "deviceclasses", "resourceclaimtemplates"}, request.Resource) {
			return http.StatusNotFound
		}
		return 0
	}})
	for name, test := range map[string]struct {
		kubeconfig string
		want       string
	}{
		"no listener":   {kubeconfigOf(t, "http://127.0.0.1:1"), "nothing can be read from the API server http://127.0.0.1:1"},
		"too old":       {kubeconfigOf(t, old.Config().Host), "Kubernetes 1.34"},
		"no kubeconfig": {filepath.Join(t.TempDir(), "none"), "none"},
	} {
		code, stdout, stderr := runExplainCommand(test.kubeconfig, "claim", "too-many", "--timeout=5s")
		if code != 1 || stdout != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d, %q, %q", name, code, stdout, stderr)
		}
		if lines := strings.Count(strings.TrimSpace(stderr), "\n") + 1; lines > 2 {
			t.Errorf("%s: %d lines:\n%s", name, lines, stderr)
		}
	}
}

// A slow cluster is waited for, with a progress message, up to a deadline.
func TestExplainSlowCluster(t *testing.T) {
	stuck := make(chan struct{})
	server := snapshotServer(t, "01-round1", apiserver.Options{Intercept: func(request apiserver.Request) int {
		if request.Resource == "resourceslices" {
			<-stuck
		}
		return 0
	}})
	t.Cleanup(func() { close(stuck) })
	began := time.Now()
	code, stdout, stderr := runExplainCommand(kubeconfigOf(t, server.Config().Host), "claim", "too-many", "--timeout=3s")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("waited for %s, though 3 s were given", took)
	}
	if code != 0 || !strings.Contains(stderr, "still reading: resourceslices") || !strings.Contains(stdout, "resourceslices (timeout)") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
