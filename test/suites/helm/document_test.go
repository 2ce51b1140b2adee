package helm

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// value is one key of values.yaml, with its sentence.
type value struct{ key, text string }

// TestValuesDocument: helm-docs writes README.md from README.md.gotmpl and the
// comments of values.yaml. With -update it is rewritten.
func TestValuesDocument(t *testing.T) {
	output, err := program(t, "helm-docs", "--chart-search-root="+chart, "--sort-values-order=file", "--dry-run", "--log-level=error").Output()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if want := "| node.access.mode | `\"auto\"` | auto, none, dcgm"; !strings.Contains(string(output), want) {
		t.Fatalf("%q is not in\n%s", want, output)
	}
	agrees(t, filepath.Join(chart, "README.md"), strings.TrimSpace(string(output))+"\n")
}

// TestEveryKeyIsExplained: each key has a sentence that helm-docs reads.
func TestEveryKeyIsExplained(t *testing.T) {
	for _, one := range values(t) {
		if len(one.text) < 10 || !strings.HasSuffix(one.text, ".") {
			t.Errorf("%s: %q", one.key, one.text)
		}
	}
}

// TestSchemaHasEveryKey: values.yaml and the schema have the same keys, so
// that no documented key is refused, and none without effect is accepted.
func TestSchemaHasEveryKey(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join(chart, "values.schema.json"))), &schema); err != nil {
		t.Fatal(err)
	}
	var inValues []string
	documented := map[string]bool{}
	for _, one := range values(t) {
		inValues = append(inValues, one.key)
		documented[one.key] = true
	}
	inSchema := leaves(schema, schema["definitions"].(map[string]any), "", documented)
	// The values that a parent chart passes to all, and its condition for this
	// chart.
	for _, key := range []string{"global", "enabled"} {
		inSchema = slices.DeleteFunc(inSchema, func(one string) bool { return one == key })
	}
	slices.Sort(inSchema)
	slices.Sort(inValues)
	for _, key := range inSchema {
		if !slices.Contains(inValues, key) {
			t.Errorf("values.yaml lacks %s", key)
		}
	}
	for _, key := range inValues {
		if !slices.Contains(inSchema, key) {
			t.Errorf("the schema lacks %s", key)
		}
	}
}

// leaves returns the keys of a schema that have no keys below them, or are
// documented as one value.
func leaves(schema, definitions map[string]any, path string, documented map[string]bool) []string {
	if reference, ok := schema["$ref"].(string); ok {
		schema = definitions[strings.TrimPrefix(reference, "#/definitions/")].(map[string]any)
	}
	properties, _ := schema["properties"].(map[string]any)
	if documented[path] || len(properties) == 0 {
		return []string{path}
	}
	if schema["additionalProperties"] != false {
		return []string{path + " takes any key"}
	}
	var keys []string
	for name, property := range properties {
		if property := property.(map[string]any); property["$ref"] != "#/definitions/alias" {
			keys = append(keys, leaves(property, definitions, strings.TrimPrefix(path+"."+name, "."), documented)...)
		}
	}
	return keys
}

// values returns the keys of values.yaml in their order, with their comments.
func values(t *testing.T) []value {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(chart, "values.yaml"))), &document); err != nil {
		t.Fatal(err)
	}
	return below(document.Content[0], "")
}

// below returns the keys of a table. A table with a sentence is one value: its
// keys are Kubernetes' or the user's.
func below(node *yaml.Node, path string) (out []value) {
	for i := 0; i < len(node.Content); i += 2 {
		name, child := node.Content[i], node.Content[i+1]
		key := strings.TrimPrefix(path+"."+name.Value, ".")
		text := sentence(name.HeadComment)
		if child.Kind == yaml.MappingNode && len(child.Content) > 0 && text == "" {
			out = append(out, below(child, key)...)
			continue
		}
		out = append(out, value{key, text})
	}
	return out
}

// sentence returns a comment that begins with "# --", as one line.
func sentence(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	text, found := strings.CutPrefix(paragraphs[len(paragraphs)-1], "# -- ")
	if !found {
		return ""
	}
	return strings.ReplaceAll(text, "\n# ", " ")
}
