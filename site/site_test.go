// Package site tests the documentation site that Hugo makes.
package site

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

const repository = ".."

// page is a page of the built site.
type page struct {
	file  string // relative to the site
	title string // its first heading
	ids   map[string]int
	nodes []*html.Node
}

// build makes the site in a new folder, with the arguments in addition to those
// of .ci/site.
func build(t *testing.T, arguments ...string) (folder string, err error) {
	t.Helper()
	program := os.Getenv("HUGO")
	if program == "" {
		program = filepath.Join(repository, "test", ".bin", "hugo", "hugo")
	}
	if program, err = filepath.Abs(program); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: make site-test builds it", err)
	}
	folder = filepath.Join(t.TempDir(), "main")
	command := exec.Command(program, append([]string{
		"--source", ".", "--config", "site/hugo.yaml", "--destination", folder, "--noBuildLock", "--panicOnWarning",
	}, arguments...)...)
	command.Dir = repository
	output, err := command.CombinedOutput()
	if err != nil {
		return folder, fmt.Errorf("%w: %s", err, output)
	}
	return folder, nil
}

func mustBuild(t *testing.T) string {
	t.Helper()
	folder, err := build(t)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// pages returns the parsed pages of a site by their file.
func pages(t *testing.T, folder string) map[string]*page {
	t.Helper()
	found := map[string]*page{}
	err := filepath.WalkDir(folder, func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".html" {
			return err
		}
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return err
		}
		document, err := html.Parse(strings.NewReader(read(t, file)))
		if err != nil {
			return err
		}
		p := &page{file: filepath.ToSlash(name), ids: map[string]int{}}
		for node := range document.Descendants() {
			p.nodes = append(p.nodes, node)
			if id := attribute(node, "id"); id != "" {
				p.ids[id]++
			}
			if node.Data == "h1" && p.title == "" {
				p.title = strings.TrimSpace(text(node))
			}
		}
		found[p.file] = p
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func attribute(node *html.Node, key string) string {
	for _, a := range node.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func has(node *html.Node, key string) bool {
	return slices.ContainsFunc(node.Attr, func(a html.Attribute) bool { return a.Key == key })
}

func text(node *html.Node) string {
	var all strings.Builder
	for child := range node.Descendants() {
		if child.Type == html.TextNode {
			all.WriteString(child.Data)
		}
	}
	return all.String()
}

// The site is complete and whole: every link leads to a page and, where it names
// one, to an element of it; images exist and are described; nothing is loaded
// from another host; no two elements of a page have the same id.
func TestPages(t *testing.T) {
	folder := mustBuild(t)
	all := pages(t, folder)
	if len(all) < 80 {
		t.Fatalf("the site has only %d pages", len(all))
	}
	links := 0
	for _, p := range all {
		for id, times := range p.ids {
			if times > 1 {
				t.Errorf("%s: %d elements have the id %s", p.file, times, id)
			}
		}
		for _, node := range p.nodes {
			if node.Type != html.ElementNode {
				if node.Type == html.CommentNode {
					t.Errorf("%s: the comment %q, which Hugo leaves in place of HTML", p.file, node.Data)
				}
				continue
			}
			if node.Data == "img" && (!has(node, "alt") || attribute(node, "src") == "") {
				t.Errorf("%s: an image without alt or src", p.file)
			}
			for _, key := range []string{"href", "src", "action", "srcset", "poster"} {
				if !has(node, key) {
					continue
				}
				links++
				checkLink(t, folder, all, p, node, attribute(node, key))
			}
		}
		if p.title == "" {
			t.Errorf("%s has no heading", p.file)
		}
	}
	if links < 5000 {
		t.Errorf("only %d links were found", links)
	}
	for name, loads := range map[string]string{"css": `(?i)(url\(|@import|https?:)[^)\s]*`, "js": `(?i)(@import|https?://)\S*`} {
		files, err := filepath.Glob(filepath.Join(folder, "site.*."+name))
		if err != nil || len(files) != 1 {
			t.Fatalf("the files %s are %q (%v)", name, files, err)
		}
		if found := regexp.MustCompile(loads).FindString(read(t, files[0])); found != "" {
			t.Errorf("site.%s may load something: %s", name, found)
		}
	}
	t.Logf("%d pages, %d links", len(all), links)
}

// checkLink checks what an element refers to.
func checkLink(t *testing.T, folder string, all map[string]*page, from *page, node *html.Node, to string) {
	t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		t.Errorf("%s: %v", from.file, err)
		return
	}
	if target.Scheme != "" || target.Host != "" {
		if node.Data != "a" {
			t.Errorf("%s: <%s> loads %s from another host", from.file, node.Data, to)
		}
		return
	}
	if strings.HasPrefix(target.Path, "/") {
		t.Errorf("%s: the link %s is not relative, so the site works at the root of a server only", from.file, to)
		return
	}
	file := from.file
	if target.Path != "" {
		file = path.Join(path.Dir(from.file), target.Path)
	}
	if _, err := os.Stat(filepath.Join(folder, filepath.FromSlash(file))); err != nil || strings.HasSuffix(target.Path, "/") {
		t.Errorf("%s: the link %s leads to no file", from.file, to)
		return
	}
	if target.Fragment == "" {
		return
	}
	if p := all[file]; p == nil || p.ids[target.Fragment] == 0 {
		t.Errorf("%s: the link %s leads to no element of %s", from.file, to, file)
	}
}

// Every document of docs/ has a page, whose title is its first heading, and the
// navigation leads to each page once.
func TestDocumentsAreInTheNavigation(t *testing.T) {
	folder := mustBuild(t)
	all := pages(t, folder)
	titles := map[string]string{} // documents by title
	err := filepath.WalkDir(filepath.Join(repository, "docs"), func(file string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, ".md") {
			heading, _, _ := strings.Cut(read(t, file), "\n")
			titles[strings.NewReplacer("# ", "", "`", "").Replace(heading)] = file
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, start := range []string{"index.html", "hardware.html", "runbooks/index.html", "decisions/index.html"} {
		for _, link := range navigation(t, all[start]) {
			if file := path.Join(path.Dir(start), link); start == "index.html" || listed[file] == 0 {
				listed[file]++
			}
		}
	}
	for _, p := range all {
		if document := titles[p.title]; document != "" {
			delete(titles, p.title)
		}
		switch times := listed[p.file]; {
		case p.file == "404.html" || p.file == "search.html" || p.file == "index.html":
		case times != 1:
			t.Errorf("%s is %d times in the navigation, which has the links of docs/README.md", p.file, times)
		}
	}
	for title, document := range titles {
		t.Errorf("%s (%s) has no page", document, title)
	}
}

// navigation returns the addresses in the navigation of a page without fragments.
func navigation(t *testing.T, p *page) (links []string) {
	t.Helper()
	if p == nil {
		t.Fatal("a page with a navigation is missing")
	}
	for _, node := range p.nodes {
		if attribute(node, "id") != "navigation" {
			continue
		}
		for link := range node.Descendants() {
			if link.Data == "a" {
				address, _, _ := strings.Cut(attribute(link, "href"), "#")
				links = append(links, address)
			}
		}
	}
	return links
}

// The index of the search has every page, with its title and all its headings,
// and the names of metrics and flags.
func TestSearchIndex(t *testing.T) {
	folder := mustBuild(t)
	all := pages(t, folder)
	index := strings.TrimSpace(read(t, filepath.Join(folder, "search-index.js")))
	encoded, isScript := strings.CutPrefix(index, "globalThis.draSearchIndex = ")
	if !isScript {
		t.Fatalf("the index begins with %.60s", index)
	}
	var entries []struct {
		URL, Title string
		Sections   []struct{ ID, Heading, Text string }
	}
	if err := json.Unmarshal([]byte(strings.TrimSuffix(encoded, ";")), &entries); err != nil {
		t.Fatal(err)
	}
	indexed := map[string]string{} // the text of each section
	for _, entry := range entries {
		if p := all[entry.URL]; p == nil || p.title != entry.Title {
			t.Errorf("the index has %s with the title %q", entry.URL, entry.Title)
		}
		for _, section := range entry.Sections {
			indexed[entry.URL+"#"+section.ID] = section.Heading + "\n" + section.Text
		}
	}
	for _, p := range all {
		if p.file == "404.html" || p.file == "search.html" {
			continue
		}
		for _, node := range p.nodes {
			if regexp.MustCompile(`^h[1-6]$`).MatchString(node.Data) && has(node, "id") {
				place := p.file + "#" + attribute(node, "id")
				if heading, _, _ := strings.Cut(indexed[place], "\n"); heading != strings.TrimSpace(text(node)) {
					t.Errorf("the index has %q for %s", heading, place)
				}
			}
		}
	}
	for place, want := range map[string]string{
		"metrics.html#claims":                  "dra_claim_utilization_ratio",
		"configuration.html#dra-exporter-node": "--idle.threshold",
		"install.html#verify-a-release":        "cosign verify",
	} {
		if !strings.Contains(indexed[place], want) {
			t.Errorf("the index has no %s at %s: %.100q", want, place, indexed[place])
		}
	}
	t.Logf("%d pages, %d sections, %d bytes", len(entries), len(indexed), len(index))
}

// A link to a file that does not exist fails the build, with the document and
// the link in the message.
func TestBrokenLink(t *testing.T) {
	content := t.TempDir()
	if err := os.WriteFile(filepath.Join(content, "broken.md"), []byte("# Broken\n\n[link](docs/absent.md)\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "hugo.yaml")
	text := strings.Replace(read(t, "hugo.yaml"), "    - { source: site/content, target: content }\n",
		"    - { source: site/content, target: content }\n    - { source: "+content+", target: content }\n", 1)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := build(t, "--config", config); err == nil || !strings.Contains(err.Error(), "docs/absent.md leads to no file") {
		t.Errorf("the build says %v", err)
	}
}

// Colours with the same name are those of the application's own pages.
func TestColoursAreThoseOfThePages(t *testing.T) {
	named := regexp.MustCompile(`--([\w-]+): (#[0-9a-f]{6});`)
	light, dark, _ := strings.Cut(read(t, filepath.Join(repository, "internal", "page", "page.css")), "@media (prefers-color-scheme: dark)")
	colours := func(text string) map[string]string {
		all := map[string]string{}
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			all[found[1]] = found[2]
		}
		return all
	}
	inLight, inDark := colours(light), colours(dark)
	pairs := regexp.MustCompile(`--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);`).FindAllStringSubmatch(read(t, "assets/site.css"), -1)
	if len(pairs) < 15 {
		t.Fatalf("site.css has %d pairs of colours", len(pairs))
	}
	for _, pair := range pairs {
		if inLight[pair[1]] != pair[2] || inDark[pair[1]] != pair[3] {
			t.Errorf("%s is %s and %s; the pages have %s and %s", pair[1], pair[2], pair[3], inLight[pair[1]], inDark[pair[1]])
		}
	}
}

// The search finds the parts of a name in a real browser, below a path of a
// server and in a folder without one.
func TestSearch(t *testing.T) {
	const chromium = "/usr/bin/chromium"
	if _, err := os.Stat(chromium); err != nil {
		t.Skipf("needs Debian's package chromium: %v", err)
	}
	folder := mustBuild(t)
	server := httptest.NewServer(http.StripPrefix("/some/path/main/", http.FileServer(http.Dir(folder))))
	defer server.Close()
	for _, base := range []string{server.URL + "/some/path/main/", "file://" + folder + "/"} {
		for query, first := range map[string]string{
			"pending claims": "pending.html",
			"DRAClaimIdle":   "runbooks/DRAClaimIdle.html",
			"claim idle":     "runbooks/DRAClaimIdle.html",
			"verify release": "install.html#verify-a-release",
			"idle.thresh":    "configuration.html",
		} {
			command := exec.Command(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
				"--disable-background-networking", "--disable-component-update", "--user-data-dir="+t.TempDir(),
				"--virtual-time-budget=5000", "--dump-dom", base+"search.html?q="+url.QueryEscape(query))
			output, err := command.Output()
			if err != nil {
				t.Fatalf("run Chromium: %v", err)
			}
			document, err := html.Parse(strings.NewReader(string(output)))
			if err != nil {
				t.Fatal(err)
			}
			if found := results(document); len(found) == 0 || !strings.HasPrefix(found[0], base+first) {
				t.Errorf("%s: %q finds %q first, not %s", base, query, found[:min(3, len(found))], first)
			}
		}
	}
}

// results returns the addresses on the page of results.
func results(document *html.Node) (found []string) {
	for node := range document.Descendants() {
		if node.Data != "article" {
			continue
		}
		for link := range node.Descendants() {
			if link.Data == "a" {
				found = append(found, attribute(link, "href"))
			}
		}
	}
	return found
}
