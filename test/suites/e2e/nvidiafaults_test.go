package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// testXID: a claimed GPU falls off the bus (XID 79). NVML's agent reports it
// within two seconds, with the claim. DCGM's agent reports it after the
// engine's and its own next reading. The page shows it in red, and the driver
// taints the device. The exporter reports the hardware as healthy after the
// recovery time. The driver removes no taint before it is restarted.
func (n *nvidiaNode) testXID(t *testing.T) {
	covers(t)
	gpu := heldNVIDIADeviceOf(t, "nvidia", []string{"whole/main"})
	for _, a := range n.agents() {
		a.eventually(t, "the GPU to be well", func(p *scrape.Page) error {
			return errors.Join(health(p, gpu.gpuUUID, "hardware", 1), health(p, gpu.gpuUUID, "driver", 1))
		})
	}
	tab := openTab(t, n.nvml.url, true)
	began := time.Now()
	n.XID(gpu.gpu, 79)
	n.xids.injected = began
	for _, a := range n.agents() {
		a.eventually(t, "the XID", func(p *scrape.Page) error { return checkFellOffTheBus(p, gpu.gpuUUID, began) })
		took := time.Since(began)
		t.Logf("the agent %s showed the XID after %s", a.name, took)
		if a == n.nvml && took > 2*time.Second {
			t.Error("that is too late")
		}
	}
	claim, err := n.nvml.page(t).One("dra_claim_held", scrape.Labels{"namespace": "nvidia", "uuid": gpu.gpuUUID})
	if err != nil {
		t.Fatal(err)
	}
	waitShownUnhealthy(tab, t, "nvidia/"+claim.Labels["resourceclaim"], gpu.gpuUUID, "Xid 79")
	for _, a := range n.agents() {
		a.eventually(t, "the XID and the driver's taint", func(p *scrape.Page) error {
			_, err := p.One("dra_device_taint_info", scrape.Labels{"uuid": gpu.gpuUUID, "key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoSchedule"})
			return errors.Join(err, health(p, gpu.gpuUUID, "driver", 0), xidCounted(p, gpu.gpuUUID, began))
		})
	}
	for _, a := range n.agents() {
		a.eventually(t, "the GPU to be well again", func(p *scrape.Page) error {
			return errors.Join(health(p, gpu.gpuUUID, "hardware", 1), xidCounted(p, gpu.gpuUUID, began))
		})
	}
}

// checkFellOffTheBus returns an error unless the page has the XID and its
// time, the GPU is unhealthy, and the violation counts for the class of the
// claim that holds it.
func checkFellOffTheBus(p *scrape.Page, uuid string, began time.Time) error {
	suffered, err := p.One("dra_constraint_violations_total", scrape.Labels{"deviceclass": gpuClass, "constraint": "recovery"})
	if err == nil && suffered.Value != 1 {
		err = fmt.Errorf("the class has suffered %v times", suffered.Value)
	}
	return errors.Join(err, xidCounted(p, uuid, began), health(p, uuid, "hardware", 0))
}

func xidCounted(p *scrape.Page, uuid string, began time.Time) error {
	xid := scrape.Labels{"uuid": uuid, "xid": "79"}
	count, err := p.One("dra_device_xid_errors_total", xid)
	if err != nil {
		return err
	}
	last, err := p.One("dra_device_xid_last_timestamp_seconds", xid)
	if err != nil {
		return err
	}
	at := time.UnixMicro(int64(last.Value * 1e6))
	if count.Value != 1 || at.Before(began.Add(-time.Second)) || at.After(p.At.Add(time.Second)) {
		return fmt.Errorf("there are %v, the last at %s, raised at %s", count.Value, at, began)
	}
	return nil
}

// health returns an error unless this source reports the device as healthy (1)
// or unhealthy (0).
func health(p *scrape.Page, uuid, by string, want float64) error {
	row, err := p.One("dra_device_healthy", scrape.Labels{"uuid": uuid, "by": by})
	if err == nil && row.Value != want {
		err = fmt.Errorf("by its %s %s is %v", by, uuid, row.Value)
	}
	return err
}

// testHostEngine: the host engine is down for longer than the staleness limit,
// and is replaced by a new process.
func (n *nvidiaNode) testHostEngine(t *testing.T) {
	covers(t)
	first := n.dcgm.eventually(t, "the source dcgm", func(p *scrape.Page) error { return sourceIs(p, "dcgm", 1) })
	before := n.engine.Inspect()
	pages := scrape.Watch(t.Context(), 250*time.Millisecond, n.dcgm.metrics, scrape.CountersRise(grace), scrape.PageInvariants)
	missing := newSeriesGaps(first)
	check := pages.CheckRule(missing.rule)

	began := time.Now()
	n.engine.Kill()
	n.dcgm.eventually(t, "the source dcgm to be down", func(p *scrape.Page) error { return sourceIs(p, "dcgm", 0) })
	time.Sleep(time.Until(began.Add(12 * time.Second)))
	n.engine.Restart()
	outage := time.Since(began)
	n.dcgm.eventually(t, "the same series", func(p *scrape.Page) error {
		if got, want := deviceSeries(p), deviceSeries(first); !maps.Equal(got, want) {
			return fmt.Errorf("there are %d of %d series", len(got), len(want))
		}
		return sourceIs(p, "dcgm", 1)
	})
	endRuleCheck(t, check, 40)
	if err := pages.Broken(); err != nil {
		t.Error(err)
	}
	for _, name := range slices.Sorted(maps.Keys(missing.longest)) {
		most := outage
		if strings.HasPrefix(name, "dra_device_xid_errors_total") {
			most += 10 * time.Second // until the agent has connected and watches them again
		}
		if gap := missing.longest[name]; gap > most {
			t.Errorf("%s was gone for %s, the engine for %s", name, gap, outage)
		}
	}
	if after := n.engine.Inspect(); after != before {
		t.Errorf("the engine holds %+v, and did %+v", after, before)
	}
}

func sourceIs(p *scrape.Page, source string, want float64) error {
	row, err := p.One("dra_exporter_source_up", scrape.Labels{"source": source})
	if err == nil && row.Value != want {
		err = fmt.Errorf("the source %s is %v", source, row.Value)
	}
	return err
}

// deviceSeries returns a page's rows of devices and claims, without their
// values.
func deviceSeries(p *scrape.Page) map[string]bool {
	found := map[string]bool{}
	for _, prefix := range []string{"dra_device_", "dra_claim_"} {
		for _, name := range p.Names(prefix) {
			for _, row := range p.Rows(name, nil) {
				found[name+row.Labels.String()] = true
			}
		}
	}
	return found
}

// seriesGaps records for how long each series of a first page was absent at
// most.
type seriesGaps struct {
	seen    map[string]time.Time
	longest map[string]time.Duration
}

func newSeriesGaps(first *scrape.Page) *seriesGaps {
	a := &seriesGaps{seen: map[string]time.Time{}, longest: map[string]time.Duration{}}
	for name := range deviceSeries(first) {
		a.seen[name] = first.At
	}
	return a
}

// rule records a page. A series that is on two consecutive pages had no gap
// between them.
func (a *seriesGaps) rule(p *scrape.Page) []error {
	now := deviceSeries(p)
	for name, last := range a.seen {
		if !now[name] {
			a.longest[name] = max(a.longest[name], p.At.Sub(last))
		} else {
			a.seen[name] = p.At
		}
	}
	return nil
}
