package helm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// value is one key of values.yaml.
type value struct{ key, standard, text string }

// TestValuesDocument: the table of README.md matches values.yaml, and each key
// has its sentence. With -update it is rewritten.
func TestValuesDocument(t *testing.T) {
	var table strings.Builder
	table.WriteString("| key | default | |\n|---|---|---|\n")
	for _, one := range values(t) {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", one.key, one.standard, one.text)
	}
	file := filepath.Join(chart, "README.md")
	text := read(t, file)
	const begin, end = "<!-- values -->\n", "<!-- /values -->"
	before, rest, found := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatal("README.md has no place for the table")
	}
	want := before + begin + table.String() + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		text = want
	}
	if text != want {
		t.Error("the table of README.md is not what values.yaml says; run `make chart`")
	}
}

// TestEveryKeyIsExplained: each key has a comment, except for those whose name
// is clear from their parent's sentence.
func TestEveryKeyIsExplained(t *testing.T) {
	plain := []string{
		"image.repository", "image.pullPolicy", "monitoring.annotations", "rules.annotations",
		"serviceAccounts.node.create", "serviceAccounts.node.annotations", "serviceAccounts.cluster.create", "serviceAccounts.cluster.annotations",
	}
	for _, one := range values(t) {
		if (one.text == "") != slices.Contains(plain, one.key) {
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
	inSchema := leaves(schema, schema["definitions"].(map[string]any), "")
	var inValues []string
	for _, one := range values(t) {
		inValues = append(inValues, one.key)
	}
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

// leaves returns the keys of a schema below which all keys are the user's.
func leaves(schema, definitions map[string]any, path string) []string {
	if reference, ok := schema["$ref"].(string); ok {
		schema = definitions[strings.TrimPrefix(reference, "#/definitions/")].(map[string]any)
	}
	properties, _ := schema["properties"].(map[string]any)
	if len(properties) == 0 || path == "node.prices" || strings.HasSuffix(path, ".appArmorProfile") {
		return []string{path}
	}
	if schema["additionalProperties"] != false {
		return []string{path + " takes any key"}
	}
	var keys []string
	for name, property := range properties {
		keys = append(keys, leaves(property.(map[string]any), definitions, strings.TrimPrefix(path+"."+name, "."))...)
	}
	return keys
}

// values returns the keys of values.yaml in their order, with defaults and
// comments.
func values(t *testing.T) []value {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(chart, "values.yaml"))), &document); err != nil {
		t.Fatal(err)
	}
	return below(t, document.Content[0], "")
}

// userTables returns the tables that are one value, because their keys are the
// user's.
func userTables() []string {
	return []string{
		"node.resources", "node.nodeSelector", "node.updateStrategy", "cluster.resources", "cluster.nodeSelector",
		"dashboards.labels", "dashboards.annotations",
	}
}

func below(t *testing.T, node *yaml.Node, path string) []value {
	t.Helper()
	var out []value
	for i := 0; i < len(node.Content); i += 2 {
		name, child := node.Content[i], node.Content[i+1]
		key := strings.TrimPrefix(path+"."+name.Value, ".")
		if child.Kind == yaml.MappingNode && len(child.Content) > 0 && !slices.Contains(userTables(), key) {
			out = append(out, below(t, child, key)...)
			continue
		}
		out = append(out, value{key, short(t, child), sentence(name.HeadComment)})
	}
	return out
}

// short returns a default on one line.
func short(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var plain any
	if err := node.Decode(&plain); err != nil {
		t.Fatal(err)
	}
	if plain == "" {
		return ""
	}
	text, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return "`" + strings.Trim(string(text), `"`) + "`"
}

// sentence returns a comment as one line of a table. A comment that is
// separated by an empty line belongs to the file.
func sentence(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	lines := strings.Split(paragraphs[len(paragraphs)-1], "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(strings.TrimPrefix(line, "#"))
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(strings.Join(lines, " "))
}
