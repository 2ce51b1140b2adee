package objectfields_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dra-exporter/dra-exporter/collector/objectfields"
)

func TestCheckYAML(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                             {"", ""},
		"a document":                          {"a: [1, {b: c-d}]\n", ""},
		"an alias":                            {"a: &x [1, 2]\nb: [*x, *x]\n", ""},
		"a merge":                             {"a: &x {b: 1}\nc: {<<: *x}\n", ""},
		"text like an alias":                  {"a: '&x'\nb: '*x'\n", ""},
		"a version":                           {"%YAML 1.2\n---\na: 1\n", ""},
		"JSON":                                {`{"a": [1, 2, {"b": null}]}`, ""},
		"values of a list":                    {"a: [" + strings.Repeat("b,", 1000) + "]\n", "it has more than 1000 values"},
		"values of lines":                     {strings.Repeat("-\n", 1000), "it has more than 1000 values"},
		"values of old lines":                 {strings.Repeat("-\r", 1000), "it has more than 1000 values"},
		"values of one line":                  {strings.Repeat("- ", 1000), "it has more than 1000 values"},
		"values of JSON":                      {"[" + strings.Repeat("{},", 1000) + "{}]", "it has more than 1000 values"},
		"directives":                          {strings.Repeat("%TAG !a! b\n", 17) + "---\na: 1\n", "it has more than 16 directives"},
		"directives of lines of another kind": {strings.Repeat("%TAG !a! b\u0085", 17) + "---\na: 1\n", "it has more than 16 directives"},
		"later directives":                    {"a: 1\n...\n" + strings.Repeat("%TAG !a! b\n", 17) + "---\na: 1\n", "it has more than 16 directives"},
		"aliases of a text":                   {"a: &x " + strings.Repeat("y", 1000) + "\nb: [" + strings.Repeat("*x,", 100) + "]\n", "its aliases stand for more than 10000 bytes"},
		"aliases of a key":                    {"? &x " + strings.Repeat("y", 1000) + "\n: [" + strings.Repeat("*x,", 100) + "]\n", "its aliases stand for more than 10000 bytes"},
		"aliases of aliases":                  {billion(9), "its aliases stand for more than 1000 values"},
		"merges":                              {"a: &x {" + strings.Repeat("b: 1,", 50) + "}\nc: {<<: [" + strings.Repeat("*x,", 50) + "]}\n", "its aliases stand for more than 1000 values"},
		"an alias of itself":                  {"a: &x [*x]\n", "line 1: an alias stands for itself"},
		"in a later document":                 {"a: 1\n---\n" + billion(9), "its aliases stand for more than 1000 values"},
		"no YAML":                             {"a: &x [*x\n", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			err := objectfields.CheckYAML([]byte(c.text), 1000, 10_000)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// billion is a document whose last key has 9 to the power of depth values.
func billion(depth int) string {
	var text strings.Builder
	text.WriteString("k0: &k0 x\n")
	for i := range depth {
		fmt.Fprintf(&text, "k%d: &k%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*k%d,", i), 9), ","))
	}
	return text.String()
}

// values counts the values of what is decoded.
func values(decoded any) int {
	count := 1
	switch of := decoded.(type) {
	case []any:
		for _, inner := range of {
			count += values(inner)
		}
	case map[string]any:
		for _, inner := range of {
			count += values(inner)
		}
	case map[any]any:
		for _, inner := range of {
			count += values(inner)
		}
	}
	return count
}

// FuzzCheckYAML decodes what passes: it has no more values than may be.
func FuzzCheckYAML(f *testing.F) {
	f.Add([]byte("a: &x [1, 2]\nb: [*x, *x]\n"))
	f.Add([]byte("a: &x {b: 1}\nc: {<<: *x}\n? [*x]\n: *x\n"))
	f.Add([]byte(billion(4)))
	f.Add([]byte(`{"a":[{},[],"b"],"c":null}`))
	f.Add([]byte("- - -\n- ? ?\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		const most, size = 500, 5000
		if err := objectfields.CheckYAML(text, most, size); err != nil {
			return
		}
		var decoded any
		if json.Unmarshal(text, &decoded) == nil && values(decoded) > most {
			t.Fatalf("%d values of JSON in %q", values(decoded), text)
		}
		decoded = nil
		if yaml.Unmarshal(text, &decoded) == nil && values(decoded) > most {
			t.Fatalf("%d values of YAML in %q", values(decoded), text)
		}
	})
}
