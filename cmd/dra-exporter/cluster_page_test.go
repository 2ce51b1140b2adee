package main

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/generator"
)

// rolePage has the values of a page of the cluster role that benchmarks use.
type rolePage struct {
	series, claims, devices, dropped int
	candidates                       int            // references whose diagnosis counts devices
	reasons                          map[string]int // pending references by reason
	newest                           int            // number of the newest life whose pod is pending; -1: none
}

// page reads the page as Prometheus does.
func (r *clusterRun) page(b *testing.B) rolePage {
	b.Helper()
	response, err := http.Get(r.address + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	p := rolePage{reasons: make(map[string]int), newest: -1}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "dra_") {
			p.series++
			p.note(line)
		}
	}
	return p
}

func (p *rolePage) note(line string) {
	family, rest, _ := strings.Cut(line, "{")
	switch family {
	case "dra_claims":
		p.claims += valueOf(rest)
	case "dra_devices":
		p.devices += valueOf(rest)
	case "dra_exporter_series_dropped_total":
		p.dropped += valueOf(rest)
	case "dra_claim_pending_candidates":
		if strings.Contains(rest, `stage="published"`) {
			p.candidates++
		}
	case "dra_claim_pending_since_timestamp_seconds":
		_, pod, _ := strings.Cut(rest, `pod="`)
		pod, _, _ = strings.Cut(pod, `"`)
		if number, is := strings.CutPrefix(pod, generator.LifePod); is {
			life, err := strconv.Atoi(number)
			if err == nil {
				p.newest = max(p.newest, life)
			}
		}
	case "dra_claim_pending_reason_info":
		_, reason, _ := strings.Cut(rest, `reason="`)
		reason, _, _ = strings.Cut(reason, `"`)
		p.reasons[reason]++
	}
}

func valueOf(line string) int {
	value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
	if err != nil {
		return 0
	}
	return int(value)
}

// until reads pages until one satisfies the condition, and returns it. Pages take at
// most a fifth of the time, so that reading them delays little of what is awaited.
func (r *clusterRun) until(b *testing.B, patience time.Duration, wanted func(rolePage) bool) rolePage {
	b.Helper()
	began := time.Now()
	for {
		requested := time.Now()
		p := r.page(b)
		took := time.Since(requested)
		if wanted(p) {
			return p
		}
		if time.Since(began) > patience {
			b.Fatalf("not so after %s: %+v", patience, p)
		}
		time.Sleep(max(100*time.Millisecond, 4*took))
	}
}
