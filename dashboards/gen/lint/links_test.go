package lint

import (
	"slices"
	"strings"
	"testing"
)

func TestLinksBetweenGoodBoards(t *testing.T) {
	problems, err := CheckLinks(good(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	read, err := decode(good(t))
	if err != nil {
		t.Fatal(err)
	}
	if links := read.links(); len(links) != 2 || !slices.Equal(links[0].sets, []string{"node"}) {
		t.Errorf("links: %+v", links)
	}
}

func TestBrokenLinks(t *testing.T) {
	const link = "/d/dra-good?${datasource:queryparam}&${cluster:queryparam}&${__url_time_range}&var-node=${__data"
	for name, c := range map[string]struct{ old, broken, rule string }{
		"no such dashboard": {"/d/dra-good?", "/d/dra-better?", "link-uid"},
		"no such variable":  {"&var-node=${__data", "&var-pod=${__data", "link-variables"},
		"cluster lost":      {link, "/d/dra-good?${datasource:queryparam}&${__url_time_range}&var-node=${__data", "link-variables"},
		"time lost":         {link, "/d/dra-good?${datasource:queryparam}&${cluster:queryparam}&var-node=${__data", "link-variables"},
		"in a menu":         {`"title": "DRA", `, `"title": "DRA", "placement": "inControlsMenu", `, "link-placement"},
		"in a text":         {"the busiest first.", "[the busiest](/d/dra-best) first.", "link-uid"},
	} {
		text := strings.Replace(string(good(t)), c.old, c.broken, 1)
		if text == string(good(t)) {
			t.Fatalf("%s: nothing was changed", name)
		}
		problems, err := CheckLinks([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Rule == c.rule }) {
			t.Errorf("%s: not caught, but %v", name, problems)
		}
	}
}

func TestUIDGivenTwice(t *testing.T) {
	problems, err := CheckLinks(good(t), good(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(problems) != 1 || problems[0].Rule != "link-uid" {
		t.Errorf("two dashboards with one uid: %v", problems)
	}
}
