package e2e

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const (
	cpuDriver      = "dra.cpu"
	functionDriver = "sriovnetwork.k8snetworkplumbingwg.io"
	heldCPUs       = 32 // an allocation has no more results
	cpuPrice       = 0.04
	gpuPrice       = 4.10
)

// cpuDevice is a CPU as dra.cpu publishes it in its individual mode. Its arguments
// are the numbers of the CPU, its core and its socket.
const cpuDevice = `
  - name: cpudev%03[1]d
    attributes:
      dra.cpu/cpuID: {int: %[1]d}
      dra.cpu/coreID: {int: %[2]d}
      dra.cpu/coreType: {string: standard}
      dra.cpu/smtEnabled: {bool: true}
      dra.cpu/socketID: {int: %[3]d}
      dra.cpu/cacheL3ID: {int: %[3]d}
      dra.cpu/numaNodeID: {int: %[3]d}
      dra.net/numaNode: {int: %[3]d}
      resource.kubernetes.io/numaNode: {int: %[3]d}`

// driverClass is the device class of a driver's name.
const driverClass = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: %[1]s}
spec: {selectors: [{cel: {expression: "device.driver == '%[1]s'"}}]}
`

// cpuPrices is a price list as docs/cost.md has it. Its last price is not for
// virtual functions.
var cpuPrices = fmt.Sprintf(`
currency: EUR
prices:
- {model: NVIDIA H100*, perHour: %v}
- {driver: dra.cpu, perHour: %v}
- {perHour: 0.30}
`, gpuPrice, cpuPrice)

// TestCPUs: a pod holds 32 CPUs, a virtual function of a network adapter, and a
// GPU. The CPUs are one bundle with few series. Each CPU has its price, the
// function has none, and DRAExporterUnmatchedDevices has nothing to select.
//
// The drivers of CPUs and functions are imitated: drivers/shapes publishes what
// dra-driver-cpu and the SR-IOV driver publish, under their names. It does not pin
// containers to CPUs and makes no function.
func TestCPUs(t *testing.T) {
	covers(t)
	for _, driver := range []string{cpuDriver, functionDriver} {
		applyFor(t, fmt.Sprintf(driverClass, driver))
	}
	startShapesFor(t, cpuDriver, writeFor(t, "devices.yaml", cpuDevices(64)))
	startOther(t, functionDriver)
	t.Cleanup(func() { // before the drivers end, because the kubelet retries forever
		unprepared(t, cpuDriver)
		unprepared(t, functionDriver)
	})
	prices := "--cost.prices=" + writeFor(t, "prices.yaml", cpuPrices)
	agent := flaggedAgent(t, steadyHardware(0.5), prices)
	s := serve(t, "prometheus-cpus", serverConfig{
		jobs: []object{hostJob(agent, 2*time.Second)}, rules: []string{shippedRules(t), ruleFile(t, alertRules)}, every: tick,
	})
	deploy(t, "cpus")
	running(t, "cpus", "train")
	w := watchHostAgent(t, agent)
	first := pageWithin(t, w, time.Minute, "the three claims and their cost", mixedClaims)
	check := w.CheckRule(func(p *scrape.Page) []error {
		if err := errors.Join(mixedClaims(p), noneUnmatched(p)); err != nil {
			return []error{err}
		}
		return nil
	})

	each := flaggedAgent(t, steadyHardware(0.5), prices, "--metrics.level=full").eventually(t, "every CPU by itself", func(p *scrape.Page) error {
		if held := p.Count("dra_claim_held", cpuClaim("cpus")); held != heldCPUs {
			return fmt.Errorf("%d CPUs are held", held)
		}
		return nil
	})
	count := cpuSeries(first)
	t.Logf("the claim of %d CPUs has %d series, and %d at the level full, where each CPU has its own", heldCPUs, count, cpuSeries(each))
	if count > 12 {
		t.Error("it should have at most 12")
	}

	last := pageWithin(t, w, 2*time.Minute, "half a minute to pass", func(p *scrape.Page) error {
		if passed := p.At.Sub(first.At); passed < 30*time.Second {
			return fmt.Errorf("%s have passed", passed)
		}
		return nil
	})
	checkHourlyCost(t, first, last, "cpus", cpuDriver, heldCPUs*cpuPrice)
	checkHourlyCost(t, first, last, "gpu", "gpu.nvidia.com", gpuPrice)
	endRuleCheck(t, check, 60)
	// An alert is pending from the first evaluation that selects a row.
	s.waitRows(t, `dra_exporter_unmatched_devices{driver="gpu.nvidia.com", side="published"}`, oneRow)
	s.checkRulesHealthy(t)
	if rows, err := s.query(t.Context(), `last_over_time(ALERTS{alertname="DRAExporterUnmatchedDevices"}[5m])`); err != nil || len(rows) > 0 {
		t.Errorf("Prometheus has this alert, pending or firing: %v, %v", rows, err)
	}
}

// cpuDevices is a file of CPUs: two sockets, each a NUMA node, two CPUs to a core.
func cpuDevices(count int) string {
	text := "slices:\n- devices:"
	for cpu := range count {
		core := cpu % (count / 2)
		text += fmt.Sprintf(cpuDevice, cpu, core, 4*core/count)
	}
	return text
}

// writeFor writes a file of the test and returns its path.
func writeFor(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func cpuClaim(name string) scrape.Labels {
	return scrape.Labels{"namespace": "cpus", "resourceclaim": name}
}

// mixedClaims returns an error unless the CPUs are one bundle, the function is
// held and has no cost, and the GPU has its values.
func mixedClaims(p *scrape.Page) error {
	bundle := with(cpuClaim("cpus"), "uuid", shared.NodeName()+"/dra.cpu/claim:cpus/cpus")
	gpu := with(cpuClaim("gpu"), "uuid", "GPU-00000000-0000-0000-0000-000000000000")
	function, err := p.One("dra_claim_device_info", with(cpuClaim("function"), "driver", functionDriver))
	if err != nil {
		return err
	}
	return errors.Join(
		claimHas(p, "dra_claim_bundled_devices", bundle, heldCPUs),
		claimHas(p, "dra_claim_held", cpuClaim("cpus"), 1),
		claimHas(p, "dra_device_price_per_hour", scrape.Labels{"uuid": bundle["uuid"], "deviceclass": cpuDriver, "currency": "EUR"}, cpuPrice),
		claimHas(p, "dra_claim_held", with(cpuClaim("function"), "uuid", function.Labels["uuid"]), 1),
		hasNoRow(p, "dra_claim_bundled_devices", cpuClaim("function")),
		hasNoRow(p, "dra_device_price_per_hour", scrape.Labels{"uuid": function.Labels["uuid"]}),
		hasNoRow(p, "dra_namespace_cost_total", scrape.Labels{"deviceclass": functionDriver}),
		claimHas(p, "dra_claim_held", gpu, 1),
		claimHas(p, "dra_claim_utilization_ratio", with(gpu, "attribution", "exclusive"), 0.5),
		claimHas(p, "dra_claim_memory_used_bytes", with(gpu, "attribution", "exclusive"), 1e9),
		claimHas(p, "dra_device_price_per_hour", scrape.Labels{"uuid": gpu["uuid"], "deviceclass": "gpu.nvidia.com", "currency": "EUR"}, gpuPrice),
	)
}

// noneUnmatched returns an error if the expression of DRAExporterUnmatchedDevices
// selects a row: it selects all that are above 0. Drivers without a source have no
// row, and that of the GPU has two.
func noneUnmatched(p *scrape.Page) error {
	const family = "dra_exporter_unmatched_devices"
	errs := []error{hasNoRow(p, family, scrape.Labels{"driver": cpuDriver}), hasNoRow(p, family, scrape.Labels{"driver": functionDriver})}
	for _, side := range []string{"published", "hardware"} {
		errs = append(errs, claimHas(p, family, scrape.Labels{"driver": "gpu.nvidia.com", "side": side}, 0))
	}
	for _, row := range p.Rows(family, nil) {
		if row.Value > 0 {
			errs = append(errs, fmt.Errorf("%s%s is %v", family, row.Labels, row.Value))
		}
	}
	return errors.Join(errs...)
}

// cpuSeries counts the series of the claim of CPUs and of the devices that it
// holds.
func cpuSeries(p *scrape.Page) (count int) {
	uuids := map[string]bool{}
	for _, held := range p.Rows("dra_claim_held", cpuClaim("cpus")) {
		uuids[held.Labels["uuid"]] = true
	}
	for _, family := range p.Names("dra_") {
		for _, row := range p.Rows(family, nil) {
			if uuids[row.Labels["uuid"]] || row.Labels["resourceclaim"] == "cpus" {
				count++
			}
		}
	}
	return count
}

// checkHourlyCost compares what a claim, the only one of its class in the
// namespace, costs in an hour with its price. The agent counts cost with the time
// for which the claim was held, which is compared with the time between the pages.
func checkHourlyCost(t *testing.T, first, last *scrape.Page, claim, class string, want float64) {
	t.Helper()
	cost := increase(first, last, "dra_namespace_cost_total", scrape.Labels{"namespace": "cpus", "deviceclass": class, "currency": "EUR"})
	held := increase(first, last, "dra_claim_held_seconds_total", cpuClaim(claim))
	passed := last.At.Sub(first.At).Seconds()
	hourly := cost / held * 3600
	t.Logf("the claim %s costs %.6f EUR an hour; it was held for %.1f of %.1f s", claim, hourly, held, passed)
	if !(math.Abs(hourly-want) < 1e-6) {
		t.Errorf("it should cost %v EUR", want)
	}
	if !(math.Abs(held-passed) < 5) {
		t.Error("it was held for another time")
	}
}
