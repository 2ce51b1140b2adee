package e2e

import (
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// exemption says why queries have no data on some servers.
type exemption struct {
	Reason string   `json:"reason"`
	Where  []string `json:"where"`  // demo, cluster
	Panels []string `json:"panels"` // board / panel, or board / panel / ref

	// The query has data on some runs.
	Sometimes bool `json:"sometimes"`

	// The exemption is for releases of Kubernetes without this feature only.
	Without releases.ID `json:"without"`
}

// readExemptions returns those of testdata/empty-panels.yaml for one server,
// by the panel or query.
func readExemptions(t *testing.T, where string) map[string]*exemption {
	t.Helper()
	text, err := os.ReadFile("testdata/empty-panels.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []exemption
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	exemptions := map[string]*exemption{}
	for i := range all {
		e := &all[i]
		if e.Reason == "" || len(e.Where) == 0 || len(e.Panels) == 0 {
			t.Errorf("testdata/empty-panels.yaml does not say where or why %q are empty", e.Panels)
		}
		for _, panel := range e.Panels {
			if !slices.Contains(e.Where, where) || e.Without != "" && shared.Has(e.Without) {
				continue
			}
			if exemptions[panel] != nil {
				t.Errorf("testdata/empty-panels.yaml has %s twice", panel)
			}
			exemptions[panel] = e
		}
	}
	return exemptions
}

// checkData evaluates every query and fails the test if a query without data
// has no exemption, or a query with data has one. It returns the queries that
// have data.
func (g *dashboardServer) checkData(t *testing.T, where string, when span) (answered []namedQuery) {
	t.Helper()
	all, offered := g.queries(t, when)
	exemptions := readExemptions(t, where)
	used := map[string]bool{}
	check := func(q namedQuery, hasData bool) (steady bool) {
		name := q.String()
		if exemptions[name] == nil {
			name = q.board + " / " + q.panel
		}
		used[name] = true
		switch exempt := exemptions[name]; {
		case exempt != nil && exempt.Sometimes:
			return false
		case hasData && exempt != nil:
			t.Errorf("%s has data: take it out of testdata/empty-panels.yaml", q)
		case !hasData && exempt == nil:
			t.Errorf("%s has no data:\n\t%s", q, q.exprs[0])
		}
		return hasData
	}
	for _, q := range all {
		has, err := q.hasData(t.Context(), g.prometheus, when)
		if err != nil {
			t.Errorf("%s: %v", q, err)
			continue
		}
		if check(q, has) {
			answered = append(answered, q)
		}
	}
	for _, board := range g.boards {
		for _, variable := range board.Variables {
			q := namedQuery{board: board.UID, panel: "variable " + variable.Name, exprs: []string{variable.Selector}}
			check(q, offered[q.board+" / "+q.panel] > 0)
		}
	}
	for name := range exemptions {
		if !used[name] {
			t.Errorf("testdata/empty-panels.yaml: nothing is called %s", name)
		}
	}
	t.Logf("%d of %d questions have an answer", len(answered), len(all))
	return answered
}
