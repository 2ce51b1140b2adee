package lint

import (
	"bytes"
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

// detailsOf is the good board with another uid, and with a link above its panels.
func detailsOf(t *testing.T, uid, link string) []byte {
	t.Helper()
	text := strings.Replace(string(good(t)), `"uid": "dra-good"`, `"uid": "`+uid+`"`, 1)
	if parent := detailOf(uid); parent != "" {
		text = strings.Replace(text, `"dra-exporter"`, `"dra-exporter", "`+parent+`-details"`, 1)
	}
	return []byte(strings.Replace(text, `"links": [`, `"links": [`+link+`, `, 1))
}

// TestDetailsAreOneClickAway: a board and its details lead to each other, and keep what
// is chosen.
func TestDetailsAreOneClickAway(t *testing.T) {
	const (
		there = `{"type": "dashboards", "tags": ["dra-good-details"], "keepTime": true, "includeVars": true}`
		back  = `{"type": "link", "url": "/d/dra-good", "keepTime": true, "includeVars": true}`
	)
	for name, c := range map[string]struct{ board, details, rule string }{
		"both ways":      {there, back, ""},
		"no way there":   {back, back, "link-details"},
		"no way back":    {there, there, "link-details"},
		"time lost":      {strings.Replace(there, `"keepTime": true`, `"keepTime": false`, 1), back, "link-details"},
		"variables lost": {there, strings.Replace(back, `"includeVars": true`, `"includeVars": false`, 1), "link-details"},
		"a menu":         {strings.Replace(there, `{`, `{"asDropdown": true, `, 1), back, "link-details"},
		"another tag":    {strings.Replace(there, "good", "better", 1), back, "link-details"},
		"to nowhere":     {there + `, {"type": "link", "url": "/d/dra-better"}`, back, "link-uid"},
	} {
		problems, err := CheckLinks(detailsOf(t, "dra-good", c.board), detailsOf(t, "dra-good-details", c.details))
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(problems, func(p Problem) bool { return p.Rule == c.rule })
		if c.rule != "" && !found || c.rule == "" && len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	untagged := bytes.Replace(detailsOf(t, "dra-good-details", back), []byte(`, "dra-good-details"`), nil, 1)
	another := strings.ReplaceAll(string(detailsOf(t, "dra-good-details", back)), `node`, `gpu`)
	for name, boards := range map[string][][]byte{
		"details of no board": {detailsOf(t, "dra-other-details", back), detailsOf(t, "dra-good", there), detailsOf(t, "dra-good-details", back)},
		"no tag":              {detailsOf(t, "dra-good", there), untagged},
		"another variable":    {detailsOf(t, "dra-good", there), []byte(another)},
	} {
		problems, err := CheckLinks(boards...)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(problems, func(p Problem) bool { return p.Rule == "link-details" }) {
			t.Errorf("%s: not caught, but %v", name, problems)
		}
	}
}
