package exported

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// Board rewrites the queries and variables of a dashboard's JSON.
func Board(text []byte) ([]byte, error) {
	var board map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&board); err != nil {
		return nil, fmt.Errorf("decode dashboard: %w", err)
	}
	panels(board)
	templating, _ := board["templating"].(map[string]any)
	for _, variable := range objects(templating["list"]) {
		valuesOf(variable)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(board); err != nil {
		return nil, fmt.Errorf("encode dashboard: %w", err)
	}
	return out.Bytes(), nil
}

// panels rewrites the targets of all panels, also of those in folded rows.
func panels(holder map[string]any) {
	for _, panel := range objects(holder["panels"]) {
		for _, target := range objects(panel["targets"]) {
			if expr, is := target["expr"].(string); is {
				target["expr"] = Answer(expr)
			}
		}
		panels(panel)
	}
}

// valuesOf rewrites label_values(series, label), of which no answer has labels.
func valuesOf(variable map[string]any) {
	rewrite := func(definition string) string {
		parts := regexp.MustCompile(`^label_values\((.+),\s*([a-zA-Z_]+)\)$`).FindStringSubmatch(definition)
		if parts == nil {
			return definition
		}
		label := parts[2]
		if slices.Contains(labels(), label) {
			label = "exported_" + label
		}
		return fmt.Sprintf("label_values(%s, %s)", Expr(parts[1]), label)
	}
	if definition, is := variable["definition"].(string); is {
		variable["definition"] = rewrite(definition)
	}
	if query, is := variable["query"].(map[string]any); is {
		if text, is := query["query"].(string); is {
			query["query"] = rewrite(text)
		}
	}
}

// objects are the objects of a JSON list; none, if it is none.
func objects(list any) (all []map[string]any) {
	items, _ := list.([]any)
	for _, item := range items {
		if object, is := item.(map[string]any); is {
			all = append(all, object)
		}
	}
	return all
}
