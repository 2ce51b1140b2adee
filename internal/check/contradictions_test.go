package check

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/invariant"
)

// sharedPage returns the page of a node whose only GPU two claims share
// equally, this many seconds after the exporter started.
func sharedPage(node string, second int) string {
	return fmt.Sprintf(`dra_exporter_build_info{version="1"} 1
dra_exporter_unmatched_devices{side="hardware"} 0
process_start_time_seconds 7
dra_device_info{node=%[1]q,uuid="GPU-0",parent_uuid="",source="nvml"} 1
dra_device_holders{node=%[1]q,uuid="GPU-0",parent_uuid="",kind="claim"} 2
dra_device_memory_used_bytes{node=%[1]q,uuid="GPU-0",parent_uuid=""} 8
dra_device_unattributed_memory_bytes{node=%[1]q,uuid="GPU-0",parent_uuid=""} 0
dra_claim_held{node=%[1]q,namespace="ml",resourceclaim="a",uuid="GPU-0"} 1
dra_claim_held{node=%[1]q,namespace="ml",resourceclaim="b",uuid="GPU-0"} 1
dra_claim_memory_used_bytes{node=%[1]q,namespace="ml",resourceclaim="a",uuid="GPU-0",attribution="process"} 3
dra_claim_memory_used_bytes{node=%[1]q,namespace="ml",resourceclaim="b",uuid="GPU-0",attribution="process"} 5
dra_claim_held_seconds_total{node=%[1]q,namespace="ml",resourceclaim="a",uuid="GPU-0"} %[2]d
dra_claim_held_seconds_total{node=%[1]q,namespace="ml",resourceclaim="b",uuid="GPU-0"} %[2]d
dra_claim_device_seconds_total{node=%[1]q,namespace="ml",resourceclaim="a",uuid="GPU-0"} %[3]v
dra_claim_device_seconds_total{node=%[1]q,namespace="ml",resourceclaim="b",uuid="GPU-0"} %[3]v
`, node, second, float64(second)/2)
}

// partitionedPage returns a page with a GPU whose partition uses this much
// memory.
func partitionedPage(memory int) string {
	return fmt.Sprintf(`dra_exporter_build_info{version="1"} 1
dra_device_info{node="p",uuid="GPU-0",parent_uuid="",source="nvml"} 1
dra_device_info{node="p",uuid="MIG-a",parent_uuid="GPU-0",source="nvml"} 1
dra_device_memory_used_bytes{node="p",uuid="GPU-0",parent_uuid=""} 8
dra_device_memory_used_bytes{node="p",uuid="MIG-a",parent_uuid="GPU-0"} %d
`, memory)
}

func TestContradictions(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	agent := func(first, second string) Agent {
		a := Agent{URL: "u", At: start, Again: Answer{At: start.Add(10 * time.Second)}}
		for page, text := range map[*Page]string{&a.Page: first, &a.Again.Page: second} {
			var err error
			if *page, err = decodePage(strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
		return a
	}
	more := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %s", old)
		}
		return strings.ReplaceAll(text, old, new)
	}
	whole := func(text string, seconds int) string { // charges each claim for all of the device
		return more(text, fmt.Sprintf("} %v\n", float64(seconds)/2), fmt.Sprintf("} %d\n", seconds))
	}
	first, second := sharedPage("n", 100), sharedPage("n", 110)
	unread := agent(first, second)
	unread.Again = Answer{Error: errors.New("refused")}
	unreadBad := agent(more(first, "} 5\n", "} 6\n"), second)
	unreadBad.Again = unread.Again
	large := agent(first, second)
	large.Page.dropNumbers()
	slow := agent(more(first, "dra_device_info", "dra_exporter_sample_timestamp_seconds 1.7e9\ndra_device_info"),
		more(sharedPage("n", 115), "dra_device_info", "dra_exporter_sample_timestamp_seconds 1700000015\ndra_device_info"))
	checkFindings(t, []findingsCase{
		{"well", Agents([]Agent{agent(first, second)}), nil},
		{"one page", Agents([]Agent{agent(more(first, "} 5\n", "} 6\n"), second)}), []want{
			{Failure, "n: claims_within_device", "the claims of GPU-0 have 9 of dra_device_memory_used_bytes, which is 8: ml/a 3 (process), ml/b 6 (process), and 0 is unattributed"},
			{Failure, "n: claims_within_device", "https://github.com/dra-exporter/dra-exporter/issues"}}},
		{"two pages", Agents([]Agent{agent(first, whole(second, 110))}), []want{
			{Failure, "n: device_time", "claims are charged 120.000 device-seconds of GPU-0 in 12.000 s"}}},
		{"a counter that fell", Agents([]Agent{agent(second, first)}), []want{{Failure, "n: counters_rise", "fell from 55 to 50"}}},
		{"another process", Agents([]Agent{agent(second, more(first, "process_start_time_seconds 7", "process_start_time_seconds 8"))}), nil},
		{"one page alone", Agents([]Agent{unread}), []want{{Skipped, "n", "refused"}}},
		{"one page alone, and wrong", Agents([]Agent{unreadBad}), []want{{Skipped, "n", "refused"}, {Failure, "n: claims_within_device", "have 9"}}},
		{"too large", Agents([]Agent{large}), []want{{Skipped, "n", "too large"}}},
		{"an exporter that steps rarely", Agents([]Agent{slow}), nil},
		{"a reading for a moment", Agents([]Agent{agent(partitionedPage(9), partitionedPage(8))}), nil},
		{"a reading that lasts", Agents([]Agent{agent(partitionedPage(9), partitionedPage(10))}), []want{{Failure, "p: partitions_within_parent", "have 9 of its"}}},
		{"nodes together", Agents([]Agent{agent(first, second), agent(sharedPage("m", 100), sharedPage("m", 110))}), []want{
			{Failure, "nodes together: fleet_time", "2 nodes together charge 20.000 device-seconds of GPU-0 in 12.000 s: ml/a 5.000 on m, ml/b 5.000 on m, ml/a 5.000 on n, ml/b 5.000 on n"}}},
		{"the same node twice", Agents([]Agent{agent(first, second), agent(first, second)}), nil},
	})
}

// A page that is too large is not kept, and its other findings are there.
func TestNumbersAreBounded(t *testing.T) {
	line := `dra_claim_held{resourceclaim="` + strings.Repeat("a", 1000) + "\"} 1\n"
	page, err := decodePage(strings.NewReader(sharedPage("n", 1) + strings.Repeat(line, mostNumbers/len(line)+1)))
	if err != nil {
		t.Fatal(err)
	}
	if len(page.numbers) != 0 || !page.tooLarge || page.NodeName != "n" {
		t.Errorf("%d bytes are kept of %s", len(page.numbers), page.NodeName)
	}
}

// Each rule has a name that can be part of a finding's subject, and each remedy
// refers to its documentation.
func TestViolated(t *testing.T) {
	for _, rule := range invariant.Rules() {
		found := violated(area{"u", contradictionsPage}, "n", []invariant.Violation{{Rule: rule.Name, Text: "it is so", More: 2}})
		if len(found) != 1 || found[0].Subject != "n: "+rule.Name || found[0].Text != "it is so; and 2 more of this rule" || !strings.HasSuffix(found[0].Page, "#contradictions") {
			t.Errorf("found %+v", found)
		}
	}
}
