package page

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

var tags = regexp.MustCompile(`<[^>]*>`)

// tileText returns the text of the page's tile with this title.
func tileText(t *testing.T, page, title string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "<dt>"+title+"</dt>")
	if !found {
		t.Fatalf("the page has no tile %q", title)
	}
	text, _, _ := strings.Cut(rest, "</div>")
	return strings.Join(strings.Fields(tags.ReplaceAllString(text, " ")), " ")
}

// sourcesBut returns the sources of a cluster, of which some were never read.
func sourcesBut(unread ...string) []metric.Row {
	var rows []metric.Row
	for _, name := range []string{"pods", "resourceclaims", "resourceslices", "deviceclasses"} {
		rows = append(rows, sourceRows(name, !slices.Contains(unread, name))...)
	}
	return rows
}

// Tiles of unknown values say so, and never show 0.
func TestTilesOfUnknownValues(t *testing.T) {
	reserved := row("dra_claims", 9, "namespace", "n", "deviceclass", "gpu.example.com", "state", "reserved")
	unused := row("dra_claims", 4, "namespace", "n", "deviceclass", "gpu.example.com", "state", "unused")
	free := row("dra_devices", 5, "driver", "gpu.example.com", "pool", "p", "node", "", "state", "free")
	incomplete := row("dra_pool_complete", 0, "driver", "gpu.example.com", "pool", "p", "node", "")
	for _, test := range []struct {
		name                  string
		unread                []string
		rows                  []metric.Row
		slow                  string
		claims, devices, odds string
	}{
		{"all is known", nil, []metric.Row{reserved, unused, free}, "0 allocated for over 10 s, not running", "13 9 in use · 4 unused", "5 of 5 published", "0 none"},
		{"nothing is there", nil, nil, "0 allocated for over 10 s, not running", "0 0 in use · 0 unused", "0 none published", "0 none"},
		{"pods are not known", []string{"pods"}, []metric.Row{reserved, free}, "– not known", "– 9 in use · unused not known", "5 of 5 published", "– not known without pods"},
		{"claims are not", []string{"resourceclaims"}, nil, "– not known", "– not known", "– not known", "– not known without resourceclaims"},
		{"slices are not", []string{"resourceslices"}, []metric.Row{reserved, unused}, "0 allocated for over 10 s, not running", "13 9 in use · 4 unused", "– not known", "– not known without resourceslices"},
		{"nothing is", []string{"pods", "resourceclaims", "resourceslices"}, nil, "– not known", "– not known", "– not known", "– not known without pods, resourceclaims, resourceslices"},
		{"some looks wrong anyway", []string{"pods"}, []metric.Row{reserved, free, incomplete}, "– not known", "– 9 in use · unused not known", "5 of 5 published", "1 see below · at least: without pods"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, page := get(t, clusterHandler(t, append(test.rows, sourcesBut(test.unread...)...)), "/")
			for title, want := range map[string]string{"Stuck in a phase": test.slow, "Claims": test.claims, "Devices free": test.devices, "Anomalies": test.odds} {
				if got := tileText(t, page, title); got != want {
					t.Errorf("%s: %q, want %q", title, got, want)
				}
			}
		})
	}
}

// Taint rules are known where an API server has none of them.
func TestUnreadableTaintRules(t *testing.T) {
	_, page := get(t, clusterHandler(t, append(sourcesBut(), sourceRows("devicetaintrules", false)...)), "/")
	if got, want := tileText(t, page, "Anomalies"), "– not known without devicetaintrules"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestUnreadableClasses(t *testing.T) {
	want := "The capacity of each class is not known: deviceclasses: permission_denied."
	if _, page := get(t, clusterHandler(t, sourcesBut("deviceclasses")), "/"); !strings.Contains(page, want) {
		t.Errorf("the page does not say %q", want)
	}
	if _, page := get(t, clusterHandler(t, sourcesBut()), "/"); strings.Contains(page, "of each class") {
		t.Error("the page says that classes are not known, and they are")
	}
}

// The reason of a pending reference is unknown while the devices are unknown,
// and its sentence says so.
func TestReasonSentences(t *testing.T) {
	for _, test := range []struct {
		name, reason, claim string
		unread              []string
		because, claimed    string
	}{
		{"diagnosed", "unknown", "c", nil, "No reason is evident.", "claim c"},
		{"without slices", "unknown", "c", []string{"resourceslices"}, "Not diagnosed: resourceslices could not be read.", "claim c"},
		{"without classes", "unknown", "c", []string{"deviceclasses"}, "Not diagnosed: deviceclasses could not be read.", "claim c"},
		{"without both", "unknown", "c", []string{"resourceslices", "deviceclasses"}, "Not diagnosed: resourceslices, deviceclasses could not be read.", "claim c"},
		{"known all the same", "quota", "", []string{"resourceslices"}, "The namespace may have no more claims or devices.", "no claim yet"},
		{"to be made", "claim_not_created", "", nil, "The claim has not been created from its template.", "no claim yet"},
		{"missing", "claim_missing", "", nil, "The pod names a claim that does not exist.", "its claim does not exist"},
		{"unusable", "claim_unusable", "c", nil, "The claim is being deleted, or was created for another pod.", "claim c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rows := append(sourcesBut(test.unread...),
				row("dra_claim_pending_since_timestamp_seconds", float64(noon.Unix()-60), "namespace", "n", "pod", "p", "pod_claim", "gpu", "resourceclaim", test.claim, "deviceclass", ""),
				row("dra_claim_pending_reason_info", 1, "namespace", "n", "pod", "p", "pod_claim", "gpu", "reason", test.reason))
			_, page := get(t, clusterHandler(t, rows), "/")
			if want := "<b>" + test.because + "</b>"; !strings.Contains(page, want) {
				t.Errorf("the page does not say %q", want)
			}
			if !strings.Contains(tags.ReplaceAllString(page, ""), test.claimed) {
				t.Errorf("the page does not say %q", test.claimed)
			}
		})
	}
}

// Past anomalies are mentioned, and do not stay anomalies.
func TestAnomaliesDisappear(t *testing.T) {
	deleted := func(before time.Duration) metric.Row {
		return row("dra_claim_terminating_since_timestamp_seconds", float64(noon.Add(-before).Unix()), "namespace", "n", "resourceclaim", "c")
	}
	ending := func(after time.Duration) metric.Row {
		return row("dra_pod_deletion_timestamp_seconds", float64(noon.Add(after).Unix()), "namespace", "n", "pod", "p", "node", "a")
	}
	for _, test := range []struct {
		name  string
		row   metric.Row
		wrong string
		kind  string // that is shown; empty: none
	}{
		{"evictions", row("dra_pod_taint_evictions_total", 3, "namespace", "n"), "0 none", "evictions"},
		{"clocks", row("dra_exporter_clock_anomalies_total", 2, "phase", "start"), "0 none", "clocks"},
		{"dropped", row("dra_exporter_series_dropped_total", 2, "family", "dra_devices"), "0 none", "dropped"},
		{"a deletion as it should be", deleted(59 * time.Second), "0 none", ""},
		{"a pod in its grace period", ending(time.Hour), "0 none", ""},
		{"a pod that has just had it", ending(-59 * time.Second), "0 none", ""},
		{"a pod that does not end", ending(-time.Minute), "1 see below", "deleted_pods"},
		{"a deletion that is stuck", deleted(60 * time.Second), "1 see below", "terminating"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, page := get(t, clusterHandler(t, append(sourcesBut(), test.row)), "/")
			if got := tileText(t, page, "Anomalies"); got != test.wrong {
				t.Errorf("%q, want %q", got, test.wrong)
			}
			kinds := regexp.MustCompile(`data-kind="(\w*)"`).FindStringSubmatch(page)
			if got := append(kinds, "", "")[1]; got != test.kind {
				t.Errorf("the page shows %q, want %q", got, test.kind)
			}
			if heading := strings.Contains(page, ">Anomalies</h2>"); heading != (test.wrong[0] != '0') {
				t.Errorf("the section of what looks wrong is there: %v", heading)
			}
		})
	}
}

// Every reason of the closed set has a sentence.
func TestEveryReasonHasASentence(t *testing.T) {
	for _, reason := range dra.PendingReasons() {
		if text := reasonText(string(reason)); text == string(reason) || !strings.HasSuffix(text, ".") {
			t.Errorf("%s: %q", reason, text)
		}
	}
}
