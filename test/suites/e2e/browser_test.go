package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// TestBrowser reads a claim's utilization from the page and from /metrics, in
// Chromium with and without JavaScript, without a fault and while a source
// hangs.
func TestBrowser(t *testing.T) {
	covers(t)
	deployFaultClaims(t)
	for _, javascript := range []bool{true, false} {
		t.Run(fmt.Sprintf("JavaScript %v", javascript), func(t *testing.T) {
			a := runHostAgent(t, steadyHardware(0.42), shared.KubeletSocket())
			tab := openTab(t, a.url, javascript)
			for _, scenario := range []struct {
				name    string
				devices *hardware
				want    float64 // NaN: the page and /metrics show nothing
				failing string
			}{
				{"no fault", steadyHardware(0.42), 0.42, ""},
				{"the load changes", steadyHardware(0.77), 0.77, ""},
				{"another device hangs", oneHangs(0.58), 0.58, "simulated"},
				{"the source hangs", allHang(0.63), math.NaN(), "simulated"},
				{"recovered", steadyHardware(0.31), 0.31, ""},
			} {
				t.Run(scenario.name, func(t *testing.T) {
					a.change(t, scenario.devices)
					if scenario.failing != "" {
						a.eventually(t, scenario.failing+" to hang", func(p *scrape.Page) error { return sourceTimedOut(p, scenario.failing) })
					}
					waitShownValue(tab, t, a, scenario.want)
				})
			}
			screenshot(tab, t, fmt.Sprintf("page-javascript-%v.png", javascript))
		})
	}
	t.Run("the kubelet hangs", func(t *testing.T) {
		a := runHostAgent(t, steadyHardware(0.42), unresponsiveKubelet(t))
		a.eventually(t, "the kubelet to hang", func(p *scrape.Page) error { return sourceTimedOut(p, "podresources") })
		waitShownValue(openTab(t, a.url, true), t, a, 0.42)
	})
}

// oneHangs returns hardware in which one GPU, which no claim of the test
// holds, does not answer.
func oneHangs(utilization float64) *hardware {
	h := steadyHardware(utilization)
	for _, gpu := range h.Devices {
		if gpu.published == "gpu.nvidia.com/gpu-4" {
			gpu.Faults = []fault{{Kind: "hang", For: "20s"}}
		}
	}
	return h
}

func allHang(utilization float64) *hardware {
	h := steadyHardware(utilization)
	h.Faults = []fault{{Kind: "hang", For: "25s"}}
	return h
}

// waitShownValue waits until the claim's utilization has the value want in
// /metrics, and then until an open page shows the same without a reload by the
// test.
func waitShownValue(tab context.Context, t *testing.T, a *hostAgent, want float64) {
	t.Helper()
	claim := scrape.Labels{"namespace": "exclusive"}
	var held scrape.Row
	a.eventually(t, fmt.Sprintf("/metrics to show %v", want), func(p *scrape.Page) (err error) {
		if held, err = p.One("dra_claim_held", claim); err != nil {
			return err
		}
		got := math.NaN()
		if rows := p.Rows("dra_claim_utilization_ratio", claim); len(rows) == 1 {
			got = rows[0].Value
		}
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			return fmt.Errorf("it shows %v", got)
		}
		return nil
	})
	selector := fmt.Sprintf(`[data-claim="%s/%s"][data-uuid="%s"][data-field="utilization"]`,
		held.Labels["namespace"], held.Labels["resourceclaim"], held.Labels["uuid"])
	deadline := time.Now().Add(time.Minute)
	for {
		got, err := elementValue(tab, selector)
		if err == nil && (got == want || math.IsNaN(got) && math.IsNaN(want)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the page shows %v, /metrics %v (%v)", got, want, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// elementValue returns the data-value of the only element, NaN if it is empty.
func elementValue(tab context.Context, selector string) (float64, error) {
	ctx, cancel := context.WithTimeout(tab, 5*time.Second)
	defer cancel()
	elements, err := chromedp.Run(ctx, chromedp.AttributesAll(chromedp.CSSAll(selector)))
	if err != nil {
		return 0, fmt.Errorf("find %s: %w", selector, err)
	}
	if len(elements) != 1 {
		return 0, fmt.Errorf("there are %d of %s", len(elements), selector)
	}
	value, has := elements[0]["data-value"]
	switch {
	case !has:
		return 0, errors.New("the element has no value")
	case value == "":
		return math.NaN(), nil
	}
	return strconv.ParseFloat(value, 64)
}

// openTab opens a page in a new Chromium.
func openTab(t *testing.T, url string, javascript bool) context.Context {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath("/usr/bin/chromium"), chromedp.UserDataDir(t.TempDir()), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.WindowSize(1280, 1400),
	}
	for _, off := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage"} {
		options = append(options, chromedp.Flag(off, true))
	}
	allocator, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	tab, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	script := emulation.SetScriptExecutionDisabledParams{Value: !javascript}
	if _, err := chromedp.Call(tab, emulation.SetScriptExecutionDisabled, script); err != nil {
		t.Fatalf("start Chromium: %v", err)
	}
	if err := chromedp.Do(tab, chromedp.Navigate(url)); err != nil {
		t.Fatalf("open %s in Chromium: %v", url, err)
	}
	return tab
}

// screenshot writes a picture of the page to the folder of the logs, if there
// is one.
func screenshot(tab context.Context, t *testing.T, name string) {
	t.Helper()
	folder := os.Getenv("DRA_E2E_LOGS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
	if err != nil {
		t.Error(err)
		return
	}
	if err := os.WriteFile(filepath.Join(folder, name), picture, 0o644); err != nil {
		t.Error(err)
	}
}
