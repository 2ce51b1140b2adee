package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacapi "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// permission is one verb on one resource of a role's ClusterRole.
type permission struct{ verb, group, resource string }

func (p permission) String() string {
	return p.verb + " " + strings.TrimPrefix(p.group+"/", "/") + p.resource
}

// source is what the exporter calls what is read with the permission: PodGroups of other
// schedulers by their group as well.
func (p permission) source() string {
	if p.resource == "podgroups" && p.group != "scheduling.k8s.io" {
		return p.resource + "." + p.group
	}
	return p.resource
}

// forbidden returns the API server's message that an account lacks the
// permission.
func (p permission) forbidden() string {
	return fmt.Sprintf("cannot %s resource %q in API group %q", p.verb, p.resource, p.group)
}

// watchesOpenTime is how long after its first page an agent's watches have
// caught up. What they deliver within a second after a list may have happened
// before it, and ends no phase.
const watchesOpenTime = 5 * time.Second

// TestRBACRules removes each permission of the shipped ClusterRoles in turn
// and compares the page of an agent without it with that of an agent with all
// permissions. The families of the table must be gone, and all others the
// same, to the last label. A permission whose loss changes nothing is
// superfluous.
func TestRBACRules(t *testing.T) {
	covers(t)
	roles := map[string]map[permission]loss{"node": nodeLosses(), "cluster": clusterLosses()}
	if nodes := (permission{"list", "", "nodes"}); !shared.Has(releases.PromptSandboxes) {
		// Then the phase after binding is the same for all kubelets.
		loss := roles["cluster"][nodes]
		loss.other = slices.DeleteFunc(slices.Clone(loss.other), func(family string) bool {
			return family == durations || family == "dra_claim_phase_since_timestamp_seconds"
		})
		roles["cluster"][nodes] = loss
	}
	for family, feature := range map[string]releases.ID{
		"dra_device_health_disagreement":      releases.DeviceHealth,
		"dra_taint_rule_eviction_in_progress": releases.EvictionProgress,
		"dra_workload_info":                   releases.PodGroups, // the one workload is a group
		"dra_workload_pods":                   releases.PodGroups,
	} {
		if shared.Has(feature) {
			continue
		}
		for permission, loss := range roles["cluster"] {
			loss.gone = slices.DeleteFunc(slices.Clone(loss.gone), func(gone string) bool { return gone == family })
			roles["cluster"][permission] = loss
		}
	}
	createObjects(t)
	agents := map[string][]*restrictedAgent{}
	for role, losses := range roles {
		all := clusterRolePermissions(t, "dra-exporter-"+role)
		for permission := range losses {
			if !slices.Contains(all, permission) {
				t.Errorf("the %s role has no permission to %s", role, permission)
			}
		}
		agents[role] = startRestrictedAgents(t, role, all)
	}
	unserved := []permission{
		{"watch", "kueue.x-k8s.io", "workloads"}, {"watch", "resource.nvidia.com", "computedomains"},
		{"watch", "scheduling.volcano.sh", "podgroups"}, {"watch", "scheduling.run.ai", "podgroups"},
	}
	if !shared.Has(releases.PodGroups) {
		unserved = append(unserved, permission{"watch", "scheduling.k8s.io", "podgroups"})
	}
	for role := range roles {
		for _, agent := range agents[role] {
			agent.waitReady(t)
		}
	}
	time.Sleep(watchesOpenTime)
	causeEvents(t)
	for role, losses := range roles {
		whole := agents[role][0]
		t.Run(role, func(t *testing.T) {
			whole.waitComplete(t)
			for _, agent := range agents[role][1:] {
				if slices.Contains(unserved, agent.missing) {
					continue // what is not served is listed once, and not watched
				}
				t.Run(agent.missing.String(), func(t *testing.T) { agent.checkLoss(t, whole, losses[agent.missing]) })
			}
		})
	}
}

// clusterRolePermissions returns the permissions of a ClusterRole on the
// cluster.
func clusterRolePermissions(t *testing.T, name string) (all []permission) {
	t.Helper()
	role, err := shared.Client().RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range role.Rules {
		all = append(all, permitted(rule)...)
	}
	return all
}

func permitted(rule rbacapi.PolicyRule) (all []permission) {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				all = append(all, permission{verb, group, resource})
			}
		}
	}
	return all
}

// checkLoss fails the test unless the agent reports the missing permission in
// the metric and in the log, and has lost exactly what the table says.
func (d *restrictedAgent) checkLoss(t *testing.T, whole *restrictedAgent, want loss) {
	t.Helper()
	var last error // of a comparison: more helpful than the timeout
	err := cluster.Eventually(t.Context(), "what is left without it", func(ctx context.Context) error {
		full, err := whole.fetch(ctx)
		if err != nil {
			return err
		}
		left, err := d.fetch(ctx)
		if err != nil {
			return err
		}
		last = errors.Join(deniedOnly(left, d.missing.source(), want.skippedSource), want.equals(lostBetween(full, left)))
		return last
	})
	if err != nil {
		t.Errorf("%v; the last time: %v", err, last)
	}
	log, err := os.ReadFile(d.log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), strings.ReplaceAll(d.missing.forbidden(), `"`, `\"`)) {
		t.Errorf("the log does not say %q:\n%s", d.missing.forbidden(), log)
	}
}

// deniedOnly returns an error unless permission is denied to this source and
// every other is up, except for one that is not read without the first.
func deniedOnly(p *scrape.Page, source, idle string) error {
	denied := scrape.Labels{"source": source, "reason": "permission_denied"}
	errs := []error{
		hasGauge(p, "dra_exporter_source_error_info", denied, 1),
		hasGauge(p, "dra_exporter_source_up", scrape.Labels{"source": source}, 0),
	}
	for _, row := range p.Rows("dra_exporter_source_up", nil) {
		if name := row.Labels["source"]; name != source && name != idle && row.Value != 1 {
			errs = append(errs, fmt.Errorf("%s is down", name))
		}
	}
	return errors.Join(errs...)
}
