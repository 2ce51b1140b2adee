package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// domainObjects are a ComputeDomain for two nodes and a pod that uses it. The channel
// is published by the test: NVIDIA's plugin needs GPUs with NVLink between nodes.
const domainObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: domains}
---
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomain
metadata: {name: nvl, namespace: domains}
spec: {numNodes: 2, channel: {resourceClaimTemplate: {name: nvl-channel}}}
---
apiVersion: v1
kind: Pod
metadata: {name: rank-0, namespace: domains, labels: {jobset.sigs.k8s.io/jobset-name: train}}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: channel}]}}]
  resourceClaims: [{name: channel, resourceClaimTemplateName: nvl-channel}]
`

// domainSupply is what NVIDIA's chart and its plugin on a node publish. Its argument is
// the node.
const domainSupply = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: compute-domain-default-channel.nvidia.com}
spec: {selectors: [{cel: {expression: "device.driver == 'compute-domain.nvidia.com' && device.attributes['compute-domain.nvidia.com'].type == 'channel'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: e2e-compute-domain}
spec:
  driver: compute-domain.nvidia.com
  nodeName: %[1]s
  pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: channel-0, attributes: {type: {string: channel}, id: {int: 0}}}
  - {name: daemon-0, attributes: {type: {string: daemon}, id: {int: 0}}}
`

// domainMembers stand for the IMEX daemons of NVIDIA's driver, which need GPUs: a pod on
// each node, and what the daemons write about themselves. The pods have an owner, so that
// the controller's DaemonSet neither adopts nor deletes them. The arguments are the UID of
// the domain, the nodes, and the state of the second daemon.
const domainMembers = `
apiVersion: v1
kind: Pod
metadata:
  name: imex-0
  namespace: domains
  labels: {resource.nvidia.com/computeDomain: %[1]q, resource.nvidia.com/computeDomain.cliqueID: a1b2.4}
  ownerReferences: [{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomain, name: nvl, uid: %[1]q, controller: true}]
spec: {nodeName: %[2]s, terminationGracePeriodSeconds: 1, containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never}]}
---
apiVersion: v1
kind: Pod
metadata:
  name: imex-1
  namespace: domains
  labels: {resource.nvidia.com/computeDomain: %[1]q, resource.nvidia.com/computeDomain.cliqueID: a1b2.4}
  ownerReferences: [{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomain, name: nvl, uid: %[1]q, controller: true}]
spec: {nodeName: %[3]s, terminationGracePeriodSeconds: 1, containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never}]}
---
apiVersion: resource.nvidia.com/v1beta1
kind: ComputeDomainClique
metadata: {name: %[1]s.a1b2.4, namespace: domains, labels: {resource.nvidia.com/computeDomain: %[1]q}}
daemons:
- {nodeName: %[2]s, ipAddress: 10.0.0.1, cliqueID: a1b2.4, index: 0, status: Ready}
- {nodeName: %[3]s, ipAddress: 10.0.0.2, cliqueID: a1b2.4, index: 1, status: %[4]s}
`

// TestComputeDomain: a ComputeDomain of NVIDIA's own controller, from the moment when the
// controller does not run, over nodes that join it, to one that is lost.
func TestComputeDomain(t *testing.T) {
	covers(t)
	folders, err := filepath.Glob(filepath.Join(os.Getenv("DRA_E2E_BIN"), "dra-driver-nvidia-gpu-*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("NVIDIA's driver is not built: %v", err)
	}
	folder := folders[len(folders)-1]
	for _, kind := range []string{"computedomains", "computedomaincliques"} {
		definition, err := os.ReadFile(filepath.Join(folder, "resource.nvidia.com_"+kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		withDefinitions(t, string(definition))
	}
	twoNodes(t)
	applyFor(t, fmt.Sprintf(domainSupply, shared.NodeName()))
	deployText(t, "domains", domainObjects)
	domain := scrape.Labels{"namespace": "domains", "compute_domain": "nvl"}
	reason := func(p *scrape.Page) error {
		return hasGauge(p, "dra_claim_pending_reason_info", scrape.Labels{"namespace": "domains", "pod": "rank-0", "reason": "compute_domain"}, 1)
	}
	waitClusterPageWithin(t, 2*time.Minute, "a ComputeDomain without a controller", func(p *scrape.Page) error {
		return errors.Join(reason(p), hasGauge(p, "dra_compute_domain_ready", domain, 0), hasGauge(p, "dra_compute_domain_requested_nodes", domain, 2),
			hasGauge(p, "dra_compute_domain_pods", domain, 0))
	})
	explained(t, "pod domains/rank-0", "the pod's ComputeDomain is not ready for it", "the controller of ComputeDomain nvl has not made template nvl-channel yet")

	startDomainController(t, folder)
	waitClusterPageWithin(t, time.Minute, "a pod that waits for its node", func(p *scrape.Page) error {
		return errors.Join(hasNoRow(p, "dra_claim_pending_reason_info", scrape.Labels{"namespace": "domains"}),
			hasGauge(p, "dra_compute_domain_pods", domain, 1),
			hasGauge(p, "dra_compute_domain_workload_info", scrape.Labels{"namespace": "domains", "compute_domain": "nvl", "workload_kind": "JobSet", "workload": "train"}, 1))
	})
	explained(t, "pod domains/rank-0", "ComputeDomain nvl: not ready", "nodes that are ready: 0 of 2")

	uid, err := shared.Kubectl(t.Context(), "get", "computedomain", "-n", "domains", "nvl", "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		t.Fatal(err)
	}
	nodes := func(p *scrape.Page, ready, notReady, isReady float64) error {
		of := func(state string, want float64) error {
			labels := scrape.Labels{"namespace": "domains", "compute_domain": "nvl", "clique": "a1b2.4", "state": state}
			if want == 0 {
				return hasNoRow(p, "dra_compute_domain_nodes", labels)
			}
			return hasGauge(p, "dra_compute_domain_nodes", labels, want)
		}
		return errors.Join(of("ready", ready), of("not_ready", notReady), hasGauge(p, "dra_compute_domain_ready", domain, isReady))
	}
	members := func(state string) {
		t.Helper()
		applyEventually(t, fmt.Sprintf(domainMembers, uid, shared.NodeName(), otherNode, state))
	}
	members("NotReady")
	waitClusterPageWithin(t, time.Minute, "a domain short of a node", func(p *scrape.Page) error { return nodes(p, 1, 1, 0) })
	explained(t, "pod domains/rank-0", "nodes that are ready: 1 of 2; not ready: "+otherNode)
	members("Ready")
	waitClusterPageWithin(t, time.Minute, "a domain that is ready", func(p *scrape.Page) error {
		return errors.Join(nodes(p, 2, 0, 1), hasNoRow(p, "dra_compute_domain_not_ready_since_timestamp_seconds", domain))
	})
	now := int64(0)
	if err := shared.Client().CoreV1().Pods("domains").Delete(t.Context(), "imex-1", metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	waitClusterPageWithin(t, time.Minute, "a domain that has lost a node", func(p *scrape.Page) error {
		_, err := p.One("dra_compute_domain_not_ready_since_timestamp_seconds", domain)
		return errors.Join(err, nodes(p, 1, 0, 0))
	})
}

// explained waits until explain has the words about a subject.
func explained(t *testing.T, subject string, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text := ""
	err := cluster.Eventually(ctx, "explain "+subject, func(context.Context) error {
		text = explain(t, strings.Fields(subject)...)
		for _, part := range words {
			if !strings.Contains(text, part) {
				return fmt.Errorf("it does not say %q", part)
			}
		}
		return nil
	})
	if err != nil {
		t.Errorf("%v:\n%s", err, text)
	}
}

// startDomainController runs NVIDIA's controller of ComputeDomains, with its templates
// and the libraries that it is linked with, until the test ends. Before that, the
// controller removes its finalizers.
func startDomainController(t *testing.T, folder string) {
	t.Helper()
	files := map[string]string{"/compute-domain-controller": filepath.Join(folder, "compute-domain-controller"), "/kubeconfig": shared.Kubeconfig()}
	templates, err := filepath.Glob(filepath.Join(folder, "compute-domain-*.tmpl.yaml"))
	if err != nil || len(templates) == 0 {
		t.Fatalf("the templates of the controller: %q, %v", templates, err)
	}
	for _, template := range templates {
		files["/templates/"+filepath.Base(template)] = template
	}
	linked, err := exec.CommandContext(t.Context(), "ldd", files["/compute-domain-controller"]).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range regexp.MustCompile(`/\S+\.so\S*`).FindAllString(string(linked), -1) {
		files[library] = library
	}
	endpoint := porttest.OneAddress(t)
	startInRoot(t, "compute-domain-controller", files, []string{
		"--kubeconfig=/kubeconfig", "--pod-name=e2e", "--namespace=domains",
		"--image-name=localhost/pause:1", "--log-verbosity-cd-daemon=1", "--http-endpoint=" + endpoint,
	}, "http://"+endpoint+"/metrics")
	t.Cleanup(func() {
		if _, err := shared.Kubectl(context.WithoutCancel(t.Context()), "delete", "computedomain", "-n", "domains", "nvl", "--timeout=60s"); err != nil {
			t.Error(err)
		}
	})
}
