package yamlfile

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func root(t *testing.T, text string) *yaml.Node {
	t.Helper()
	node, err := Document([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func TestValues(t *testing.T) {
	keys, err := MappingOf(root(t, "name: ' npu '\nyes: true\nno: False\nlist: [a, b]\nnumber: -0\n"), "it", "name", "yes", "no", "list", "number", "other")
	if err != nil {
		t.Fatal(err)
	}
	name, err := keys.Text("name")
	yes, err2 := keys.Bool("yes")
	no, err3 := keys.Bool("no")
	list, err4 := keys.List("list", 2)
	number, err5 := Number("number", keys.Node("number"))
	if err := errors.Join(err, err2, err3, err4, err5); err != nil || name != "npu" || !yes || no || len(list) != 2 || number != 0 {
		t.Errorf("got %q %v %v %v %v, %v", name, yes, no, list, number, err)
	}
	absent, err := keys.Text("other")
	off, err2 := keys.Bool("other")
	none, err3 := keys.List("other", 1)
	if err := errors.Join(err, err2, err3); err != nil || absent != "" || off || none != nil || keys.Node("other") != nil {
		t.Errorf("got %q %v %v, %v", absent, off, none, err)
	}
}

func TestNames(t *testing.T) {
	_, names, err := Names(root(t, "b: 1\na: 2\n"), "labels")
	if err != nil || !slices.Equal(names, []string{"b", "a"}) {
		t.Errorf("got %v, %v", names, err)
	}
	for _, text := range []string{"'': 1", "? [a]\n: 1", "x: &a {b: 1}\n<<: *a\n"} {
		if _, _, err := Names(root(t, text), "labels"); err == nil || !strings.Contains(err.Error(), "is not a name") {
			t.Errorf("%q: got %v", text, err)
		}
	}
}

// Files that would take long to decode, or much memory.
func TestLimits(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("%TAG !a! b\n", 10_000) + "---\na: 1\n": "it has more than 16 directives",
		"a: [" + strings.Repeat("b,", 250_000) + "]\n":         "it has more than 250000 values",
		strings.Repeat("#", 1<<20+1):                           "it has more than 1048576 bytes",
		"a: &x [*x]\n":                                         "line 1: an alias stands for itself",
	} {
		if _, err := Document([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestErrors(t *testing.T) {
	keys, err := MappingOf(root(t, "text: 5\nbool: yes\nlong: [1, 2, 3]\nempty: []\nnumber: .inf\n"), "it", "text", "bool", "long", "empty", "number")
	if err != nil {
		t.Fatal(err)
	}
	_, text := keys.Text("text")
	_, boolean := keys.Bool("bool")
	_, long := keys.List("long", 2)
	_, empty := keys.List("empty", 2)
	_, number := Number("number", keys.Node("number"))
	_, missing := keys.Need("name")
	_, unknown := MappingOf(keys.At, "it", "text", "bool", "long", "empty", "numbers")
	for _, c := range []struct {
		err  error
		want string
	}{
		{text, `f.yaml:1: text is "5", want text (in quotes, if it looks like something else)`},
		{boolean, `f.yaml:2: bool is the text "yes", want true or false`},
		{long, "f.yaml:3: long has more than 2 entries"},
		{empty, "f.yaml:4: empty has no entries"},
		{number, `f.yaml:5: number: ".inf" is not a finite decimal number`},
		{missing, "f.yaml:1: name is missing"},
		{unknown, `f.yaml:5: unknown key "number", want one of text, bool, long, empty, numbers; did you mean numbers?`},
	} {
		if got := In("f.yaml", c.err); got.Error() != c.want {
			t.Errorf("got %v\nwant %s", got, c.want)
		}
	}
	if got := Hint("zzzzzz", []string{"text"}); got != "" {
		t.Errorf("a hint at another word: %s", got)
	}
}
