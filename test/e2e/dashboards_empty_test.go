package e2e

import (
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// excuse says why questions have no answer in some places.
type excuse struct {
	Reason string   `json:"reason"`
	Where  []string `json:"where"`  // demo, cluster
	Panels []string `json:"panels"` // board / panel, or board / panel / ref

	// Sometimes there is an answer.
	Sometimes bool `json:"sometimes"`
}

// excuses are those of testdata/empty-panels.yaml for one place, by what they
// excuse.
func excuses(t *testing.T, where string) map[string]*excuse {
	t.Helper()
	text, err := os.ReadFile("testdata/empty-panels.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []excuse
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		t.Fatal(err)
	}
	excused := map[string]*excuse{}
	for i := range all {
		e := &all[i]
		if e.Reason == "" || len(e.Where) == 0 || len(e.Panels) == 0 {
			t.Errorf("testdata/empty-panels.yaml does not say where or why %q are empty", e.Panels)
		}
		for _, panel := range e.Panels {
			if !slices.Contains(e.Where, where) {
				continue
			}
			if excused[panel] != nil {
				t.Errorf("testdata/empty-panels.yaml has %s twice", panel)
			}
			excused[panel] = e
		}
	}
	return excused
}

// answeredOrExcused asks everything, and holds the answers to the excuses: what
// has no answer has an excuse, and what has an excuse has no answer.
func (g *gallery) answeredOrExcused(t *testing.T, where string, when span) (answered []question) {
	t.Helper()
	all, offered := g.questions(t, when)
	excused := excuses(t, where)
	used := map[string]bool{}
	judge := func(q question, has bool) (steady bool) {
		name := q.String()
		if excused[name] == nil {
			name = q.board + " / " + q.panel
		}
		used[name] = true
		switch excuse := excused[name]; {
		case excuse != nil && excuse.Sometimes:
			return false
		case has && excuse != nil:
			t.Errorf("%s has data: take it out of testdata/empty-panels.yaml", q)
		case !has && excuse == nil:
			t.Errorf("%s has no data:\n\t%s", q, q.exprs[0])
		}
		return has
	}
	for _, q := range all {
		has, err := q.answered(t.Context(), g.prometheus, when)
		if err != nil {
			t.Errorf("%s: %v", q, err)
			continue
		}
		if judge(q, has) {
			answered = append(answered, q)
		}
	}
	for _, board := range g.boards {
		for _, variable := range board.Variables {
			q := question{board: board.UID, panel: "variable " + variable.Name, exprs: []string{variable.Selector}}
			judge(q, offered[q.board+" / "+q.panel] > 0)
		}
	}
	for name := range excused {
		if !used[name] {
			t.Errorf("testdata/empty-panels.yaml: nothing is called %s", name)
		}
	}
	t.Logf("%d of %d questions have an answer", len(answered), len(all))
	return answered
}
