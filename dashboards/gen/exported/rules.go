package exported

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Rules rewrites a rule file, comments and all. What recording rules record keeps
// the exported labels, as what it is made of has them; alerts have the plain ones,
// by which they are routed.
func Rules(text []byte) ([]byte, error) {
	var file yaml.Node
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("decode rules: %w", err)
	}
	if len(file.Content) != 1 {
		return nil, fmt.Errorf("decode rules: the file has %d documents", len(file.Content))
	}
	for _, group := range items(field(file.Content[0], "groups")) {
		for _, rule := range items(field(group, "rules")) {
			rewriteRule(rule)
		}
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&file); err != nil {
		return nil, fmt.Errorf("encode rules: %w", err)
	}
	return out.Bytes(), nil
}

func rewriteRule(rule *yaml.Node) {
	expr := field(rule, "expr")
	if expr == nil {
		return
	}
	if field(rule, "alert") == nil {
		expr.Value = Expr(expr.Value)
		return
	}
	expr.Value = Answer(expr.Value)
	annotations := field(rule, "annotations")
	for i := 1; annotations != nil && i < len(annotations.Content); i += 2 {
		annotations.Content[i].Value = annotation(annotations.Content[i].Value)
	}
}

// field is the value of a key; nil, if there is none.
func field(object *yaml.Node, key string) *yaml.Node {
	if object == nil {
		return nil
	}
	for i := 0; i+1 < len(object.Content); i += 2 {
		if object.Content[i].Value == key {
			return object.Content[i+1]
		}
	}
	return nil
}

func items(list *yaml.Node) []*yaml.Node {
	if list == nil {
		return nil
	}
	return list.Content
}
