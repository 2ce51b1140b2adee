package explain_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// Every field of the document is described in docs/api.md at its object,
// and no other field is.
func TestDocumentedFields(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, fields, found := strings.Cut(string(text), "\n## Explain\n")
	if !found {
		t.Fatal("docs/api.md has no section on explain")
	}
	documented := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^- ((?:`[^`]+`(?:, )?)+)(?: \\(|:|$)").FindAllStringSubmatch(fields, -1) {
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			documented[name[1]] = true
		}
	}
	there := make(map[string]bool)
	collect(t, reflect.TypeFor[explain.Report](), there, make(map[reflect.Type]bool))
	for name := range there {
		if !documented[name] {
			t.Errorf("docs/api.md does not describe %s", name)
		}
	}
	for name := range documented {
		if !there[name] {
			t.Errorf("docs/api.md describes %s, which is no field", name)
		}
	}
}

// collect records the names of all fields of a type and of what it is made of.
func collect(t *testing.T, of reflect.Type, names map[string]bool, seen map[reflect.Type]bool) {
	switch of.Kind() {
	case reflect.Slice, reflect.Pointer, reflect.Map:
		collect(t, of.Elem(), names, seen)
	case reflect.Struct:
		if of.PkgPath() == "time" || seen[of] {
			return
		}
		seen[of] = true
		for field := range of.Fields() {
			if !field.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" || !unicode.IsLower(rune(name[0])) || strings.ContainsAny(name, "_-") {
				t.Errorf("%s.%s has no name in lowerCamel: %q", of.Name(), field.Name, name)
			}
			names[name] = true
			collect(t, field.Type, names, seen)
		}
	}
}

// The text on a terminal has a few bold lines, and is otherwise the same.
func TestStyledText(t *testing.T) {
	escapes := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for name, scene := range textCases() {
		report, err := explain.Explain(scene.facts, scene.subject)
		if err != nil {
			t.Fatal(err)
		}
		for _, render := range []func(bool) string{report.Text, report.Brief} {
			styled, plain := render(true), render(false)
			if escapes.ReplaceAllString(styled, "") != plain {
				t.Errorf("%s: a terminal is given other words", name)
			}
			if !escapes.MatchString(styled) || strings.Contains(plain, "\x1b") {
				t.Errorf("%s: styles are not where they are asked for", name)
			}
		}
	}
}
