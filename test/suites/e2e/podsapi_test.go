package e2e

import (
	"context"
	"crypto/tls"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestPodsAPI: an agent without permission to read pods reads them from the
// kubelet, and exports the same as the usual agent.
func TestPodsAPI(t *testing.T) {
	covers(t)
	a := startPodsAPI(t)
	if lacks(t, releases.PodsAPI) {
		a.waitPodsSource(t, 0)
		return
	}
	a.waitPodsSource(t, 1)
	t.Run("permissions", testPodsAPIPermissions)
	t.Run("init", func(t *testing.T) {
		deploy(t, "init")
		for _, pod := range []string{"warm", "prepares"} {
			running(t, "init", pod)
		}
		a.waitSame(t, "init containers", "init")
	})
	deployFaultClaims(t)
	deploy(t, "shared-claim")
	running(t, "shared-claim", "shared-0")
	running(t, "shared-claim", "shared-1")
	all := append(faultNamespaces(), "shared-claim")
	a.waitSame(t, "at work", all...)
	remove(t, "shared-claim", "shared-0")
	a.waitSame(t, "after a pod has gone", all...)

	t.Run("kubelet-killed", func(t *testing.T) { testPodsAPIKubelet(t, a, all) })
	t.Run("agent-restarted", func(t *testing.T) { testPodsAPIAgent(t, a, all) })
	t.Run("cost", testPodsAPICost)
}

// testPodsAPIKubelet: from the end of the kubelet until it serves its pods
// again, no claim loses a label, and a pod that was deleted meanwhile is
// removed.
func testPodsAPIKubelet(t *testing.T, a *podsAPIAgent, all []string) {
	check := a.watcher.CheckRule(seriesUnchanged(a.page(t)))
	kubelet := shared.Process("kubelet")
	kill(t, kubelet)
	a.waitPodsSource(t, 0)
	start(t, kubelet)
	a.waitPodsSource(t, 1)
	waitListed(t, "exclusive", "train", "main", "gpu.example.com/gpu-?")
	waitDevicesPublished(t)
	a.waitSame(t, "after the kubelet's restart", all...)
	endRuleCheck(t, check, 20)
}

// testPodsAPIAgent: after a restart, the agent exports the same again.
func testPodsAPIAgent(t *testing.T, a *podsAPIAgent, all []string) {
	before := a.page(t)
	pod, err := a.pod(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	remove(t, podsAPINamespace, pod.Name)
	a.waitPodsSource(t, 1)
	a.waitSame(t, "after the agent's restart", all...)
	if after := a.page(t); processStart(t, after) == processStart(t, before) {
		t.Error("it is the same agent")
	}
}

// testPodsAPICost measures the kubelet's processor time for opening a watch.
func testPodsAPICost(t *testing.T) {
	const watches = 100
	connection, err := grpc.NewClient("unix://"+filepath.Join(shared.KubeletDir(), "pods-api", "pods-api.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	before, began, pods := kubeletSeconds(t), time.Now(), 0
	for range watches {
		pods = watchOnce(t, podsv1alpha1.NewPodsClient(connection))
	}
	t.Logf("the kubelet spends %.2f ms of processor time on opening a watch of %d pods, all else that it did in these %s included",
		1000*(kubeletSeconds(t)-before)/watches, pods, time.Since(began).Round(time.Millisecond))
}

// watchOnce opens a watch, and counts the pods of its first events.
func watchOnce(t *testing.T, client podsv1alpha1.PodsClient) (pods int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := client.WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if event.Type == podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE {
			return pods
		}
		pods++
	}
}

// kubeletSeconds returns the processor time that the kubelet has used.
func kubeletSeconds(t *testing.T) float64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	answer, err := client.Get(shared.KubeletURL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	p, err := scrape.Parse(time.Now(), answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	row, err := p.One("process_cpu_seconds_total", nil)
	if err != nil {
		t.Fatal(err)
	}
	return row.Value
}

// testPodsAPIPermissions: the API server grants the account no permission on
// pods.
func testPodsAPIPermissions(t *testing.T) {
	everybody := permissions(t, "default", "default")
	var more []string
	for _, rule := range permissions(t, podsAPINamespace, agentAccount+"-pods-api") {
		if !slices.Contains(everybody, rule) {
			more = append(more, rule)
		}
	}
	want := []string{"get resource.k8s.io/resourceclaims", "list /nodes", "list resource.k8s.io/resourceclaims", "list resource.k8s.io/resourceslices", "watch /nodes", "watch resource.k8s.io/resourceslices"}
	if !slices.Equal(more, want) {
		t.Errorf("the agent may %q, want %q", more, want)
	}
}

// TestPodsAPIComponentRenders: the component mounts the socket, configures its
// path, removes every permission to read pods, and changes nothing else,
// whatever the agent's name.
func TestPodsAPIComponentRenders(t *testing.T) {
	const (
		rule  = "- apiGroups:\n  - \"\"\n  resources:\n  - pods\n  verbs:\n  - list\n  - watch\n"
		get   = "  - resourceclaims\n  verbs:\n  - get\n"
		env   = "        - name: DRA_EXPORTER_KUBELET_PODS_API\n          value: /var/lib/kubelet/pods-api/pods-api.sock\n"
		mount = "        - mountPath: /var/lib/kubelet/pods-api\n          name: pods-api\n          readOnly: true\n"
		// The component leaves the folder's type empty, for the reason given
		// there.
		volume = "      - hostPath:\n          path: /var/lib/kubelet/pods-api\n          type: \"\"\n        name: pods-api\n"
	)
	for _, base := range []string{"base", "overlays/nvidia"} {
		for name, more := range map[string]string{"as shipped": "", "renamed": "namespace: monitoring\nnamePrefix: my-\n"} {
			t.Run(base+" "+name, func(t *testing.T) {
				var want []string
				for _, object := range rendered(t, base, "", more) {
					if strings.Contains(object, "kind: ClusterRole\n") && strings.Contains(object, "component: node\n") {
						object = strings.Replace(strings.Replace(object, rule, "", 1), get, get+"  - list\n", 1)
					}
					want = append(want, object)
				}
				var got []string
				added := 0
				for _, object := range rendered(t, base, "pods-api", more) {
					for _, part := range []string{env, mount, volume} {
						added += strings.Count(object, part)
						object = strings.Replace(object, part, "", 1)
					}
					got = append(got, object)
				}
				if added != 3 || !slices.Equal(got, want) || slices.Equal(want, rendered(t, base, "", more)) {
					t.Errorf("%d parts are added, and the rest is\n%s\nand not\n%s", added, strings.Join(onlyIn(got, want), "\n---\n"), strings.Join(onlyIn(want, got), "\n---\n"))
				}
			})
		}
	}
}
