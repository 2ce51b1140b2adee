package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// checkRecovered fails the test unless the page reports the recovery and what
// was not delivered, no trace was lost, and the log has one line for the
// failure and one for the recovery of each signal.
func (r *outageRole) checkRecovered(t *testing.T) {
	t.Helper()
	err := cluster.Eventually(t.Context(), r.name+" to have recovered", func(ctx context.Context) error {
		p, err := r.watcher.Next(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, signal := range r.signals {
			failures, err := p.One("dra_exporter_otlp_exports_total", scrape.Labels{"signal": signal, "result": "failure"})
			if err == nil && failures.Value == 0 {
				err = fmt.Errorf("no export of %s has failed", signal)
			}
			errs = append(errs, err, hasGauge(p, "dra_exporter_otlp_up", scrape.Labels{"signal": signal}, 1))
		}
		for _, row := range p.Rows("dra_exporter_otlp_dropped_traces_total", nil) {
			if row.Value != 0 {
				errs = append(errs, fmt.Errorf("traces were lost: %v", row))
			}
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
	r.checkLog(t)
}

// checkLog fails the test unless the log has two lines for each signal and
// none of anything else.
func (r *outageRole) checkLog(t *testing.T) {
	t.Helper()
	lines := strings.Split(r.process.LogTail(10000), "\n")
	count := func(words ...string) (found int) {
		for _, line := range lines {
			has := func(word string) bool { return strings.Contains(line, word) }
			if !slices.ContainsFunc(words, func(word string) bool { return !has(word) }) {
				found++
			}
		}
		return found
	}
	for _, signal := range r.signals {
		fails, recovers := count("push fails", "signal="+signal), count("push works again", "signal="+signal)
		if fails != 1 || recovers != 1 {
			t.Errorf("%s: there are %d lines that %s fail, and %d that they work again", r.name, fails, signal, recovers)
		}
	}
	// One more line at the start says where the role pushes.
	if named, want := count(r.endpoint), 2*len(r.signals)+1; named != want {
		t.Errorf("%s: there are %d lines about the collector, not %d:\n%s", r.name, named, want, strings.Join(lines, "\n"))
	}
}

// checkUnaffected fails the test unless every scrape succeeded with the
// expected series, and the memory stayed within its limit.
func (r *outageRole) checkUnaffected(t *testing.T) {
	t.Helper()
	endRuleCheck(t, r.ruleCheck, int(outage/time.Second))
	if err := r.watcher.Broken(); err != nil {
		t.Errorf("%s: %v", r.name, err)
	}
	r.maxMemory = max(r.maxMemory, anonymous(t, r.process.PID()))
	t.Logf("%s had %.1f MiB of its own, and at most %.1f MiB", r.name, float64(r.memory)/(1<<20), float64(r.maxMemory)/(1<<20))
	if r.maxMemory > r.memory+maxMemoryGrowth {
		t.Errorf("%s grew from %d bytes to %d", r.name, r.memory, r.maxMemory)
	}
}

// anonymous returns the private memory of a process, in bytes, without that of
// mapped files such as its program.
func anonymous(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nRssAnon:")
	fields := strings.Fields(rest)
	if len(fields) < 2 || fields[1] != "kB" {
		t.Fatalf("there is no RssAnon in\n%s", status)
	}
	kilobytes, err := strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}
