package lint

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// CheckLinks says which links between these dashboards lead nowhere, or name a
// variable that the other does not have, which uids are given twice, and which boards
// and boards of details are not one click from each other.
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
		if detailOf(b.UID) != "" {
			all = append(all, detailProblems(b, boards)...)
		}
	}
	return all, nil
}

// detailProblems: a board and its details link to each other above all panels, with the
// time range and the variables. What is chosen on the board is chosen on its details:
// these have no other variables to choose from. The board finds its details by their tag,
// for they may be of a set that is not installed.
func detailProblems(details board, boards []board) (all []Problem) {
	say := func(about board, text string) {
		all = append(all, Problem{Rule: "link-details", Panel: about.Title, Text: text})
	}
	at := slices.IndexFunc(boards, func(b board) bool { return b.UID == detailOf(details.UID) })
	if at < 0 {
		say(details, "there is no board "+detailOf(details.UID)+" that it has the details of")
		return all
	}
	tag := boards[at].UID + "-details"
	if !boards[at].leadsTo(func(l topLink) bool {
		return l.Type == "dashboards" && slices.Equal(l.Tags, []string{tag}) && !l.AsDropdown
	}) {
		say(boards[at], "no link above its panels keeps time range and variables on the way to the tag "+tag)
	}
	if !slices.Contains(details.Tags, tag) {
		say(details, "it has no tag "+tag+", by which "+boards[at].UID+" links to it")
	}
	if !details.leadsTo(func(l topLink) bool { return l.Type == "link" && l.URL == "/d/"+boards[at].UID }) {
		say(details, "no link above its panels keeps time range and variables on the way to "+boards[at].UID)
	}
	for _, v := range details.Templating.List {
		if v.Hide == 0 && !slices.Contains(boards[at].names(), v.Name) {
			say(details, "its variable "+v.Name+" is not one of "+boards[at].UID)
		}
	}
	return all
}

func (b board) leadsTo(goal func(topLink) bool) bool {
	return slices.ContainsFunc(b.Links, func(l topLink) bool { return l.KeepTime && l.IncludeVars && goal(l) })
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
