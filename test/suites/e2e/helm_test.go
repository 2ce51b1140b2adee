package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	rbacapi "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// helmPace is the scrape interval of the second Prometheus of the chart's
// test. The first has the chart's interval.
const helmPace = 2 * time.Second

// TestHelmInstall: what `helm install` creates, what an upgrade changes, and
// what remains after an uninstall, on the real cluster.
func TestHelmInstall(t *testing.T) {
	covers(t)
	r := newRelease(t)
	deploy(t, "exclusive")
	running(t, "exclusive", "train")
	plain := currentInventory(t)
	t.Run("refused values", func(t *testing.T) { testRefusedValues(t, r) })
	t.Run("without the operator", func(t *testing.T) { testWithoutOperator(t, r) })
	waitNothingLeft(t, plain)

	withOperator(t)
	before := currentInventory(t)
	began := time.Now()
	notes := r.install(t, machineValues())
	installed := missingFrom(currentInventory(t), before)
	jobs := r.jobs(t, "podmonitors", 0)
	asShipped := serve(t, "prometheus-helm", serverConfig{jobs: jobs, rules: r.rules(t), every: tick})
	asShipped.waitRows(t, fmt.Sprintf(`dra_claim_utilization_ratio{job="dra-exporter",instance=%q,namespace="exclusive"}`, shared.NodeName()), oneRow)
	t.Logf("%s after the command there are metrics with claims in Prometheus", time.Since(began).Round(time.Second))
	t.Run("notes", func(t *testing.T) { r.checkNotes(t, notes) })
	t.Run("privileges", r.testPrivileges)
	t.Run("permissions", func(t *testing.T) { readOnly(t, r.namespace) })
	t.Run("helm test", r.testHooks)
	t.Run("series", func(t *testing.T) { r.testUpgrade(t, jobs) })
	asShipped.checkRulesHealthy(t)
	r.run(t, "uninstall", "--wait")
	waitNothingLeft(t, before)
	t.Logf("the release had made %d objects", len(installed))
	t.Run("README", testReadme)
}

// jobs returns the scrape jobs that the operator would create from the
// release's monitors on the API server.
func (r release) jobs(t *testing.T, resource string, interval time.Duration) (jobs []object) {
	t.Helper()
	text, err := shared.Kubectl(t.Context(), "get", resource, "--namespace", r.namespace, "--output", "json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		var m monitor
		decoder := json.NewDecoder(strings.NewReader(string(item)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&m); err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, m.job(t, interval))
	}
	if len(jobs) != 2 {
		t.Fatalf("there are %d %s", len(jobs), resource)
	}
	return jobs
}

// rules writes the release's rules on the API server to a file of Prometheus
// with one evaluation interval for all groups.
func (r release) rules(t *testing.T) []string {
	t.Helper()
	text, err := shared.Kubectl(t.Context(), "get", "prometheusrules", "--namespace", r.namespace, "--output", "jsonpath={.items[0].spec}")
	if err != nil {
		t.Fatal(err)
	}
	pace := regexp.MustCompile(`"interval":"\d+[ms]"`)
	if !pace.MatchString(text) {
		t.Fatal("no group of rules has an interval")
	}
	return []string{written(t, pace.ReplaceAllString(text, fmt.Sprintf(`"interval":"%s"`, tick)))}
}

// checkNotes fails the test unless the notes name what was installed, and only
// that.
func (r release) checkNotes(t *testing.T, notes string) {
	for _, words := range []string{r.name + "-dra-exporter-node", r.namespace, "port-forward"} {
		if !strings.Contains(notes, words) {
			t.Errorf("the notes do not say %q:\n%s", words, notes)
		}
	}
}

// testPrivileges: neither role has a capability or a namespace of the host,
// according to the kernel.
func (r release) testPrivileges(t *testing.T) {
	for _, selector := range []string{agentSelector, clusterSelector} {
		pod := readyPod(t, r.namespace, selector)
		pid, err := shared.ContainerPID(pod, agentContainer)
		if err != nil {
			t.Fatal(err)
		}
		unprivileged(t, pid, "net", "pid", "ipc", "mnt", "uts")
	}
}

// readOnly fails the test if an account of the namespace is bound to a role
// with other verbs than those that read, or if there is no account.
func readOnly(t *testing.T, namespace string) {
	t.Helper()
	bindings, err := shared.Client().RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	within, err := shared.Client().RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, binding := range within.Items {
		if slices.ContainsFunc(binding.Subjects, func(s rbacapi.Subject) bool { return s.Namespace == namespace }) {
			t.Errorf("the release needs no RoleBinding, and %s is one", binding.Name)
		}
	}
	count := 0
	for _, binding := range bindings.Items {
		if !slices.ContainsFunc(binding.Subjects, func(s rbacapi.Subject) bool { return s.Namespace == namespace }) {
			continue
		}
		for _, permission := range clusterRolePermissions(t, binding.RoleRef.Name) {
			count++
			if !slices.Contains([]string{"get", "list", "watch"}, permission.verb) || permission.resource == "*" || permission.group == "*" {
				t.Errorf("%s lets it %s", binding.RoleRef.Name, permission)
			}
		}
	}
	if count == 0 {
		t.Error("nothing is permitted")
	}
}

// testHooks: the pods of `helm test` reach both roles by the names of their
// Services.
func (r release) testHooks(t *testing.T) {
	stop, err := shared.StartDNS(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if output := r.run(t, "test"); !strings.Contains(output, "Succeeded") {
		t.Errorf("helm test says:\n%s", output)
	}
}

// testWithoutOperator: the chart installs without the operator's definitions,
// reports what it omits, and an uninstall removes everything.
func testWithoutOperator(t *testing.T, r release) {
	notes := r.install(t, machineValues())
	if !strings.Contains(notes, "PodMonitor") {
		t.Errorf("the notes do not say that there is no monitor:\n%s", notes)
	}
	for _, selector := range []string{agentSelector, clusterSelector} {
		readyPod(t, r.namespace, selector)
	}
	if output, err := helm(t.Context(), "install", "second", chartFolder, "--namespace="+r.namespace, "--set=monitoring.enabled=true"); err == nil || !strings.Contains(output, "PodMonitor") {
		t.Errorf("a monitor of an unknown kind was not refused: %v", err)
	}
	if _, err := helm(t.Context(), "uninstall", "second", "--namespace="+r.namespace, "--ignore-not-found", "--wait"); err != nil {
		t.Error(err)
	}
	r.run(t, "uninstall", "--wait")
}

// testRefusedValues: helm names the wrong key, and creates nothing.
func testRefusedValues(t *testing.T, r release) {
	before := currentInventory(t)
	for value, words := range map[string]string{
		"node.acces.mode=dcgm":                     "acces",
		"node.access.mode=guess":                   "mode",
		"monitoring.kind=Probe":                    "kind",
		"image.pullPolicy=Sometimes":               "pullPolicy",
		"node.prices=cheap":                        "prices",
		"node.access.mode=dcgm":                    "node.access.dcgm.hostEngine",
		"web.tls=true":                             "web.configSecret",
		"node.enabled=false,cluster.enabled=false": "cluster.enabled",
	} {
		output, err := helm(t.Context(), append([]string{"install", r.name, chartFolder, "--namespace=" + r.namespace, "--set=" + value}, valueFlags(t, []object{machineValues()})...)...)
		if err == nil || !strings.Contains(output, words) {
			t.Errorf("%s was not refused with the word %q: %v", value, words, err)
		}
	}
	if made := missingFrom(currentInventory(t), before); len(made) > 0 {
		t.Errorf("there are %q", made)
	}
}

// currentSeries returns the exporter's series that have a value now, sorted.
func (s *prometheus) currentSeries(ctx context.Context) (all []string, err error) {
	var answer struct {
		Data struct {
			Result []struct{ Metric scrape.Labels }
		}
	}
	if err := s.get(ctx, `/api/v1/query?query={job="dra-exporter"}`, &answer); err != nil {
		return nil, err
	}
	for _, result := range answer.Data.Result {
		all = append(all, result.Metric.String())
	}
	slices.Sort(all)
	if len(all) == 0 {
		return nil, errors.New("there are no series")
	}
	return all, nil
}
