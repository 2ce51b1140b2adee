package page

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// rule is a rule of a style sheet: a selector and what it declares.
type rule struct {
	selector string
	declares map[string]string
}

// styles returns the rules of both pages, without those in media queries, and
// the colours of the light and of the dark scheme.
func styles(t *testing.T) (rules []rule, schemes map[string]map[string]string) {
	t.Helper()
	text := regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(pageCSS+clusterCSS, "")
	roots := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(text, -1)
	if len(roots) != 2 {
		t.Fatalf("%d sets of colours", len(roots))
	}
	light := colours(roots[0][1])
	dark := maps.Clone(light)
	maps.Copy(dark, colours(roots[1][1]))
	for _, found := range regexp.MustCompile(`([^{}]+)\{([^{}]*)\}`).FindAllStringSubmatch(text, -1) {
		declares := map[string]string{}
		for declaration := range strings.SplitSeq(found[2], ";") {
			if name, value, is := strings.Cut(declaration, ":"); is {
				declares[strings.TrimSpace(name)] = strings.TrimSpace(value)
			}
		}
		for selector := range strings.SplitSeq(strings.TrimSpace(found[1]), ",") {
			rules = append(rules, rule{strings.TrimSpace(selector), declares})
		}
	}
	return rules, map[string]map[string]string{"light": light, "dark": dark}
}

func colours(text string) map[string]string {
	named := map[string]string{}
	for _, found := range regexp.MustCompile(`--([\w-]+):\s*(#[0-9a-f]{6});`).FindAllStringSubmatch(text, -1) {
		named[found[1]] = found[2]
	}
	return named
}

// variable returns the colour variable that a declaration names, empty if none.
func variable(value string) string {
	if found := regexp.MustCompile(`var\(--([\w-]+)\)`).FindStringSubmatch(value); found != nil {
		return found[1]
	}
	return ""
}

// contrast is that of WCAG 2: 1 to 21.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light, dark := luminance(t, a), luminance(t, b)
	return (max(light, dark) + 0.05) / (min(light, dark) + 0.05)
}

func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		value, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		part := float64(value) / 255
		if part <= 0.04045 {
			part /= 12.92
		} else {
			part = math.Pow((part+0.055)/1.055, 2.4)
		}
		sum += weight * part
	}
	return sum
}

// graphic reports whether a selector is of something drawn, which is no text.
func graphic(selector string) bool {
	return regexp.MustCompile(`(\.dot|\.swatch\S*|\.fill|\.part\S*|\.bar\S*|\.branch|\.half|\.spent|\.track|\.old|::before|\.sign|\.tick)$`).MatchString(selector)
}

// Text is legible in both schemes: each colour of text has a contrast of 4.5 to
// 1 on its own background, or, if it has none, on each background of text.
func TestContrastOfText(t *testing.T) {
	rules, schemes := styles(t)
	grounds := []string{"ground", "card", "tag", "warn-ground", "bad-ground"}
	pairs := map[[2]string][]string{}
	for _, rule := range rules {
		ground := variable(rule.declares["background"])
		if ground != "" && !graphic(rule.selector) && rule.declares["color"] == "" && !slices.Contains(grounds, ground) {
			t.Errorf("%s has the background %s and no colour of its own", rule.selector, ground)
		}
	}
	for _, rule := range rules {
		text := variable(rule.declares["color"])
		if text == "" {
			continue
		}
		if ground := variable(rule.declares["background"]); ground != "" {
			pairs[[2]string{text, ground}] = append(pairs[[2]string{text, ground}], rule.selector)
			continue
		}
		for _, ground := range grounds {
			pairs[[2]string{text, ground}] = append(pairs[[2]string{text, ground}], rule.selector)
		}
	}
	if len(pairs) < 30 {
		t.Fatalf("the style sheets are not as this test reads them: %d pairs", len(pairs))
	}
	for scheme, colours := range schemes {
		for pair, selectors := range pairs {
			if got := contrast(t, colours[pair[0]], colours[pair[1]]); got < 4.5 {
				t.Errorf("%s: %s on %s has %.2f: %s", scheme, pair[0], pair[1], got, strings.Join(slices.Compact(selectors), ", "))
			}
		}
	}
	for _, rule := range rules {
		if rule.declares["opacity"] != "" && !graphic(rule.selector) {
			t.Errorf("%s makes text paler than its colour", rule.selector)
		}
	}
}

// Graphics have a contrast of 3 to 1 with the background of their card.
func TestContrastOfGraphics(t *testing.T) {
	rules, schemes := styles(t)
	for _, rule := range rules {
		for _, property := range []string{"fill", "background"} {
			name := variable(rule.declares[property])
			if name == "" || name == "track" || property == "background" && !graphic(rule.selector) || strings.HasSuffix(rule.selector, ".track") {
				continue
			}
			for scheme, colours := range schemes {
				if got := contrast(t, colours[name], colours["card"]); got < 3 {
					t.Errorf("%s: %s of %s has %.2f", scheme, name, rule.selector, got)
				}
			}
		}
	}
}

// The swatch beside a holder has the colour of its part of the bars: of the
// utilization and of the memory alike.
func TestSwatchesAndBarsHaveTheSameColours(t *testing.T) {
	rules, schemes := styles(t)
	kinds := []string{"unattributed"}
	for i := range shades {
		kinds = append(kinds, fmt.Sprintf("p%d", i))
	}
	seen := map[string]bool{}
	for _, kind := range kinds {
		drawn := map[string]string{}
		for _, rule := range rules {
			for _, what := range []string{"part", "swatch"} {
				if !strings.Contains(rule.selector, "."+what+"."+kind) {
					continue
				}
				if rule.declares["opacity"] != "" {
					t.Errorf("%s is paler than its colour", rule.selector)
				}
				property := map[string]string{"part": "fill", "swatch": "background"}[what]
				if value := variable(rule.declares[property]); value != "" {
					drawn[what] = value
				}
			}
		}
		if drawn["part"] == "" || drawn["part"] != drawn["swatch"] {
			t.Errorf("%s is drawn as %v", kind, drawn)
		}
		for scheme, colours := range schemes {
			if colour := scheme + colours[drawn["part"]]; seen[colour] {
				t.Errorf("%s has the colour of another: %s", kind, colour)
			} else {
				seen[colour] = true
			}
		}
	}
	for _, rule := range rules {
		if rule.declares["opacity"] != "" && strings.HasSuffix(rule.selector, ".bar") {
			t.Errorf("%s makes the parts of a bar paler than their swatches", rule.selector)
		}
		if regexp.MustCompile(`^\.(load|memory) \.part$`).MatchString(rule.selector) {
			t.Errorf("%s has a colour that no swatch has", rule.selector)
		}
	}
}

// Everything styled as a link is a link to an element of the page.
func TestLinksAreLinks(t *testing.T) {
	for name, page := range map[string]string{
		"node": second(get(t, handler(t, testNodeRows(t)), "/")), "sharing": second(get(t, handler(t, sharing(t)), "/")),
		"cluster": second(get(t, clusterHandler(t, testClusterRows(t)), "/")),
	} {
		document, err := html.Parse(strings.NewReader(page))
		if err != nil {
			t.Fatal(err)
		}
		attribute := func(node *html.Node, key string) string {
			for _, a := range node.Attr {
				if a.Key == key {
					return a.Val
				}
			}
			return ""
		}
		ids := map[string]bool{}
		for node := range document.Descendants() {
			ids[attribute(node, "id")] = true
		}
		for node := range document.Descendants() {
			classes := strings.Fields(attribute(node, "class"))
			target, inPage := strings.CutPrefix(attribute(node, "href"), "#")
			if slices.Contains(classes, "badge") && !slices.Contains(classes, "plugin") && node.Data != "a" {
				t.Errorf("%s: <%s class=%q> leads nowhere", name, node.Data, classes)
			}
			if inPage && !ids[target] {
				t.Errorf("%s: nothing is at #%s", name, target)
			}
		}
	}
	rules, _ := styles(t)
	for _, rule := range rules {
		if variable(rule.declares["background"]) == "accent-ground" && rule.selector != "a.badge" {
			t.Errorf("%s looks like a link", rule.selector)
		}
	}
}

func second(_ int, text string) string { return text }
