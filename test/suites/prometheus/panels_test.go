package prometheus

import (
	"maps"
	"regexp"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
)

// panelCase is the expected result of a panel's query, by its labels, for
// series with one sample a minute that end after an hour.
type panelCase struct {
	board, panel, ref string
	series            string
	want              map[string]float64
}

// TestPanelResults compares the results of panels with their titles and
// descriptions, where mistakes are likely.
func TestPanelResults(t *testing.T) {
	loaded, err := queries.Load(boardsFolder)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range panelCases() {
		t.Run(name, func(t *testing.T) {
			store := promqltest.LoadedStorage(t, "load 1m\n"+regexp.MustCompile(`(?m)^\s*(\S)`).ReplaceAllString(c.series, " $1"))
			engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true})
			query, err := engine.NewInstantQuery(t.Context(), store, nil, c.expr(t, loaded), time.Unix(3600, 0))
			if err != nil {
				t.Fatal(err)
			}
			defer query.Close()
			answer := query.Exec(t.Context())
			rows, err := answer.Vector()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]float64{}
			for _, row := range rows {
				got[row.Metric.String()] = row.F
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// expr returns the query of the case, with all values selected where possible, and
// else the claim a/c on node n.
func (c panelCase) expr(t *testing.T, boards []queries.Board) string {
	t.Helper()
	about := queries.Chosen{"namespace": {"a"}, "resourceclaim": {"c"}, "node": {"n"}}
	for _, board := range boards {
		for _, query := range board.Queries {
			if board.UID != c.board || query.Panel != c.panel || query.Ref != c.ref {
				continue
			}
			expr, err := board.Expr(query.Expr, chosenOf(readBoard{Board: board}, about), queries.Window{Range: time.Hour, Step: time.Minute, Interval: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			return expr
		}
	}
	t.Fatalf("%s has no query %s of %q", c.board, c.ref, c.panel)
	return ""
}

const (
	// nodeRole are the pods and claims that the node role reads as well, those
	// of its node.
	nodeRole = `
dra_exporter_source_up{instance="n", source="pods"} 1x60
dra_exporter_source_up{instance="n", source="resourceclaims"} 1x60
dra_exporter_source_up{instance="n", source="resourceslices"} 1x60
`
	clusterRole = `
dra_exporter_source_up{instance="cluster", source="pods"} 1x60
dra_exporter_source_up{instance="cluster", source="resourceclaims"} 1x60
dra_exporter_clock_anomalies_total{instance="cluster", phase="start"} 0x60
source:dra_exporter_source_up:count{source="pods"} 2x60
`
)

func panelCases() map[string]panelCase {
	const (
		waiting   = "Pending claims"
		remapping = "Memory errors in the range, and remapped rows"
		supply    = "Supply and demand by class"
	)
	zero := map[string]float64{"{}": 0}
	return map[string]panelCase{
		"a node agent does not know who waits":  {"dra-claims", waiting, "A", nodeRole, map[string]float64{}},
		"a cluster role without pending claims": {"dra-claims", waiting, "A", nodeRole + clusterRole, zero},
		"without slices the nodes that lack an agent are unknown": {"dra-exporter", "Nodes without agent", "A", nodeRole + clusterRole +
			`dra_exporter_source_up{instance="cluster", source="resourceslices"} 0x60`, map[string]float64{}},
		"with slices all have one": {"dra-exporter", "Nodes without agent", "A", nodeRole + clusterRole +
			`dra_exporter_source_up{instance="cluster", source="resourceslices"} 1x60`, zero},
		"held by a device whose health is not reported": {"dra-health", "Claims affected now", "A", `
dra_claim_held{node="n", namespace="a", resourceclaim="c", uuid="u"} 1x60
node:dra_devices:count{node="n"} 1x60
`, map[string]float64{}},
		"a failed remapping is worse than one that waits": {"dra-health", remapping, "D", `
dra_device_row_remap_pending{node="n", uuid="u"} 1x60
dra_device_row_remap_failed{node="n", uuid="u"} 1x60
`, map[string]float64{`{node="n", uuid="u"}`: 2}},
		"who waits without a class, and who must not yet": {"dra-allocation", supply, "A", `
dra_claim_pending_since_timestamp_seconds{namespace="a", pod="p", pod_claim="x"} 0x60
dra_claim_pending_since_timestamp_seconds{namespace="a", pod="q", pod_claim="x", deviceclass="gpu"} 0x60
dra_claim_pending_since_timestamp_seconds{namespace="a", pod="gated", pod_claim="x", deviceclass="gpu"} 0x60
dra_claim_pending_reason_info{namespace="a", pod="gated", pod_claim="x", reason="scheduling_gated"} 1x60
`, map[string]float64{`{deviceclass="not known"}`: 1, `{deviceclass="gpu"}`: 1}},
		"devices that no single node has": {"dra-allocation", "Supply by driver", "B", `
dra_devices{driver="d", pool="rack", state="free"} 9x60
dra_devices{driver="d", pool="n", node="n", state="free"} 2x60
dra_devices{driver="d", pool="m", node="m", state="free"} 3x60
`, map[string]float64{`{driver="d"}`: 3}},
		"an exporter beside its successor": {"dra-allocation", "Claims by state", "A", `
dra_claims{instance="old", namespace="a", deviceclass="gpu", state="pending"} 3x60
dra_claims{instance="new", namespace="a", deviceclass="gpu", state="pending"} 3x60
dra_claims{instance="new", namespace="b", deviceclass="gpu", state="pending"} 1x60
`, map[string]float64{`{state="pending"}`: 4}},
		"device-hours, not seconds": {"dra-efficiency", "Most expensive claims in the range", "B", `
claim:dra_claim_cost:increase5m{namespace="a", resourceclaim="c", currency="EUR"} _x58 1 2
claim:dra_claim_device_seconds:increase5m{namespace="a", resourceclaim="c"} _x58 3600 3600
`, map[string]float64{`{namespace="a", resourceclaim="c"}`: 2}},
		"two currencies are not one sum": {"dra-efficiency", "Device-hours by namespace in the range", "F", `
namespace_class:dra_namespace_cost:increase5m{namespace="a", deviceclass="gpu", currency="EUR"} _x59 1
namespace_class:dra_namespace_cost:increase5m{namespace="a", deviceclass="gpu", currency="USD"} _x59 2
`, map[string]float64{`{currency="EUR", namespace="a"}`: 1, `{currency="USD", namespace="a"}`: 2}},
		"a version that replaces another is a rollout": {"dra-claims", "annotation Rollouts", "A", `
dra_exporter_build_info{instance="n", version="1"} 1x57
dra_exporter_build_info{instance="m", version="1"} 1x60
dra_exporter_build_info{instance="n", version="2"} _x57 1x3
`, map[string]float64{`{version="2"}`: 1}},
		"the first scrapes are no rollout": {"dra-claims", "annotation Rollouts", "A", `
dra_exporter_build_info{instance="n", version="1"} _x57 1x3
`, map[string]float64{}},
		"a restart is marked when it happened, in milliseconds": {"dra-node", "annotation Restarts", "A", `
job_instance:dra_exporter_started:last5m{instance="n"} _x58 3421.5
job_instance:dra_exporter_started:last5m{instance="m"} _x58 3422
`, map[string]float64{`{instance="n"}`: 3421500}},
		"an Xid is marked by its node": {"dra-health", "annotation Xids", "A", `
device:dra_device_xid_errors:increase5m{node="n", uuid="u", xid="79"} _x58 1
device:dra_device_xid_errors:increase5m{node="n", uuid="v", xid="79"} _x58 2
`, map[string]float64{`{node="n", xid="79"}`: 3}},
		"a device that was shared for a part of the time": {"dra-claim", "Busy share in the range", "A", `
dra_claim_device_seconds_total{node="n", namespace="a", resourceclaim="c", uuid="u"} 0+60x60
dra_claim_device_seconds_total{node="n", namespace="a", resourceclaim="c", uuid="v"} 0+60x60
dra_claim_busy_seconds_total{node="n", namespace="a", resourceclaim="c", uuid="u", attribution="exclusive"} 0+15x60
dra_claim_busy_seconds_total{node="n", namespace="a", resourceclaim="c", uuid="v", attribution="exclusive"} 0+60x30 1800x30
dra_claim_busy_seconds_total{node="n", namespace="a", resourceclaim="c", uuid="v", attribution="shared"} 0x30 0+60x30
`, map[string]float64{"{}": 0.25}},
	}
}
