package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsapi "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// helmChanges is an upgrade that changes all values that may change: the names
// of all objects, resources, and a price list.
func helmChanges() object {
	return object{
		"fullnameOverride": "renamed",
		"node": object{
			"resources": object{"limits": object{"memory": "200Mi"}},
			"prices":    object{"currency": "USD", "prices": []object{{"perHour": 2.5}}},
		},
		"cluster": object{"resources": object{"limits": object{"memory": "700Mi"}}},
	}
}

// testUpgrade: the series of a release are the same after an upgrade that
// renames all objects, except for the changes that its values request. After a
// rollback, and with the other kind of monitor, they are the same without
// exception.
func (r release) testUpgrade(t *testing.T, jobs []object) {
	quick := serve(t, "prometheus-helm-quick", serverConfig{jobs: withShortIntervals(jobs), every: tick})
	before := quick.waitSeries(t, nil, nil)

	r.run(t, "upgrade", append(valueFlags(t, []object{machineValues(), helmChanges()}), chartFolder, "--wait")...)
	r.checkChanged(t)
	quick.waitSeries(t, before, []string{
		"dra_device_price_per_hour", "dra_namespace_cost_total",
		"dra_exporter_config_last_reload_successful", "dra_exporter_config_last_reload_success_timestamp_seconds",
	})

	r.run(t, "rollback", "--wait")
	quick.waitSeries(t, before, nil)

	r.run(t, "upgrade", append(valueFlags(t, []object{machineValues(), {"monitoring": object{"kind": "ServiceMonitor"}}}), chartFolder, "--wait")...)
	if output, err := shared.Kubectl(t.Context(), "get", "podmonitors", "--namespace", r.namespace, "--output", "name"); err != nil || output != "" {
		t.Errorf("there are %q beside ServiceMonitors (%v)", output, err)
	}
	services := serve(t, "prometheus-helm-services", serverConfig{jobs: withShortIntervals(r.jobs(t, "servicemonitors", 0)), every: tick})
	services.waitSeries(t, before, nil)
}

// withShortIntervals returns the jobs with shorter intervals.
func withShortIntervals(jobs []object) (all []object) {
	for _, job := range jobs {
		all = append(all, merged(job, object{"scrape_interval": helmPace.String(), "scrape_timeout": helmPace.String()}))
	}
	return all
}

// checkChanged fails the test unless the upgrade had the requested effects.
func (r release) checkChanged(t *testing.T) {
	t.Helper()
	sets, err := shared.Client().AppsV1().DaemonSets(r.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(sets.Items) != 1 || sets.Items[0].Name != "renamed-node" || memoryLimit(&sets.Items[0]) != "200Mi" {
		t.Fatalf("there are %v", sets.Items)
	}
}

func memoryLimit(set *appsapi.DaemonSet) string {
	return set.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String()
}

// waitSeries waits until two reads, some scrapes apart, have the same series,
// and these are the series of before, together with some of each added family
// and of no other.
func (s *prometheus) waitSeries(t *testing.T, before, added []string) []string {
	t.Helper()
	var last []string
	var reason error // more helpful than the timeout
	err := cluster.Eventually(t.Context(), "the series", func(ctx context.Context) error {
		now, err := s.currentSeries(ctx)
		if err != nil {
			return err
		}
		same := slices.Equal(now, last)
		last = now
		if before == nil {
			reason = claimed(now)
		} else {
			reason = sameButFor(before, now, added)
		}
		if reason == nil && !same {
			time.Sleep(2 * helmPace)
			reason = fmt.Errorf("there are %d, and there were others just before", len(now))
		}
		return reason
	})
	if err != nil {
		t.Fatalf("%v: %v", err, reason)
	}
	t.Logf("%d series", len(last))
	return last
}

// claimed returns an error unless there are series of both roles, and some of
// a claim.
func claimed(series []string) error {
	for _, words := range []string{`instance="cluster"`, `resourceclaim="train-`, `__name__="dra_claim_utilization_ratio"`, `__name__="dra_devices"`} {
		if !slices.ContainsFunc(series, func(one string) bool { return strings.Contains(one, words) }) {
			return fmt.Errorf("there is none with %s", words)
		}
	}
	return nil
}

func sameButFor(before, now, added []string) error {
	if gone := missingFrom(before, now); len(gone) > 0 {
		return fmt.Errorf("gone are %q", gone)
	}
	seen := map[string]bool{}
	for _, series := range missingFrom(now, before) {
		at := slices.IndexFunc(added, func(family string) bool { return strings.Contains(series, fmt.Sprintf("__name__=%q", family)) })
		if at < 0 {
			return fmt.Errorf("%s has come", series)
		}
		seen[added[at]] = true
	}
	if len(seen) != len(added) {
		return fmt.Errorf("of %q there are %v", added, seen)
	}
	return nil
}
