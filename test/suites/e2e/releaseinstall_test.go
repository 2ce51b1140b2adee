package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// published is a release in a registry on this machine, which stands for ghcr.io.
type published struct {
	version  string // of the chart, without the leading v
	registry string // with the owner: 127.0.0.1:5000/dra-exporter
	digest   string // of the image that the chart names
	previous string // file of the previous chart
}

// publishedRelease returns the release that `make rehearsal` has published. Only
// there is one.
func publishedRelease(t *testing.T) published {
	t.Helper()
	p := published{
		version:  os.Getenv("DRA_E2E_RELEASE"),
		registry: os.Getenv("DRA_E2E_RELEASE_REGISTRY"),
		digest:   os.Getenv("DRA_E2E_RELEASE_DIGEST"),
		previous: os.Getenv("DRA_E2E_RELEASE_PREVIOUS"),
	}
	if p.version == "" {
		t.Skip("there is no published release: `make rehearsal` publishes one to a registry on this machine")
	}
	if p.registry == "" || p.digest == "" || p.previous == "" {
		t.Fatalf("of the release only %+v is known", p)
	}
	return p
}

// chart returns helm's arguments for the chart in the registry.
func (p published) chart() []string {
	return []string{"oci://" + p.registry + "/charts/dra-exporter", "--version=" + p.version, "--plain-http"}
}

// TestReleaseInstall installs a published release from its registry, and then
// upgrades to it from the previous chart. The node pulls the image by the name
// and digest in the chart.
func TestReleaseInstall(t *testing.T) {
	p := publishedRelease(t)
	host, _, _ := strings.Cut(p.registry, "/")
	if err := shared.MirrorRegistry("ghcr.io", host); err != nil {
		t.Fatal(err)
	}
	r := newRelease(t)
	withOperator(t)
	deploy(t, "exclusive")
	running(t, "exclusive", "train")
	values := machineValues()
	delete(values, "image")

	t.Run("install", func(t *testing.T) { r.testPublished(t, p, values) })
	t.Run("upgrade", func(t *testing.T) { r.testPublishedUpgrade(t, p, values) })
}

// testPublished logs how long it takes from the command to claim-labelled series,
// on the agent's page and in Prometheus with the chart's own monitors.
func (r release) testPublished(t *testing.T, p published, values object) {
	began := time.Now()
	step := func(what string) { t.Logf("%5.1f s after helm install: %s", time.Since(began).Seconds(), what) }
	r.installChart(t, p.chart(), values)
	step("all pods are ready")
	pod := readyPod(t, r.namespace, agentSelector)
	agent := &hostAgent{name: "release", url: fmt.Sprintf("http://%s:9420/", pod.Status.PodIP)}
	page := agent.eventually(t, "the claim", func(page *scrape.Page) error {
		_, err := page.One("dra_claim_utilization_ratio", scrape.Labels{"namespace": "exclusive"})
		return err
	})
	step("the agent's page has the claim's utilization")
	server := serve(t, "prometheus-release", serverConfig{jobs: r.jobs(t, "podmonitors", 0), rules: r.rules(t), every: tick})
	rows := server.waitRows(t, fmt.Sprintf(`dra_claim_utilization_ratio{job="dra-exporter",instance=%q,namespace="exclusive"}`, shared.NodeName()), oneRow)
	step("Prometheus has it: " + rows[0].Labels.String())

	if _, err := page.One("dra_exporter_build_info", scrape.Labels{"version": p.version}); err != nil {
		t.Errorf("the program is of another version: %v", err)
	}
	for _, selector := range []string{agentSelector, clusterSelector} {
		for _, container := range readyPod(t, r.namespace, selector).Status.ContainerStatuses {
			if want := "ghcr.io/dra-exporter/dra-exporter@" + p.digest; container.ImageID != want {
				t.Errorf("%s runs %s, not %s", container.Name, container.ImageID, want)
			}
		}
	}
	r.run(t, "uninstall", "--wait")
}

// testPublishedUpgrade: by the documented command, an upgrade from the previous
// chart with the same image changes no series.
func (r release) testPublishedUpgrade(t *testing.T, p published, values object) {
	r.installChart(t, []string{p.previous}, values, object{"image": object{"digest": p.digest}})
	previous := serve(t, "prometheus-previous", serverConfig{jobs: withShortIntervals(r.jobs(t, "podmonitors", 0)), every: tick})
	before := previous.waitSeries(t, nil, nil)
	r.run(t, "upgrade", append(p.chart(), "--reset-then-reuse-values", "--wait")...)
	upgraded := serve(t, "prometheus-upgraded", serverConfig{jobs: withShortIntervals(r.jobs(t, "podmonitors", 0)), every: tick})
	upgraded.waitSeries(t, before, nil)
}
