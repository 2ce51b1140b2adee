package e2e

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// faultNamespaces are the namespaces of the claims that hold devices during
// the faults.
func faultNamespaces() []string { return []string{"exclusive", "mig"} }

// deployFaultClaims runs a claim of each driver whose hardware is known, waits
// until the page is as expected, and returns that page.
func deployFaultClaims(t *testing.T) *scrape.Page {
	t.Helper()
	for _, namespace := range faultNamespaces() {
		deploy(t, namespace)
	}
	for namespace, pods := range map[string][]string{"exclusive": {"train"}, "mig": {"whole", "static", "on-demand"}} {
		for _, pod := range pods {
			running(t, namespace, pod)
		}
	}
	waitShown(t, "exclusive", wantedExclusive())
	_, p := waitShown(t, "mig", wantedMIG()...)
	return p
}

// claimSeries returns the series of faultNamespaces, without values, by claim.
func claimSeries(p *scrape.Page) map[string]map[string]bool {
	found := map[string]map[string]bool{}
	for _, name := range p.Names("dra_claim_") {
		for _, namespace := range faultNamespaces() {
			for _, row := range p.Rows(name, scrape.Labels{"namespace": namespace}) {
				claim := namespace + "/" + row.Labels["resourceclaim"]
				if found[claim] == nil {
					found[claim] = map[string]bool{}
				}
				found[claim][name+row.Labels.String()] = true
			}
		}
	}
	return found
}

// heldClaims returns the claims of faultNamespaces that hold devices, by the
// same names.
func heldClaims(p *scrape.Page) (claims []string) {
	for _, namespace := range faultNamespaces() {
		for _, row := range p.Rows("dra_claim_held", scrape.Labels{"namespace": namespace}) {
			claims = append(claims, namespace+"/"+row.Labels["resourceclaim"])
		}
	}
	return claims
}

// seriesUnchanged returns a rule that each page has the same series of
// faultNamespaces as the first one: no series is missing, added, or attributed
// differently.
func seriesUnchanged(first *scrape.Page) scrape.Rule {
	want, holders, others := claimSeries(first), heldClaims(first), noNewSeries(first)
	return func(p *scrape.Page) (broken []error) {
		got := claimSeries(p)
		for _, claim := range holders {
			for row := range want[claim] {
				if !got[claim][row] {
					broken = append(broken, fmt.Errorf("%s is gone", row))
				}
			}
		}
		return append(broken, others(p)...)
	}
}

// noNewSeries returns a rule that no page has series of faultNamespaces that
// the first one does not have.
func noNewSeries(first *scrape.Page) scrape.Rule {
	want := claimSeries(first)
	return func(p *scrape.Page) (broken []error) {
		for claim, rows := range claimSeries(p) {
			for row := range rows {
				if !want[claim][row] {
					broken = append(broken, fmt.Errorf("%s has come", row))
				}
			}
		}
		return broken
	}
}

// sourceUp waits until dra_exporter_source_up of a source has the value want.
func sourceUp(t *testing.T, source string, want float64) {
	t.Helper()
	eventually(t, fmt.Sprintf("source %s %v", source, want), func(p *scrape.Page) error {
		row, err := p.One("dra_exporter_source_up", scrape.Labels{"source": source})
		if err == nil && row.Value != want {
			err = fmt.Errorf("it is %v", row.Value)
		}
		return err
	})
}

func kill(t *testing.T, p *cluster.Process) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, p *cluster.Process) {
	t.Helper()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestDriverKilled: both drivers are down for a minute. Their slices are gone
// for half of it.
func TestDriverKilled(t *testing.T) {
	covers(t)
	before := deployFaultClaims(t)
	check := watcher.CheckRule(seriesUnchanged(before))
	began := time.Now()
	drivers := []string{"gpu.example.com", "gpu.nvidia.com"}
	for _, driver := range drivers {
		kill(t, shared.Process("driver-"+driver))
	}
	for _, driver := range drivers {
		eventually(t, "the slices of "+driver+" to be gone", func(*scrape.Page) error {
			return noSlices(t, driver)
		})
	}
	time.Sleep(time.Until(began.Add(time.Minute)))
	for _, driver := range drivers {
		if err := noSlices(t, driver); err != nil {
			t.Errorf("%s: %v", driver, err)
		}
		start(t, shared.Process("driver-"+driver))
	}
	waitDevicesPublished(t)
	checkRise(t, "mig")
	endRuleCheck(t, check, 60)
}

func noSlices(t *testing.T, driver string) error {
	t.Helper()
	found, err := shared.Client().ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.driver=" + driver})
	if err != nil {
		return err
	}
	if len(found.Items) > 0 {
		return fmt.Errorf("there are %d slices", len(found.Items))
	}
	return nil
}

// TestKubeletKilled: from the end of the kubelet until it has recovered,
// through its empty answers and the loss of every slice, no claim loses a
// label.
func TestKubeletKilled(t *testing.T) {
	covers(t)
	before := deployFaultClaims(t)
	check := watcher.CheckRule(seriesUnchanged(before))
	kubelet := shared.Process("kubelet")
	kill(t, kubelet)
	sourceUp(t, "podresources", 0)
	start(t, kubelet)
	sourceUp(t, "podresources", 1)
	waitListed(t, "exclusive", "train", "main", "gpu.example.com/gpu-?")
	waitDevicesPublished(t)
	checkRise(t, "mig")
	endRuleCheck(t, check, 40)

	deploy(t, "prioritized")
	running(t, "prioritized", "infer")
	eventually(t, "a new claim", func(p *scrape.Page) error { return heldOnly(p, "prioritized", "infer-gpu-*") })
}

// TestAPIServerDown: there is no API server for half a minute.
func TestAPIServerDown(t *testing.T) {
	covers(t)
	before := deployFaultClaims(t)
	check := watcher.CheckRule(seriesUnchanged(before))
	apiserver := shared.Process("apiserver")
	began := time.Now()
	kill(t, apiserver)
	for _, source := range []string{"pods", "resourceslices"} {
		sourceUp(t, source, 0)
	}
	time.Sleep(time.Until(began.Add(30 * time.Second)))
	checkRise(t, "mig")
	start(t, apiserver)
	for _, source := range []string{"pods", "resourceclaims", "resourceslices"} {
		sourceUp(t, source, 1)
	}
	checkRise(t, "mig")
	endRuleCheck(t, check, 60)

	// They would restart by themselves, but only after half a minute.
	for _, component := range []string{"controller-manager", "scheduler"} {
		restart(t, shared.Process(component), (*cluster.Process).Kill)
	}
	deploy(t, "prioritized")
	running(t, "prioritized", "infer")
	eventually(t, "a new claim", func(p *scrape.Page) error { return heldOnly(p, "prioritized", "infer-gpu-*") })
}

// TestAgentKilled: after its process is killed, and after its pod is deleted,
// the agent exports the same series again, and no others meanwhile.
func TestAgentKilled(t *testing.T) {
	covers(t)
	before := deployFaultClaims(t)
	for _, end := range []struct {
		name string
		of   func(t *testing.T)
	}{
		{"its process is killed", killAgent},
		{"its pod is deleted", deleteAgent},
	} {
		t.Run(end.name, func(t *testing.T) {
			old := processStart(t, page(t))
			check := watcher.CheckRuleWhenUp(noNewSeries(before))
			end.of(t)
			eventually(t, "the same series", func(p *scrape.Page) error {
				if processStart(t, p) == old {
					return fmt.Errorf("the old agent still runs")
				}
				if broken := seriesUnchanged(before)(p); broken != nil {
					return broken[0]
				}
				return nil
			})
			checkRise(t, "mig")
			endRuleCheck(t, check, 5)
		})
	}
}

func killAgent(t *testing.T) {
	pod := readyAgent(t)
	pid, err := shared.ContainerPID(pod, agentContainer)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// readyAgent waits until the agent's pod is ready. After a restart the page is
// available before the kubelet has probed it.
func readyAgent(t *testing.T) (pod *corev1.Pod) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cluster.Eventually(ctx, "the agent's pod is ready", func(ctx context.Context) (err error) {
		pod, err = agentPod(ctx)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return pod
}

func deleteAgent(t *testing.T) {
	remove(t, agentNamespace, readyAgent(t).Name)
}

func processStart(t *testing.T, p *scrape.Page) float64 {
	t.Helper()
	row, err := p.One("process_start_time_seconds", nil)
	if err != nil {
		t.Fatal(err)
	}
	return row.Value
}

// TestIdleDevices: without any claim, every device is exported with its values
// and without a claim. A rule of every page of the run checks that this is so
// at all times.
func TestIdleDevices(t *testing.T) {
	covers(t)
	p := eventually(t, "no claim to hold a device", func(p *scrape.Page) error {
		if n := p.Count("dra_claim_held", nil); n > 0 {
			return fmt.Errorf("%d do", n)
		}
		return nil
	})
	devices.each(func(c *chip) {
		device := scrape.Labels{"uuid": c.UUID}
		for name, want := range map[string]bool{
			"dra_device_info":                        true,
			"dra_device_utilization_ratio":           true,
			"dra_device_memory_size_bytes":           true,
			"dra_device_busy_seconds_total":          true,
			"dra_device_power_watts":                 c.Profile == "",
			"dra_device_nvlink_transmit_bytes_total": c.Profile == "",
			"dra_device_published_info":              c.published != "",
		} {
			if got := p.Count(name, device) == 1; got != want {
				t.Errorf("%s%s is there: %v, want %v", name, device, got, want)
			}
		}
		for _, row := range p.Rows("dra_device_holders", device) {
			if row.Value != 0 {
				t.Errorf("dra_device_holders%s is %v", row.Labels, row.Value)
			}
		}
	})
	if err := watcher.Broken(); err != nil {
		t.Error(err)
	}
}
