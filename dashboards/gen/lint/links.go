package lint

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// CheckLinks says which links between these dashboards lead nowhere, or name a
// variable that the other does not have, and which uids are given twice.
func CheckLinks(texts ...[]byte) ([]Problem, error) {
	var boards []board
	variables := map[string][]string{}
	var all []Problem
	for _, text := range texts {
		b, err := decode(text)
		if err != nil {
			return nil, err
		}
		if _, twice := variables[b.UID]; twice {
			all = append(all, Problem{Rule: "link-uid", Panel: b.Title, Text: "another dashboard has uid " + b.UID})
		}
		boards = append(boards, b)
		variables[b.UID] = b.names()
	}
	for _, b := range boards {
		for _, link := range b.links() {
			all = append(all, link.problems(b.Title, variables)...)
		}
		for _, link := range b.Links {
			if link.Placement != "" {
				all = append(all, Problem{Rule: "link-placement", Panel: b.Title, Text: "a link is in a menu, not above the panels"})
			}
			if uid := strings.TrimPrefix(link.URL, "/d/"); link.Type == "link" && variables[uid] == nil {
				all = append(all, Problem{Rule: "link-uid", Panel: b.Title, Text: "no dashboard has uid " + uid})
			}
		}
	}
	return all, nil
}

// reference is a link to another dashboard.
type reference struct {
	uid  string
	sets []string // variables
	keep []string // variables that go along with what is chosen here
	text string
}

// links are all addresses of dashboards in a dashboard's panels: strings that are one,
// and those within texts.
func (b board) links() (all []reference) {
	var panels any
	if json.Unmarshal(b.top["panels"], &panels) != nil {
		return nil
	}
	strs(panels, func(s string) {
		if strings.HasPrefix(s, "/d/") {
			all = append(all, refer(s))
			return
		}
		for _, found := range regexp.MustCompile(`\]\((/d/[^\s)]+)`).FindAllStringSubmatch(s, -1) {
			all = append(all, refer(found[1]))
		}
	})
	return all
}

func refer(address string) reference {
	path, query, _ := strings.Cut(strings.TrimPrefix(address, "/d/"), "?")
	uid, _, _ := strings.Cut(path, "/")
	r := reference{uid: uid, text: address}
	for part := range strings.SplitSeq(query, "&") {
		if name, _, set := strings.Cut(part, "="); set && strings.HasPrefix(name, "var-") {
			r.sets = append(r.sets, strings.TrimPrefix(name, "var-"))
		}
		if kept := regexp.MustCompile(`^\$\{(\w+):queryparam\}$`).FindStringSubmatch(part); kept != nil {
			r.keep = append(r.keep, kept[1])
		}
	}
	return r
}

func (r reference) problems(from string, variables map[string][]string) (all []Problem) {
	names, known := variables[r.uid]
	if !known {
		return []Problem{{Rule: "link-uid", Panel: from, Text: "no dashboard has uid " + r.uid + ": " + r.text}}
	}
	for _, name := range slices.Concat(r.sets, r.keep) {
		if !slices.Contains(names, name) {
			all = append(all, Problem{Rule: "link-variables", Panel: from, Text: r.uid + " has no variable " + name + ": " + r.text})
		}
	}
	for _, name := range []string{"datasource", "cluster"} {
		if !slices.Contains(slices.Concat(r.sets, r.keep), name) {
			all = append(all, Problem{Rule: "link-variables", Panel: from, Text: "the choice of " + name + " is lost on the way to " + r.text})
		}
	}
	if !strings.Contains(r.text, "${__url_time_range}") {
		all = append(all, Problem{Rule: "link-variables", Panel: from, Text: "the time range is lost on the way to " + r.text})
	}
	return all
}
