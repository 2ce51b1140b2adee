package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const podsAPINamespace = "pods-api-agent"

// podsAPIOverlay is the shipped base with the component, in addition to the
// agent of all tests. Its arguments are the base's path, the component's, the
// agent's arguments and four folders.
const podsAPIOverlay = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: ` + podsAPINamespace + `
nameSuffix: -pods-api
resources: [%q]
components: [%q]
images:
- {name: ghcr.io/dra-exporter/dra-exporter, newName: localhost/dra-exporter, newTag: e2e}
configMapGenerator:
- {name: simulated-devices, files: [devices.yaml], options: {disableNameSuffixHash: true}}
patches:
- target: {labelSelector: app.kubernetes.io/component=cluster}
  patch: "{$patch: delete, apiVersion: v1, kind: Any, metadata: {name: any}}"
- patch: |
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: dra-exporter-node, namespace: dra-exporter}
    spec:
      template:
        spec:
          containers:
          - name: dra-exporter
            imagePullPolicy: Never
            args: %s
            volumeMounts:
            - {name: simulated-devices, mountPath: /etc/dra-exporter, readOnly: true}
          volumes:
          - {name: pod-resources, hostPath: {path: %q}}
          - {name: pods-api, hostPath: {path: %q}}
          - {name: cdi-run, hostPath: {path: %q}}
          - {name: cdi-etc, hostPath: {path: %q}}
          - {name: simulated-devices, configMap: {name: simulated-devices}}
`

// podsAPIAgent is a second agent of the node, with the component pods-api.
type podsAPIAgent struct{ watcher *scrape.Watcher }

// startPodsAPI deploys it until the test ends.
func startPodsAPI(t *testing.T) *podsAPIAgent {
	t.Helper()
	args := fmt.Sprintf(`[node, --device.source=simulated, --simulated.config=/etc/dra-exporter/devices.yaml, --ledger.grace=%s]`, grace)
	manifests, err := kustomized(t.Context(), map[string]string{"devices.yaml": devices.yaml()}, func(deploy string) string {
		return fmt.Sprintf(podsAPIOverlay, filepath.Join(deploy, "base"), filepath.Join(deploy, "components", "pods-api"), args,
			filepath.Dir(shared.KubeletSocket()), filepath.Join(shared.KubeletDir(), "pods-api"), shared.CDIDir(), filepath.Join(shared.Dir(), "no-such-folder"))
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			text, _ := shared.Kubectl(ctx, "logs", "--namespace", podsAPINamespace, "--selector", agentSelector, "--tail", "60")
			t.Logf("the agent with the Pods API:\n%s", text)
		}
		if err := shared.Delete(ctx, manifests); err != nil {
			t.Error(err)
		}
	})
	if err := shared.Apply(t.Context(), manifests); err != nil {
		t.Fatal(err)
	}
	a := &podsAPIAgent{}
	a.watcher = scrape.Watch(t.Context(), 250*time.Millisecond, a.metrics, scrape.Rules(grace)...)
	t.Cleanup(func() {
		if err := a.watcher.Broken(); err != nil || a.watcher.Pages() == 0 {
			t.Errorf("of %d pages of the agent with the Pods API some broke their rules: %v", a.watcher.Pages(), err)
		}
	})
	return a
}

func (a *podsAPIAgent) metrics(ctx context.Context) (string, error) {
	pod, err := a.pod(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("http://%s:9420/metrics", pod.Status.PodIP), nil
}

func (a *podsAPIAgent) pod(ctx context.Context) (*corev1.Pod, error) {
	pods, err := shared.Client().CoreV1().Pods(podsAPINamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.DeletionTimestamp == nil && isReady(pod) {
			return pod, nil
		}
	}
	return nil, errors.New("the agent with the Pods API has no pod that is ready")
}

// eventually waits until check accepts a page of this agent.
func (a *podsAPIAgent) eventually(t *testing.T, what string, check func(*scrape.Page) error) {
	t.Helper()
	var last error
	err := cluster.Eventually(t.Context(), what, func(ctx context.Context) error {
		p, err := a.watcher.Next(ctx)
		if err != nil {
			return err
		}
		last = check(p)
		return last
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

// waitPodsSource waits until dra_exporter_source_up of the pods' source has
// the value want.
func (a *podsAPIAgent) waitPodsSource(t *testing.T, want float64) {
	t.Helper()
	a.eventually(t, fmt.Sprintf("the source pods to be %v", want), func(p *scrape.Page) error {
		row, err := p.One("dra_exporter_source_up", scrape.Labels{"source": "pods"})
		if err == nil && row.Value != want {
			err = fmt.Errorf("it is %v", row.Value)
		}
		return err
	})
}

// page returns this agent's next page.
func (a *podsAPIAgent) page(t *testing.T) *scrape.Page {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := a.watcher.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ownershipRows returns the rows of a page that say which claim holds which
// device, without measured values and rows of the agent itself.
func ownershipRows(p *scrape.Page, namespaces ...string) []string {
	var rows []string
	for _, name := range []string{"dra_claim_info", "dra_claim_device_info", "dra_claim_consumer_info", "dra_claim_held", "dra_device_holders", "dra_claim_memory_allocated_bytes"} {
		for _, row := range p.Rows(name, nil) {
			if namespace, has := row.Labels["namespace"]; has && !slices.Contains(namespaces, namespace) {
				continue
			}
			rows = append(rows, fmt.Sprintf("%s%s %v", name, row.Labels, row.Value))
		}
	}
	return rows
}

// waitSame waits until both agents have the same rows of these namespaces, and
// at least one.
func (a *podsAPIAgent) waitSame(t *testing.T, at string, namespaces ...string) {
	t.Helper()
	a.eventually(t, at+": both agents to agree", func(p *scrape.Page) error {
		usual, err := watcher.Next(t.Context())
		if err != nil {
			return err
		}
		mine, its := ownershipRows(p, namespaces...), ownershipRows(usual, namespaces...)
		if !slices.Equal(mine, its) {
			return fmt.Errorf("the agent with the Pods API says alone\n  %s\nand the usual one says alone\n  %s",
				strings.Join(onlyIn(mine, its), "\n  "), strings.Join(onlyIn(its, mine), "\n  "))
		}
		for _, namespace := range namespaces {
			if usual.Count("dra_claim_held", scrape.Labels{"namespace": namespace}) == 0 {
				return fmt.Errorf("nothing is held in %s", namespace)
			}
		}
		return nil
	})
}

// onlyIn returns the rows that the others do not have.
func onlyIn(rows, others []string) []string {
	left := maps.Collect(func(yield func(string, bool) bool) {
		for _, row := range others {
			yield(row, true)
		}
	})
	return slices.DeleteFunc(slices.Clone(rows), func(row string) bool { return left[row] })
}
