package prometheus

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestDocumentedChartValuesExist: each value of the chart that a document
// sets, or names in a table, exists.
func TestDocumentedChartValuesExist(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, root+"/deploy/helm/dra-exporter/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	set := regexp.MustCompile(`--set(?:-string|-file|-json)? '?([a-zA-Z.]+)[=\[]`)
	named := regexp.MustCompile("`((?:node|cluster|monitoring|rules|dashboards|networkPolicy|openshift|web|otlp|serviceAccounts|image)(?:\\.[a-z][a-zA-Z]*)+)(?:=[^`]*|: [^`]*)?`")
	count := 0
	for _, file := range documents(t) {
		text := read(t, file)
		for _, match := range append(set.FindAllStringSubmatch(text, -1), named.FindAllStringSubmatch(text, -1)...) {
			if strings.HasSuffix(match[1], ".yaml") {
				continue // a file
			}
			count++
			if !hasValue(values, strings.Split(match[1], ".")) {
				t.Errorf("%s: the chart has no value %s", strings.TrimPrefix(file, root+"/"), match[1])
			}
		}
	}
	if count < 40 {
		t.Errorf("found %d values", count)
	}
}

// hasValue follows a path. Below a map without keys, or one with the user's
// keys, any path exists.
func hasValue(values map[string]any, path []string) bool {
	value, there := values[path[0]]
	if !there || len(path) == 1 {
		return there
	}
	inner, isMap := value.(map[string]any)
	free := len(inner) == 0 || path[0] == "labels" || path[0] == "nodeSelector" || path[0] == "annotations"
	return isMap && (free || hasValue(inner, path[1:]))
}
