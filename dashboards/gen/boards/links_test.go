package boards

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestLinksNameWhatTheyAreAbout: a link to a claim says which, and of which cluster
// where its row says that: another cluster may have a claim of the same name. Of a
// claim on several nodes, a row is about one.
func TestLinksNameWhatTheyAreAbout(t *testing.T) {
	needs := map[string][]string{uidClaim: {"namespace", "resourceclaim"}, uidNode: {"node"}, uidHealth: {"node"}}
	seen := map[string]int{}
	for _, b := range All() {
		for _, p := range linkingPanels(t, b) {
			for _, address := range p.links {
				uid, _, _ := strings.Cut(strings.TrimPrefix(address, "/d/"), "?")
				seen[uid]++
				wanted := slices.Clone(needs[uid])
				if p.columns["cluster"] {
					wanted = append(wanted, "cluster")
				}
				if uid == uidClaim && p.columns["node"] {
					wanted = append(wanted, "node")
				}
				for _, name := range wanted {
					ofRow := strings.Contains(address, "var-"+name+"=${__data.fields[")
					asChosen := !p.columns[name] && strings.Contains(address, "${"+name+":queryparam}")
					asAll := uid == uidHealth && b.UID == uidOverview && !p.columns[name] // which has no choice of nodes
					if !ofRow && !asChosen && !asAll {
						t.Errorf("%s: %s: the link does not say of which %s it is: %s", b.UID, p.title, name, address)
					}
				}
			}
		}
	}
	if seen[uidClaim] < 5 || seen[uidNode] < 5 || seen[uidClaims] < 5 {
		t.Errorf("there are so many links: %v", seen)
	}
}

// linkingPanel is a panel with its links to dashboards and, if it is a table, the
// labels that have a column.
type linkingPanel struct {
	title   string
	columns map[string]bool
	links   []string
}

func linkingPanels(t *testing.T, b Board) (all []linkingPanel) {
	t.Helper()
	var read map[string]any
	if err := json.Unmarshal(generated(t, b), &read); err != nil {
		t.Fatal(err)
	}
	waiting, _ := read["panels"].([]any)
	for len(waiting) > 0 {
		panel, _ := waiting[0].(map[string]any)
		waiting = waiting[1:]
		if inner, _ := panel["panels"].([]any); len(inner) > 0 {
			waiting = append(waiting, inner...)
			continue
		}
		p := linkingPanel{columns: map[string]bool{}}
		p.title, _ = panel["title"].(string)
		p.read(panel)
		all = append(all, p)
	}
	return all
}

// read looks at everything in a panel.
func (p *linkingPanel) read(value any) {
	switch value := value.(type) {
	case string:
		if strings.HasPrefix(value, "/d/") {
			p.links = append(p.links, value)
		}
	case []any:
		for _, inner := range value {
			p.read(inner)
		}
	case map[string]any:
		columns, _ := value["renameByName"].(map[string]any)
		for label := range columns {
			p.columns[label] = true
		}
		for _, inner := range value {
			p.read(inner)
		}
	}
}
